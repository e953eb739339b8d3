import { MINUTE } from '../../contract/durations.ts';
import type { Period } from '../../contract/instants.ts';
import { ceilToStep, floorToStep, lengthOfStep, type Step, type ZoneClock } from '../../words/civil-time.ts';

/** The facts that a picked period depends on: starts and ends lie at the steps. Times in milliseconds. */
export type PickContext = { clock: ZoneClock; now: number; step: Step };

/** The part of a period that can still be booked: from the next full minute on. Undefined where all of it is over. */
export function bookable({ start, end }: Period, now: number): Period | undefined {
  const from = start < now ? Math.ceil(now / MINUTE) * MINUTE : start;
  return from < end ? { start: from, end } : undefined;
}

/** The step that lies nearest to an instant. */
export function nearestStep(instant: number, step: Step, clock: ZoneClock): number {
  return floorToStep(instant + lengthOfStep(step) / 2, step, clock);
}

/** The period between two instants, in whichever order, each at the nearest step; one step at least. Undefined where all of it is over. */
export function draggedPeriod(one: number, other: number, { clock, now, step }: PickContext) {
  const start = nearestStep(Math.min(one, other), step, clock);
  const end = nearestStep(Math.max(one, other), step, clock);
  return bookable({ start, end: Math.max(end, ceilToStep(start + 1, step, clock)) }, now);
}

/** The part of a block by which it is dragged: an end, or all of it. */
type Grip = 'start' | 'end' | 'all';

/** How far from the end of a block it is meant, in pixels. */
const EDGE = 6;

/** The grip of a period at a pixel, while it can still be moved. */
export function gripAt(
  { start, end }: Period,
  at: number,
  x: (instant: number) => number,
  now: number,
): Grip | undefined {
  const reach = Math.min(EDGE, (x(end) - x(start)) / 4);
  if (end > now && Math.abs(at - x(end)) <= reach) return 'end';
  if (start <= now) return undefined;
  return Math.abs(at - x(start)) <= reach ? 'start' : 'all';
}

/**
 * A period that was dragged by a grip from an instant to another: what moves lies at the nearest step. One step of it, and of
 * the future, is left.
 */
export function grippedPeriod(
  { start, end }: Period,
  grip: Grip,
  [from, to]: readonly [from: number, to: number],
  { clock, now, step }: PickContext,
): Period {
  const first = ceilToStep(now, step, clock);
  if (grip === 'all') {
    const moved = Math.max(nearestStep(start + to - from, step, clock), first);
    return { start: moved, end: moved + end - start };
  }
  const nearest = nearestStep(to, step, clock);
  if (grip === 'end')
    return { start, end: Math.max(nearest, ceilToStep(Math.max(now, start) + 1, step, clock)) };
  return { start: Math.min(Math.max(nearest, first), end - Math.min(lengthOfStep(step), end - start)), end };
}

/** The keyboard's period moved by so many steps; it keeps its length. */
export function movedPeriod({ start, end }: Period, steps: 1 | -1, { clock, step }: PickContext): Period {
  const from = steps > 0 ? floorToStep(start, step, clock) + lengthOfStep(step) : start - 1;
  // In the middle of the step, so that an hour more or less in a day does not matter.
  const next = floorToStep(steps > 0 ? from + lengthOfStep(step) / 4 : from, step, clock);
  return { start: next, end: next + (end - start) };
}

/** The keyboard's period with its end moved by so many steps; it keeps one step at least. */
export function lengthenedPeriod({ start, end }: Period, steps: 1 | -1, context: PickContext): Period {
  const moved = movedPeriod({ start: end, end }, steps, context).start;
  return { start, end: moved > start ? moved : end };
}
