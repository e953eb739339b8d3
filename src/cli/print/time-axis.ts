import type { Period } from '../../contract/instants.ts';
import { createClock } from '../../words/civil-time.ts';
import { oneLineTicks, type Tick } from '../../words/time-axis.ts';

/** The column in which an instant lies, of so many: column i is from `start + floor(i * length / count)` on. */
export function columnAt(instant: number, { start, end }: Period, count: number): number {
  return Math.floor(((instant - start + 1) * count - 1) / (end - start));
}

/** {@link oneLineTicks} of an axis of so many characters. */
export function columnTicks(
  window: Period,
  { now, zone }: { now: number; zone: string },
  count: number,
): Tick[] {
  return oneLineTicks(
    window,
    { clock: createClock(zone), now },
    {
      width: count,
      place: (instant) => columnAt(instant, window, count),
      measure: (label) => label.length,
      gap: 3,
    },
  );
}

/** The labels of ticks as a line, each beginning in its tick's column. */
export function labelLine(ticks: readonly Tick[], window: Period, count: number): string {
  return ticks.reduce(
    (line, { at, label }) => (label === '' ? line : line.padEnd(columnAt(at, window, count)) + label),
    '',
  );
}
