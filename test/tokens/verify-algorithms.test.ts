import { createHash, createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type Algorithm, localKeySet, readKeySet, SERVICE_ALGORITHMS } from '../../src/tokens/key-set.ts';
import type { TokenFault } from '../../src/tokens/token-error.ts';
import { verifyConnectivityToken, verifyToken, verifyUserToken } from '../../src/tokens/verify.ts';
import { key, trust } from '../fixtures/forged-tokens.ts';
import {
  base64url,
  claimsOf,
  type Forgery,
  faultOf,
  ISSUER,
  KINDS,
  makeKey,
  makeToken,
  NOW,
  type TestKey,
  trustIn,
  VERIFY,
} from '../fixtures/tokens.ts';

describe('algorithms', () => {
  const unsigned = { sign: () => Buffer.alloc(0) };
  test.each<[string, Forgery, TokenFault]>([
    ['none, unsigned', { header: { alg: 'none' }, ...unsigned }, 'malformed'],
    ['none, signed', { header: { alg: 'none' } }, 'algorithm'],
    ['None', { header: { alg: 'None' } }, 'algorithm'],
    ['nOnE', { header: { alg: 'nOnE' } }, 'algorithm'],
    ['ES256 with an empty signature', unsigned, 'malformed'],
    ['missing', { header: { alg: undefined } }, 'algorithm'],
    ['null', { header: { alg: null } }, 'algorithm'],
    ['empty', { header: { alg: '' } }, 'algorithm'],
    ['es256', { header: { alg: 'es256' } }, 'algorithm'],
    ['in an array', { header: { alg: ['ES256'] } }, 'algorithm'],
    ['ES256K', { header: { alg: 'ES256K' } }, 'algorithm'],
    ['dir', { header: { alg: 'dir' } }, 'algorithm'],
  ])('row 19: alg %s is rejected', async (_, forgery, fault) => {
    const token = makeToken(key, claimsOf('user'), forgery);
    expect(await faultOf(verifyUserToken(token, trust))).toBe(fault);
    expect(await faultOf(verifyToken(token, trust))).toBe(fault);
    const connectivity = makeToken(key, claimsOf('connectivity'), forgery);
    expect(await faultOf(verifyConnectivityToken(connectivity, trust))).toBe(fault);
  });

  const { publicKey } = key;
  const point = publicKey.export({ format: 'jwk' });
  const secrets: Record<string, string | Buffer> = {
    PEM: publicKey.export({ format: 'pem', type: 'spki' }),
    DER: publicKey.export({ format: 'der', type: 'spki' }),
    JWK: JSON.stringify(key.jwk),
    point: Buffer.from(`04${base64ToHex(point.x)}${base64ToHex(point.y)}`, 'hex'),
    'empty key': '',
  };
  test.each(
    Object.keys(secrets).flatMap((form) => ['HS256', 'HS384', 'HS512', 'ES256'].map((alg) => [form, alg])),
  )('row 19: an HMAC with the public key (%s) as secret, as %s, is rejected', async (form = '', alg = '') => {
    const hash = `sha${alg.slice(2)}`;
    const hmac = (data: Buffer) =>
      createHmac(hash, secrets[form] ?? '')
        .update(data)
        .digest();
    for (const kind of KINDS) {
      const token = makeToken(key, claimsOf(kind), { header: { alg }, sign: hmac });
      const due = alg === 'ES256' ? 'signature' : 'algorithm';
      expect(await faultOf(VERIFY[kind](token, trust))).toBe(due);
    }
  });

  test('row 19: a symmetric key in the key set verifies nothing', async () => {
    const secret = Buffer.from('a secret of the issuer that it should not have published');
    const issuers = new Map([
      [ISSUER, localKeySet({ keys: [{ kty: 'oct', kid: 'key1', k: base64url(secret), alg: 'HS256' }] })],
    ]);
    for (const alg of ['HS256', 'ES256']) {
      const hmac = (data: Buffer) => createHmac('sha256', secret).update(data).digest();
      const token = makeToken(key, claimsOf('connectivity'), { header: { alg }, sign: hmac });
      expect(await faultOf(verifyConnectivityToken(token, { issuers, now: () => NOW }))).toBe('algorithm');
    }
  });

  test.each(SERVICE_ALGORITHMS.filter((algorithm) => algorithm !== 'ES256'))(
    'row 19: %s where ES256 is due is rejected',
    async (algorithm) => {
      const other = makeKey(algorithm);
      for (const kind of ['user', 'project', 'experiment', 'service'] as const) {
        const token = makeToken(other, claimsOf(kind));
        expect(await faultOf(VERIFY[kind](token, trustIn(other)))).toBe('algorithm');
      }
    },
  );

  test.each(SERVICE_ALGORITHMS)(
    'a connectivity token may be signed with %s by a key of its type',
    async (algorithm) => {
      for (const alg of [algorithm, undefined]) {
        const own = makeKey(algorithm, { alg });
        const token = makeToken(own, claimsOf('connectivity'));
        expect(await faultOf(verifyConnectivityToken(token, trustIn(own)))).toBe('accepted');
      }
    },
  );

  test.each([
    ['EdDSA', 'Ed25519'],
    ['Ed25519', 'EdDSA'],
  ] as const)('RFC 9864: %s is verified with a key that says %s, its other name', async (alg, says) => {
    const own = makeKey(alg, { alg: says });
    const token = makeToken(own, claimsOf('connectivity'));
    expect(await faultOf(verifyConnectivityToken(token, trustIn(own)))).toBe('accepted');
  });

  const isEdwards = (algorithm: Algorithm): boolean => algorithm.startsWith('Ed');
  const confusions = SERVICE_ALGORITHMS.flatMap((alg) =>
    SERVICE_ALGORITHMS.filter((other) => other !== alg && !(isEdwards(alg) && isEdwards(other))).map(
      (other) => [alg, other] as const,
    ),
  );
  test.each(confusions)(
    'row 19: a header that says %s with a key for %s is rejected',
    async (alg, keyFor) => {
      const sameType = ['PS256', 'RS256'].includes(alg) && ['PS256', 'RS256'].includes(keyFor);
      for (const says of [keyFor, undefined]) {
        const own = makeKey(keyFor, { alg: says });
        const token = makeToken(own, claimsOf('connectivity'), { header: { alg } });
        const due = sameType && says === undefined ? 'signature' : 'algorithm';
        expect(await faultOf(verifyConnectivityToken(token, trustIn(own)))).toBe(due);
      }
    },
  );

  test.each([
    ['PS256', 'RS256'],
    ['RS256', 'PS256'],
  ] as const)('row 19: a sound %s signature by a key that says %s is rejected', async (alg, says) => {
    const own = makeKey(alg, { alg: says });
    const token = makeToken(own, claimsOf('connectivity'));
    expect(await faultOf(verifyConnectivityToken(token, trustIn(own)))).toBe('algorithm');
  });

  test.each<Record<string, unknown>>([
    ...[{ use: 'enc' }, { use: '' }, { alg: 'ES384' }, { alg: 'ECDH-ES' }, { alg: '' }],
    ...[['deriveKey'], ['sign']].map((key_ops) => ({ use: undefined, alg: undefined, key_ops })),
  ])('row 19: a key with %j verifies no token (RFC 7517 §4.2 to §4.4)', async (jwk) => {
    const own = makeKey('ES256', jwk);
    expect(await faultOf(verifyUserToken(makeToken(own, claimsOf('user')), trustIn(own)))).toBe('algorithm');
  });
});

describe('row 62: keys that prove nothing', () => {
  test.each([
    ['1', 'AQ', 'malformed'],
    ['3', 'Aw', 'malformed'],
    ['65535', 'AP__', 'malformed'],
    ['65538, which is even', 'AQAC', 'malformed'],
    ['65537', 'AQAB', 'signature'],
  ])('an RSA key with the exponent %s', async (_, e, fault) => {
    const own = makeKey('RS256', { e });
    // With the exponent 1 a message, padded, is its own signature: no private key is needed.
    const digestInfo = Buffer.from('3031300d060960864801650304020105000420', 'hex');
    const itself = (data: Buffer): Buffer => {
      const digest = createHash('sha256').update(data).digest();
      const fill = Buffer.alloc(256 - 3 - digestInfo.length - digest.length, 0xff);
      return Buffer.concat([Buffer.from([0, 1]), fill, Buffer.from([0]), digestInfo, digest]);
    };
    const token = makeToken(own, claimsOf('connectivity'), { sign: itself });
    expect(await faultOf(verifyConnectivityToken(token, trustIn(own)))).toBe(fault);
  });

  test.each([2048, 3072])(
    'a modulus of %i bits as the chips of CVE-2017-15361 made them (ROCA)',
    async (bits) => {
      const primes = [...Array(168).keys()].filter(
        (n) => n > 2 && [2, 3, 5, 7, 11].every((p) => n === p || n % p),
      );
      const product = primes.map(BigInt).reduce((one, other) => one * other, 1n);
      const weak = 65_537n ** 5n + product * (2n ** BigInt(bits - 1) / product + 2n);
      const verdict = async (n: bigint) => {
        const own = makeKey('RS256', { n: Buffer.from(n.toString(16), 'hex').toString('base64url') });
        return faultOf(verifyConnectivityToken(makeToken(own, claimsOf('connectivity')), trustIn(own)));
      };
      expect([await verdict(weak), await verdict(weak + 2n)]).toEqual(['malformed', 'signature']);
    },
  );

  test.each<[string, object[], TokenFault | 'accepted']>([
    ['twice', [{}, {}], 'accepted'],
    ['twice, once without its alg', [{ alg: undefined }, {}], 'accepted'],
    ['twice without a kid', [{ kid: undefined }, { kid: undefined }], 'accepted'],
    ['with null for what is absent', [{ alg: null, use: null, key_ops: null, d: null }], 'accepted'],
    ['twice, once with its private part', [{}, { d: 'x' }], 'key_unknown'],
    ['beside another of its kid', [{}, makeKey('ES256', {}, 'other').jwk], 'key_unknown'],
    ['for another use', [{ use: 'enc' }], 'algorithm'],
  ])('a key that is listed %s', async (_, listed, due) => {
    const own = makeKey('ES256');
    const keys = readKeySet({ keys: listed.map((change) => ({ ...own.jwk, ...change })) });
    const header = { kid: keys.keys[0]?.kid };
    const trust = { issuers: new Map([[ISSUER, localKeySet(keys)]]), now: () => NOW };
    expect(await faultOf(verifyUserToken(makeToken(own, claimsOf('user'), { header }), trust))).toBe(due);
  });

  test.each<[Algorithm, string]>([
    ['ES256', 'd'],
    ['EdDSA', 'd'],
    ['RS256', 'd'],
    ['RS256', 'p'],
    ['RS256', 'qi'],
  ])('a key for %s whose %s the key set gives away', async (algorithm, member) => {
    const kind = makeKey(algorithm, { kid: 'leaked' });
    const secret = kind.privateKey.export({ format: 'jwk' })[member];
    const leaked = makeKey(algorithm, { kid: 'leaked', [member]: secret });
    const other = makeKey('ES256', { kid: 'other' }, 'other');
    const verify = (key: TestKey) =>
      faultOf(verifyConnectivityToken(makeToken(key, claimsOf('connectivity')), trustIn([leaked, other])));
    expect(await verify(leaked)).toBe('key_unknown');
    expect(await verify(other)).toBe('accepted');
  });

  test('row 62: an ES256 signature with the high s is valid, like its twin with the low one (RFC 7518 §3.4)', async () => {
    const own = makeKey('ES256');
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const twin = (data: Buffer): Buffer => {
      const signature = Buffer.from(own.sign(data));
      const s = BigInt(`0x${signature.subarray(32).toString('hex')}`);
      const other = (order - s).toString(16).padStart(64, '0');
      return Buffer.concat([signature.subarray(0, 32), Buffer.from(other, 'hex')]);
    };
    const trust = trustIn(own);
    for (const sign of [own.sign, twin]) {
      expect(await faultOf(verifyUserToken(makeToken(own, claimsOf('user'), { sign }), trust))).toBe(
        'accepted',
      );
    }
  });
});

function base64ToHex(part: string | undefined): string {
  return Buffer.from(part ?? '', 'base64url').toString('hex');
}
