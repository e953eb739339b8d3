/** Claims that only an ID token has (OpenID Connect Core 1.0 §2, §3.3.2.11). */
const ID_TOKEN_CLAIMS = ['at_hash', 'c_hash', 's_hash', 'nonce'] as const;

/**
 * Whether a signed token is an ID token: it tells a client who logged in, and gives access to nothing (OpenID Connect
 * Core 1.0 §2). Providers sign both with one key, so that only what they say tells them apart. The first row that fits
 * decides.
 *
 * | the token has                                                       | it is       |
 * |---------------------------------------------------------------------|-------------|
 * | header `typ` `at+jwt` (RFC 9068 §2.1)                               | access token |
 * | claim `typ` `Bearer`, `ID` (Keycloak)                               | access, ID token |
 * | claim `at_hash`, `c_hash`, `s_hash` or `nonce`                      | ID token    |
 * | claim `scope` or `scp`                                              | access token |
 * | an `aud` that names the client it was issued to: `azp`, or `clients` | ID token    |
 * | nothing of it                                                       | access token |
 *
 * @param clients the client ids that are known here
 */
export function isIdToken(
  header: Readonly<Record<string, unknown>>,
  claims: Readonly<Record<string, unknown>>,
  clients: readonly string[] = [],
): boolean {
  if (typeof header['typ'] === 'string' && /^(?:application\/)?at\+jwt$/i.test(header['typ'])) return false;
  if (claims['typ'] === 'Bearer') return false;
  if (claims['typ'] === 'ID' || ID_TOKEN_CLAIMS.some((name) => Object.hasOwn(claims, name))) return true;
  if (Object.hasOwn(claims, 'scope') || Object.hasOwn(claims, 'scp')) return false;
  const { aud, azp } = claims;
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  return audiences.some(
    (audience) => typeof audience === 'string' && (audience === azp || clients.includes(audience)),
  );
}
