import { Failure } from '../contract/failure.ts';
import { readCompact } from '../tokens/compact.ts';
import { TokenError } from '../tokens/token-error.ts';

/**
 * A 403 without a code of its own may be about an expired token: it is, when one that was sent has expired (DESIGN.md,
 * "Status codes", column Client).
 *
 * @param sent the values of the headers that carried tokens
 * @param now milliseconds
 */
export function expiredInstead(error: unknown, sent: readonly string[], now: number): unknown {
  if (!(error instanceof Failure) || error.code !== 'forbidden') return error;
  if (!sent.some((value) => hasExpired(value.replace(/^Bearer /, ''), now))) return error;
  return new Failure('token_expired', 'The token that was sent has expired.', error.facts);
}

function hasExpired(token: string, now: number): boolean {
  const expiry = claimedExpiry(token);
  return expiry !== undefined && expiry <= now;
}

/** When an unverified token says that it expires, in milliseconds; undefined for one that does not say. */
export function claimedExpiry(token: string): number | undefined {
  try {
    const { exp } = readCompact(token).claims;
    return typeof exp === 'number' ? exp * 1000 : undefined;
  } catch (error) {
    if (error instanceof TokenError) return undefined;
    throw error;
  }
}
