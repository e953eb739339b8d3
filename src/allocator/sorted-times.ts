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
