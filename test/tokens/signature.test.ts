import { generateKeyPairSync, sign, verify, webcrypto } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SERVICE_ALGORITHMS } from '../../src/tokens/algorithms.ts';
import { derFromJws, jwsFromDer } from '../../src/tokens/ecdsa-signature.ts';
import { localKeySet } from '../../src/tokens/key-set.ts';
import { isSignedBy } from '../../src/tokens/signature.ts';
import { makeKey } from '../fixtures/tokens.ts';

const DATA = Buffer.from('header.payload');
const imported = (key: ReturnType<typeof makeKey>) =>
  localKeySet({ keys: [key.jwk] }).find(key.kid, key.algorithm);

describe('isSignedBy', () => {
  test.each(SERVICE_ALGORITHMS)('%s: a sound signature, and no other', async (algorithm) => {
    const key = makeKey(algorithm);
    const publicKey = await imported(key);
    const signature = Buffer.from(key.sign(DATA));
    expect(isSignedBy(publicKey, algorithm, DATA, signature)).toBe(true);
    expect(isSignedBy(publicKey, algorithm, Buffer.from('header.payloae'), signature)).toBe(false);
    for (const wrong of [
      signature.subarray(1),
      signature.subarray(0, -1),
      signature.subarray(0, signature.length / 2),
      Buffer.concat([signature, Buffer.alloc(1)]),
      Buffer.concat([Buffer.alloc(1), signature]),
      Buffer.concat([signature, signature]),
      Buffer.alloc(signature.length),
      Buffer.alloc(signature.length, 0xff),
      Buffer.alloc(0),
    ]) {
      expect(isSignedBy(publicKey, algorithm, DATA, wrong)).toBe(false);
    }
  });

  test.each(['ES256', 'ES384', 'ES512'] as const)('%s: DER is refused (HOSTILE.md 24)', async (algorithm) => {
    const key = makeKey(algorithm);
    const hash = { ES256: 'sha256', ES384: 'sha384', ES512: 'sha512' }[algorithm];
    const der = sign(hash, DATA, key.privateKey);
    expect(verify(hash, DATA, key.publicKey, der)).toBe(true);
    expect(isSignedBy(await imported(key), algorithm, DATA, der)).toBe(false);
  });

  test.each(['ES256', 'ES384', 'ES512'] as const)(
    '%s: the same numbers in more bytes, or in fewer, are refused (HOSTILE.md 24)',
    async (algorithm) => {
      const key = makeKey(algorithm);
      const publicKey = await imported(key);
      // One in 65,536 has a zero byte before both numbers of P-256; of P-521 half of each have one.
      const signature = Buffer.from(key.sign(DATA));
      const half = signature.length / 2;
      const [r, s] = [signature.subarray(0, half), signature.subarray(half)];
      const zero = Buffer.alloc(1);
      expect(isSignedBy(publicKey, algorithm, DATA, Buffer.concat([zero, r, zero, s]))).toBe(false);
      const forms = Array.from({ length: 200 }, () => Buffer.from(key.sign(DATA)));
      const spare = forms.filter((form) => form[0] === 0 && form[half] === 0);
      expect(algorithm !== 'ES512' || spare.length > 0).toBe(true);
      for (const form of spare) {
        const fewer = Buffer.concat([form.subarray(1, half), form.subarray(half + 1)]);
        expect(isSignedBy(publicKey, algorithm, DATA, form)).toBe(true);
        expect(isSignedBy(publicKey, algorithm, DATA, fewer)).toBe(false);
      }
    },
  );

  test('PS256: a salt of another length than the digest is refused (RFC 7518 §3.5)', async () => {
    const key = makeKey('PS256');
    const salted = sign('sha256', DATA, { key: key.privateKey, padding: 6, saltLength: 20 });
    expect(verify('sha256', DATA, { key: key.publicKey, padding: 6, saltLength: 20 }, salted)).toBe(true);
    expect(isSignedBy(await imported(key), 'PS256', DATA, salted)).toBe(false);
  });

  test.each(SERVICE_ALGORITHMS)('a key for %s checks no other algorithm', async (algorithm) => {
    const key = makeKey(algorithm);
    const publicKey = await imported(key);
    for (const other of SERVICE_ALGORITHMS) {
      if (other === algorithm) continue;
      expect(() => isSignedBy(publicKey, other, DATA, key.sign(DATA))).toThrow(TypeError);
      // The refusal of one must not spoil the key for what it is for.
      expect(isSignedBy(publicKey, algorithm, DATA, key.sign(DATA))).toBe(true);
    }
  });

  test('a private key, one that may not verify, one bound to another digest, and a short RSA key are refused', async () => {
    const { subtle } = webcrypto;
    const p256 = { name: 'ECDSA', namedCurve: 'P-256' };
    const { publicKey, privateKey } = await subtle.generateKey(p256, true, ['sign', 'verify']);
    const jwk = await subtle.exportKey('jwk', publicKey);
    const idle = await subtle.importKey('jwk', { ...jwk, key_ops: [] }, p256, true, []);
    const sha384 = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-384' };
    const rsa = makeKey('RS256').publicKey.export({ format: 'der', type: 'spki' });
    const bound = await subtle.importKey('spki', rsa, sha384, true, ['verify']);
    const weak = generateKeyPairSync('rsa', { modulusLength: 2047 });
    const spki = weak.publicKey.export({ format: 'der', type: 'spki' });
    const short = await subtle.importKey('spki', spki, { ...sha384, hash: 'SHA-256' }, true, ['verify']);
    const signature = sign('sha256', DATA, weak.privateKey);
    expect(verify('sha256', DATA, weak.publicKey, signature)).toBe(true);
    for (const key of [privateKey, idle]) {
      expect(() => isSignedBy(key, 'ES256', DATA, Buffer.alloc(64))).toThrow('not one for ES256');
    }
    for (const key of [bound, short]) {
      expect(() => isSignedBy(key, 'RS256', DATA, signature)).toThrow('not one for RS256');
    }
  });
});

describe('the two forms of an ECDSA signature', () => {
  const curves = [
    ['P-256', 'sha256', 32],
    ['P-384', 'sha384', 48],
    ['P-521', 'sha512', 66],
  ] as const;
  test.each(curves)('%s: each form verifies as the other (many signatures)', (namedCurve, hash, width) => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve });
    for (let round = 0; round < 300; round += 1) {
      const data = Buffer.from(`${round}`);
      const der = sign(hash, data, privateKey);
      const jws = jwsFromDer(der, width);
      expect(verify(hash, data, { key: publicKey, dsaEncoding: 'ieee-p1363' }, jws)).toBe(true);
      expect(Buffer.from(derFromJws(jws))).toEqual(der);
    }
  });

  test.each(curves)('%s: any two numbers go there and back (property)', (_, __, width) => {
    // Numbers with zero bytes before them, and with and without the first bit set, and zero.
    const number = fc
      .uint8Array({ maxLength: width })
      .map((digits) => Buffer.concat([Buffer.alloc(width - digits.length), digits]));
    fc.assert(
      fc.property(number, number, (r, s) => {
        const jws = Buffer.concat([r, s]);
        const der = derFromJws(jws);
        expect(jwsFromDer(der, width)).toEqual(jws);
        const lengthBytes = der[1] === 0x81 ? 1 : 0;
        expect(der.length).toBe(2 + lengthBytes + (der[1 + lengthBytes] ?? 0));
      }),
    );
  });

  test.each([
    ['00'.repeat(64), '3006020100020100'],
    [`${'00'.repeat(31)}01${'00'.repeat(31)}80`, '300702010102020080'],
    [`${'ff'.repeat(32)}7f${'00'.repeat(31)}`, `3045022100${'ff'.repeat(32)}02207f${'00'.repeat(31)}`],
  ])('numbers in DER are as short as they can be and never negative', (jws, der) => {
    expect(Buffer.from(derFromJws(Buffer.from(jws, 'hex'))).toString('hex')).toBe(der);
  });
});
