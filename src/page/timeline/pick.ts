import { MINUTE } from '../../contract/durations.ts';
import type { Period } from '../../contract/phases.ts';
import { ceilToStep, floorToStep, lengthOfStep, type Step, type ZoneClock } from '../../words/civil-time.ts';
import type { Column } from '../service.ts';

/** The facts that a picked period depends on. Times in milliseconds. */
export interface PickContext {
  clock: ZoneClock;
  now: number;
  /** Starts and ends lie at these. */
  step: Step;
}

/** The part of a period that can still be booked: from the next full minute on. Undefined where all of it is over. */
export function bookable({ start, end }: Period, now: number): Period | undefined {
  const from = start < now ? Math.ceil(now / MINUTE) * MINUTE : start;
  return from < end ? { start: from, end } : undefined;
}

/** The period between two instants, in whichever order, widened to whole steps. Undefined where all of it is over. */
export function draggedPeriod(
  one: number,
  other: number,
  { clock, now, step }: PickContext,
): Period | undefined {
  const [first, last] = [Math.min(one, other), Math.max(one, other)];
  return bookable({ start: floorToStep(first, step, clock), end: ceilToStep(last, step, clock) }, now);
}

/** Whether anything can be booked throughout a column. */
export function isFree({ free, vlans }: Pick<Column, 'free' | 'vlans'>): boolean {
  return free > 0 && vlans > 0;
}

/**
 * The period that a click on a link means: of a length, from the step in which the instant lies, as far as the link is free
 * around it. Undefined where it is not free there, or the instant is over.
 *
 * @param length in milliseconds
 * @param columns of the link around the instant, in order
 */
export function clickedPeriod(
  instant: number,
  length: number,
  columns: readonly Column[],
  { clock, now, step }: PickContext,
): Period | undefined {
  const at = columns.findIndex(({ start, end }) => start <= instant && instant < end);
  const clicked = columns[at];
  if (!clicked || !isFree(clicked) || instant < now) return undefined;
  const before = columns.slice(0, at).findLast((column) => !isFree(column))?.end ?? Number.NEGATIVE_INFINITY;
  const after = columns.slice(at).find((column) => !isFree(column))?.start ?? Number.POSITIVE_INFINITY;
  const start = Math.max(floorToStep(instant, step, clock), before);
  const period = bookable({ start, end: after }, now);
  if (!period) return undefined;
  // The end is at a step too, also where the start is not.
  const end = ceilToStep(Math.max(start, period.start - lengthOfStep(step)) + length, step, clock);
  return { start: period.start, end: Math.min(after, end) };
}

/** An end of a bar that is dragged: half a bar at least is left to click on. */
type Edge = 'start' | 'end';

/** How far from the edge of a bar it is meant, in pixels. */
const EDGE = 6;

/** The edge of a period that lies at a pixel, while it can still be moved. @param x where instants lie, in pixels */
export function edgeAt(
  { start, end }: Period,
  at: number,
  x: (instant: number) => number,
  now: number,
): Edge | undefined {
  const reach = Math.min(EDGE, (x(end) - x(start)) / 4);
  if (end > now && Math.abs(at - x(end)) <= reach) return 'end';
  return start > now && Math.abs(at - x(start)) <= reach ? 'start' : undefined;
}

/** A period with an edge at the step nearest to an instant; one step of it, and of the future, is left. */
export function resizedPeriod(
  { start, end }: Period,
  edge: Edge,
  instant: number,
  { clock, now, step }: PickContext,
): Period {
  const length = lengthOfStep(step);
  const to = floorToStep(instant + length / 2, step, clock);
  const from = Math.max(now, edge === 'end' ? start : 0);
  return edge === 'end'
    ? { start, end: Math.max(to, ceilToStep(from + 1, step, clock)) }
    : {
        start: Math.min(Math.max(to, ceilToStep(from, step, clock)), end - Math.min(length, end - start)),
        end,
      };
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
