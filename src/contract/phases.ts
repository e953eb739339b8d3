import { MINUTE } from './durations.ts';

/** How long before its end a reservation is `ending_soon`, in milliseconds (cli/README.md, "Output"). */
export const SOON = 10 * MINUTE;

/** The life of a reservation, in order. */
const PHASES = ['scheduled', 'active', 'ending_soon', 'ended'] as const;
/** A part of the life of a reservation. */
export type Phase = (typeof PHASES)[number];

/** The event with which a phase begins. */
const BEGINS = { active: 'started', ending_soon: 'ending_soon', ended: 'ended' } as const;
/** An event that comes with time alone. */
export type PhaseEvent = (typeof BEGINS)[keyof typeof BEGINS];

/** A half-open period `[start, end)` in whole milliseconds since the Unix epoch. */
export interface Period {
  start: number;
  end: number;
}

/** When a reservation becomes active, ends soon, and ends. */
function turnsOf({ start, end }: Period): Record<keyof typeof BEGINS, number> {
  return { active: start, ending_soon: Math.max(start, end - SOON), ended: end };
}

/** The phase of a reservation at an instant, in milliseconds. */
export function phaseAt(at: number, period: Period): Phase {
  const turns = turnsOf(period);
  return PHASES.findLast((phase) => phase === 'scheduled' || turns[phase] <= at) ?? 'scheduled';
}

/**
 * The events of the phases after one, up to another. That a reservation ends soon is left out where it has ended by then.
 *
 * @param from undefined at the first sight: then `started` is of an active one, and `ended` alone of one that has ended
 */
export function eventsBetween(from: Phase | undefined, to: Phase): PhaseEvent[] {
  if (to === 'ended' && from === undefined) return ['ended'];
  return PHASES.slice(PHASES.indexOf(from ?? 'scheduled') + 1, PHASES.indexOf(to) + 1)
    .filter((phase) => phase !== 'ending_soon' || phase === to)
    .flatMap((phase) => (phase === 'scheduled' ? [] : BEGINS[phase]));
}

/** The first instant after one at which a reservation's phase changes, in milliseconds; undefined where none comes. */
export function nextTurn(at: number, periods: Iterable<Period>): number | undefined {
  let next: number | undefined;
  for (const period of periods) {
    for (const turn of Object.values(turnsOf(period)))
      if (turn > at && turn < (next ?? turn + 1)) next = turn;
  }
  return next;
}
