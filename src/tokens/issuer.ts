import { CompactSign, type JWTPayload } from 'jose';
import type { KeySetDocument } from '../contract/claims.ts';
import { JWT_TYPE, KEY_SET_PATH } from '../contract/routes.ts';
import { publicPartOf } from './key-set.ts';
import type { SigningKey } from './signing-key.ts';

/** Lifetime of a self-issued token when nothing else is asked: 900 s (contract/README.md, "Limits" 3). */
export const DEFAULT_TTL = 900;

/** Options of {@link createIssuer}. */
export interface IssuerOptions {
  /** The `iss` of every token: the issuer's address, whose key set path publishes the key. */
  issuer: string;
  /** Signs every token. */
  key: SigningKey;
  /** Default lifetime in seconds. Default {@link DEFAULT_TTL}. */
  ttl?: number;
  /** Default: the machine's clock. Milliseconds since the Unix epoch. */
  now?: () => number;
  /** Published keys that don't sign: former ones, whose tokens still verify, and the next one (THREATS.md 27). */
  otherKeys?: KeySetDocument['keys'];
}

/** The form of a token, besides its claims. */
export interface TokenForm {
  /** Its `typ` header. Default `JWT`. */
  typ?: string;
  /** Of which instant it is, in milliseconds: its `iat`. Default: now. */
  at?: number;
}

/** A service's own token issuer (contract/README.md, "Authentication" 6). */
export interface Issuer {
  /** The `iss` of its tokens. */
  readonly issuer: string;
  /** The public keys, as published at `/.well-known/jwks.json`. */
  readonly keySet: KeySetDocument;
  /**
   * Signs a token: `iss`, `iat` and `exp` are set here, unless `claims` gives an `exp` (seconds) of its own.
   *
   * @returns the compact JWS
   */
  issue(claims?: JWTPayload, form?: TokenForm): Promise<string>;
  /** The same as a reply with media type `application/jwt`. */
  reply(claims?: JWTPayload, init?: { status?: number; headers?: Record<string, string> }): Promise<Response>;
  /** Answers a request for the key set; undefined for any other path. */
  fetch(request: Request): Response | undefined;
}

/**
 * An issuer of ES256 tokens as a service has one (contract/README.md, "Authentication" 6): signs with a P-256 key, sets `iss`,
 * `iat`, `exp` and the `kid` header, and publishes its public key.
 *
 * @throws RangeError when another key has the same kid
 */
export function createIssuer(options: IssuerOptions): Issuer {
  const { issuer, key, ttl = DEFAULT_TTL, now = Date.now, otherKeys = [] } = options;
  const keySet: KeySetDocument = { keys: [key.publicJwk, ...otherKeys.map(publicPartOf)] };
  if (otherKeys.some(({ kid }) => kid === key.kid)) throw new RangeError(`two keys have the kid ${key.kid}`);

  const issue = async (claims: JWTPayload = {}, { typ = 'JWT', at = now() }: TokenForm = {}) => {
    const iat = Math.floor(at / 1000);
    const all = { ...claims, iss: issuer, iat, exp: claims.exp ?? iat + ttl };
    // Not `SignJWT`: it copies the claims before it writes them, which takes half as long as the rest.
    return new CompactSign(new TextEncoder().encode(JSON.stringify(all)))
      .setProtectedHeader({ alg: 'ES256', kid: key.kid, typ })
      .sign(key.privateKey);
  };

  return {
    issuer,
    keySet,
    issue,
    async reply(claims, { status = 200, headers = {} } = {}) {
      const others = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
      const all = { ...Object.fromEntries(others), 'content-type': JWT_TYPE, 'cache-control': 'no-store' };
      return new Response(await issue(claims), { status, headers: all });
    },
    fetch(request) {
      const path = new URL(request.url).pathname;
      if (path !== new URL(issuer).pathname.replace(/\/$/, '') + KEY_SET_PATH) return undefined;
      return Response.json(keySet, { headers: { 'cache-control': 'public, max-age=300' } });
    },
  };
}
