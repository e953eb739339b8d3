import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { ProblemBody } from '../../src/contract/problems.ts';
import { TokenError, type TokenFault } from '../../src/tokens/token-error.ts';
import { createVerifier, readBearer, tokenProblem, type VerifierOptions } from '../../src/tokens/verifier.ts';
import { key, stranger } from '../fixtures/forged-tokens.ts';
import { processorTime } from '../fixtures/processor-time.ts';
import { claimsOf, faultOf, ISSUER, keySetOf, makeToken, NOW, partsOf, SECONDS } from '../fixtures/tokens.ts';

const token = makeToken(key, claimsOf('user'));

const verifierWith = (changes: Partial<VerifierOptions> = {}) =>
  createVerifier({ issuers: { [ISSUER]: keySetOf(key) }, now: () => NOW, ...changes });

const requestWith = (authorization?: string) =>
  new Request(
    'https://service.example.org/',
    authorization === undefined ? {} : { headers: { authorization } },
  );

/** What a request with this Authorization is answered with; its body is checked against the contract. */
async function refusal(authorization: string | undefined, changes: Partial<VerifierOptions> = {}) {
  const found = await verifierWith(changes).authenticate(requestWith(authorization));
  if (found.ok) return { status: 200, code: 'accepted' };
  const body: unknown = await found.response.json();
  const { code, detail } = v.parse(ProblemBody, body);
  expect(body).toEqual({
    code,
    detail: [{ loc: [], msg: expect.stringMatching(/\S/), type: 'NotValid', code }],
  });
  expect(found.response.headers.get('content-type')).toMatch(/^application\/json/);
  return { status: found.response.status, code, msg: detail[0]?.msg ?? '' };
}

describe('authenticate, as the example server does ("Errors" 4)', () => {
  test.each([
    `Bearer ${token}`,
    `bearer ${token}`,
    `BEARER ${token}`,
    `Bearer   ${token}`,
    ` Bearer ${token} `,
  ])(
    'the scheme is read in any case, with any number of spaces (RFC 9110 §11.1): %#',
    async (authorization) => {
      expect(await refusal(authorization)).toMatchObject({ code: 'accepted' });
    },
  );

  const [header, payload, signature] = partsOf(token);
  const made = (changes: Record<string, unknown>, by = key) =>
    `Bearer ${makeToken(by, claimsOf('user', changes))}`;
  const REFUSED: Record<string, (string | undefined)[]> = {
    token_missing: [undefined, '', 'Bearer', 'Bearer   '],
    token_invalid: [
      ...['Basic dXNlcjpwYXNz', 'Digest username="x"', token, `Bearer${token}`, `Bearer "${token}"`],
      ...[`Bearer ${token} ${token}`, `Bearer ${token}, Bearer ${token}`, `Bearer Bearer ${token}`],
      ...[`Bearer\t${token}`, 'Bearer garbage', `Bearer ${header}.${payload}.${signature.slice(0, -1)}`],
      ...[`Bearer ${'a'.repeat(100_000)}`, made({}, stranger)],
    ],
    token_expired: [made({ iat: SECONDS - 900, exp: SECONDS })],
  };
  const credentials = Object.entries(REFUSED).flatMap(([code, all]) =>
    all.map((authorization) => [authorization?.slice(0, 30), code, authorization] as const),
  );
  test.each(credentials)(
    'row 34: %s is refused with 403 and a body that says which: %s',
    async (_, code, authorization) => {
      expect(await refusal(authorization)).toMatchObject({ status: 403, code });
    },
  );

  test('row 34: the message says what is wrong, and never holds the credential', async () => {
    expect((await refusal(undefined)).msg).toContain('Authorization');
    expect((await refusal('Basic dXNlcjpwYXNz')).msg).toContain('Bearer');
    expect((await refusal('Basic dXNlcjpwYXNz')).msg).not.toContain('dXNlcjpwYXNz');
    expect((await refusal('Bearer CANARY.CANARY.CANARY')).msg).not.toContain('CANARY');
    expect((await refusal(made({ iat: SECONDS - 960, exp: SECONDS - 60 }))).msg).toContain('60 s ago');
  });

  test('row 34: neither the query nor a cookie is a credential', async () => {
    const request = new Request(`https://service.example.org/?access_token=${token}`, {
      headers: { cookie: `token=${token}`, 'x-authorization': `Bearer ${token}` },
    });
    expect((await verifierWith().authenticate(request)).ok).toBe(false);
  });

  test.each<[string, () => Promise<Response>]>([
    ['can not be reached', () => Promise.reject(new TypeError('fetch failed'))],
    ['answers 500', async () => new Response('', { status: 500 })],
    ['answers HTML', async () => new Response('<html>')],
  ])('row 26: an issuer whose key set %s: 503, not 403', async (_, fetch) => {
    const changes = { issuers: { [ISSUER]: true }, fetch } as const;
    expect(await refusal(`Bearer ${token}`, changes)).toMatchObject({ status: 503, code: 'unavailable' });
    expect(await refusal('Bearer garbage', changes)).toMatchObject({ status: 403, code: 'token_invalid' });
  });

  test('an error that is no verdict on the token is not hidden', async () => {
    const now = () => {
      throw new RangeError('no clock');
    };
    await expect(verifierWith({ now }).authenticate(requestWith(`Bearer ${token}`))).rejects.toThrow(
      'no clock',
    );
  });
});

describe('what a verifier is told', () => {
  test('row 23: the kinds of tokens that are due', async () => {
    expect(await refusal(`Bearer ${token}`, { kinds: ['user'] })).toMatchObject({ code: 'accepted' });
    expect(await refusal(`Bearer ${token}`, { kinds: ['project', 'experiment'] })).toMatchObject({
      ...{ status: 403, code: 'token_invalid', msg: expect.stringContaining('project') },
    });
  });

  test('row 23: the audience', async () => {
    expect(await refusal(`Bearer ${token}`, { audience: 'https://conn.example.org' })).toMatchObject({
      code: 'accepted',
    });
    expect(await refusal(`Bearer ${token}`, { audience: 'https://other.example.org' })).toMatchObject({
      status: 403,
      code: 'token_invalid',
      msg: expect.stringContaining('https://other.example.org'),
    });
  });

  test('row 22: only the address of the key set that was given is ever fetched', async () => {
    const asked: string[] = [];
    const fetch = async (request: Request) => {
      asked.push(request.url);
      return Response.json(keySetOf(key));
    };
    const at = async (issuer: string, source: true | string) => {
      asked.length = 0;
      const verifier = verifierWith({ issuers: { [issuer]: source }, fetch });
      const own = makeToken(key, claimsOf('user', { iss: issuer }), {
        header: { jku: 'https://evil.example' },
      });
      expect((await verifier.verify(own)).kind).toBe('user');
      await verifier.verify(own);
      await faultOf(verifier.verify(makeToken(key, claimsOf('user', { iss: 'https://evil.example' }))));
      return asked;
    };
    expect(await at(ISSUER, true)).toEqual([`${ISSUER}/.well-known/jwks.json`]);
    expect(await at(`${ISSUER}/`, true)).toEqual([`${ISSUER}/.well-known/jwks.json`]);
    expect(await at(`${ISSUER}/portal`, true)).toEqual([`${ISSUER}/portal/.well-known/jwks.json`]);
    expect(await at(ISSUER, 'https://keys.example.org/set')).toEqual(['https://keys.example.org/set']);
  });

  test('row 25: tokens that can be told wrong without a key cause no fetch', async () => {
    let fetches = 0;
    const fetch = async () => {
      fetches += 1;
      return Response.json(keySetOf(key));
    };
    const verifier = verifierWith({ issuers: { [ISSUER]: true }, fetch });
    const wrong = [
      'garbage',
      makeToken(key, claimsOf('user'), { header: { alg: 'HS256' } }),
      makeToken(key, claimsOf('user'), { header: { kid: 7 } }),
      makeToken(key, claimsOf('user'), { header: { typ: 'JWE' } }),
      makeToken(key, claimsOf('user', { iss: 'https://evil.example' })),
    ];
    for (const one of wrong) expect(await faultOf(verifier.verify(one))).not.toBe('accepted');
    expect(fetches).toBe(0);
  });
});

describe('readBearer', () => {
  test('is quick on a long header', () => {
    const started = processorTime();
    readBearer(' '.repeat(100_000));
    readBearer(`${'x'.repeat(50_000)}${' '.repeat(50_000)}`);
    readBearer(`Bearer${' '.repeat(100_000)}x`);
    expect(processorTime() - started).toBeLessThan(2000);
  });
});

test.each<[TokenFault, ReturnType<typeof tokenProblem>]>([
  ['expired', 'token_expired'],
  ['keys_unreachable', 'unavailable'],
  ['keys_invalid', 'unavailable'],
  ['revoked', 'token_invalid'],
])('the fault %s is the problem %s', (fault, problem) => {
  expect(tokenProblem(new TokenError(fault, ''))).toBe(problem);
});
