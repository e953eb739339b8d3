import { HOUR } from '../../contract/durations.ts';
import type { Period } from '../../contract/instants.ts';
import {
  floorToStep,
  lengthOfStep,
  nextBeginning,
  type Step,
  type ZoneClock,
} from '../../words/civil-time.ts';
import type { Column, Own } from '../service.ts';
import { knownFrom } from './tiles.ts';

/** The lengths of a line of the table, the shortest first. */
const STEPS: readonly Step[] = [
  ...[15, 60, 360].map((count): Step => ({ unit: 'minute', count })),
  { unit: 'day', count: 1 },
  { unit: 'week', count: 1 },
];
/** The most lines of a link. */
const MOST_LINES = 60;

/** How long a line of a window's table is at least: the times of its lines are rounded to this. */
export function tableStep({ start, end }: Period): Step {
  return STEPS.find((one) => (end - start) / lengthOfStep(one) <= MOST_LINES) ?? { unit: 'week', count: 1 };
}

/** Parts of a window of equal length each, as they are asked for. */
export interface Segment extends Period {
  points: number;
}

/**
 * The parts of a window that a table has as lines: whole hours, days or weeks on the zone's clock, from where the use of
 * links is known on. They come in segments of equal lengths, as days differ where clocks change.
 */
export function tableSegments({ start, end }: Period, clock: ZoneClock, now: number): Segment[] {
  const known = Math.ceil(knownFrom(now) / HOUR) * HOUR;
  const step = tableStep({ start, end });
  const segments: Segment[] = [];
  let at = Math.max(known, floorToStep(start, step, clock));
  while (at < end) {
    const next = nextBeginning(at, step, clock);
    const last = segments.at(-1);
    if (last && (last.end - last.start) / last.points === next - at) {
      last.end = next;
      last.points += 1;
    } else segments.push({ start: at, end: next, points: 1 });
    at = next;
  }
  return segments;
}

/** A line: a time in which the same is free, and my reservations in it. */
export interface Line extends Column {
  own: readonly Own[];
}

/** Columns as lines: neighbours with the same facts and the same reservations are one. */
export function tableLines(columns: readonly Column[], own: readonly Own[]): Line[] {
  const lines: Line[] = [];
  for (const column of columns) {
    const mine = own.filter(({ start, end }) => start < column.end && end > column.start);
    const last = lines.at(-1);
    const isSame =
      last?.free === column.free &&
      last.freeMax === column.freeMax &&
      last.vlans === column.vlans &&
      last.own.length === mine.length &&
      last.own.every((one, index) => one.id === mine[index]?.id);
    if (isSame) last.end = column.end;
    else lines.push({ ...column, own: mine });
  }
  return lines;
}
