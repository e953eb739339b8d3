import { afterEach, describe, expect, test, vi } from 'vitest';
import { localKeySet } from '../../src/tokens/key-set.ts';
import { remoteKeySet } from '../../src/tokens/remote-key-set.ts';
import type { TokenFault } from '../../src/tokens/token-error.ts';
import {
  IAT_LEEWAY,
  isIdToken,
  type TokenKind,
  verifyConnectivityToken,
  verifyToken,
  verifyUserToken,
} from '../../src/tokens/verify.ts';
import { key, stranger, trust, user } from '../fixtures/forged-tokens.ts';
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
  trustIn,
  VERIFY,
} from '../fixtures/tokens.ts';

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
    // A fraction (RFC 7519 §2 allows it) is compared as it is.
    ['exp half a second ahead', 0, 0.5, 0, 'accepted'],
    ['exp half a second ahead, then a tenth ago', 0, 0.5, 600, 'expired'],
    ['exp half a second ago', -900, -0.5, 0, 'expired'],
    ['iat 60.5 s ahead', 60.5, 900, 0, 'not_yet'],
    ['iat 60.5 s ahead, then 59.9 s', 60.5, 900, 600, 'accepted'],
  ])('row 20: %s', async (_, iat, exp, later, due) => {
    expect(await at(iat, exp, later)).toBe(due);
  });

  /** The last: a millisecond past the last date. */
  const values = [
    ...['null', `"${SECONDS + 900}"`, 'true', `[${SECONDS + 900}]`, '{}', '-1', '-1e400', '1e400', '1e300'],
    '8640000000000.001',
  ];
  test.each(KINDS.flatMap((kind) => ['exp', 'iat'].map((claim) => [kind, claim] as const)))(
    'row 20: %s token without %s is rejected',
    async (kind, claim) => {
      const token = makeToken(key, claimsOf(kind, { [claim]: undefined }));
      expect(await faultOf(VERIFY[kind](token, trust))).toBe('claims');
    },
  );
  test.each(values)('row 20: exp %s is rejected', async (value) => {
    const rawPayload = JSON.stringify(claimsOf('user', { exp: 0 })).replace('"exp":0', `"exp":${value}`);
    expect(await user({ rawPayload })).toBe('claims');
  });
  test.each(values)('row 20: iat %s is rejected', async (value) => {
    const rawPayload = JSON.stringify(claimsOf('user', { iat: 0 })).replace('"iat":0', `"iat":${value}`);
    expect(['claims', 'not_yet']).toContain(await user({ rawPayload }));
  });

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
});

describe('key ids', () => {
  test.each(
    [
      ...[undefined, null, 1, ['key1'], '', 'key2', 'KEY1', 'key1 ', '../../etc/passwd'],
      ...['https://evil.example/jwks.json', '__proto__', "' OR 1=1 --"],
    ].map((kid: unknown) => [kid]),
  )('row 21: a kid that is %s is rejected', async (kid) => {
    expect(await user({ header: { kid } })).toBe('key_unknown');
  });

  test('row 21: a key without a kid is found by a token without one, where it is alone', async () => {
    const own = makeKey('ES256', { kid: undefined });
    for (const kid of ['', 'undefined', 'key1']) {
      const token = makeToken(own, claimsOf('user'), { header: { kid } });
      expect(await faultOf(verifyUserToken(token, trustIn(own)))).toBe('key_unknown');
    }
    const nameless = makeToken(own, claimsOf('user'), { header: { kid: undefined } });
    expect(await faultOf(verifyUserToken(nameless, trustIn(own)))).toBe('accepted');
    const other = makeKey('ES256', { kid: undefined }, 'stranger');
    for (const several of [
      [own, other],
      [own, makeKey('ES256', { kid: 'key2' }, 'stranger')],
    ]) {
      expect(await faultOf(verifyUserToken(nameless, trustIn(several)))).toBe('key_unknown');
    }
    expect(await faultOf(verifyUserToken(nameless, trustIn(other)))).toBe('signature');
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
      'keys_invalid',
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

describe('row 62: one slash at the end of an issuer', () => {
  const withSlash = { ...trust, issuers: new Map([[`${ISSUER}/`, localKeySet(keySetOf(key))]]) };

  test.each(KINDS)('%s: in the token alone, in the setting alone, in both', async (kind) => {
    const [bare, slashed] = ['', '/'].map((end) => makeToken(key, claimsOf(kind, { iss: ISSUER + end })));
    for (const [token, believed] of [
      [slashed, trust],
      [bare, withSlash],
      [slashed, withSlash],
    ] as const)
      expect(await faultOf(VERIFY[kind](token ?? '', believed))).toBe('accepted');
  });

  test('two issuers that differ by it keep their own keys', async () => {
    const both = {
      ...trust,
      issuers: new Map([
        [ISSUER, localKeySet(keySetOf(key))],
        [`${ISSUER}/`, localKeySet(keySetOf(stranger))],
      ]),
    };
    const token = makeToken(stranger, claimsOf('user', { iss: `${ISSUER}/` }));
    expect(await faultOf(verifyUserToken(token, both))).toBe('accepted');
    expect(await faultOf(verifyUserToken(makeToken(stranger, claimsOf('user')), both))).toBe('signature');
  });
});

describe('issuer, audience, kind', () => {
  test.each(
    [
      ...['https://evil.example', undefined, null, `${ISSUER}//`, `${ISSUER}/x`, ISSUER.toUpperCase()],
      ...[`${ISSUER}.evil.example`, [ISSUER], '', '__proto__'],
    ].map((iss: unknown) => [iss]),
  )('row 23: an iss that is %j is rejected', async (iss) => {
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
    ['with a slash at its end', `${ours}/`, 'accepted'],
    ['with two slashes', `${ours}//`, 'audience'],
    ['longer', `${ours}/x`, 'audience'],
    ['others in a list', ['https://x.example'], 'audience'],
    ['an empty list', [], 'audience'],
    ['missing', undefined, 'audience'],
    ['null', null, 'audience'],
    ['a number', 5, 'claims'],
    ['nested', [[ours]], 'claims'],
  ])('row 23: where an audience is set, aud %s', async (_, aud, due) => {
    const token = makeToken(key, claimsOf('user', { aud }));
    expect(await faultOf(verifyUserToken(token, { ...trust, audience: ours }))).toBe(due);
  });

  test.each<[string, string, string | boolean]>([
    ['https://h.example/', 'https://h.example', true],
    [
      'https://h.example/api/',
      'https://h.example/api',
      'is meant for https://h.example/api, not for https://h.example/api/',
    ],
    ['urn:x', 'urn:x/', 'is not meant for urn:x'],
  ])('an audience %s, and a token for %s', async (audience, aud, due) => {
    const verified = verifyUserToken(makeToken(key, claimsOf('user', { aud })), { ...trust, audience });
    expect(await verified.then(() => true, String)).toBe(due === true || `TokenError: The token ${due}.`);
  });

  test('null is absent', async () => {
    const nothing = {
      nbf: null,
      aud: null,
      auth_time: null,
      scope: null,
      preferred_username: null,
      limited_to: null,
    };
    expect(await user({}, nothing)).toBe('accepted');
    expect(
      await faultOf(
        VERIFY.experiment(makeToken(key, claimsOf('experiment', { name: null, proj: null })), trust),
      ),
    ).toBe('accepted');
    expect(await user({}, { exp: null })).toBe('claims');
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

  test.each(
    [
      ...[undefined, null, 5, [IDS.user], {}, { toString: 1, valueOf: 1 }, '', 'user', 'users', 'user_'],
      ...['user_portal.example.org_', `${IDS.user}\n`, IDS.user.toUpperCase()],
      ...['user_portal.example.org_\u001b[2J', 'user_portal.example.org/../_x'],
    ].map((sub: unknown) => [sub]),
  )('row 23: a user token whose sub is %j is rejected', async (sub) => {
    expect(['kind', 'claims']).toContain(await user({}, { sub }));
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
  test.each([undefined, 'robot', 7])(
    'row 23: a reservation in a token whose sub is %j is rejected',
    async (sub) => {
      const token = makeToken(key, claimsOf('connectivity', { sub }));
      expect(await faultOf(verifyToken(token, trust))).toBe('claims');
    },
  );
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

  const TYPES: Record<string, unknown[]> = {
    accepted: [undefined, 'JWT', 'jwt', 'at+jwt', 'application/jwt', 'application/at+JWT'],
    kind: [
      ...['', 'JWT ', 'JWT\n', 'JWE', 'JOSE', 'dpop+jwt', 'logout+jwt', 'secevent+jwt', 'at+at+jwt'],
      ...['text/jwt', null, 5, ['JWT']],
    ],
  };
  test.each(Object.entries(TYPES).flatMap(([due, types]) => types.map((typ) => [{ typ }, due] as const)))(
    'row 23: typ %j is %s',
    async (header, due) => {
      expect(await user({ header })).toBe(due);
    },
  );
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
});

const CLIENTS = ['slices-conn'];
const HASH = 'MTIzNDU2Nzg5MDEyMzQ1Ng';

describe('row 50: what tells an ID token from an access token', () => {
  test.each<[string, boolean, object, object]>([
    ['a user token of the API', false, { typ: 'JWT' }, claimsOf('user')],
    ['one without a scope', false, {}, claimsOf('user', { scope: undefined })],
    [
      'one without a scope and an audience',
      false,
      {},
      claimsOf('user', { scope: undefined, aud: undefined }),
    ],
    ['at_hash', true, {}, { at_hash: HASH, scope: 'openid projects' }],
    ['c_hash', true, {}, { c_hash: HASH }],
    ['s_hash', true, {}, { s_hash: HASH }],
    ['nonce', true, {}, { nonce: 'n' }],
    ['nonce that is null', true, {}, { nonce: null }],
    [
      'an access token of RFC 9068, whatever it holds',
      false,
      { typ: 'at+jwt' },
      { nonce: 'n', aud: 'slices-conn' },
    ],
    ['the same in full', false, { typ: 'application/at+jwt' }, { at_hash: HASH }],
    ['an access token of Keycloak', false, { typ: 'JWT' }, { typ: 'Bearer', nonce: 'n', azp: 'c', aud: 'c' }],
    ['an ID token of Keycloak', true, { typ: 'JWT' }, { typ: 'ID', azp: 'c', aud: 'c' }],
    ['for the client it was issued to', true, {}, { aud: 'c', azp: 'c' }],
    ['for that among others', true, {}, { aud: ['x', 'c'], azp: 'c' }],
    ['for that, with a scope', false, {}, { aud: 'c', azp: 'c', scope: 'projects' }],
    ['for that, with scopes in another’s words', false, {}, { aud: 'c', azp: 'c', scp: ['projects'] }],
    ['for another than the client', false, {}, { aud: 'https://api.example.org', azp: 'c' }],
    ['for a client that is known', true, {}, { aud: 'slices-conn' }],
    ['for a client that is known, with a scope', false, {}, { aud: 'slices-conn', scope: 'projects' }],
    ['for nobody', false, {}, {}],
  ])('%s: %s', (_, due, header, claims) => {
    expect(isIdToken({ ...header }, { ...claims }, CLIENTS)).toBe(due);
  });

  test('its signature does not help, not even the second time', async () => {
    for (const _ of [1, 2]) expect(await user({}, { at_hash: HASH })).toBe('kind');
  });
});
