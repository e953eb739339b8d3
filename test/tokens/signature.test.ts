import { generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { SERVICE_ALGORITHMS } from '../../src/tokens/key-set.ts';
import { verifyConnectivityToken } from '../../src/tokens/verify.ts';
import { claimsOf, faultOf, makeKey, makeToken, type Sign, signer, trustIn } from '../fixtures/tokens.ts';

/** Why a connectivity token is rejected whose signature is made, or changed, by `sign`. */
function verdict(key: ReturnType<typeof makeKey>, sign: Sign) {
  return faultOf(verifyConnectivityToken(makeToken(key, claimsOf('connectivity'), { sign }), trustIn(key)));
}

describe('the signature of a connectivity token', () => {
  test.each(SERVICE_ALGORITHMS)('%s: is accepted as the key made it, and in no other form', async (alg) => {
    const key = makeKey(alg);
    const changed = (change: (signature: Buffer) => Uint8Array) =>
      verdict(key, (data) => change(Buffer.from(key.sign(data))));
    expect(await changed((signature) => signature)).toBe('accepted');
    const changes: ((signature: Buffer) => Uint8Array)[] = [
      (signature) => signature.subarray(1),
      (signature) => signature.subarray(0, -1),
      (signature) => signature.subarray(0, signature.length / 2),
      (signature) => Buffer.concat([signature, Buffer.alloc(1)]),
      (signature) => Buffer.concat([Buffer.alloc(1), signature]),
      (signature) => Buffer.concat([signature, signature]),
      // For ECDSA: r = s = 0 (THREATS.md 24).
      ({ length }) => Buffer.alloc(length),
      ({ length }) => Buffer.alloc(length, 0xff),
    ];
    for (const change of changes) expect(await changed(change)).toBe('signature');
    expect(await verdict(key, () => key.sign(Buffer.from('other bytes')))).toBe('signature');
  });

  test.each([
    ['ES256', 'sha256'],
    ['ES384', 'sha384'],
    ['ES512', 'sha512'],
  ] as const)('%s: DER is refused (THREATS.md 24)', async (algorithm, hash) => {
    const key = makeKey(algorithm);
    const der = (data: Buffer) => {
      const signature = sign(hash, data, key.privateKey);
      expect(verify(hash, data, key.publicKey, signature)).toBe(true);
      return signature;
    };
    expect(await verdict(key, der)).toBe('signature');
  });

  test('ES512: the same numbers in fewer or more bytes are refused (THREATS.md 24)', async () => {
    const key = makeKey('ES512');
    // A quarter of all P-521 signatures have a zero byte before both numbers.
    const spare = (data: Buffer): [Buffer, Buffer] => {
      for (;;) {
        const signature = Buffer.from(key.sign(data));
        const [r, s] = [signature.subarray(0, 66), signature.subarray(66)];
        if (r[0] === 0 && s[0] === 0) return [r, s];
      }
    };
    const zero = Buffer.alloc(1);
    expect(await verdict(key, (data) => Buffer.concat(spare(data)))).toBe('accepted');
    const fewer = (data: Buffer) => Buffer.concat(spare(data).map((number) => number.subarray(1)));
    const more = (data: Buffer) => Buffer.concat(spare(data).flatMap((number) => [zero, number]));
    for (const form of [fewer, more]) expect(await verdict(key, form)).toBe('signature');
  });

  test.each(['PS256', 'RS256'] as const)(
    '%s: without the zero byte at its start it is refused',
    async (alg) => {
      const key = makeKey(alg);
      // Of each key some claims have such a signature; PSS has another one each time.
      for (let tried = 0; ; tried += 1) {
        let start: number | undefined;
        const claims = claimsOf('connectivity', { jti: `${tried}` });
        const shortened = (data: Buffer) => {
          const signature = key.sign(data);
          start = signature[0];
          return signature.subarray(1);
        };
        const token = makeToken(key, claims, { sign: shortened });
        if (start !== 0) continue;
        expect(await faultOf(verifyConnectivityToken(token, trustIn(key)))).toBe('signature');
        return;
      }
    },
  );

  test.each(['PS256', 'RS256'] as const)(
    '%s: a key whose length is no whole number of bytes signs like any other',
    async (alg) => {
      const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2049 });
      const of = makeKey(alg);
      const { n } = publicKey.export({ format: 'jwk' });
      const key = { ...of, publicKey, privateKey, jwk: { ...of.jwk, n }, sign: signer(privateKey, alg) };
      expect(await verdict(key, key.sign)).toBe('accepted');
    },
  );

  test('PS256: a salt of another length than the digest is refused (RFC 7518 §3.5)', async () => {
    const key = makeKey('PS256');
    const salted = (data: Buffer) => {
      const padded = (half: KeyObject) => ({ key: half, padding: 6, saltLength: 20 });
      const signature = sign('sha256', data, padded(key.privateKey));
      expect(verify('sha256', data, padded(key.publicKey), signature)).toBe(true);
      return signature;
    };
    expect(await verdict(key, salted)).toBe('signature');
  });

  test('RS256: a key of 2047 bits is refused, though the signature is right (RFC 7518 §3.3)', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2047 });
    const { n, e } = publicKey.export({ format: 'jwk' });
    const short = { ...makeKey('RS256', { n, e }), sign: signer(privateKey, 'RS256') };
    expect(await verdict(short, short.sign)).toBe('malformed');
  });
});
