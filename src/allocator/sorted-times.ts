import { doubled } from './typed-arrays.ts';

/** How many entries a block holds at most; a full block is split in two. */
const CAPACITY = 256;
/** How many entries a block gets while they arrive in order. The room is for entries that come in between later. */
const FULL_ENOUGH = 192;
/** How many blocks make up a group, whose extremes are kept too. */
const GROUP = 64;
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
  readonly #furthest: Extremes[];
  readonly #longest: Extremes[];

  constructor(gaps: Gaps = { columns: 0, endOf: () => 0 }) {
    this.#gaps = gaps;
    this.#furthest = Array.from({ length: gaps.columns }, () => new Extremes());
    this.#longest = Array.from({ length: gaps.columns }, () => new Extremes());
  }

  /** Fills an empty list with the slots 0, 1, 2 and so on. @param times of each slot; none is earlier than the one before */
  fill(times: Float64Array): void {
    for (let from = 0, index = 0; from < times.length; from += FULL_ENOUGH, index += 1) {
      const block = emptyBlock();
      block.length = Math.min(FULL_ENOUGH, times.length - from);
      block.times.set(times.subarray(from, from + block.length));
      for (let at = 0; at < block.length; at += 1) block.slots[at] = from + at;
      this.#blocks[index] = block;
      this.#firsts[index] = times[from] ?? 0;
      for (const each of [...this.#furthest, ...this.#longest]) if (index > 0) each.insert(index);
      for (let column = 0; column < this.#gaps.columns; column += 1) this.#measure(index, column);
    }
  }

  /** Adds an entry. */
  add(time: number, slot: number): void {
    const index = this.#blockOf(time, slot);
    const block = this.#block(index);
    if (block.length === CAPACITY) {
      // Entries that come in order fill one block after the other.
      const isLast = index === this.#blocks.length - 1 && positionIn(block, time, slot) === CAPACITY;
      this.#split(index, isLast ? FULL_ENOUGH : CAPACITY / 2);
      this.add(time, slot);
      return;
    }
    const at = positionIn(block, time, slot);
    if (at < block.length) {
      block.times.copyWithin(at + 1, at, block.length);
      block.slots.copyWithin(at + 1, at, block.length);
    }
    block.times[at] = time;
    block.slots[at] = slot;
    block.length += 1;
    if (at === 0) this.#firsts[index] = time;
    for (let column = 0; column < this.#gaps.columns; column += 1) {
      this.#include(index, column, time, this.#gaps.endOf(slot, column));
    }
  }

  /** Removes an entry before its gaps change. @throws RangeError when it is not there: a defect of the caller */
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
      for (const each of [...this.#furthest, ...this.#longest]) each.remove(index);
      return;
    }
    if (at === 0) this.#firsts[index] = block.times[0] ?? 0;
    for (let column = 0; column < this.#gaps.columns; column += 1) {
      this.#exclude(index, column, time, this.#gaps.endOf(slot, column));
    }
  }

  /** Takes note that the gap of an entry has changed. @param before when it ended until now */
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
    // The block where `time` is may have later entries; those before it have none.
    const last = this.#blockOf(time, Number.POSITIVE_INFINITY);
    if (!furthest || (this.#firsts[last] ?? 0) > time) return Number.NEGATIVE_INFINITY;
    const found = furthest.largest(last);
    if (found >= enough || furthest.at(last) <= found) return found;
    return Math.max(found, this.#furthestWithin(last, column, time));
  }

  /** When the first gap of at least so many milliseconds begins after `after`; infinity when there is none. */
  firstAtLeast(after: number, column: number, duration: number): number {
    const longest = this.#longest[column];
    let index = this.#blockOf(after, Number.POSITIVE_INFINITY);
    for (; longest && index < this.#blocks.length; index += 1) {
      index = longest.firstAtLeast(index, duration, this.#blocks.length);
      if (index === this.#blocks.length) break;
      const { times, slots, length } = this.#block(index);
      for (let at = 0; at < length; at += 1) {
        const time = times[at] ?? 0;
        if (time > after && this.#gaps.endOf(slots[at] ?? 0, column) - time >= duration) return time;
      }
    }
    return Number.POSITIVE_INFINITY;
  }

  /**
   * An upper bound in milliseconds: no gap that overlaps the period from `start` to `end` is longer. It may be the length of a
   * gap outside the period. Negative infinity when there is no gap.
   */
  longestAround(start: number, end: number, column: number): number {
    const [furthest, longest] = [this.#furthest[column], this.#longest[column]];
    const last = this.#blockOf(end, -1);
    let found = Number.NEGATIVE_INFINITY;
    for (let index = 0; furthest && longest && index <= last; index += GROUP) {
      if (furthest.ofGroup(index) > start) found = Math.max(found, longest.ofGroup(index));
    }
    return found;
  }

  /** Calls `see` with every slot whose gap begins at or before `time` and ends at `end` or later. */
  eachAround(time: number, end: number, column: number, see: (slot: number) => void): void {
    const furthest = this.#furthest[column];
    const last = this.#blockOf(time, Number.POSITIVE_INFINITY);
    if (!furthest) return;
    for (let index = 0; index <= last; index += 1) {
      index = furthest.firstAtLeast(index, end, last + 1);
      if (index > last) return;
      const { times, slots, length } = this.#block(index);
      for (let at = 0; at < length && (times[at] ?? 0) <= time; at += 1) {
        const slot = slots[at] ?? 0;
        if (this.#gaps.endOf(slot, column) >= end) see(slot);
      }
    }
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
    this.#furthest[column]?.raise(index, end);
    this.#longest[column]?.raise(index, end - start);
  }

  /** Measures a block again when a gap that is gone was one of its extremes. */
  #exclude(index: number, column: number, start: number, end: number): void {
    if (end === Number.NEGATIVE_INFINITY) return;
    const isFurthest = this.#furthest[column]?.at(index) === end;
    if (isFurthest || this.#longest[column]?.at(index) === end - start) this.#measure(index, column);
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
    let [furthest, longest] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (let at = 0; at < length; at += 1) {
      const end = this.#gaps.endOf(slots[at] ?? 0, column);
      if (end > furthest) furthest = end;
      if (end - (times[at] ?? 0) > longest) longest = end - (times[at] ?? 0);
    }
    this.#furthest[column]?.set(index, furthest);
    this.#longest[column]?.set(index, longest);
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
    this.#firsts.splice(index + 1, 0, upper.times[0] ?? 0);
    for (const each of [...this.#furthest, ...this.#longest]) each.insert(index + 1);
    for (let column = 0; column < this.#gaps.columns; column += 1) {
      this.#measure(index, column);
      this.#measure(index + 1, column);
    }
  }
}

/** The largest of something in each block, and in each group of blocks, so that a search skips most of them. */
class Extremes {
  #count = 1;
  #blocks = new Float64Array(FIRST_BLOCKS).fill(Number.NEGATIVE_INFINITY);
  /** NaN where a group must be looked at again. */
  #groups = new Float64Array(1).fill(Number.NaN);

  at(index: number): number {
    return this.#blocks[index] ?? 0;
  }

  set(index: number, value: number): void {
    this.#blocks[index] = value;
    this.#groups[Math.floor(index / GROUP)] = Number.NaN;
  }

  raise(index: number, value: number): void {
    if (value <= (this.#blocks[index] ?? 0)) return;
    this.#blocks[index] = value;
    const group = Math.floor(index / GROUP);
    if (value > (this.#groups[group] ?? 0)) this.#groups[group] = value;
  }

  insert(index: number): void {
    if (this.#count === this.#blocks.length) this.#blocks = doubled(this.#blocks);
    this.#blocks.copyWithin(index + 1, index, this.#count);
    this.#count += 1;
    if (this.#count > this.#groups.length * GROUP) this.#groups = doubled(this.#groups);
    this.#groups.fill(Number.NaN, Math.floor(index / GROUP));
  }

  remove(index: number): void {
    this.#blocks.copyWithin(index, index + 1, this.#count);
    this.#count -= 1;
    this.#groups.fill(Number.NaN, Math.floor(index / GROUP));
  }

  /** The largest of the first `end` blocks; negative infinity of none. */
  largest(end: number): number {
    let [largest, index] = [Number.NEGATIVE_INFINITY, 0];
    while (index < end) {
      const isWhole = index % GROUP === 0 && index + GROUP <= end;
      const value = isWhole ? this.ofGroup(index) : this.at(index);
      if (value > largest) largest = value;
      index += isWhole ? GROUP : 1;
    }
    return largest;
  }

  /** The first block from `first` to before `end` with at least so much; `end` when there is none. */
  firstAtLeast(first: number, least: number, end: number): number {
    let index = first;
    while (index < end) {
      if (index % GROUP === 0 && this.ofGroup(index) < least) index += GROUP;
      else if (this.at(index) < least) index += 1;
      else return index;
    }
    return end;
  }

  /** The largest of the group that begins with a block. */
  ofGroup(index: number): number {
    const known = this.#groups[index / GROUP] ?? Number.NaN;
    if (!Number.isNaN(known)) return known;
    let largest = Number.NEGATIVE_INFINITY;
    for (let at = index; at < index + GROUP && at < this.#count; at += 1) {
      if (this.at(at) > largest) largest = this.at(at);
    }
    this.#groups[index / GROUP] = largest;
    return largest;
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
