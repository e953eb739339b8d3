import { createHash } from 'node:crypto';
import type { Replay } from '../../allocator/create.ts';
import { IDEMPOTENCY_KEY_HEADER, MAX_IDEMPOTENCY_KEY } from '../../contract/parameters.ts';
import type { ReservationRequest } from '../../contract/reservation.ts';
import { type ProblemError, refusal } from '../problem-error.ts';

const PRINTABLE = new RegExp(`^[ -~]{1,${MAX_IDEMPOTENCY_KEY}}$`);
/** A String of structured fields (RFC 9651 §3.3.3): quoted, with `\\` before a quote or a backslash. */
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/;

/**
 * The text of `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header §2.1); `"abc"` and `abc` are one key. What
 * was given in two fields is one text, as it arrives.
 *
 * @returns undefined when there is none
 * @throws ProblemError 400 when it is empty, longer than {@link MAX_IDEMPOTENCY_KEY}, or not printable ASCII
 */
export function readIdempotencyKey(request: Request): string | undefined {
  const value = request.headers.get(IDEMPOTENCY_KEY_HEADER);
  if (value === null) return undefined;
  const key = QUOTED.exec(value)?.[1]?.replaceAll(/\\(["\\])/g, '$1') ?? value;
  if (PRINTABLE.test(key)) return key;
  throw refusal(
    'request_invalid',
    `${IDEMPOTENCY_KEY_HEADER} must be 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters, such as a UUID.`,
  );
}

/**
 * What tells one booking request from another, whatever its spelling: a SHA-256 of what is asked for (a start of null
 * is start_now). `tokens` say who asks, and are other ones after a refresh.
 */
export function fingerprintOf({ site1, site2, bandwidth, start_date, end_date }: ReservationRequest): string {
  const asked = JSON.stringify([site1, site2, bandwidth, start_date, end_date]);
  return createHash('sha256').update(asked).digest('hex');
}

/** The reply to a request whose key stands for something that it can't be answered with: 409. */
export function reusedKey(repetition: Replay & { ok: false }): ProblemError {
  const why =
    repetition.reason === 'deleted'
      ? `The reservation that was booked under this ${IDEMPOTENCY_KEY_HEADER}, ${repetition.reservation}, was deleted. Use another key to book anew.`
      : `This ${IDEMPOTENCY_KEY_HEADER} was used for another request in the last 24 hours. Use another key for this one.`;
  return refusal('idempotency_key_reused', why);
}
