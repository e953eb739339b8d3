import { describe, expect, test } from 'vitest';
import { localKeySet } from '../../src/tokens/key-set.ts';
import { VerifiedTokens } from '../../src/tokens/verified-tokens.ts';
import { type Trust, verifyConnectivityToken, verifyUserToken } from '../../src/tokens/verify.ts';
import { key, stranger } from '../fixtures/forged-tokens.ts';
import {
  claimsOf,
  faultOf,
  ISSUER,
  KINDS,
  keySetOf,
  makeToken,
  NOW,
  SECONDS,
  trustIn,
  VERIFY,
} from '../fixtures/tokens.ts';

const AUDIENCE = 'https://conn.example.org';

/** Trust with a memory and a clock that can be set. */
function trustAt(start: number, changes: Partial<Trust> = {}) {
  const clock = { now: start };
  const verified = new VerifiedTokens();
  return { clock, verified, trust: trustIn(key, { now: () => clock.now, verified, ...changes }) };
}

describe('a token that verified before', () => {
  test.each(KINDS)('%s: is known again, to this byte', async (kind) => {
    const { trust, verified } = trustAt(NOW);
    const token = makeToken(key, claimsOf(kind));
    const claims = await VERIFY[kind](token, trust);
    expect(verified.size).toBe(1);
    expect(claims).toEqual(claimsOf(kind));
    // The very same object: nothing was read anew.
    expect(await VERIFY[kind](token, trust)).toBe(claims);
    const twin = makeToken(key, claimsOf(kind));
    expect(twin).not.toBe(token);
    expect(await VERIFY[kind](twin, trust)).not.toBe(claims);
  });

  test.each(KINDS.flatMap((kind) => KINDS.filter((due) => due !== kind).map((due) => [kind, due] as const)))(
    'row 23: a %s token is no %s token, though it is remembered',
    async (kind, due) => {
      const { trust } = trustAt(NOW);
      const token = makeToken(key, claimsOf(kind));
      await VERIFY[kind](token, trust);
      expect(await faultOf(VERIFY[due](token, trust))).toBe('kind');
    },
  );

  test('row 23: a connectivity token about another reservation than its own or the due one is refused each time', async () => {
    const { trust } = trustAt(NOW);
    const token = makeToken(key, claimsOf('connectivity', { sub: 'con_conn.example.org_other' }));
    for (let round = 0; round < 2; round += 1) {
      expect(await faultOf(verifyConnectivityToken(token, trust))).toBe('claims');
    }
    const own = makeToken(key, claimsOf('connectivity'));
    expect(await faultOf(verifyConnectivityToken(own, trust))).toBe('accepted');
    expect(await faultOf(verifyConnectivityToken(own, trust, 'con_conn.example.org_other'))).toBe('claims');
  });

  test('row 20: expires to the millisecond, and is forgotten then', async () => {
    const { trust, clock, verified } = trustAt(NOW);
    const token = makeToken(key, claimsOf('user'));
    await verifyUserToken(token, trust);
    clock.now = NOW + 899_999;
    expect(await faultOf(verifyUserToken(token, trust))).toBe('accepted');
    clock.now = NOW + 900_000;
    expect(await faultOf(verifyUserToken(token, trust))).toBe('expired');
    expect(verified.size).toBe(0);
  });

  test('row 20: is not valid yet once the clock was set back before its iat or its nbf', async () => {
    const { trust, clock } = trustAt(NOW);
    const issued = makeToken(key, claimsOf('user'));
    const later = makeToken(key, claimsOf('user', { iat: SECONDS - 900, nbf: SECONDS }));
    for (const token of [issued, later]) {
      clock.now = NOW;
      expect(await faultOf(verifyUserToken(token, trust))).toBe('accepted');
      clock.now = NOW - 60_001;
      expect(await faultOf(verifyUserToken(token, trust))).toBe('not_yet');
    }
  });

  test('row 23: the audience is each trust its own', async () => {
    const { trust, verified } = trustAt(NOW, { audience: AUDIENCE });
    const token = makeToken(key, claimsOf('user'));
    expect(await faultOf(verifyUserToken(token, trust))).toBe('accepted');
    expect(verified.size).toBe(1);
    expect(await faultOf(verifyUserToken(token, { ...trust, audience: 'https://other.example' }))).toBe(
      'audience',
    );
  });

  test('row 23: an issuer that another trust does not believe stays unbelieved', async () => {
    const { trust } = trustAt(NOW);
    const token = makeToken(key, claimsOf('user'));
    await verifyUserToken(token, trust);
    const others = new Map([['https://other.example', localKeySet(keySetOf(key))]]);
    expect(await faultOf(verifyUserToken(token, { ...trust, issuers: others }))).toBe('issuer');
  });

  test.each([
    ['has another under its kid', [stranger], 'signature'],
    ['has none under its kid', [], 'key_unknown'],
    ['has two under its kid', [key, stranger], 'key_unknown'],
  ] as const)('row 27: is checked from its start once its issuer %s', async (_, keys, due) => {
    const { trust, verified } = trustAt(NOW);
    const token = makeToken(key, claimsOf('user'));
    await verifyUserToken(token, trust);
    const issuers = new Map([[ISSUER, localKeySet(keySetOf(...keys))]]);
    expect(await faultOf(verifyUserToken(token, { ...trust, issuers }))).toBe(due);
    expect(verified.size).toBe(0);
  });
});

describe('what is remembered', () => {
  test('row 19 to 24: nothing that failed any check', async () => {
    const { trust, verified } = trustAt(NOW, { audience: AUDIENCE });
    const bad: [string, string][] = [
      [makeToken(stranger, claimsOf('user')), 'signature'],
      [makeToken(key, claimsOf('user'), { sign: () => Buffer.alloc(64) }), 'signature'],
      [makeToken(key, claimsOf('user'), { header: { alg: 'none' } }), 'algorithm'],
      [makeToken(key, claimsOf('user'), { header: { kid: 'other' } }), 'key_unknown'],
      [makeToken(key, claimsOf('user', { iss: 'https://evil.example' })), 'issuer'],
      [makeToken(key, claimsOf('user', { exp: SECONDS })), 'expired'],
      [makeToken(key, claimsOf('user', { iat: SECONDS + 61 })), 'not_yet'],
      [makeToken(key, claimsOf('user', { nbf: SECONDS + 61 })), 'not_yet'],
      [makeToken(key, claimsOf('user', { aud: 'https://other.example' })), 'audience'],
      [makeToken(key, claimsOf('user', { exp: undefined })), 'claims'],
      [makeToken(key, claimsOf('project')), 'kind'],
    ];
    for (const [token, due] of [...bad, ...bad]) {
      expect(await faultOf(verifyUserToken(token, trust))).toBe(due);
      expect(verified.size).toBe(0);
    }
  });

  test('can not be changed by a request', async () => {
    const { trust } = trustAt(NOW);
    const token = makeToken(key, claimsOf('experiment', { more: { list: [{ deep: 1 }] } }));
    const claims = await VERIFY.experiment(token, trust);
    const parts = [claims, claims['act'], claims['more']];
    expect(parts.map((part) => Object.isFrozen(part))).toEqual([true, true, true]);
    const deep = Object(claims['more']).list[0];
    expect(Object.isFrozen(deep)).toBe(true);
  });

  test('is at most as much as the capacity: the one unused for longest goes', async () => {
    const verified = new VerifiedTokens(3);
    const trust = trustIn(key, { verified });
    const tokens = Array.from({ length: 4 }, (_, n) => makeToken(key, claimsOf('user', { n })));
    const [first = '', second = '', third = '', fourth = ''] = tokens;
    const isKnown = (token: string) => verified.find(token) !== undefined;
    for (const token of [first, second, third]) await verifyUserToken(token, trust);
    await verifyUserToken(first, trust);
    await verifyUserToken(fourth, trust);
    expect(verified.size).toBe(3);
    expect([first, second, third, fourth].map(isKnown)).toEqual([true, false, true, true]);
    for (let n = 0; n < 50; n += 1) await verifyUserToken(makeToken(key, claimsOf('user', { n })), trust);
    expect(verified.size).toBe(3);
  });

  test('is no token of more than 8192 characters', async () => {
    const { trust, verified } = trustAt(NOW);
    await verifyUserToken(makeToken(key, claimsOf('user', { more: 'x'.repeat(8192) })), trust);
    expect(verified.size).toBe(0);
    await verifyUserToken(makeToken(key, claimsOf('user', { more: 'x'.repeat(4096) })), trust);
    expect(verified.size).toBe(1);
  });
});
