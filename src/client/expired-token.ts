import { Failure } from '../contract/failure.ts';
import { claimedExpiry } from './claimed.ts';

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
