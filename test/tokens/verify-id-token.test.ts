import { describe, expect, test } from 'vitest';
import { isIdToken, verifyUserToken } from '../../src/tokens/verify.ts';
import { claimsOf, faultOf, makeKey, makeToken, trustIn } from '../fixtures/tokens.ts';

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
    const key = makeKey();
    const token = makeToken(key, claimsOf('user', { at_hash: HASH }));
    const trust = trustIn(key);
    expect([
      await faultOf(verifyUserToken(token, trust)),
      await faultOf(verifyUserToken(token, trust)),
    ]).toEqual(['kind', 'kind']);
  });
});
