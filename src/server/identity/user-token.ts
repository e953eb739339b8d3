import type { JWTPayload } from 'jose';

/** Scope of a user token when nothing else was asked (SPEC.md, "User token"). */
export const DEFAULT_SCOPE = 'openid userinfo projects';

/** Lifetime of a user token in seconds, unless the server is told otherwise. */
export const ACCESS_TOKEN_TTL = 3600;

/** Someone who can log in. */
export interface Person {
  /** `user_<host>_<opaque_id>`. */
  id: string;
  name: string;
}

/**
 * The claims of a user token (SPEC.md, "User token"), beside those that the issuer sets.
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
    scope: DEFAULT_SCOPE,
    preferred_username: person.name,
  };
}
