import type { Demand, Period } from './demand.ts';
import type { Steps } from './steps.ts';

/** How many bytes 1 Mbps carries in a millisecond. */
const BYTES_PER_MBPS_MS = 125;

/**
 * How long a transfer takes, in milliseconds, rounded up.
 *
 * @param volume bytes
 * @param rate Mbps
 * @param unit it is a multiple of so many milliseconds. Default: 1
 *
 * @example
 * // 250,000 bytes at 1000 Mbps take 2 ms; one byte more takes 3 ms.
 */
export function durationOf(volume: number, rate: number, unit = 1): number {
  // Exact: a quotient of integers below 2^53 is never rounded to another integer.
  return Math.ceil(volume / (BYTES_PER_MBPS_MS * rate * unit)) * unit;
}

/**
 * The lowest rate that carries a volume in time, in whole Mbps.
 *
 * @param volume bytes
 * @param duration milliseconds, more than 0
 */
export function slowestRate(volume: number, duration: number): number {
  return Math.ceil(volume / (BYTES_PER_MBPS_MS * duration));
}

/** A stretch in which what is free does not change, in Mbps. */
export type FreeStep = Period & { free: number };

/** What is free on all of several links: step by step, that of the link with the least. @param links over the same period */
export function narrowest(links: readonly (readonly FreeStep[])[]): FreeStep[] {
  const [first = [], ...rest] = links;
  return rest.reduce<FreeStep[]>((one, other) => narrower(one, other), [...first]);
}

function narrower(one: readonly FreeStep[], other: readonly FreeStep[]): FreeStep[] {
  const found: FreeStep[] = [];
  for (let [i, j] = [0, 0]; ; ) {
    const [a, b] = [one[i], other[j]];
    if (!a || !b) return found;
    const end = Math.min(a.end, b.end);
    found.push({ start: Math.max(a.start, b.start), end, free: Math.min(a.free, b.free) });
    if (a.end === end) i += 1;
    if (b.end === end) j += 1;
  }
}

/** The first multiple of a unit at an instant or after it, all in milliseconds. */
export function roundUp(instant: number, unit: number): number {
  return Math.ceil(instant / unit) * unit;
}

/** The last multiple of a unit at an instant or before it, all in milliseconds. */
export function roundDown(instant: number, unit: number): number {
  return Math.floor(instant / unit) * unit;
}

/**
 * Steps that begin and end with a unit of so many milliseconds: each unit has what is free throughout it. Units that are not
 * within the steps as a whole are left out.
 *
 * @example
 * // 10 Mbps until 2.5 min and 4 from then on, in minutes: 10 until 2 min, then 4.
 */
export function* inUnits(steps: Iterable<FreeStep>, unit: number): Generator<FreeStep> {
  // The unit that a step ends within.
  let open: FreeStep | undefined;
  for (const { start, end, free } of steps) {
    if (open) {
      open.free = Math.min(open.free, free);
      if (open.end > end) continue;
      yield open;
      open = undefined;
    }
    const [first, last] = [roundUp(start, unit), roundDown(end, unit)];
    if (first < last) yield { start: first, end: last, free };
    if (last < end && last >= first) open = { start: last, end: last + unit, free };
  }
}

/** The limits of a transfer besides bandwidth. */
export interface Transfer {
  /** The most Mbps that it may use. */
  most: number;
  /** Bytes, 1 to 2^53 - 1. */
  volume: number;
  /** Its times are multiples of so many milliseconds, as those of the steps are. */
  unit: number;
  /** The earliest start from an instant on for which tags are free for so many milliseconds. */
  tagsFrom(from: number, duration: number): number;
  /** The earliest start for which tags are free until an instant. */
  tagsSince(until: number): number;
}

/** A rectangle below the free bandwidth that may still become longer: `rate` Mbps have been free since `start`. */
interface Rectangle {
  start: number;
  rate: number;
  /** No start before this has tags. */
  tagged: number;
  /** Whether `tagged` has them. */
  isTagged: boolean;
  /** When the transfer at this rate is over, where it starts at `tagged`. */
  done: number;
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
export function* fastest(steps: Iterable<FreeStep>, transfer: Transfer): Steps<Demand | undefined> {
  const { most, volume, unit } = transfer;
  const open: Rectangle[] = [];
  for (const { start: from, end, free } of steps) {
    const rate = Math.min(most, free);
    let [start, tagged] = [from, from];
    for (let top = open.at(-1); top && top.rate > rate; top = open.at(-1)) {
      // A slower transfer takes longer, so its tags are free no earlier.
      [start, tagged] = [top.start, top.tagged];
      open.pop();
    }
    if (rate > (open.at(-1)?.rate ?? 0)) {
      open.push({ start, rate, tagged, isTagged: false, done: tagged + durationOf(volume, rate, unit) });
    }
    for (;;) {
      const first = open.reduce<Rectangle | undefined>(
        (one, other) => (one && one.done <= other.done ? one : other),
        undefined,
      );
      if (!first || first.done > end) break;
      if (first.isTagged) return slowest(open, first.done, transfer);
      const duration = durationOf(volume, first.rate, unit);
      first.tagged = transfer.tagsFrom(first.tagged, duration);
      first.done = first.tagged + duration;
      first.isTagged = true;
      yield;
    }
  }
  return undefined;
}

/**
 * The slowest transfer that ends at `end`.
 *
 * @param open the rectangles that are open there: what begins in one and not yet in the next has at most its height
 */
function slowest(open: readonly Rectangle[], end: number, { volume, unit, tagsSince }: Transfer): Demand {
  const tagged = tagsSince(end);
  for (const { start, rate } of open) {
    const longest = end - Math.max(start, tagged);
    if (longest <= 0) continue;
    const bandwidth = slowestRate(volume, longest);
    if (bandwidth <= rate) return { start: end - durationOf(volume, bandwidth, unit), end, bandwidth };
  }
  throw new RangeError('no rectangle ends there');
}
