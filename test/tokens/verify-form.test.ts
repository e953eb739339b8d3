import { describe, expect, test } from 'vitest';
import { MAX_NESTING } from '../../src/contract/json.ts';
import { MAX_TOKEN_LENGTH, readCompact } from '../../src/tokens/compact.ts';
import { TokenError } from '../../src/tokens/token-error.ts';
import { VerifiedTokens } from '../../src/tokens/verified-tokens.ts';
import { verifyToken, verifyUserToken } from '../../src/tokens/verify.ts';
import { DEEP, key, stranger, trust, user } from '../fixtures/forged-tokens.ts';
import {
  base64url,
  claimsOf,
  errorOf,
  type Forgery,
  faultOf,
  IDS,
  KINDS,
  makeToken,
  partsOf,
  VERIFY,
} from '../fixtures/tokens.ts';

const P256_ORDER = 'ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551';
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

describe('form', () => {
  const signed = (bytes: Uint8Array) => ({ sign: () => bytes });
  test.each<[string, Forgery]>([
    ['r = 0', signed(Buffer.concat([Buffer.alloc(32), Buffer.alloc(32, 1)]))],
    ['r = s = the order', signed(Buffer.from(P256_ORDER + P256_ORDER, 'hex'))],
    ['DER of zeros', signed(Buffer.from('3006020100020100', 'hex'))],
    ['of another key', { sign: stranger.sign }],
  ])('row 24: a signature that is %s is rejected', async (_, forgery) => {
    expect(await user(forgery)).toBe('signature');
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
    expect(() => readCompact(token)).toThrow(TokenError);
  });

  const head = '"alg":"ES256","kid":"key1","typ":"JWT"';
  const claims = JSON.stringify(claimsOf('user')).slice(1, -1);
  const nested = '"more":{"a":[{"b":1,"b":2}]}';
  test.each<[string, Forgery]>([
    ['alg twice in the header', { rawHeader: `{${head},"alg":"ES256"}` }],
    ['kid twice, once escaped', { rawHeader: `{${head},"\\u006bid":"key1"}` }],
    ['sub twice in the payload', { rawPayload: `{${claims},"sub":"${IDS.user}"}` }],
    ['a member twice at depth', { rawPayload: `{${claims},${nested}}` }],
  ])('row 24: %s is rejected', async (_, forgery) => {
    const error = await errorOf(verifyUserToken(makeToken(key, claimsOf('user'), forgery), trust));
    expect(error).toMatchObject({ code: 'malformed', message: expect.stringContaining('twice') });
  });

  test.each<[string, string | Uint8Array]>([
    ['no JSON', '{'],
    ['an array', `[{${claims}}]`],
    ['null', 'null'],
    ['a byte order mark', `\uFEFF{${claims}}`],
    ['invalid UTF-8', Buffer.from(`{${claims},"x":"\xff"}`, 'latin1')],
  ])('row 24: a payload that is %s is rejected', async (_, rawPayload) => {
    expect(await user({ rawPayload })).toBe('malformed');
  });

  test.each(['{', '[]', 'null', '"x"', `\uFEFF{${head}}`])(
    'row 24: a header that is %j is rejected',
    async (rawHeader) => {
      expect(await user({ rawHeader })).toBe('malformed');
    },
  );

  test.each<Record<string, unknown>>([
    ...[{ crit: ['x'], x: 1 }, { crit: ['exp'], exp: 1 }, { crit: ['x'] }, { crit: ['alg'] }, { crit: [] }],
    ...[{ crit: 'x', x: 1 }, { crit: null }, { crit: ['b64'], b64: false }, { b64: false }],
  ])('row 24: a header with %j is rejected (RFC 7797 §7)', async (more) => {
    expect(await user({ header: more })).toBe('malformed');
  });

  test('row 24: b64=false with a payload that was not encoded is rejected', async () => {
    const part = base64url(JSON.stringify({ alg: 'ES256', kid: 'key1', crit: ['b64'], b64: false }));
    const bare = JSON.stringify(claimsOf('user', { iss: 'x', aud: 'y', sub: 'user_a_b' }));
    const token = `${part}.${bare}.${base64url(key.sign(Buffer.from(`${part}.${bare}`)))}`;
    expect(await faultOf(verifyUserToken(token, trust))).toBe('malformed');
  });

  test('row 24: a token is at most 65,536 characters long', async () => {
    expect(MAX_TOKEN_LENGTH).toBe(65_536);
    const room = MAX_TOKEN_LENGTH - makeToken(key, claimsOf('user', { more: '' })).length;
    const fits = makeToken(key, claimsOf('user', { more: 'x'.repeat(Math.floor(room * 0.75) - 2) }));
    expect(fits.length).toBeLessThanOrEqual(MAX_TOKEN_LENGTH);
    expect(fits.length).toBeGreaterThan(MAX_TOKEN_LENGTH - 8);
    expect(await faultOf(verifyUserToken(fits, trust))).toBe('accepted');
    const over = makeToken(key, claimsOf('user', { more: 'x'.repeat(Math.floor(room * 0.75) + 8) }));
    expect(await faultOf(verifyUserToken(over, trust))).toBe('malformed');
  });

  test('row 47: a deeply nested claim is not read', async () => {
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const withMore = (more: string) => user({ rawPayload: `{${claims},"more":${more}}` });
    expect(await withMore(nested(MAX_NESTING - 1))).toBe('accepted');
    expect(await withMore(nested(MAX_NESTING))).toBe('malformed');
    expect(await withMore(DEEP)).toBe('malformed');
  });
});

describe('one flipped byte', () => {
  const replaced = (token: string, index: number, by: string) =>
    token.slice(0, index) + by + token.slice(index + 1);

  test.each(KINDS)('row 24: anywhere in a %s token is rejected', async (kind) => {
    const token = makeToken(key, claimsOf(kind));
    // The sound token is remembered: one that differs from it is checked from its start.
    const verified = new VerifiedTokens();
    const remembering = { ...trust, verified };
    expect(await faultOf(VERIFY[kind](token, remembering))).toBe('accepted');
    const accepted: string[] = [];
    for (let index = 0; index < token.length; index += 1) {
      const neighbour = ALPHABET.charAt((ALPHABET.indexOf(token.charAt(index)) + 1) % 64);
      const flipped = String.fromCharCode(token.charCodeAt(index) ^ (1 << (index % 8)));
      for (const by of new Set([neighbour, flipped])) {
        const forged = replaced(token, index, by);
        expect(forged).not.toBe(token);
        if ((await faultOf(VERIFY[kind](forged, remembering))) === 'accepted')
          accepted.push(`${index} ${by}`);
      }
    }
    expect([accepted, verified.size]).toEqual([[], 1]);
  });
});
