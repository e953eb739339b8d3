import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import fc from 'fast-check';
import type { JWK } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { createIssuer, DEFAULT_TTL } from '../../src/tokens/issuer.ts';
import { localKeySet } from '../../src/tokens/key-set.ts';
import {
  DEFAULT_KID,
  generateSigningKey,
  importSigningKey,
  KeyFormatError,
  type SigningKey,
} from '../../src/tokens/signing-key.ts';
import { createVerifier } from '../../src/tokens/verifier.ts';
import { verifyServiceToken } from '../../src/tokens/verify.ts';
import { anyText } from '../fixtures/any-text.ts';
import { NOW, partsOf, SECONDS } from '../fixtures/tokens.ts';

const ISSUER = 'https://service.example.org';

let key: SigningKey;
beforeAll(async () => {
  key = await importSigningKey(await generateSigningKey());
});

const issuerAt = (now: number, changes = {}) =>
  createIssuer({ issuer: ISSUER, key, now: () => now, ...changes });
const verifierAt = (now: number, issuer = issuerAt(now)) =>
  createVerifier({ issuers: { [ISSUER]: issuer.keySet }, now: () => now });

/** A part of a token, read by nothing that is under test. */
function decoded(token: string, part: 0 | 1): Record<string, unknown> {
  return JSON.parse(Buffer.from(partsOf(token)[part], 'base64url').toString());
}

describe('issue (contract/README.md, "Authentication" 6)', () => {
  test('sets iss, iat and exp, 900 s later by default', async () => {
    const token = await issuerAt(NOW).issue({ sub: 'ci', scope: 'read' });
    expect(decoded(token, 1)).toEqual({
      sub: 'ci',
      scope: 'read',
      iss: ISSUER,
      iat: SECONDS,
      exp: SECONDS + 900,
    });
    expect(DEFAULT_TTL).toBe(900);
  });

  test('sets the header: ES256, kid key1, typ JWT, and nothing else', async () => {
    expect(decoded(await issuerAt(NOW).issue(), 0)).toEqual({ alg: 'ES256', kid: 'key1', typ: 'JWT' });
    expect(DEFAULT_KID).toBe('key1');
  });

  test('iat is in whole seconds, never in the future', async () => {
    expect(decoded(await issuerAt(NOW + 999).issue(), 1)).toMatchObject({ iat: SECONDS, exp: SECONDS + 900 });
  });

  test('claims can not change iss or iat, but may give an exp', async () => {
    const claims = { iss: 'https://evil.example', iat: 1, exp: SECONDS + 5 };
    expect(decoded(await issuerAt(NOW).issue(claims), 1)).toEqual({
      iss: ISSUER,
      iat: SECONDS,
      exp: SECONDS + 5,
    });
    expect(claims).toEqual({ iss: 'https://evil.example', iat: 1, exp: SECONDS + 5 });
  });

  test('what is issued verifies, whatever the claims (property)', async () => {
    const issuer = issuerAt(NOW);
    const trust = { issuers: new Map([[ISSUER, localKeySet(issuer.keySet)]]), now: () => NOW };
    const names = anyText().filter((name) => !RESERVED.has(name));
    const claims = fc.dictionary(names, fc.jsonValue());
    await fc.assert(
      fc.asyncProperty(claims, async (own) => {
        const verified = await verifyServiceToken(await issuer.issue(own), trust);
        const due = JSON.parse(JSON.stringify({ ...own, iss: ISSUER, iat: SECONDS, exp: SECONDS + 900 }));
        expect(verified).toEqual(due);
      }),
      { numRuns: 60 },
    );
  });
  /** Names with a meaning of their own here, and those that valibot leaves out of an object. */
  const RESERVED = new Set('iss iat exp sub nbf aud __proto__ prototype constructor'.split(' '));
});

describe('reply and key set', () => {
  test('a reply has media type application/jwt and is not to be stored', async () => {
    const reply = await issuerAt(NOW).reply({ sub: 'ci' });
    expect(reply.status).toBe(200);
    expect(reply.headers.get('content-type')).toBe('application/jwt');
    expect(reply.headers.get('cache-control')).toBe('no-store');
    expect(await verifierAt(NOW).verify(await reply.text())).toMatchObject({ claims: { sub: 'ci' } });
  });

  test.each(['content-type', 'Content-Type', 'CONTENT-TYPE'])(
    'a reply takes a status and headers, but stays application/jwt: %s',
    async (name) => {
      const init = { status: 201, headers: { location: '/x', [name]: 'text/html' } };
      const reply = await issuerAt(NOW).reply({}, init);
      expect(reply.status).toBe(201);
      expect(reply.headers.get('location')).toBe('/x');
      expect(reply.headers.get('content-type')).toBe('application/jwt');
    },
  );

  test('the key set is served at its path below the issuer, and at no other', async () => {
    const served = async (issuer: string, url: string) =>
      (await createIssuer({ issuer, key }).fetch(new Request(url))?.json()) ?? 'nothing';
    const set = { keys: [key.publicJwk] };
    const path = '/.well-known/jwks.json';
    expect(await served(ISSUER, `${ISSUER}${path}`)).toEqual(set);
    expect(await served(ISSUER, `${ISSUER}${path}?x=1`)).toEqual(set);
    expect(await served(`${ISSUER}/`, `${ISSUER}${path}`)).toEqual(set);
    expect(await served(`${ISSUER}/portal`, `${ISSUER}/portal${path}`)).toEqual(set);
    for (const other of ['/', '/jwks.json', `${path}/`, `/portal${path}`, path.toUpperCase()]) {
      expect(await served(ISSUER, ISSUER + other)).toBe('nothing');
    }
    expect(await served(`${ISSUER}/portal`, `${ISSUER}${path}`)).toBe('nothing');
  });

  test('the key set names each key, its use and algorithm, and holds no private part', async () => {
    const { kty = 'EC', ...numbers } = await generateSigningKey('key2');
    expect(numbers.d).toBeTypeOf('string');
    const { keySet } = issuerAt(NOW, { otherKeys: [{ ...numbers, kty }] });
    const text = expect.any(String);
    const known = { kty: 'EC', crv: 'P-256', x: text, y: text, alg: 'ES256', use: 'sig' };
    expect(keySet.keys).toEqual([
      { ...known, kid: 'key1' },
      { ...known, kid: 'key2' },
    ]);
  });

  test('row 27: a further key still verifies what it signed', async () => {
    const before = await importSigningKey(await generateSigningKey('key0'));
    const token = await issuerAt(NOW, { key: before }).issue();
    const rotated = issuerAt(NOW, { otherKeys: [before.publicJwk] });
    expect((await verifierAt(NOW, rotated).verify(token)).kind).toBe('service');
    expect((await verifierAt(NOW, rotated).verify(await rotated.issue())).kind).toBe('service');
  });

  test('row 27: a further key under the same kid would make every token ambiguous: refused', async () => {
    const before = await importSigningKey(await generateSigningKey());
    expect(() => issuerAt(NOW, { otherKeys: [before.publicJwk] })).toThrow();
  });
});

describe('keys', () => {
  const pem = (privateKey: KeyObject) => String(privateKey.export({ format: 'pem', type: 'pkcs8' }));
  const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve });
  const text = (jwk: Record<string, unknown>) => JSON.stringify(jwk);
  const jwkOf = (privateKey: KeyObject): JWK => privateKey.export({ format: 'jwk' });

  test('a generated key is a P-256 key under key1, for signing', async () => {
    const made = await generateSigningKey();
    expect(made).toMatchObject({ kty: 'EC', crv: 'P-256', kid: 'key1', alg: 'ES256', use: 'sig' });
    expect((await generateSigningKey('other')).kid).toBe('other');
    expect((await generateSigningKey()).d).not.toBe(made.d);
  });

  const p256 = ec('P-256');
  test.each<[string, string | JWK, string]>([
    ['a JWK', { ...jwkOf(p256.privateKey), kid: 'mine' }, 'mine'],
    ['a JWK without kid', jwkOf(p256.privateKey), 'key1'],
    ['the text of a JWK', text({ ...jwkOf(p256.privateKey), kid: 'mine' }), 'mine'],
    ['indented text of a JWK', `\n${JSON.stringify(jwkOf(p256.privateKey), null, 2)}\n`, 'key1'],
    ['PKCS#8 in PEM', pem(p256.privateKey), 'key1'],
    ['PKCS#8 in PEM after a blank line', `\n${pem(p256.privateKey)}\n`, 'key1'],
  ])('%s is read, and what it signs verifies', async (_, from, kid) => {
    const own = await importSigningKey(from);
    expect(own.kid).toBe(kid);
    const { x, y } = jwkOf(p256.publicKey);
    expect(own.publicJwk).toEqual({ kty: 'EC', crv: 'P-256', x, y, kid, alg: 'ES256', use: 'sig' });
    expect(own.privateKey.extractable).toBe(false);
    const issuer = issuerAt(NOW, { key: own });
    expect((await verifierAt(NOW, issuer).verify(await issuer.issue())).kind).toBe('service');
  });

  const p384 = ec('P-384').privateKey;
  const k256 = ec('secp256k1').privateKey;
  const ed = generateKeyPairSync('ed25519').privateKey;
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const { d: _d, ...publicOnly } = jwkOf(p256.privateKey);
  const { x, y } = jwkOf(ec('P-256').publicKey);
  const own = jwkOf(p256.privateKey);
  test.each<[string, string | JWK]>([
    ['P-384 in PEM', pem(p384)],
    ['RSA in PEM', pem(rsa)],
    ['secp256k1 as JWK', text(jwkOf(k256))],
    ['Ed25519 as JWK', text(jwkOf(ed))],
    ['a symmetric JWK', text({ kty: 'oct', k: 'AAAA' })],
    ['P-384 that says P-256', { ...jwkOf(p384), crv: 'P-256' }],
    ['a public JWK', publicOnly],
    ['an empty d', { ...own, d: '' }],
    ['a d of zeros', { ...own, d: Buffer.alloc(32).toString('base64url') }],
    ["another key's x and y", text({ ...own, x, y })],
    ['a d that is no text', text({ ...own, d: 5 })],
    ['a kid that is a number', text({ ...own, kid: 5 })],
    ['an empty kid', text({ ...own, kid: '' })],
    ['a key for encryption', text({ ...own, use: 'enc' })],
    ['a key for another algorithm', text({ ...own, alg: 'ECDH-ES' })],
    ['a public key in PEM', String(p256.publicKey.export({ format: 'pem', type: 'spki' }))],
    ['SEC1 in PEM', String(p256.privateKey.export({ format: 'pem', type: 'sec1' }))],
    ['a broken PEM', pem(p256.privateKey).replace(/^M.{20}/m, '')],
    ['a PEM without a body', '-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n'],
    ['a key set', text({ keys: [own] })],
    ['garbage', 'garbage'],
    ['null', 'null'],
    ['broken JSON', text({ ...own }).slice(0, -1)],
  ])('no signing key: %s', async (_, from) => {
    await expect(importSigningKey(from)).rejects.toBeInstanceOf(KeyFormatError);
  });

  test.each<[string, string]>([
    ['a JWK that breaks off', `${text({ ...own }).slice(0, -1)},}`],
    ['a JWK without its braces', text({ ...own }).slice(1, -1)],
    ['the base64 of a PEM without its armour', pem(p256.privateKey).replace(/-----.*-----\n/g, '')],
    ['d after its name', `d=${own.d}`],
    ['d in quotes with a mistake', `{"d":"${own.d}"x}`],
  ])('the error about a key that can not be read shows nothing of it: %s', async (_, from) => {
    const error = await importSigningKey(from).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(KeyFormatError);
    for (let cause = error; cause instanceof Error; cause = cause.cause) {
      const shown = `${cause.message}\n${cause.stack}`;
      for (const secret of from.match(/[\w+/-]{8}/g) ?? []) expect(shown).not.toContain(secret);
    }
  });
});
