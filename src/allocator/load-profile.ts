/** A stretch of time over which a load is constant: `[start, end)` in milliseconds, load in Mbps. */
export interface LoadSegment {
  start: number;
  end: number;
  load: number;
}

/** How many breakpoints a block holds at most; one that is full is split in two. */
const CAPACITY = 256;

/** Breakpoints that lie together. `loads[i]`, plus what the whole block was raised by, holds from `times[i]` on. */
interface Block {
  times: Float64Array;
  loads: Float64Array;
  length: number;
}

/**
 * How much of a link is taken at every instant: a step function over time, kept as sorted breakpoints in blocks, so
 * that a check and a change cost about the square root of the number of breakpoints (DESIGN.md, "Allocator"). A block
 * that lies wholly within a period is neither read nor written for it: what it was raised by and its peak stand in
 * arrays of their own, beside those of its neighbours.
 *
 * Everything is half-open: what ends at 11:00 takes nothing at 11:00. Equal instants share one breakpoint, and their
 * deltas add up.
 *
 * @example
 * const profile = new LoadProfile();
 * profile.add(10, 20, 100);
 * profile.add(15, 30, 400);
 * profile.peak(0, 40) // 500: 100 + 400 between 15 and 20
 * profile.peak(20, 30) // 400
 */
export class LoadProfile {
  readonly #blocks: Block[] = [];
  /** Each block's first breakpoint. */
  readonly #firsts: number[] = [];
  /** Added to every load of the block without touching it. */
  readonly #raised: number[] = [];
  /** The largest load of the block, with what it was raised by. */
  readonly #peaks: number[] = [];

  constructor() {
    const block = emptyBlock();
    block.times[0] = Number.NEGATIVE_INFINITY;
    block.length = 1;
    this.#insert(0, block, 0);
  }

  /** Adds `delta` Mbps (negative to release) over `[start, end)`. */
  add(start: number, end: number, delta: number): void {
    this.#cut(start);
    this.#cut(end);
    const first = this.#blockAt(start);
    const last = this.#blockAt(end);
    const from = positionIn(this.#block(first), start);
    const to = positionIn(this.#block(last), end);
    if (first === last) this.#addWithin(first, from, to, delta);
    else {
      this.#addWithin(first, from, this.#block(first).length, delta);
      for (let index = first + 1; index < last; index += 1) this.#raise(index, delta);
      this.#addWithin(last, 0, to, delta);
    }
    this.#join(end);
    this.#join(start);
  }

  /** The highest load at any instant of `[start, end)`, in Mbps. */
  peak(start: number, end: number): number {
    const first = this.#blockAt(start);
    const last = Math.max(first, this.#lastBlockBefore(end));
    let peak = this.#peakWithin(first, positionIn(this.#block(first), start), end);
    for (let index = first + 1; index < last; index += 1) peak = Math.max(peak, this.#peaks[index] ?? 0);
    return last > first ? Math.max(peak, this.#peakWithin(last, 0, end)) : peak;
  }

  /** The stretches of constant load that make up `[start, end)`, in order. */
  *segments(start: number, end: number): Generator<LoadSegment> {
    const first = this.#blockAt(start);
    let open: LoadSegment | undefined;
    for (let index = first; index < this.#blocks.length; index += 1) {
      const block = this.#block(index);
      const raised = this.#raised[index] ?? 0;
      for (let at = index === first ? positionIn(block, start) : 0; at < block.length; at += 1) {
        const time = block.times[at] ?? 0;
        if (time >= end) {
          if (open) yield { ...open, end };
          return;
        }
        if (open) yield { ...open, end: time };
        open = { start: Math.max(time, start), end, load: (block.loads[at] ?? 0) + raised };
      }
    }
    if (open) yield open;
  }

  /**
   * The earliest instant from `from` on at which `duration` milliseconds pass with a load of at most `limit` Mbps.
   * There is always one, since the last reservation ends.
   */
  earliest(from: number, duration: number, limit: number): number {
    const first = this.#blockAt(from);
    let candidate = from;
    for (let index = first; index < this.#blocks.length; index += 1) {
      if ((this.#firsts[index] ?? 0) >= candidate + duration) return candidate;
      if ((this.#peaks[index] ?? 0) <= limit) continue;
      const block = this.#block(index);
      const raised = this.#raised[index] ?? 0;
      for (let at = index === first ? positionIn(block, from) : 0; at < block.length; at += 1) {
        if ((block.times[at] ?? 0) >= candidate + duration) return candidate;
        if ((block.loads[at] ?? 0) + raised > limit) candidate = this.#timeAfter(index, at);
      }
    }
    return candidate;
  }

  #timeAfter(index: number, at: number): number {
    const block = this.#block(index);
    if (at + 1 < block.length) return block.times[at + 1] ?? 0;
    return this.#firsts[index + 1] ?? Number.POSITIVE_INFINITY;
  }

  #block(index: number): Block {
    const block = this.#blocks[index];
    if (!block) throw new RangeError(`no block ${index}`);
    return block;
  }

  /** The last block that begins at or before `time`. */
  #blockAt(time: number): number {
    return lastAtOrBefore(this.#firsts, this.#firsts.length, time);
  }

  /** The last block that begins before `time`. */
  #lastBlockBefore(time: number): number {
    const index = this.#blockAt(time);
    return (this.#firsts[index] ?? 0) < time ? index : index - 1;
  }

  #peakWithin(index: number, from: number, end: number): number {
    const { times, loads, length } = this.#block(index);
    let peak = Number.NEGATIVE_INFINITY;
    for (let at = from; at < length; at += 1) {
      if (at > from && (times[at] ?? 0) >= end) break;
      const load = loads[at] ?? 0;
      if (load > peak) peak = load;
    }
    return peak + (this.#raised[index] ?? 0);
  }

  #raise(index: number, delta: number): void {
    this.#raised[index] = (this.#raised[index] ?? 0) + delta;
    this.#peaks[index] = (this.#peaks[index] ?? 0) + delta;
  }

  #addWithin(index: number, from: number, to: number, delta: number): void {
    const block = this.#block(index);
    if (from === 0 && to === block.length) this.#raise(index, delta);
    else if (from < to) {
      for (let at = from; at < to; at += 1) block.loads[at] = (block.loads[at] ?? 0) + delta;
      this.#measure(index);
    }
  }

  #measure(index: number): void {
    this.#peaks[index] = largest(this.#block(index)) + (this.#raised[index] ?? 0);
  }

  /** Makes `time` a breakpoint. */
  #cut(time: number): void {
    const index = this.#blockAt(time);
    const block = this.#block(index);
    const at = positionIn(block, time);
    if (block.times[at] === time) return;
    const load = block.loads[at] ?? 0;
    block.times.copyWithin(at + 2, at + 1, block.length);
    block.loads.copyWithin(at + 2, at + 1, block.length);
    block.times[at + 1] = time;
    block.loads[at + 1] = load;
    block.length += 1;
    if (block.length === CAPACITY) this.#split(index);
  }

  #split(index: number): void {
    const block = this.#block(index);
    const half = CAPACITY / 2;
    const upper = emptyBlock();
    upper.times.set(block.times.subarray(half));
    upper.loads.set(block.loads.subarray(half));
    upper.length = CAPACITY - half;
    block.length = half;
    this.#insert(index + 1, upper, this.#raised[index] ?? 0);
    this.#measure(index);
  }

  #insert(index: number, block: Block, raised: number): void {
    this.#blocks.splice(index, 0, block);
    this.#firsts.splice(index, 0, block.times[0] ?? 0);
    this.#raised.splice(index, 0, raised);
    this.#peaks.splice(index, 0, largest(block) + raised);
  }

  /** Drops the breakpoint at `time` when the load is the same on both sides of it. */
  #join(time: number): void {
    const index = this.#blockAt(time);
    const block = this.#block(index);
    const at = positionIn(block, time);
    if (block.times[at] !== time) return;
    const before = at > 0 ? index : index - 1;
    if (before < 0) return;
    const { loads, length } = this.#block(before);
    const left = (loads[at > 0 ? at - 1 : length - 1] ?? 0) + (this.#raised[before] ?? 0);
    if (left !== (block.loads[at] ?? 0) + (this.#raised[index] ?? 0)) return;
    block.times.copyWithin(at, at + 1, block.length);
    block.loads.copyWithin(at, at + 1, block.length);
    block.length -= 1;
    if (block.length === 0) this.#remove(index);
    else {
      if (at === 0) this.#firsts[index] = block.times[0] ?? 0;
      this.#measure(index);
    }
  }

  #remove(index: number): void {
    for (const each of [this.#blocks, this.#firsts, this.#raised, this.#peaks]) each.splice(index, 1);
  }
}

function emptyBlock(): Block {
  return { times: new Float64Array(CAPACITY), loads: new Float64Array(CAPACITY), length: 0 };
}

function largest({ loads, length }: Block): number {
  let found = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < length; at += 1) {
    const load = loads[at] ?? 0;
    if (load > found) found = load;
  }
  return found;
}

/** Position of the last breakpoint at or before `time`; 0 when none is. */
function positionIn({ times, length }: Block, time: number): number {
  return lastAtOrBefore(times, length, time);
}

/** The last index below `length` whose value is at most `limit`; 0 when none is. Values rise. */
function lastAtOrBefore(values: ArrayLike<number>, length: number, limit: number): number {
  let low = 0;
  let high = length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((values[middle] ?? 0) <= limit) low = middle;
    else high = middle - 1;
  }
  return low;
}
