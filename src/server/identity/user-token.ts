import type { JWTPayload } from 'jose';

/** The client for people: public, by device code (RFC 8628 §3.1). */
export const CLIENT_ID = 'slices-conn';

/** The client of this server's own page, in a browser: public, by authorization code with PKCE (RFC 7636). */
export const UI_CLIENT_ID = 'slices-conn-ui';

/** Lifetime of a machine's refresh token, in days. It is not rotated, since jobs that run side by side share it. */
export const CI_LIFETIME_DAYS = 90;

/** Every scope of a user token, which a login by this program asks for. */
export const ALL_SCOPES = 'openid userinfo projects sessions';

/** Scope of a user token when nothing else was asked (contract/README.md, "User token"). */
export const DEFAULT_SCOPE = 'openid userinfo projects';

/** Default lifetime of a user token, in seconds. */
export const ACCESS_TOKEN_TTL = 3600;

/** A user who can log in. */
export interface Person {
  /** `user_<host>_<opaque_id>`. */
  id: string;
  name: string;
}

/**
 * The claims of a user token (contract/README.md, "User token"), beside those that the issuer sets.
 *
 * @param login when the person logged in, in milliseconds
 * @param ttl lifetime in seconds, from the login
 */
export function userClaims(
  person: Person,
  { audience, login, ttl = ACCESS_TOKEN_TTL }: { audience: string; login: number; ttl?: number },
): JWTPayload {
  const authTime = Math.floor(login / 1000);
  return {
    sub: person.id,
    aud: audience,
    auth_time: authTime,
    exp: authTime + ttl,
    scope: ALL_SCOPES,
    preferred_username: person.name,
  };
}

/** The longest that a request may take from its start until its token is signed, in seconds. */
const REQUEST_TIME_S = 60;

/**
 * The latest possible expiry of a user token that is requested now, in seconds.
 *
 * @param now milliseconds since the Unix epoch
 * @param ttl its lifetime in seconds
 */
export function latestExpiry(now: number, ttl = ACCESS_TOKEN_TTL): number {
  return Math.ceil(now / 1000) + REQUEST_TIME_S + ttl;
}
