import { createHash } from 'node:crypto';
import type { ReservationQuery } from '../../allocator/store.ts';
import type { ReservationState } from '../../contract/instants.ts';
import type { ProblemCode } from '../../contract/problems.ts';
import {
  DEFAULT_PAGE_ITEMS,
  MAX_IDEMPOTENCY_KEY,
  MAX_PAGE_ITEMS,
  MAX_REASON,
} from '../../contract/request-limits.ts';
import { MAX_TOKENS } from '../../contract/reservation.ts';
import { IDEMPOTENCY_KEY_HEADER } from '../../contract/routes.ts';
import { withoutTokens } from '../../contract/secret.ts';
import { isOneLine } from '../../contract/visible-text.ts';
import { type ProblemError, refusal } from '../problem-error.ts';
import { addressOf } from '../request-reading.ts';

/**
 * The strings in a body's `tokens`, for authentication, which comes before the body is judged.
 *
 * @throws ProblemError 422 for more than {@link MAX_TOKENS}
 */
export function presentedTokens({ tokens }: Record<string, unknown>): string[] {
  const presented = Array.isArray(tokens) ? tokens.filter((token) => typeof token === 'string') : [];
  if (presented.length <= MAX_TOKENS) return presented;
  throw refusal('tokens_invalid', `tokens holds more than ${MAX_TOKENS}.`);
}

/**
 * Reads a boolean query parameter; absent, it is false. The spec says boolean; clients write it in several ways.
 *
 * @throws ProblemError 422 for `start_now`, 400 for the extensions
 */
export function readFlag(
  request: Request,
  name: 'start_now' | 'dry_run' | 'earliest' | 'links',
  code: ProblemCode = 'request_invalid',
): boolean {
  const value = addressOf(request).searchParams.get(name) ?? 'false';
  if (/^(?:true|1)$/i.test(value)) return true;
  if (/^(?:false|0)$/i.test(value)) return false;
  throw refusal(code, `${name} must be true or false.`);
}

const STATES = ['scheduled', 'active', 'ended'] as const satisfies readonly ReservationState[];

/** Reads the filters of a list. @throws ProblemError 400 */
export function readListQuery(request: Request): Pick<ReservationQuery, 'state' | 'after' | 'limit'> {
  const { searchParams } = addressOf(request);
  const wanted = searchParams.get('state');
  const state = STATES.find((known) => known === wanted);
  if (wanted !== null && state === undefined) {
    throw refusal('request_invalid', `state must be one of ${STATES.join(', ')}.`);
  }
  const limit = searchParams.get('limit') ?? String(DEFAULT_PAGE_ITEMS);
  if (!/^[0-9]{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > MAX_PAGE_ITEMS) {
    throw refusal('request_invalid', `limit must be a number from 1 to ${MAX_PAGE_ITEMS}.`);
  }
  return { limit: Number(limit), state, after: searchParams.get('cursor') ?? undefined };
}

const PRINTABLE = new RegExp(`^[ -~]{1,${MAX_IDEMPOTENCY_KEY}}$`);
/** A String of structured fields (RFC 9651 §3.3.3): quoted, with `\\` before a quote or a backslash. */
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/;

/**
 * The text of `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header §2.1); `"abc"` and `abc` are one key. Two
 * fields arrive as one text, joined by a comma.
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

/** A SHA-256 of what a request asks for, for its idempotency key. @param asked read, so that every spelling of it is one */
export function fingerprintOf(asked: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(asked)).digest('hex');
}

/**
 * The refusal of an idempotency key: 409.
 *
 * @param deleted the reservations that it stands for, where they were deleted; undefined for another request's key
 */
export function reusedKey(deleted?: readonly string[]): ProblemError {
  const why = deleted
    ? `The reservation that was booked under this ${IDEMPOTENCY_KEY_HEADER}, ${deleted.join(' ')}, was deleted. Use another key to book again.`
    : `This ${IDEMPOTENCY_KEY_HEADER} was used for another request in the last 24 hours. The same request has the same times: give them as instants, not from now on. Use another key for another request.`;
  return refusal('idempotency_key_reused', why);
}

/**
 * Reads an administrator's reason for a deletion, `?reason=`; tokens in it, pasted by mistake, are masked.
 *
 * @throws ProblemError 400 when it is missing, too long, or holds characters that are not printable
 */
export function readReason(request: Request): string {
  const reason = addressOf(request).searchParams.get('reason')?.trim() ?? '';
  if (reason !== '' && isOneLine(reason, MAX_REASON)) return withoutTokens(reason);
  throw refusal(
    'request_invalid',
    `An administrator must give the reason for a deletion: ?reason= with 1 to ${MAX_REASON} printable characters.`,
  );
}
