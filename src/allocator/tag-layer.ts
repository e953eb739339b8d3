import type { TagRange } from '../contract/links.ts';

/** The slots that hold one tag: their periods are disjoint, half-open, and in order. */
interface TagPeriods {
  starts: number[];
  slots: number[];
}

/** Where the period of a slot is read, in milliseconds. */
export interface SlotTimes {
  startOf(slot: number): number;
  endOf(slot: number): number;
}

/**
 * The VLAN tags of one layer (S or C) at one end of a link, each with the reservations that hold it. A tag is held by
 * one reservation at a time (DESIGN.md, "Allocator").
 */
export class TagLayer {
  readonly #first: number;
  readonly #times: SlotTimes;
  readonly #periods: TagPeriods[];
  /** When each tag is held for the first time; infinity for a tag that is not held. */
  readonly #firstStarts: Float64Array;
  /** From when on each tag is free for good; negative infinity for a tag that is not held. */
  readonly #lastEnds: Float64Array;

  /** @param range inclusive, `[from, to]` */
  constructor([from, to]: TagRange, times: SlotTimes) {
    const size = to - from + 1;
    this.#first = from;
    this.#times = times;
    this.#periods = Array.from({ length: size }, () => ({ starts: [], slots: [] }));
    this.#firstStarts = new Float64Array(size).fill(Number.POSITIVE_INFINITY);
    this.#lastEnds = new Float64Array(size).fill(Number.NEGATIVE_INFINITY);
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
    return periods !== undefined && !this.#isHeld(periods, start, end);
  }

  /** The lowest tag that is free for the whole of `[start, end)`; undefined when all are held. */
  firstFree(start: number, end: number): number | undefined {
    const index = this.#periods.findIndex((periods) => !this.#isHeld(periods, start, end));
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
      const gap = this.#gapAround(periods, start, end, now);
      if (gap === undefined || (best !== undefined && gap >= smallest)) continue;
      best = this.#first + index;
      smallest = gap;
    }
    return best;
  }

  /** Whether some tag is free for `[start, end)` since it is held only afterwards, only before, or not at all. */
  isFreeAtEdge(start: number, end: number): boolean {
    for (let index = 0; index < this.size; index += 1) {
      if ((this.#lastEnds[index] ?? 0) <= start || (this.#firstStarts[index] ?? 0) >= end) return true;
    }
    return false;
  }

  /** From when on some tag is free for good, in milliseconds. */
  firstFreeForGood(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const end of this.#lastEnds) if (end < first) first = end;
    return first;
  }

  /**
   * Until when some tag is free from `from` on that is held only afterwards, only before, or not at all: infinity for one
   * that is free for good; negative infinity when there is none.
   */
  freeAtEdgeUntil(from: number): number {
    if (this.firstFreeForGood() <= from) return Number.POSITIVE_INFINITY;
    let last = Number.NEGATIVE_INFINITY;
    for (const start of this.#firstStarts) if (start > last) last = start;
    return last;
  }

  /**
   * The earliest instant from which some tag is free until `until`: `earliest` at the least, and `until` when all are held
   * just before it.
   */
  freeSince(until: number, earliest: number): number {
    let since = until;
    for (const { starts, slots } of this.#periods) {
      const before = slots[countBelow(starts, until) - 1];
      const end = before === undefined ? earliest : this.#times.endOf(before);
      if (end < since) since = end;
      if (since <= earliest) return earliest;
    }
    return since;
  }

  /**
   * Holds a tag that is free for the slot's period.
   *
   * @returns the slot that holds it before, and until when it is free afterwards: negative infinity for good
   * @throws RangeError when it is not free: a defect of the caller
   */
  hold(tag: number, slot: number): { before: number | undefined; until: number } {
    const [start, end] = [this.#times.startOf(slot), this.#times.endOf(slot)];
    const periods = this.#periods[tag - this.#first];
    if (!periods || this.#isHeld(periods, start, end)) throw new RangeError(`tag ${tag} is not free`);
    const { starts, slots } = periods;
    const index = countBelow(starts, start);
    const until = starts[index] ?? Number.NEGATIVE_INFINITY;
    starts.splice(index, 0, start);
    slots.splice(index, 0, slot);
    this.#edgesChanged(tag, periods);
    return { before: slots[index - 1], until };
  }

  /**
   * Releases a tag that the slot holds.
   *
   * @returns the slot that holds it before
   * @throws RangeError when the slot does not hold it: a defect of the caller
   */
  release(tag: number, slot: number): number | undefined {
    const start = this.#times.startOf(slot);
    const periods = this.#periods[tag - this.#first];
    const index = periods ? countBelow(periods.starts, start) : -1;
    if (!periods || periods.slots[index] !== slot) throw new RangeError(`tag ${tag} is not held by ${slot}`);
    periods.starts.splice(index, 1);
    periods.slots.splice(index, 1);
    this.#edgesChanged(tag, periods);
    return periods.slots[index - 1];
  }

  #edgesChanged(tag: number, { starts, slots }: TagPeriods): void {
    const index = tag - this.#first;
    const last = slots.at(-1);
    this.#firstStarts[index] = starts[0] ?? Number.POSITIVE_INFINITY;
    this.#lastEnds[index] = last === undefined ? Number.NEGATIVE_INFINITY : this.#times.endOf(last);
  }

  #isHeld({ starts, slots }: TagPeriods, start: number, end: number): boolean {
    const before = slots[countBelow(starts, end) - 1];
    return before !== undefined && this.#times.endOf(before) > start;
  }

  /** The smaller gap beside `[start, end)`, infinite without neighbours; undefined when the tag is held in it. */
  #gapAround(periods: TagPeriods, start: number, end: number, now: number): number | undefined {
    const next = countBelow(periods.starts, end);
    const before = periods.slots[next - 1];
    const previousEnd = before === undefined ? Number.NEGATIVE_INFINITY : this.#times.endOf(before);
    if (previousEnd > start) return undefined;
    const nextStart = periods.starts[next] ?? Number.POSITIVE_INFINITY;
    return Math.min(nextStart - end, previousEnd > now ? start - previousEnd : Number.POSITIVE_INFINITY);
  }
}

/** How many values are below a limit. Values rise. */
function countBelow(values: readonly number[], limit: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? 0) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
