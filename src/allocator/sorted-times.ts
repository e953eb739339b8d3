import { doubledFloats } from './typed-arrays.ts';

/** How many entries a block holds at most; one that is full is split in two. */
const CAPACITY = 256;
/** How many entries of a full block stay when the next ones come after it: later ones will come in between. */
const FULL_ENOUGH = 192;
/** How many blocks there is room for at first; it doubles. */
const FIRST_BLOCKS = 4;

/** Sorted entries; the first `length` are in use. */
interface Block {
  times: Float64Array;
  slots: Int32Array;
  length: number;
}

/** A position between two entries. It is invalid once an entry is added or removed. */
export interface TimeCursor {
  /** The time of the next entry; undefined at the end. */
  time(): number | undefined;
  /** The slot of the next entry. Only where `time` is not undefined. */
  slot(): number;
  advance(): void;
}

/** A gap that begins at the time of each slot, in several columns; each block keeps the longest and the furthest. */
export interface Gaps {
  columns: number;
  /** When the gap of a slot ends, as it is now; negative infinity when there is none. */
  endOf(slot: number, column: number): number;
}

/**
 * Slots in the order of a time that each has (milliseconds), kept in blocks, so that a change costs about the square
 * root of their number. Of equal times, the lower slot comes first.
 *
 * Where slots have {@link Gaps}, a search for a long or far one skips the blocks that have none.
 */
export class SortedTimes {
  readonly #blocks: Block[] = [emptyBlock()];
  /** The first time of each block, beside each other, so that the search for a block stays within few cache lines. */
  readonly #firsts: number[] = [Number.NEGATIVE_INFINITY];
  readonly #gaps: Gaps;
  /** For each column, the furthest end of each block's gaps, and the longest of them. */
  readonly #furthest: Float64Array[];
  readonly #longest: Float64Array[];

  constructor(gaps: Gaps = { columns: 0, endOf: () => 0 }) {
    this.#gaps = gaps;
    const none = () => new Float64Array(FIRST_BLOCKS).fill(Number.NEGATIVE_INFINITY);
    this.#furthest = Array.from({ length: gaps.columns }, none);
    this.#longest = Array.from({ length: gaps.columns }, none);
  }

  /** Adds an entry. */
  add(time: number, slot: number): void {
    const index = this.#blockOf(time, slot);
    const block = this.#block(index);
    if (block.length === CAPACITY) {
      // Entries that come in order, as when a link is loaded, fill one block after the other.
      const isLast = index === this.#blocks.length - 1 && positionIn(block, time, slot) === CAPACITY;
      this.#split(index, isLast ? FULL_ENOUGH : CAPACITY / 2);
      this.add(time, slot);
      return;
    }
    const at = positionIn(block, time, slot);
    block.times.copyWithin(at + 1, at, block.length);
    block.slots.copyWithin(at + 1, at, block.length);
    block.times[at] = time;
    block.slots[at] = slot;
    block.length += 1;
    if (at === 0) this.#firsts[index] = time;
    for (let column = 0; column < this.#gaps.columns; column += 1) {
      this.#include(index, column, time, this.#gaps.endOf(slot, column));
    }
  }

  /** Removes an entry, whose gaps are still as they were. @throws RangeError when it is not there: a defect of the caller */
  remove(time: number, slot: number): void {
    const index = this.#blockOf(time, slot);
    const block = this.#block(index);
    const at = positionIn(block, time, slot);
    if (at >= block.length || block.times[at] !== time || block.slots[at] !== slot) {
      throw new RangeError(`no entry ${slot} at ${time}`);
    }
    block.times.copyWithin(at, at + 1, block.length);
    block.slots.copyWithin(at, at + 1, block.length);
    block.length -= 1;
    if (block.length === 0 && this.#blocks.length > 1) {
      this.#blocks.splice(index, 1);
      this.#firsts.splice(index, 1);
      for (const each of [...this.#furthest, ...this.#longest]) each.copyWithin(index, index + 1);
      return;
    }
    if (at === 0) this.#firsts[index] = block.times[0] ?? 0;
    for (let column = 0; column < this.#gaps.columns; column += 1) {
      this.#exclude(index, column, time, this.#gaps.endOf(slot, column));
    }
  }

  /** Takes note that the gap of an entry has changed, which ended at `before` until now. */
  changed(time: number, slot: number, { column, before }: { column: number; before: number }): void {
    const index = this.#blockOf(time, slot);
    const end = this.#gaps.endOf(slot, column);
    this.#include(index, column, time, end);
    if (end < before) this.#exclude(index, column, time, before);
  }

  /**
   * The furthest end of the gaps that begin at or before `time`; negative infinity when there is none. It stops at the
   * first that is `enough`.
   */
  furthestUpTo(time: number, column: number, enough = Number.POSITIVE_INFINITY): number {
    const furthest = this.#furthest[column];
    let found = Number.NEGATIVE_INFINITY;
    for (let index = 0; furthest && index < this.#blocks.length && found < enough; index += 1) {
      if ((this.#firsts[index] ?? 0) > time) break;
      const bound = furthest[index] ?? 0;
      if (bound <= found) continue;
      const isWhole = (this.#firsts[index + 1] ?? Number.POSITIVE_INFINITY) <= time;
      found = isWhole ? bound : Math.max(found, this.#furthestWithin(index, column, time));
    }
    return found;
  }

  /** When the first gap of at least so many milliseconds begins after `after`; infinity when there is none. */
  firstAtLeast(after: number, column: number, duration: number): number {
    const longest = this.#longest[column];
    const first = this.#blockOf(after, Number.POSITIVE_INFINITY);
    for (let index = first; longest && index < this.#blocks.length; index += 1) {
      if ((longest[index] ?? 0) < duration) continue;
      const { times, slots, length } = this.#block(index);
      for (let at = 0; at < length; at += 1) {
        const time = times[at] ?? 0;
        if (time > after && this.#gaps.endOf(slots[at] ?? 0, column) - time >= duration) return time;
      }
    }
    return Number.POSITIVE_INFINITY;
  }

  /** The earliest entry; undefined when there is none. */
  first(): { time: number; slot: number } | undefined {
    const block = this.#block(0);
    if (block.length === 0) return undefined;
    return { time: block.times[0] ?? 0, slot: block.slots[0] ?? 0 };
  }

  /** Walks up from the first entry at or after `time`. */
  upFrom(time: number): TimeCursor {
    let index = this.#blockOf(time, -1);
    let block = this.#block(index);
    let at = positionIn(block, time, -1);
    const settle = (): void => {
      while (at >= block.length && index < this.#blocks.length - 1) {
        index += 1;
        block = this.#block(index);
        at = 0;
      }
    };
    settle();
    return {
      time: () => (at < block.length ? block.times[at] : undefined),
      slot: () => block.slots[at] ?? 0,
      advance: () => {
        at += 1;
        settle();
      },
    };
  }

  /** Walks down from the last entry at or before `time`. */
  downFrom(time: number): TimeCursor {
    let index = this.#blockOf(time, Number.POSITIVE_INFINITY);
    let block = this.#block(index);
    let at = positionIn(block, time, Number.POSITIVE_INFINITY) - 1;
    const settle = (): void => {
      while (at < 0 && index > 0) {
        index -= 1;
        block = this.#block(index);
        at = block.length - 1;
      }
    };
    settle();
    return {
      time: () => (at >= 0 ? block.times[at] : undefined),
      slot: () => block.slots[at] ?? 0,
      advance: () => {
        at -= 1;
        settle();
      },
    };
  }

  /** The block where an entry is or belongs: the last that begins at or before it. */
  #blockOf(time: number, slot: number): number {
    let low = 0;
    let high = this.#blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      const first = this.#firsts[middle] ?? 0;
      if (first < time || (first === time && (this.#block(middle).slots[0] ?? 0) <= slot)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #block(index: number): Block {
    const block = this.#blocks[index];
    if (!block) throw new RangeError(`no block ${index}`);
    return block;
  }

  /** Raises a block's extremes to a gap. */
  #include(index: number, column: number, start: number, end: number): void {
    const [furthest, longest] = [this.#furthest[column], this.#longest[column]];
    if (furthest && end > (furthest[index] ?? 0)) furthest[index] = end;
    if (longest && end - start > (longest[index] ?? 0)) longest[index] = end - start;
  }

  /** Measures a block again when a gap that is gone was one of its extremes. */
  #exclude(index: number, column: number, start: number, end: number): void {
    const [furthest, longest] = [this.#furthest[column]?.[index], this.#longest[column]?.[index]];
    if (end > Number.NEGATIVE_INFINITY && (end === furthest || end - start === longest)) {
      this.#measure(index, column);
    }
  }

  #furthestWithin(index: number, column: number, time: number): number {
    const { times, slots, length } = this.#block(index);
    let furthest = Number.NEGATIVE_INFINITY;
    for (let at = 0; at < length && (times[at] ?? 0) <= time; at += 1) {
      const end = this.#gaps.endOf(slots[at] ?? 0, column);
      if (end > furthest) furthest = end;
    }
    return furthest;
  }

  #measure(index: number, column: number): void {
    const { times, slots, length } = this.#block(index);
    const [allFurthest, allLongest] = [this.#furthest[column], this.#longest[column]];
    let [furthest, longest] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let at = 0; at < length; at += 1) {
      const end = this.#gaps.endOf(slots[at] ?? 0, column);
      if (end > furthest) furthest = end;
      if (end - (times[at] ?? 0) > longest) longest = end - (times[at] ?? 0);
    }
    if (allFurthest) allFurthest[index] = furthest;
    if (allLongest) allLongest[index] = longest;
  }

  /** Splits a block: its first `kept` entries stay. */
  #split(index: number, kept: number): void {
    const block = this.#block(index);
    const upper = emptyBlock();
    upper.times.set(block.times.subarray(kept));
    upper.slots.set(block.slots.subarray(kept));
    upper.length = block.length - kept;
    block.length = kept;
    this.#blocks.splice(index + 1, 0, upper);
    this.#firsts.splice(
      index + 1,
      0,
      upper.length > 0 ? (upper.times[0] ?? 0) : (block.times[kept - 1] ?? 0),
    );
    for (let column = 0; column < this.#gaps.columns; column += 1) {
      for (const all of [this.#furthest, this.#longest]) {
        const old = all[column];
        if (!old) continue;
        const maxima = this.#blocks.length > old.length ? doubledFloats(old) : old;
        all[column] = maxima;
        maxima.copyWithin(index + 1, index, this.#blocks.length - 1);
      }
      this.#measure(index, column);
      this.#measure(index + 1, column);
    }
  }
}

function emptyBlock(): Block {
  return { times: new Float64Array(CAPACITY), slots: new Int32Array(CAPACITY), length: 0 };
}

/** The first position whose entry does not come before the given one. */
function positionIn({ times, slots, length }: Block, time: number, slot: number): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const found = times[middle] ?? 0;
    if (found < time || (found === time && (slots[middle] ?? 0) < slot)) low = middle + 1;
    else high = middle;
  }
  return low;
}
