import type { Period } from './demand.ts';

/**
 * As `LinkCalendar.mostBandwidth`.
 *
 * @param capacity more is never free, in Mbps
 * @param earliest the earliest start from an instant on for so many Mbps; undefined for none within the window
 * @param free the Mbps that are free over a whole period
 */
export function mostWithin(
  { start, end, duration }: Period & { duration: number },
  capacity: number,
  {
    earliest,
    free,
  }: {
    earliest: (from: number, bandwidth: number) => number | undefined;
    free: (period: Period) => number;
  },
): number {
  let [from, most, tooMuch] = [start, 0, capacity + 1];
  while (most + 1 < tooMuch) {
    const middle = most === 0 ? 1 : Math.floor((most + tooMuch) / 2);
    const at = earliest(from, middle);
    if (at === undefined || at + duration > end) tooMuch = middle;
    else {
      // A start that is too early for less is too early for more.
      from = at;
      most = free({ start: at, end: at + duration });
    }
  }
  return most;
}
