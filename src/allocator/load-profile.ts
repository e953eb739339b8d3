import { doubledFloats, doubledInts, lastAtOrBefore } from './typed-arrays.ts';

/** A stretch of time over which a load is constant: `[start, end)` in milliseconds, load in Mbps. */
export interface LoadSegment {
  start: number;
  end: number;
  load: number;
}

/** How many breakpoints a block holds at most; one that is full is split in two. */
const CAPACITY = 512;
/** How many blocks there is room for at first; it doubles. With shares, each experiment has a profile, so it is small. */
const FIRST_BLOCKS = 1;

/**
 * How much of a link is taken at every instant: a step function over time, kept as sorted breakpoints in blocks, so
 * that a check and a change cost about the square root of the number of breakpoints (DESIGN.md, "Allocator"). A block
 * that lies wholly within a period is neither read nor written: its raise and its peak are in arrays of their own. A few
 * typed arrays hold everything, because at a million reservations memory access takes the time.
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
  /** How many blocks there are. In the order of time, the arrays below have one entry for each. */
  #count = 0;
  /** Each block's first breakpoint. */
  #firsts = new Float64Array(FIRST_BLOCKS);
  /** Added to every load of the block without touching it. */
  #raised = new Float64Array(FIRST_BLOCKS);
  /** The largest load of the block, with what it was raised by. */
  #peaks = new Float64Array(FIRST_BLOCKS);
  /** How many breakpoints the block has. */
  #lengths = new Int32Array(FIRST_BLOCKS);
  /** Where in the slabs the block begins. */
  #bases = new Int32Array(FIRST_BLOCKS);

  /**
   * The breakpoints of all blocks. Where a block begins are its times; `CAPACITY` further on, beside them in memory,
   * the load that holds from each on, without what the block was raised by.
   */
  #points = new Float64Array(FIRST_BLOCKS * 2 * CAPACITY);
  /** The bases of removed blocks, to be used again. */
  readonly #free: number[] = [];
  #used = 0;

  constructor() {
    const base = this.#place();
    this.#points[base] = Number.NEGATIVE_INFINITY;
    this.#insert(0, { base, length: 1, raised: 0 });
  }

  /** Adds `delta` Mbps (negative to release) over `[start, end)`. */
  add(start: number, end: number, delta: number): void {
    this.#cut(start);
    this.#cut(end);
    const first = this.#blockAt(start);
    const last = this.#blockAt(end);
    const from = this.#positionIn(first, start);
    const to = this.#positionIn(last, end);
    if (first === last) this.#addWithin(first, from, to, delta);
    else {
      this.#addWithin(first, from, this.#endOf(first), delta);
      this.#raise(first + 1, last, delta);
      this.#addWithin(last, this.#startOf(last), to, delta);
    }
    this.#join(end);
    this.#join(start);
  }

  /** The highest load at any instant of `[start, end)`, in Mbps. */
  peak(start: number, end: number): number {
    const first = this.#blockAt(start);
    const at = this.#blockAt(end);
    const last = Math.max(first, (this.#firsts[at] ?? 0) < end ? at : at - 1);
    let peak = this.#peakWithin(first, this.#positionIn(first, start), end);
    for (let index = first + 1; index < last; index += 1) {
      const whole = this.#peaks[index] ?? 0;
      if (whole > peak) peak = whole;
    }
    return last > first ? Math.max(peak, this.#peakWithin(last, this.#startOf(last), end)) : peak;
  }

  /** The stretches of constant load that make up `[start, end)`, in order. */
  *segments(start: number, end: number): Generator<LoadSegment> {
    const first = this.#blockAt(start);
    let open: LoadSegment | undefined;
    for (let index = first; index < this.#count; index += 1) {
      const raised = this.#raised[index] ?? 0;
      const from = index === first ? this.#positionIn(index, start) : this.#startOf(index);
      for (let at = from; at < this.#endOf(index); at += 1) {
        const time = this.#points[at] ?? 0;
        if (time >= end) {
          if (open) yield { ...open, end };
          return;
        }
        if (open) yield { ...open, end: time };
        open = { start: Math.max(time, start), end, load: this.#loadAt(at) + raised };
      }
    }
    if (open) yield open;
  }

  /**
   * The earliest instant from `from` on at which `duration` milliseconds pass with a load of at most `limit` Mbps.
   * There is always one, since the last reservation ends.
   *
   * Within a block, the part that lies in the period is read from its end: the last instant above the limit is where the
   * next candidate comes after. No breakpoint is read twice, and of a block that is too high only the end is read where
   * the period is longer than it.
   */
  earliest(from: number, duration: number, limit: number): number {
    const first = this.#blockAt(from);
    let candidate = from;
    for (let index = first; index < this.#count; index += 1) {
      if (index > first && (this.#firsts[index] ?? 0) >= candidate + duration) return candidate;
      if ((this.#peaks[index] ?? 0) <= limit) continue;
      const [highest, end] = [limit - (this.#raised[index] ?? 0), this.#endOf(index)];
      let clear = index === first ? this.#positionIn(index, from) : this.#startOf(index);
      while (clear < end) {
        const to = this.#firstFrom(clear, end, candidate + duration);
        let at = to - 1;
        while (at >= clear && this.#loadAt(at) <= highest) at -= 1;
        if (at >= clear) candidate = this.#timeAfter(index, at);
        else if (to < end) return candidate;
        clear = to;
      }
    }
    return candidate;
  }

  /** The first instant of `[from, until)` with a load above `limit` Mbps; `until` when there is none. */
  firstAbove(from: number, until: number, limit: number): number {
    const first = this.#blockAt(from);
    for (let index = first; index < this.#count; index += 1) {
      if (index > first && (this.#firsts[index] ?? 0) >= until) return until;
      if ((this.#peaks[index] ?? 0) <= limit) continue;
      const [highest, end] = [limit - (this.#raised[index] ?? 0), this.#endOf(index)];
      for (
        let at = index === first ? this.#positionIn(index, from) : this.#startOf(index);
        at < end;
        at += 1
      ) {
        const time = Math.max(from, this.#points[at] ?? 0);
        if (time >= until) return until;
        if (this.#loadAt(at) > highest) return time;
      }
    }
    return until;
  }

  /** The first breakpoint within a block, from `at` to before `end`, at or after `time`; `end` when there is none. */
  #firstFrom(at: number, end: number, time: number): number {
    if ((this.#points[end - 1] ?? 0) < time) return end;
    let found = at;
    while ((this.#points[found] ?? 0) < time) found += 1;
    return found;
  }

  #timeAfter(index: number, at: number): number {
    if (at + 1 < this.#endOf(index)) return this.#points[at + 1] ?? 0;
    return index + 1 < this.#count ? (this.#firsts[index + 1] ?? 0) : Number.POSITIVE_INFINITY;
  }

  /** The last block that begins at or before `time`. */
  #blockAt(time: number): number {
    return lastAtOrBefore(this.#firsts, 0, this.#count, time);
  }

  /** Position of a block's last breakpoint at or before `time`; of its first one when none is. */
  #positionIn(index: number, time: number): number {
    return lastAtOrBefore(this.#points, this.#startOf(index), this.#endOf(index), time);
  }

  #startOf(index: number): number {
    return this.#bases[index] ?? 0;
  }

  #endOf(index: number): number {
    return (this.#bases[index] ?? 0) + (this.#lengths[index] ?? 0);
  }

  #peakWithin(index: number, from: number, end: number): number {
    const to = this.#endOf(index);
    let peak = this.#loadAt(from);
    for (let at = from + 1; at < to && (this.#points[at] ?? 0) < end; at += 1) {
      const load = this.#loadAt(at);
      if (load > peak) peak = load;
    }
    return peak + (this.#raised[index] ?? 0);
  }

  /** Raises whole blocks, `first` to before `last`. */
  #raise(first: number, last: number, delta: number): void {
    const [raised, peaks] = [this.#raised, this.#peaks];
    for (let index = first; index < last; index += 1) {
      raised[index] = (raised[index] ?? 0) + delta;
      peaks[index] = (peaks[index] ?? 0) + delta;
    }
  }

  #addWithin(index: number, from: number, to: number, delta: number): void {
    if (from === this.#startOf(index) && to === this.#endOf(index)) this.#raise(index, index + 1, delta);
    else if (from < to) {
      const points = this.#points;
      const end = to + CAPACITY;
      let peak = Number.NEGATIVE_INFINITY;
      for (let at = from + CAPACITY; at < end; at += 1) {
        const load = (points[at] ?? 0) + delta;
        points[at] = load;
        if (load > peak) peak = load;
      }
      // A rise can only raise the peak; after a fall, the rest of the block must be measured.
      if (delta < 0) this.#measure(index);
      else this.#peaks[index] = Math.max(this.#peaks[index] ?? 0, peak + (this.#raised[index] ?? 0));
    }
  }

  #measure(index: number): void {
    const end = this.#endOf(index);
    let peak = Number.NEGATIVE_INFINITY;
    for (let at = this.#startOf(index); at < end; at += 1) {
      const load = this.#loadAt(at);
      if (load > peak) peak = load;
    }
    this.#peaks[index] = peak + (this.#raised[index] ?? 0);
  }

  /** Makes `time` a breakpoint. */
  #cut(time: number): void {
    const index = this.#blockAt(time);
    const at = this.#positionIn(index, time);
    if (this.#points[at] === time) return;
    const end = this.#endOf(index);
    this.#shift(at + 2, at + 1, end);
    this.#points[at + 1] = time;
    this.#points[at + 1 + CAPACITY] = this.#loadAt(at);
    const length = (this.#lengths[index] ?? 0) + 1;
    this.#lengths[index] = length;
    if (length === CAPACITY) this.#split(index);
  }

  #split(index: number): void {
    const half = CAPACITY / 2;
    const upper = this.#startOf(index) + half;
    const base = this.#place();
    this.#shift(base, upper, upper + half);
    this.#lengths[index] = half;
    this.#insert(index + 1, { base, length: half, raised: this.#raised[index] ?? 0 });
    this.#measure(index);
  }

  /** Drops the breakpoint at `time` when the load is the same on both sides of it. */
  #join(time: number): void {
    const index = this.#blockAt(time);
    const [start, end] = [this.#startOf(index), this.#endOf(index)];
    const at = this.#positionIn(index, time);
    if (this.#points[at] !== time || (at === start && index === 0)) return;
    const before = at > start ? index : index - 1;
    const left = at > start ? at - 1 : this.#endOf(before) - 1;
    const same = this.#loadAt(left) + (this.#raised[before] ?? 0);
    if (same !== this.#loadAt(at) + (this.#raised[index] ?? 0)) return;
    this.#shift(at, at + 1, end);
    this.#lengths[index] = end - start - 1;
    if (end - start === 1) this.#remove(index);
    else {
      // The block keeps a breakpoint with the same load, so its peak stays.
      if (at > start) return;
      this.#firsts[index] = this.#points[start] ?? 0;
      this.#measure(index);
    }
  }

  #loadAt(at: number): number {
    return this.#points[at + CAPACITY] ?? 0;
  }

  /** Moves breakpoints, `from` to before `end`, within a block or to another. */
  #shift(to: number, from: number, end: number): void {
    this.#points.copyWithin(to, from, end);
    this.#points.copyWithin(to + CAPACITY, from + CAPACITY, end + CAPACITY);
  }

  /** Room for a block. */
  #place(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const base = this.#used;
    this.#used += 2 * CAPACITY;
    if (this.#used > this.#points.length) this.#points = doubledFloats(this.#points);
    return base;
  }

  #insert(index: number, { base, length, raised }: { base: number; length: number; raised: number }): void {
    if (this.#count === this.#firsts.length) {
      this.#firsts = doubledFloats(this.#firsts);
      this.#raised = doubledFloats(this.#raised);
      this.#peaks = doubledFloats(this.#peaks);
      this.#lengths = doubledInts(this.#lengths);
      this.#bases = doubledInts(this.#bases);
    }
    for (const each of this.#columns()) each.copyWithin(index + 1, index, this.#count);
    this.#count += 1;
    this.#firsts[index] = this.#points[base] ?? 0;
    this.#raised[index] = raised;
    this.#lengths[index] = length;
    this.#bases[index] = base;
    this.#measure(index);
  }

  #remove(index: number): void {
    this.#free.push(this.#startOf(index));
    for (const each of this.#columns()) each.copyWithin(index, index + 1, this.#count);
    this.#count -= 1;
  }

  #columns() {
    return [this.#firsts, this.#raised, this.#peaks, this.#lengths, this.#bases] as const;
  }
}
