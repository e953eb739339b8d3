import { type Holding, TAG_PLACES, type TagPlace, type Tags } from './demand.ts';
import { doubledFloats, doubledShorts } from './typed-arrays.ts';

/** How many slots there are at first; the arrays double when they are full. */
const FIRST_CAPACITY = 256;

/**
 * The reservations on a link with what they hold, by id and in the order of their starts and ends. A million of them take
 * some 200 MB: the numbers are in typed arrays, each reservation in a slot, which is used again once it is removed.
 */
export class Holdings {
  readonly byStart = new SortedTimes();
  readonly byEnd = new SortedTimes();
  readonly #slots = new Map<string, number>();
  readonly #ids: (string | undefined)[] = [];
  readonly #free: number[] = [];
  #starts = new Float64Array(FIRST_CAPACITY);
  #ends = new Float64Array(FIRST_CAPACITY);
  #bandwidths = new Float64Array(FIRST_CAPACITY);
  #tags: Record<TagPlace, Uint16Array> = {
    site1_s_tag: new Uint16Array(FIRST_CAPACITY),
    site1_c_tag: new Uint16Array(FIRST_CAPACITY),
    site2_s_tag: new Uint16Array(FIRST_CAPACITY),
    site2_c_tag: new Uint16Array(FIRST_CAPACITY),
  };

  /** How many reservations there are. */
  get size(): number {
    return this.#slots.size;
  }

  /** What the reservation holds; undefined for an unknown id. */
  get(id: string): Holding | undefined {
    const slot = this.#slots.get(id);
    if (slot === undefined) return undefined;
    return {
      start: this.#starts[slot] ?? 0,
      end: this.#ends[slot] ?? 0,
      bandwidth: this.#bandwidths[slot] ?? 0,
      tags: this.#tagsOf(slot),
    };
  }

  /** The id of the reservation in a slot; undefined for a free slot. */
  idAt(slot: number): string | undefined {
    return this.#ids[slot];
  }

  /** The tag that the reservation in a slot holds at a place. */
  tagAt(slot: number, place: TagPlace): number {
    return this.#tags[place][slot] ?? 0;
  }

  /** Adds a reservation whose id is not there yet. */
  add(id: string, { start, end, bandwidth, tags }: Holding): void {
    const slot = this.#free.pop() ?? this.#ids.length;
    if (slot >= this.#starts.length) this.#grow();
    this.#ids[slot] = id;
    this.#slots.set(id, slot);
    this.#starts[slot] = start;
    this.#ends[slot] = end;
    this.#bandwidths[slot] = bandwidth;
    for (const place of TAG_PLACES) this.#tags[place][slot] = tags[place];
    this.byStart.add(start, slot);
    this.byEnd.add(end, slot);
  }

  /** Removes a reservation; does nothing for an unknown id. */
  remove(id: string): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) return;
    this.byStart.remove(this.#starts[slot] ?? 0, slot);
    this.byEnd.remove(this.#ends[slot] ?? 0, slot);
    this.#slots.delete(id);
    this.#ids[slot] = undefined;
    this.#free.push(slot);
  }

  #tagsOf(slot: number): Tags {
    return {
      site1_s_tag: this.tagAt(slot, 'site1_s_tag'),
      site1_c_tag: this.tagAt(slot, 'site1_c_tag'),
      site2_s_tag: this.tagAt(slot, 'site2_s_tag'),
      site2_c_tag: this.tagAt(slot, 'site2_c_tag'),
    };
  }

  #grow(): void {
    this.#starts = doubledFloats(this.#starts);
    this.#ends = doubledFloats(this.#ends);
    this.#bandwidths = doubledFloats(this.#bandwidths);
    for (const place of TAG_PLACES) this.#tags[place] = doubledShorts(this.#tags[place]);
  }
}

/** How many entries a block holds at most; one that is full is split in two. */
const CAPACITY = 256;

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

/**
 * Slots in the order of a time that each has (milliseconds), kept in blocks, so that a change costs about the square
 * root of their number. Of equal times, the lower slot comes first.
 */
export class SortedTimes {
  readonly #blocks: Block[] = [emptyBlock()];
  /** The first time of each block, beside each other, so that the search for a block stays within few cache lines. */
  readonly #firsts: number[] = [Number.NEGATIVE_INFINITY];

  /** Adds an entry. */
  add(time: number, slot: number): void {
    const index = this.#blockOf(time, slot);
    const block = this.#block(index);
    const at = positionIn(block, time, slot);
    block.times.copyWithin(at + 1, at, block.length);
    block.slots.copyWithin(at + 1, at, block.length);
    block.times[at] = time;
    block.slots[at] = slot;
    block.length += 1;
    if (at === 0) this.#firsts[index] = time;
    if (block.length === CAPACITY) this.#split(index);
  }

  /** Removes an entry. @throws RangeError when it is not there: a defect of the caller */
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
    } else if (at === 0) this.#firsts[index] = block.times[0] ?? 0;
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

  #split(index: number): void {
    const block = this.#block(index);
    const half = CAPACITY / 2;
    const upper = emptyBlock();
    upper.times.set(block.times.subarray(half));
    upper.slots.set(block.slots.subarray(half));
    upper.length = CAPACITY - half;
    block.length = half;
    this.#blocks.splice(index + 1, 0, upper);
    this.#firsts.splice(index + 1, 0, upper.times[0] ?? 0);
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
