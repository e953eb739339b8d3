import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { SERVICE_ALGORITHMS } from '../../src/tokens/algorithms.ts';
import { MAX_TOKEN_LENGTH } from '../../src/tokens/compact.ts';
import { localKeySet } from '../../src/tokens/key-set.ts';
import { remoteKeySet } from '../../src/tokens/remote-key-set.ts';
import type { TokenFault } from '../../src/tokens/token-error.ts';
import { verifyToken } from '../../src/tokens/verifier.ts';
import {
  IAT_LEEWAY,
  type TokenKind,
  verifyConnectivityToken,
  verifyProjectToken,
  verifyUserToken,
} from '../../src/tokens/verify.ts';
import {
  base64url,
  claimsOf,
  errorOf,
  type Forgery,
  faultOf,
  IDS,
  ISSUER,
  KINDS,
  keySetOf,
  makeKey,
  makeToken,
  NOW,
  partsOf,
  RESERVATION,
  SECONDS,
  signer,
  trustIn,
  VERIFY,
} from '../fixtures/tokens.ts';

const key = makeKey();
const stranger = makeKey('ES256', {}, 'stranger');
const trust = trustIn(key);

/** What becomes of a user token with this about it. */
const user = (forgery: Forgery, claims: Record<string, unknown> = {}) =>
  faultOf(verifyUserToken(makeToken(key, claimsOf('user', claims), forgery), trust));

describe('a token as its issuer makes it', () => {
  test.each(KINDS)('%s: verifies, and its claims come out', async (kind) => {
    const token = makeToken(key, claimsOf(kind));
    expect(await VERIFY[kind](token, trust)).toEqual(claimsOf(kind));
    expect(await verifyToken(token, trust)).toEqual({ kind, claims: claimsOf(kind) });
  });

  test('claims that are not required may be absent, others may be added', async () => {
    const bare = { aud: undefined, auth_time: undefined, scope: undefined, preferred_username: undefined };
    expect(await user({}, { ...bare, more: { a: [1] } })).toBe('accepted');
  });
});

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

  test("a key that calls EdDSA by its curve's name (RFC 9864) verifies EdDSA", async () => {
    const own = makeKey('EdDSA', { alg: 'Ed25519' });
    const token = makeToken(own, claimsOf('connectivity'));
    expect(await faultOf(verifyConnectivityToken(token, trustIn(own)))).toBe('accepted');
  });

  const confusions = SERVICE_ALGORITHMS.flatMap((alg) =>
    SERVICE_ALGORITHMS.filter((other) => other !== alg).map((other) => [alg, other] as const),
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

  test.each<[string, Record<string, unknown>]>([
    ["use 'enc'", { use: 'enc' }],
    ["use ''", { use: '' }],
    ["alg 'ES384'", { alg: 'ES384' }],
    ["alg 'ECDH-ES'", { alg: 'ECDH-ES' }],
    ["alg ''", { alg: '' }],
    ["key_ops ['deriveKey']", { use: undefined, alg: undefined, key_ops: ['deriveKey'] }],
    ["key_ops ['sign']", { use: undefined, alg: undefined, key_ops: ['sign'] }],
  ])('row 19: a key with %s verifies no token (RFC 7517 §4.2 to §4.4)', async (_, jwk) => {
    const own = makeKey('ES256', jwk);
    expect(await faultOf(verifyUserToken(makeToken(own, claimsOf('user')), trustIn(own)))).toBe('algorithm');
  });

  test('a key that says neither use nor alg verifies', async () => {
    const own = makeKey('ES256', { use: undefined, alg: undefined });
    expect(await faultOf(verifyUserToken(makeToken(own, claimsOf('user')), trustIn(own)))).toBe('accepted');
  });

  test('row 19: an RSA key of fewer than 2048 bits is rejected (RFC 7518 §3.3)', async () => {
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const { kty = '', n, e } = weak.publicKey.export({ format: 'jwk' });
    const own = {
      ...makeKey('RS256'),
      sign: signer(weak.privateKey, 'RS256'),
      jwk: { kty, n, e, kid: 'key1' },
    };
    const token = makeToken(own, claimsOf('connectivity'));
    expect(await faultOf(verifyConnectivityToken(token, trustIn(own)))).not.toBe('accepted');
  });
});

function base64ToHex(part: string | undefined): string {
  return Buffer.from(part ?? '', 'base64url').toString('hex');
}

describe('times', () => {
  /** The fault of a user token with this iat and exp (seconds from NOW), at a clock so many milliseconds later. */
  const at = (iat: number, exp: number, later = 0) =>
    faultOf(
      verifyUserToken(makeToken(key, claimsOf('user', { iat: SECONDS + iat, exp: SECONDS + exp })), {
        ...trust,
        now: () => NOW + later,
      }),
    );

  test('the leeway for iat is 60 s', () => expect(IAT_LEEWAY).toBe(60));

  test.each<[string, number, number, number, TokenFault | 'accepted']>([
    ['iat = now', 0, 900, 0, 'accepted'],
    ['iat 60 s ahead', 60, 900, 0, 'accepted'],
    ['iat 60.001 s ahead', 60, 900, -1, 'not_yet'],
    ['iat 61 s ahead', 61, 900, 0, 'not_yet'],
    ['iat 60.001 s ahead, then 60 s', 61, 900, 1000, 'accepted'],
    ['iat a day ahead', 86_400, 90_000, 0, 'not_yet'],
    ['exp a millisecond ahead', -900, 0, -1, 'accepted'],
    ['exp = now', -900, 0, 0, 'expired'],
    ['exp a millisecond ago', -900, 0, 1, 'expired'],
    ['exp 1 s ahead', -900, 1, 999, 'accepted'],
    ['exp 59 s ago: no leeway', -900, -59, 0, 'expired'],
    ['exp before iat', 60, 30, 0, 'claims'],
    ['exp = iat', 60, 60, 0, 'claims'],
  ])('row 20: %s', async (_, iat, exp, later, due) => {
    expect(await at(iat, exp, later)).toBe(due);
  });

  const values: [string, string][] = [
    ['null', 'null'],
    ['a string', `"${SECONDS + 900}"`],
    ['true', 'true'],
    ['an array', `[${SECONDS + 900}]`],
    ['an object', '{}'],
    ['negative', '-1'],
    ['negative and huge', '-1e400'],
    ['infinite', '1e400'],
    ['later than any date', '1e300'],
    ['a millisecond past the last date', '8640000000000.001'],
  ];
  test.each(KINDS.flatMap((kind) => ['exp', 'iat'].map((claim) => [kind, claim] as const)))(
    'row 20: %s token without %s is rejected',
    async (kind, claim) => {
      const token = makeToken(key, claimsOf(kind, { [claim]: undefined }));
      expect(await faultOf(VERIFY[kind](token, trust))).toBe('claims');
    },
  );
  test.each(values)('row 20: exp %s is rejected', async (_, value) => {
    const rawPayload = JSON.stringify(claimsOf('user', { exp: 0 })).replace('"exp":0', `"exp":${value}`);
    expect(await user({ rawPayload })).toBe('claims');
  });
  test.each(values)('row 20: iat %s is rejected', async (_, value) => {
    const rawPayload = JSON.stringify(claimsOf('user', { iat: 0 })).replace('"iat":0', `"iat":${value}`);
    expect(['claims', 'not_yet']).toContain(await user({ rawPayload }));
  });

  test.each<[string, number, number, TokenFault | 'accepted']>([
    ['exp half a second ahead', 0, 0.5, 'accepted'],
    ['exp half a second ago', -900, -0.5, 'expired'],
    ['iat 60.5 s ahead', 60.5, 900, 'not_yet'],
  ])(
    'row 20: a fraction (RFC 7519 §2 allows it) is never rounded in favour: %s',
    async (_, iat, exp, due) => {
      expect(await at(iat, exp)).toBe(due);
    },
  );

  test('row 20: an iat in the future names the machine’s clock', async () => {
    const token = makeToken(key, claimsOf('user', { iat: SECONDS + 3600, exp: SECONDS + 7200 }));
    const { message } = await errorOf(verifyUserToken(token, trust));
    expect(message).toContain('3600 s');
    expect(message).toMatch(/this machine's clock \(2026-11-01T12:00:00\.000Z\)/);
  });

  test('row 20: an nbf in the future is rejected (RFC 7519 §4.1.5)', async () => {
    expect(await user({}, { nbf: SECONDS + 3600 })).not.toBe('accepted');
    expect(await user({}, { nbf: SECONDS - 1 })).toBe('accepted');
  });

  test('the clock is asked at each verification', async () => {
    let now = NOW;
    const token = makeToken(key, claimsOf('user'));
    const moving = trustIn(key, { now: () => now });
    expect(await faultOf(verifyUserToken(token, moving))).toBe('accepted');
    now += 900_000;
    expect(await faultOf(verifyUserToken(token, moving))).toBe('expired');
  });
});

describe('key ids', () => {
  test.each<[string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['a number', 1],
    ['an array', ['key1']],
    ['empty', ''],
    ['unknown', 'key2'],
    ['in capitals', 'KEY1'],
    ['with a space', 'key1 '],
    ['../../etc/passwd', '../../etc/passwd'],
    ['a URL', 'https://evil.example/jwks.json'],
    ['__proto__', '__proto__'],
    ['SQL', "' OR 1=1 --"],
  ])('row 21: a kid that is %s is rejected', async (_, kid) => {
    expect(await user({ header: { kid } })).toBe('key_unknown');
  });

  test('row 21: a key without a kid is found by no token', async () => {
    const own = makeKey('ES256', { kid: undefined });
    for (const kid of [undefined, '', 'undefined', 'key1']) {
      const token = makeToken(own, claimsOf('user'), { header: { kid } });
      expect(await faultOf(verifyUserToken(token, trustIn(own)))).toBe('key_unknown');
    }
  });

  test('row 21: two keys under one kid are not guessed between', async () => {
    const token = makeToken(key, claimsOf('user'));
    expect(await faultOf(verifyUserToken(token, trustIn([key, stranger])))).toBe('key_unknown');
    const otherType = makeKey('ES384');
    expect(await faultOf(verifyUserToken(token, trustIn([otherType, key])))).toBe('accepted');
  });

  test('row 21: the kid picks the key, and only that key verifies', async () => {
    const second = makeKey('ES256', { kid: 'key2' }, 'stranger');
    const both = trustIn([key, second]);
    expect(await faultOf(verifyUserToken(makeToken(second, claimsOf('user')), both))).toBe('accepted');
    const misnamed = makeToken(second, claimsOf('user'), { header: { kid: 'key1' } });
    expect(await faultOf(verifyUserToken(misnamed, both))).toBe('signature');
  });

  test("row 21: a key set's key that can't be read is the issuer's fault", async () => {
    const own = makeKey('ES256', { x: 'AAAA' });
    expect(await faultOf(verifyUserToken(makeToken(own, claimsOf('user')), trustIn(own)))).toBe(
      'keys_unreachable',
    );
  });
});

describe('keys that a token brings along', () => {
  afterEach(() => vi.restoreAllMocks());

  const certificate = base64url('not a certificate');
  test.each<[string, Record<string, unknown>]>([
    ['jku', { jku: 'https://evil.example/jwks.json' }],
    ['x5u', { x5u: 'https://evil.example/cert.pem' }],
    ['jwk', { jwk: stranger.jwk }],
    ['x5c', { x5c: [certificate] }],
    ['all of them', { jku: 'https://evil.example', x5u: 'https://evil.example', jwk: stranger.jwk }],
  ])('row 22: %s is ignored, and nothing is fetched for it', async (_, header) => {
    const platform = vi.spyOn(globalThis, 'fetch');
    const fetched: string[] = [];
    const remote = remoteKeySet({
      url: `${ISSUER}/.well-known/jwks.json`,
      now: () => NOW,
      fetch: async (request) => {
        fetched.push(request.url);
        return Response.json(keySetOf(key));
      },
    });
    for (const keys of [localKeySet(keySetOf(key)), remote]) {
      const believing = { issuers: new Map([[ISSUER, keys]]), now: () => NOW };
      const verdict = (forgery: Forgery, by = stranger) =>
        faultOf(verifyUserToken(makeToken(by, claimsOf('user'), forgery), believing));
      expect(await verdict({ header })).toBe('signature');
      expect(await verdict({ header: { ...header, kid: 'theirs' } })).toBe('key_unknown');
      expect(await verdict({ header: { ...header, kid: undefined } })).toBe('key_unknown');
      expect(await verdict({ header }, key)).toBe('accepted');
    }
    expect(new Set(fetched)).toEqual(new Set([`${ISSUER}/.well-known/jwks.json`]));
    expect(platform).not.toHaveBeenCalled();
  });
});

describe('issuer, audience, kind', () => {
  test.each<[string, unknown]>([
    ['another', 'https://evil.example'],
    ['missing', undefined],
    ['null', null],
    ['with a slash', `${ISSUER}/`],
    ['in capitals', ISSUER.toUpperCase()],
    ['longer', `${ISSUER}.evil.example`],
    ['in an array', [ISSUER]],
    ['empty', ''],
    ['__proto__', '__proto__'],
  ])('row 23: an iss that is %s is rejected', async (_, iss) => {
    expect(await user({}, { iss })).toBe('issuer');
  });

  test("row 23: an issuer's key does not speak for another issuer", async () => {
    const other = 'https://other.example.org';
    const both = {
      issuers: new Map([
        [ISSUER, localKeySet(keySetOf(key))],
        [other, localKeySet(keySetOf(stranger))],
      ]),
      now: () => NOW,
    };
    const verdict = (by: typeof key, iss: string) =>
      faultOf(verifyUserToken(makeToken(by, claimsOf('user', { iss })), both));
    expect(await verdict(stranger, other)).toBe('accepted');
    expect(await verdict(stranger, ISSUER)).toBe('signature');
    expect(await verdict(key, other)).toBe('signature');
  });

  test('row 28: nothing verifies without a trusted issuer', async () => {
    for (const kind of KINDS) {
      const nobody = { issuers: new Map(), now: () => NOW };
      const token = makeToken(key, claimsOf(kind));
      expect(await faultOf(VERIFY[kind](token, nobody))).toBe('issuer');
      const noKeys = trustIn([]);
      expect(await faultOf(VERIFY[kind](token, noKeys))).toBe('key_unknown');
    }
  });

  const ours = 'https://conn.example.org';
  test.each<[string, unknown, TokenFault | 'accepted']>([
    ['ours', ours, 'accepted'],
    ['ours in a list', ['https://x.example', ours], 'accepted'],
    ['another', 'https://x.example', 'audience'],
    ['longer', `${ours}/`, 'audience'],
    ['others in a list', ['https://x.example'], 'audience'],
    ['an empty list', [], 'audience'],
    ['missing', undefined, 'audience'],
    ['null', null, 'claims'],
    ['a number', 5, 'claims'],
    ['nested', [[ours]], 'claims'],
  ])('row 23: where an audience is set, aud %s', async (_, aud, due) => {
    const token = makeToken(key, claimsOf('user', { aud }));
    expect(await faultOf(verifyUserToken(token, { ...trust, audience: ours }))).toBe(due);
  });

  const mixtures = KINDS.flatMap((is) =>
    KINDS.filter((due) => due !== is).map((due): [TokenKind, TokenKind] => [is, due]),
  );
  test.each(mixtures)(
    'row 23: a token of kind %s where one of kind %s is due is rejected',
    async (is, due) => {
      const token = makeToken(key, claimsOf(is));
      expect(await faultOf(VERIFY[due](token, trust))).toBe('kind');
    },
  );

  test.each<[string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['a number', 5],
    ['in an array', [IDS.user]],
    ['an object', {}],
    ['an object that is no text', { toString: 1, valueOf: 1 }],
    ['empty', ''],
    ['the prefix alone', 'user'],
    ['a word that starts like it', 'users'],
    ['without a host', 'user_'],
    ['without an id', 'user_portal.example.org_'],
    ['followed by a newline', `${IDS.user}\n`],
    ['in capitals', IDS.user.toUpperCase()],
    ['with an escape', 'user_portal.example.org_\u001b[2J'],
    ['with a slash', 'user_portal.example.org/../_x'],
  ])('row 23: a user token whose sub is %s is rejected', async (_, sub) => {
    expect(['kind', 'claims']).toContain(await user({}, { sub }));
  });

  test('row 23: a user token whose sub is a deeply nested array is rejected', async () => {
    const rawPayload = JSON.stringify(claimsOf('user', { sub: 0 })).replace('"sub":0', `"sub":${DEEP}`);
    expect(['kind', 'claims']).toContain(await user({ rawPayload }));
  });

  test.each([undefined, 'ci', 'users', 'conn', 'expo', 'proj1', 'mailto:a@b.example', '_user'])(
    "a service's own token may have any subject that is no id: %s",
    async (sub) => {
      const token = makeToken(key, claimsOf('service', { sub }));
      expect((await verifyToken(token, trust)).kind).toBe('service');
    },
  );

  const another = 'con_conn.example.org_another';
  const about = (sub: string, id: string) =>
    makeToken(key, claimsOf('connectivity', { sub, connectivity: { ...RESERVATION, id } }));
  test('row 23: a connectivity token whose sub is not its connectivity.id is rejected', async () => {
    expect(await faultOf(verifyConnectivityToken(about(another, RESERVATION.id), trust))).toBe('claims');
    expect(await faultOf(verifyConnectivityToken(about(RESERVATION.id, another), trust))).toBe('claims');
  });

  test('row 23: a connectivity token about another reservation than was asked for is rejected', async () => {
    const token = about(RESERVATION.id, RESERVATION.id);
    expect(await faultOf(verifyConnectivityToken(token, trust, another))).toBe('claims');
    expect(await faultOf(verifyConnectivityToken(token, trust, ''))).toBe('claims');
    expect(await faultOf(verifyConnectivityToken(token, trust, RESERVATION.id))).toBe('accepted');
  });

  test.each<[TokenKind, string, Record<string, unknown>]>([
    ['project', 'act', { act: undefined }],
    ['project', 'act.role', { act: { sub: IDS.user } }],
    ['project', 'act.sub', { act: { sub: IDS.project, role: 'lead' } }],
    ['project', 'proj_exp', { proj_exp: undefined }],
    ['experiment', 'act', { act: 'lead' }],
    ['experiment', 'exp_exp', { exp_exp: 5 }],
    ['experiment', 'proj', { proj: IDS.user }],
    ['connectivity', 'connectivity', { connectivity: undefined }],
    ['connectivity', 'connectivity.bandwidth', { connectivity: { ...RESERVATION, bandwidth: 0 } }],
    ['connectivity', 'connectivity.site1_s_tag', { connectivity: { ...RESERVATION, site1_s_tag: 4095 } }],
    ['user', 'scope', { scope: ['openid'] }],
  ])(
    'a %s token whose claim %s is missing or wrong is rejected, and the message names it',
    async (kind, name, changes) => {
      const error = await errorOf(VERIFY[kind](makeToken(key, claimsOf(kind, changes)), trust));
      expect(error.code).toBe('claims');
      expect(error.message).toContain(`claim ${name} `);
    },
  );

  test.each<[unknown, 'accepted' | TokenFault]>([
    [undefined, 'accepted'],
    ['JWT', 'accepted'],
    ['jwt', 'accepted'],
    ['at+jwt', 'accepted'],
    ['application/jwt', 'accepted'],
    ['application/at+JWT', 'accepted'],
    ['', 'kind'],
    ['JWT ', 'kind'],
    ['JWT\n', 'kind'],
    ['JWE', 'kind'],
    ['JOSE', 'kind'],
    ['dpop+jwt', 'kind'],
    ['logout+jwt', 'kind'],
    ['secevent+jwt', 'kind'],
    ['at+at+jwt', 'kind'],
    ['text/jwt', 'kind'],
    [null, 'kind'],
    [5, 'kind'],
    [['JWT'], 'kind'],
  ])('row 23: typ %j is %s', async (typ, due) => {
    expect(await user({ header: { typ } })).toBe(due);
  });
});

describe('form', () => {
  const signed = (bytes: Uint8Array) => ({ sign: () => bytes });
  const der = (data: Buffer) => sign('sha256', data, key.privateKey);
  test.each<[string, Forgery, TokenFault]>([
    ['r = s = 0', signed(Buffer.alloc(64)), 'signature'],
    ['r = 0', signed(Buffer.concat([Buffer.alloc(32), Buffer.alloc(32, 1)])), 'signature'],
    ['r = s = the order', signed(Buffer.from(P256_ORDER + P256_ORDER, 'hex')), 'signature'],
    ['all ones', signed(Buffer.alloc(64, 0xff)), 'signature'],
    ['DER', { sign: der }, 'signature'],
    ['DER of zeros', signed(Buffer.from('3006020100020100', 'hex')), 'signature'],
    ['a byte short', { sign: (data) => key.sign(data).subarray(0, 63) }, 'signature'],
    ['a zero byte more', { sign: (data) => Buffer.concat([key.sign(data), Buffer.alloc(1)]) }, 'signature'],
    ['of another key', { sign: stranger.sign }, 'signature'],
    ['of other bytes', { sign: () => key.sign(Buffer.from('other')) }, 'signature'],
  ])('row 24: a signature that is %s is rejected', async (_, forgery, fault) => {
    expect(await user(forgery)).toBe(fault);
  });

  /** Flips the lowest bit of the last character: an unused one, unless the part's length is a multiple of four. */
  const flipUnusedBit = (part: string) => {
    if (part.length % 4 === 0) throw new Error('this part has no unused bit');
    return part.slice(0, -1) + ALPHABET.charAt(ALPHABET.indexOf(part.slice(-1)) ^ 1);
  };
  /** Headers and payloads of a length that leaves unused bits. */
  const spare = (start: Record<string, unknown>, extra = ''): string => {
    const json = JSON.stringify({ ...start, pad: extra });
    return Buffer.byteLength(json) % 3 === 1 ? json : spare(start, `${extra}-`);
  };
  const raw = {
    rawHeader: spare({ alg: 'ES256', kid: 'key1', typ: 'JWT' }),
    rawPayload: spare(claimsOf('user')),
  };
  const spellings: [string, (part: string) => string][] = [
    ['with a flipped unused bit', flipUnusedBit],
    ['with padding', (part) => part.padEnd(part.length + ((4 - (part.length % 4)) % 4), '=')],
    ['with one =', (part) => `${part}=`],
    ['with a newline after it', (part) => `${part}\n`],
    ['with a newline in it', (part) => `${part.slice(0, 8)}\r\n${part.slice(8)}`],
    ['with a space before it', (part) => ` ${part}`],
    ['with a NUL after it', (part) => `${part}\0`],
    ['with a character outside the alphabet', (part) => `${part.slice(0, 8)}!${part.slice(8)}`],
    ['with a percent sign', (part) => `%${part}`],
  ];
  const parts = ['header', 'payload', 'signature'] as const;
  test.each(parts.flatMap((part) => spellings.map(([name, spell]) => ({ part, name, spell }))))(
    'row 24: a $part $name is rejected, even where it was signed like that',
    async ({ part, spell }) => {
      expect(await user(raw)).toBe('accepted');
      expect(await user({ ...raw, respell: { [part]: spell } })).toBe('malformed');
    },
  );

  test('row 24: the alphabet of plain base64 is rejected', async () => {
    const rawPayload = JSON.stringify(claimsOf('user', { more: '~~~???>>>' }));
    expect(base64url(rawPayload)).toMatch(/[-_]/);
    const respell = { payload: (part: string) => part.replaceAll('-', '+').replaceAll('_', '/') };
    expect(await user({ rawPayload })).toBe('accepted');
    expect(await user({ rawPayload, respell })).toBe('malformed');
  });

  const [header, payload, signature] = partsOf(makeToken(key, claimsOf('user')));
  test.each<[string, string]>([
    ['empty', ''],
    ['one part', header],
    ['two parts', `${header}.${payload}`],
    ['four parts', `${header}.${payload}.${signature}.`],
    ['five parts', `${header}.${payload}.${signature}.${signature}.${signature}`],
    ['no header', `.${payload}.${signature}`],
    ['no payload', `${header}..${signature}`],
    ['no signature', `${header}.${payload}.`],
    ['dots', '..'],
    ['a newline at its end', `${header}.${payload}.${signature}\n`],
    ['a space at its start', ` ${header}.${payload}.${signature}`],
    ['a scheme before it', `Bearer ${header}.${payload}.${signature}`],
    ['JSON serialisation', JSON.stringify({ protected: header, payload, signature })],
    ['other letters', 'ключ.ключ.ключ'],
  ])('row 24: a token with %s is rejected', async (_, token) => {
    for (const kind of KINDS) expect(await faultOf(VERIFY[kind](token, trust))).toBe('malformed');
    expect(await faultOf(verifyToken(token, trust))).toBe('malformed');
  });

  const head = '"alg":"ES256","kid":"key1","typ":"JWT"';
  const claims = JSON.stringify(claimsOf('user')).slice(1, -1);
  const nested = '"more":{"a":[{"b":1,"b":2}]}';
  test.each<[string, Forgery]>([
    ['alg twice in the header', { rawHeader: `{${head},"alg":"ES256"}` }],
    ['alg twice, none first', { rawHeader: `{"alg":"none",${head}}` }],
    ['kid twice, once escaped', { rawHeader: `{${head},"\\u006bid":"key1"}` }],
    ['a member of no concern twice in the header', { rawHeader: `{${head},"x":1,"x":1}` }],
    ['sub twice in the payload', { rawPayload: `{${claims},"sub":"${IDS.user}"}` }],
    ['sub twice, once escaped', { rawPayload: `{${claims},"s\\u0075b":"${IDS.user}"}` }],
    ['exp twice, escaped first', { rawPayload: `{"\\u0065xp":9999999999,${claims}}` }],
    ['a member twice at depth', { rawPayload: `{${claims},${nested}}` }],
    ['a member twice under an odd name', { rawPayload: `{${claims},"\\"":1,"\\u0022":2}` }],
    ['__proto__ twice', { rawPayload: `{${claims},"__proto__":1,"__proto__":2}` }],
  ])('row 24: %s is rejected', async (_, forgery) => {
    const error = await errorOf(verifyUserToken(makeToken(key, claimsOf('user'), forgery), trust));
    expect(error).toMatchObject({ code: 'malformed', message: expect.stringContaining('twice') });
  });

  test.each<[string, string | Uint8Array]>([
    ['no JSON', '{'],
    ['JSON and more', `{${claims}} x`],
    ['two objects', `{${claims}}{}`],
    ['a comma at the end', `{${claims},}`],
    ['an array', `[{${claims}}]`],
    ['null', 'null'],
    ['a string', '"x"'],
    ['a number', '1'],
    ['a byte order mark', `\uFEFF{${claims}}`],
    ['UTF-16', Buffer.from(`{${claims}}`, 'utf16le')],
    ['invalid UTF-8', Buffer.from(`{${claims},"x":"\xff"}`, 'latin1')],
    ['an overlong slash', Buffer.from(`{${claims},"x":"\xc0\xaf"}`, 'latin1')],
    ['a surrogate in UTF-8', Buffer.from(`{${claims},"x":"\xed\xa0\x80"}`, 'latin1')],
  ])('row 24: a payload that is %s is rejected', async (_, rawPayload) => {
    expect(await user({ rawPayload })).toBe('malformed');
  });

  test.each(['{', '[]', 'null', '"x"', `\uFEFF{${head}}`])(
    'row 24: a header that is %j is rejected',
    async (rawHeader) => {
      expect(await user({ rawHeader })).toBe('malformed');
    },
  );

  test.each<[string, Record<string, unknown>]>([
    ['an unknown crit', { crit: ['x'], x: 1 }],
    ['a crit for exp', { crit: ['exp'], exp: 1 }],
    ['a crit for what is not there', { crit: ['x'] }],
    ['a crit for alg', { crit: ['alg'] }],
    ['an empty crit', { crit: [] }],
    ['a crit that is text', { crit: 'x', x: 1 }],
    ['a crit that is null', { crit: null }],
    ['b64=false (RFC 7797 §7)', { crit: ['b64'], b64: false }],
    ['b64=false that is not critical', { b64: false }],
  ])('row 24: %s is rejected', async (_, more) => {
    expect(await user({ header: more })).toBe('malformed');
  });

  test('row 24: b64=false with a payload that was not encoded is rejected', async () => {
    const part = base64url(JSON.stringify({ alg: 'ES256', kid: 'key1', crit: ['b64'], b64: false }));
    const bare = JSON.stringify(claimsOf('user', { iss: 'x', aud: 'y', sub: 'user_a_b' }));
    const token = `${part}.${bare}.${base64url(key.sign(Buffer.from(`${part}.${bare}`)))}`;
    expect(await faultOf(verifyUserToken(token, trust))).toBe('malformed');
  });

  test('row 24: a token is at most 65,536 characters long', async () => {
    const room = MAX_TOKEN_LENGTH - makeToken(key, claimsOf('user', { more: '' })).length;
    const fits = makeToken(key, claimsOf('user', { more: 'x'.repeat(Math.floor(room * 0.75) - 2) }));
    expect(fits.length).toBeLessThanOrEqual(MAX_TOKEN_LENGTH);
    expect(fits.length).toBeGreaterThan(MAX_TOKEN_LENGTH - 8);
    expect(await faultOf(verifyUserToken(fits, trust))).toBe('accepted');
    const over = makeToken(key, claimsOf('user', { more: 'x'.repeat(Math.floor(room * 0.75) + 8) }));
    expect(await faultOf(verifyUserToken(over, trust))).toBe('malformed');
  });

  test('a deeply nested claim harms nothing', async () => {
    expect(await user({ rawPayload: `{${claims},"more":${DEEP}}` })).toBe('accepted');
  });
});

const DEEP = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
const P256_ORDER = 'ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551';
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

describe('one flipped byte', () => {
  const replaced = (token: string, index: number, by: string) =>
    token.slice(0, index) + by + token.slice(index + 1);

  test.each(KINDS)('row 24: anywhere in a %s token is rejected', async (kind) => {
    const token = makeToken(key, claimsOf(kind));
    expect(await faultOf(VERIFY[kind](token, trust))).toBe('accepted');
    const accepted: string[] = [];
    for (let index = 0; index < token.length; index += 1) {
      const neighbour = ALPHABET.charAt((ALPHABET.indexOf(token.charAt(index)) + 1) % 64);
      const flipped = String.fromCharCode(token.charCodeAt(index) ^ (1 << (index % 8)));
      for (const by of new Set([neighbour, flipped])) {
        const forged = replaced(token, index, by);
        expect(forged).not.toBe(token);
        if ((await faultOf(VERIFY[kind](forged, trust))) === 'accepted') accepted.push(`${index} ${by}`);
      }
    }
    expect(accepted).toEqual([]);
  });
});

describe('messages', () => {
  const CANARY = 'CANARY7f3a';
  const secret = { preferred_username: CANARY, name: CANARY, more: CANARY };
  const cut = (token: string) => token.slice(0, -4);
  const cases: [string, TokenKind, Record<string, unknown>, Forgery, ((token: string) => string)?][] = [
    ['a wrong signature', 'user', {}, { sign: stranger.sign }],
    ['a cut signature', 'user', {}, {}, cut],
    ['a fourth part', 'user', {}, {}, (token) => `${token}.${CANARY}`],
    ['padding', 'user', {}, { respell: { payload: (part) => `${part}=` } }],
    ['no JSON', 'user', {}, { rawPayload: `{"sub":"${CANARY}",` }],
    ['JSON of another kind', 'user', {}, { rawPayload: `"${CANARY}"` }],
    ['a member twice', 'user', {}, { rawPayload: `{"${CANARY}":1,"${CANARY}":2}` }],
    ['another algorithm', 'user', {}, { header: { alg: CANARY } }],
    ['another type', 'user', {}, { header: { typ: CANARY } }],
    ['an unknown kid', 'user', {}, { header: { kid: CANARY } }],
    ['an unknown crit', 'user', {}, { header: { crit: [CANARY], [CANARY]: 1 } }],
    ['another issuer', 'user', { iss: `https://${CANARY}.example` }, {}],
    ['another audience', 'user', { aud: CANARY }, {}],
    ['another kind', 'user', { sub: `proj_${CANARY}_x` }, {}],
    ['a malformed subject', 'user', { sub: `user_${CANARY}` }, {}],
    ['an expiry in the past', 'user', { exp: SECONDS - 5, iat: SECONDS - 10 }, {}],
    ['an iat in the future', 'user', { iat: SECONDS + 500 }, {}],
    ['a wrong claim', 'user', { exp: CANARY }, {}],
    ['a wrong claim at depth', 'project', { act: { sub: CANARY, role: 'lead' } }, {}],
    ['a wrong reservation', 'connectivity', { connectivity: { ...RESERVATION, site1: CANARY } }, {}],
    ['another reservation', 'connectivity', { connectivity: { ...RESERVATION, id: `con_${CANARY}_x` } }, {}],
  ];

  test.each(cases)('a token with %s is in no error message', async (_, kind, changes, forgery, after) => {
    const made = makeToken(key, claimsOf(kind, { ...secret, ...changes }), forgery);
    const token = after ? after(made) : made;
    const audience = 'aud' in changes ? { audience: 'https://conn.example.org' } : {};
    for (const verification of [VERIFY[kind], verifyToken]) {
      const error = await errorOf(verification(token, { ...trust, ...audience }));
      expect(error.message).not.toContain(CANARY);
      for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
        const [, payload, signature] = partsOf(token);
        const said = `${cause.message}\n${cause.stack}\n${JSON.stringify(cause)}`;
        expect(windows(payload).filter((window) => said.includes(window))).toEqual([]);
        expect(windows(signature).filter((window) => said.includes(window))).toEqual([]);
        if (forgery.header === undefined) expect(said).not.toContain(CANARY);
      }
    }
  });

  /** Every run of twelve characters. */
  function windows(part: string): string[] {
    return Array.from({ length: Math.max(0, part.length - 11) }, (_, start) => part.slice(start, start + 12));
  }

  test("a project's verification names what is due", async () => {
    const error = await errorOf(verifyProjectToken(makeToken(key, claimsOf('user')), trust));
    expect(error.message).toContain('proj_');
  });
});
