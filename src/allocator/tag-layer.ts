import type { TagRange } from '../contract/links.ts';
import { type Period, TAG_PLACES, type TagPlace, type Tags } from './demand.ts';
import type { Holdings } from './holdings.ts';

/** The periods that hold one tag: disjoint, in order, half-open. */
interface TagPeriods {
  starts: number[];
  ends: number[];
}

/**
 * The VLAN tags of one layer (S or C) at one end of a link, each with the periods that hold it. A tag is held by
 * one reservation at a time (DESIGN.md, "Allocator").
 */
export class TagLayer {
  readonly #first: number;
  readonly #periods: TagPeriods[];

  /** @param range inclusive, `[from, to]` */
  constructor([from, to]: TagRange) {
    this.#first = from;
    this.#periods = Array.from({ length: to - from + 1 }, () => ({ starts: [], ends: [] }));
  }

  /** How many tags there are, held or not. */
  get size(): number {
    return this.#periods.length;
  }

  /** Whether the tag is in the layer's range. */
  has(tag: number): boolean {
    return this.#periods[tag - this.#first] !== undefined;
  }

  /** Whether `tag` is free for the whole of `[start, end)`; false for a tag outside the range. */
  isFree(tag: number, start: number, end: number): boolean {
    const periods = this.#periods[tag - this.#first];
    return periods !== undefined && !isHeld(periods, start, end);
  }

  /** The lowest tag that is free for the whole of `[start, end)`; undefined when all are held. */
  firstFree(start: number, end: number): number | undefined {
    const index = this.#periods.findIndex((periods) => !isHeld(periods, start, end));
    return index < 0 ? undefined : this.#first + index;
  }

  /**
   * The free tag that wastes least: the one whose neighbours in time leave the smallest gap on one side of
   * `[start, end)`; on a tie the lowest. Undefined when none is free.
   *
   * A neighbour that ended by `now` does not count, so that the choice is the same whether or not ended reservations are
   * still in memory.
   *
   * @example
   * // Tag 10 is held until 09:00, tag 11 until 09:59, tag 12 never; asked for 10:00 to 11:00: tag 11 (gap of a minute).
   */
  bestFit(start: number, end: number, now: number): number | undefined {
    let best: number | undefined;
    let smallest = Number.POSITIVE_INFINITY;
    for (const [index, periods] of this.#periods.entries()) {
      const gap = gapAround(periods, start, end, now);
      if (gap === undefined || (best !== undefined && gap >= smallest)) continue;
      best = this.#first + index;
      smallest = gap;
    }
    return best;
  }

  /** The earliest instant from `from` on at which some tag is free for `duration` milliseconds. */
  earliest(from: number, duration: number): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { starts, ends } of this.#periods) {
      let candidate = from;
      for (let index = firstAfter(ends, from); index < starts.length; index += 1) {
        if ((starts[index] ?? 0) >= candidate + duration || candidate >= earliest) break;
        candidate = ends[index] ?? candidate;
      }
      earliest = Math.min(earliest, candidate);
      if (earliest === from) break;
    }
    return earliest;
  }

  /** Holds a tag that is free for `[start, end)`. @throws RangeError when it is not: a defect of the caller */
  hold(tag: number, start: number, end: number): void {
    const periods = this.#periods[tag - this.#first];
    if (!periods) throw new RangeError(`tag ${tag} is not free`);
    const { starts, ends } = periods;
    // A link is loaded in the order of end times, so the new period is usually the last.
    const index = start >= (ends.at(-1) ?? Number.NEGATIVE_INFINITY) ? ends.length : firstAfter(ends, start);
    if ((starts[index] ?? Number.POSITIVE_INFINITY) < end) throw new RangeError(`tag ${tag} is not free`);
    starts.splice(index, 0, start);
    ends.splice(index, 0, end);
  }

  /** Releases a tag that was held for exactly `[start, end)`. @throws RangeError when it was not */
  release(tag: number, start: number, end: number): void {
    const periods = this.#periods[tag - this.#first];
    const index = periods ? firstAfter(periods.ends, start) : -1;
    if (!periods || periods.starts[index] !== start || periods.ends[index] !== end) {
      throw new RangeError(`tag ${tag} is not held for this period`);
    }
    periods.starts.splice(index, 1);
    periods.ends.splice(index, 1);
  }
}

function isHeld({ starts, ends }: TagPeriods, start: number, end: number): boolean {
  return (starts[firstAfter(ends, start)] ?? Number.POSITIVE_INFINITY) < end;
}

/** The smaller gap beside `[start, end)`, infinite without neighbours; undefined when the tag is held in it. */
function gapAround(
  { starts, ends }: TagPeriods,
  start: number,
  end: number,
  now: number,
): number | undefined {
  const next = firstAfter(ends, start);
  const nextStart = starts[next] ?? Number.POSITIVE_INFINITY;
  if (nextStart < end) return undefined;
  const previousEnd = ends[next - 1] ?? Number.NEGATIVE_INFINITY;
  return Math.min(nextStart - end, previousEnd > now ? start - previousEnd : Number.POSITIVE_INFINITY);
}

/** The first index whose value is after `limit`; the length when none is. Values rise. */
function firstAfter(values: readonly number[], limit: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? 0) > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * How many neighbours in time are checked before the search goes through all tags instead. On a link with many free tags a
 * few neighbours are enough; on one that is nearly full there are fewer tags than reservations.
 */
const NEIGHBOURS = 256;

/** The best tag that was found for a place so far. */
interface Candidate {
  tag: number;
  gap: number;
}

/**
 * Chooses a tag at each of the four places by best fit. The result is that of {@link TagLayer.bestFit}, but the search
 * starts from the reservations: it walks those that end before the period or start after it, nearest first; the first
 * whose tag is free leaves the smallest gap. At equal distances it checks all of them and takes the lowest tag.
 *
 * @param now milliseconds; time before it does not count as a gap, see {@link TagLayer.bestFit}
 * @param kept tags that are chosen already
 * @returns the tags; a place without a free tag is missing
 */
export function chooseTags(
  layers: Readonly<Record<TagPlace, TagLayer>>,
  holdings: Holdings,
  { start, end }: Period,
  { now, kept }: { now: number; kept: Partial<Tags> },
): Partial<Tags> {
  const chosen: Partial<Tags> = { ...kept };
  const found: Partial<Record<TagPlace, Candidate>> = {};
  let open = TAG_PLACES.filter((place) => chosen[place] === undefined);
  const before = holdings.byEnd.downFrom(start);
  const after = holdings.byStart.upFrom(end);
  for (let seen = 0; seen < NEIGHBOURS && open.length > 0; seen += 1) {
    const ended = before.time() ?? Number.NEGATIVE_INFINITY;
    const toLeft = ended > now ? start - ended : Number.POSITIVE_INFINITY;
    const toRight = (after.time() ?? Number.POSITIVE_INFINITY) - end;
    const gap = Math.min(toLeft, toRight);
    open = open.filter((place) => {
      const best = found[place];
      if (!best || best.gap >= gap) return true;
      chosen[place] = best.tag;
      return false;
    });
    if (gap === Number.POSITIVE_INFINITY) {
      // No free tag has a neighbour: the lowest one is the best fit.
      for (const place of open) {
        const tag = layers[place].firstFree(start, end);
        if (tag !== undefined) chosen[place] = tag;
      }
      return chosen;
    }
    const nearest = toLeft <= toRight ? before : after;
    const slot = nearest.slot();
    nearest.advance();
    for (const place of open) {
      const tag = holdings.tagAt(slot, place);
      const lower = tag < (found[place]?.tag ?? Number.POSITIVE_INFINITY);
      if (lower && layers[place].isFree(tag, start, end)) found[place] = { tag, gap };
    }
  }
  for (const place of open) {
    const tag = layers[place].bestFit(start, end, now);
    if (tag !== undefined) chosen[place] = tag;
  }
  return chosen;
}
