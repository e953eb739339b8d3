/** The result of one attempt at a request: a reply, or an error. */
export type Attempt =
  | { status: number; retryAfter: string | null }
  | {
      /** The connection's error code, such as `ECONNRESET`. */
      problem: string;
    };

/** How often a request is sent at most. */
const MAX_ATTEMPTS = 3;
/** Pause before the second attempt, in milliseconds; doubled for each further one. */
const FIRST_PAUSE = 300;

/** Replies that say "later" (RFC 9110 §15.6, RFC 6585 §4). */
const PASSING_STATUS = new Set([429, 502, 503, 504]);

/**
 * Errors after which another attempt may succeed. A refused connection or an unknown name is not among them: another
 * attempt would give the same result, and people would wait for it.
 */
const PASSING_PROBLEM = new Set([
  'EAI_AGAIN',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENETDOWN',
  'ENETRESET',
  'UND_ERR_SOCKET',
]);

/**
 * How long to wait before a request is sent again, in milliseconds; undefined when it is not. Only for requests that
 * change nothing, however often they are sent.
 *
 * | attempt | pause |
 * |---|---|
 * | 1 | 300 ms, and up to half as much again by chance |
 * | 2 | 600 ms, likewise |
 * | 3 | none: it was the last |
 *
 * A `Retry-After` in seconds (RFC 9110 §10.2.3) is heeded where it asks for more.
 *
 * @param made how many attempts were made, this one included
 * @param chance a random number from 0 to 1, so that many clients do not come back at once
 */
export function pauseBeforeNext(made: number, attempt: Attempt, chance: number): number | undefined {
  if (made >= MAX_ATTEMPTS) return undefined;
  const backOff = FIRST_PAUSE * 2 ** (made - 1) * (1 + chance / 2);
  if ('problem' in attempt) return PASSING_PROBLEM.has(attempt.problem) ? backOff : undefined;
  if (!PASSING_STATUS.has(attempt.status)) return undefined;
  const asked = /^\d{1,6}$/.test(attempt.retryAfter ?? '') ? Number(attempt.retryAfter) * 1000 : 0;
  return Math.max(backOff, asked);
}
