import type { Replay } from '../../allocator/create.ts';
import type { UpdateOutcome } from '../../allocator/update.ts';
import { LIMITS } from '../../contract/problems.ts';

/**
 * What became of a request to book or to change: `granted`; `repeated`, when its key had been used; `bandwidth` or
 * `tags` or `share`, the first limit that it broke, in this order; `rule`, what the caller must put right; `fault`, when
 * nobody can tell.
 */
export const BOOKING_RESULTS = [
  'granted',
  'repeated',
  'bandwidth',
  'tags',
  'share',
  'rule',
  'fault',
] as const;
/** One of {@link BOOKING_RESULTS}. */
export type BookingResult = (typeof BOOKING_RESULTS)[number];

/** Told what became of each request to book or to change, dry runs left out. */
export type BookingObserver = (asked: 'book' | 'change', result: BookingResult) => void;

/** Asks for a decision, and tells what came of it. */
export async function observed<Answer extends UpdateOutcome<unknown> | Replay | undefined>(
  tell: (result: BookingResult) => void,
  ask: () => Promise<Answer>,
): Promise<Answer> {
  try {
    const answer = await ask();
    tell(resultOf(answer));
    return answer;
  } catch (error) {
    tell('fault');
    throw error;
  }
}

function resultOf(answer: UpdateOutcome<unknown> | Replay | undefined): BookingResult {
  if (!answer) return 'rule';
  if (answer.ok) return 'replayed' in answer ? 'repeated' : 'granted';
  if (answer.reason !== 'refused') return 'rule';
  const broken = new Set(answer.refusals.map(({ limit }) => limit));
  return LIMITS.find((limit) => broken.has(limit)) ?? 'rule';
}
