import { DAY, HOUR } from '../../contract/durations.ts';
import type { Period } from '../../contract/instants.ts';
import { floorToStep, movedByStep, type Step, startOfStep, type ZoneClock } from '../../words/civil-time.ts';

/** The unit of a step. */
type Unit = Step['unit'];

/** The shortest and the longest window that is shown, in milliseconds. */
export const SHORTEST = HOUR;
/** See {@link SHORTEST}. */
export const LONGEST = 2 * 366 * DAY;
/** How far from now a window may lie, in milliseconds. */
const FURTHEST_BACK = 366 * DAY;
const FURTHEST_AHEAD = 5 * 366 * DAY;

/** Where an instant lies, in pixels of a plot that shows a window in its width. */
export function placeOf(instant: number, { start, end }: Period, width: number): number {
  return ((instant - start) / (end - start)) * width;
}

/** The instant that lies at a pixel; the inverse of {@link placeOf}. */
export function instantAt(x: number, { start, end }: Period, width: number): number {
  return start + (x / width) * (end - start);
}

/** A window of an allowed length, not too far from now. */
export function clampWindow({ start, end }: Period, now: number): Period {
  const length = Math.min(Math.max(end - start, SHORTEST), LONGEST);
  const centred = (start + end - length) / 2;
  const from = Math.min(Math.max(centred, now - FURTHEST_BACK), now + FURTHEST_AHEAD - length);
  return { start: from, end: from + length };
}

/** A window zoomed by a factor (above 1 shows more), with an instant that stays at its pixel. */
export function zoomWindow({ start, end }: Period, factor: number, fixed: number): Period {
  const length = Math.min(Math.max((end - start) * factor, SHORTEST), LONGEST);
  const share = (fixed - start) / (end - start);
  const from = fixed - share * length;
  return { start: from, end: from + length };
}

/** A window moved by a share of its length. */
export function panWindow({ start, end }: Period, share: number): Period {
  const by = (end - start) * share;
  return { start: start + by, end: end + by };
}

/**
 * A window moved by its whole length on the zone's clock, so that it begins at the same time of day after a change of the
 * clocks; by a month or a year where it is one.
 */
export function turnedPage({ start, end }: Period, times: 1 | -1, clock: ZoneClock, unit?: Unit): Period {
  const [from, to] = [clock.civil(start), clock.civil(end)];
  const moved = (civil: number): number =>
    clock.instant(unit ? movedByStep(civil, { unit, count: 1 }, times) : civil + times * (to - from));
  return { start: moved(from), end: moved(to) };
}

/** The day, week, month or year that begins an hour before now: what is over can't be booked. */
export function windowFromNow(unit: Unit, now: number, clock: ZoneClock): Period {
  const start = floorToStep(now - HOUR, minutes(15), clock);
  return { start, end: clock.instant(movedByStep(clock.civil(start), { unit, count: 1 })) };
}

/** The day, week or month around an instant, on the zone's clock; the year that begins with its month. */
export function unitWindow(unit: Unit, instant: number, clock: ZoneClock): Period {
  const step: Step = { unit, count: 1 };
  const start = startOfStep(clock.civil(instant), unit === 'year' ? { unit: 'month', count: 1 } : step);
  return { start: clock.instant(start), end: clock.instant(movedByStep(start, step)) };
}

/** The steps of a click and of a drag, for windows up to a length. Longer windows snap to days. */
const SNAPS: readonly (readonly [longest: number, click: Step, drag: Step])[] = [
  [2 * DAY, minutes(15), minutes(5)],
  [14 * DAY, minutes(60), minutes(30)],
  [62 * DAY, minutes(360), minutes(360)],
];

function minutes(count: number): Step {
  return { unit: 'minute', count };
}

/** The step to which what is picked in a window snaps: the start of a click, or the ends of a drag. */
export function snapStep({ start, end }: Period, by: 'click' | 'drag'): Step {
  const found = SNAPS.find(([longest]) => end - start <= longest);
  return found?.[by === 'click' ? 1 : 2] ?? { unit: 'day', count: 1 };
}
