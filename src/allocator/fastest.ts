import type { Demand, Period } from './demand.ts';

/** A stretch of time over which the bandwidth that is free does not change, in Mbps. */
export interface FreeStep extends Period {
  free: number;
}

/** What a transfer needs besides bandwidth. */
export interface Transfer {
  /** The most Mbps that it may use. */
  most: number;
  /** Bytes, 1 to 2^53 - 1. */
  volume: number;
  /** The earliest start from an instant on for which tags are free for so many milliseconds; infinity for none. */
  tagsFrom(from: number, duration: number): number;
  /** The earliest start for which tags are free until an instant. */
  tagsSince(until: number): number;
}

/** A rectangle below the free bandwidth that may still become longer: `rate` Mbps have been free since `start`. */
interface Rectangle {
  start: number;
  rate: number;
  /** When the transfer at this rate would be over; no later than that, until the tags are known. */
  done: number;
  tagsKnown: boolean;
  /** The least `done` of this rectangle and those below it. */
  first: number;
}

/**
 * The transfer of a volume at one constant rate that ends first; of those that end at the same instant, the slowest.
 *
 * The rate of one that ends first is, or can be raised to, the height of a rectangle that can't be made larger below the
 * free bandwidth. So the steps are read once, with a stack of the rectangles that are open: each is higher and begins
 * later than the one below it. The first in which the volume is through wins.
 *
 * @param steps without gaps between them, in order; the last ends at the deadline
 */
export function fastest(steps: Iterable<FreeStep>, transfer: Transfer): Demand | undefined {
  const { most, volume } = transfer;
  const open: Rectangle[] = [];
  for (const step of steps) {
    const rate = Math.min(step.free, most);
    let { start } = step;
    while ((open.at(-1)?.rate ?? 0) > rate) start = open.pop()?.start ?? start;
    if (rate > (open.at(-1)?.rate ?? 0)) {
      const done = start + durationOf(volume, rate);
      const first = Math.min(done, open.at(-1)?.first ?? Number.POSITIVE_INFINITY);
      open.push({ start, rate, done, tagsKnown: false, first });
    }
    for (;;) {
      const first = open.at(-1)?.first ?? Number.POSITIVE_INFINITY;
      const rectangle = open.find(({ done }) => done === first);
      if (!rectangle || first > step.end) break;
      if (rectangle.tagsKnown) return slowest(open, first, transfer);
      const duration = durationOf(volume, rectangle.rate);
      rectangle.done = transfer.tagsFrom(rectangle.start, duration) + duration;
      rectangle.tagsKnown = true;
      let least = Number.POSITIVE_INFINITY;
      for (const each of open) {
        least = Math.min(least, each.done);
        each.first = least;
      }
    }
  }
  return undefined;
}

/** How long a transfer takes, in milliseconds, rounded up: 1 Mbps carries 125 bytes in one. */
function durationOf(volume: number, rate: number): number {
  // Exact: a quotient of integers below 2^53 is never rounded to another integer.
  return Math.ceil(volume / (125 * rate));
}

/**
 * The slowest transfer that ends at `end`.
 *
 * @param open the rectangles that are open there: what begins in one and not yet in the next has at most its height
 */
function slowest(open: readonly Rectangle[], end: number, { volume, tagsSince }: Transfer): Demand {
  const tagged = tagsSince(end);
  for (const { start, rate } of open) {
    const longest = end - Math.max(start, tagged);
    const bandwidth = Math.ceil(volume / (125 * longest));
    if (longest > 0 && bandwidth <= rate) {
      return { start: end - durationOf(volume, bandwidth), end, bandwidth };
    }
  }
  throw new RangeError('no rectangle ends there');
}
