import { doubled, lastAtOrBefore } from './typed-arrays.ts';

/** The extremes of a load over a period, in Mbps, and the most reservations at an instant of it. */
export interface LoadExtremes {
  peak: number;
  low: number;
  live: number;
}

/** How many breakpoints a block holds at most; a full block is split in two. */
export const CAPACITY = 256;
/**
 * How many breakpoints of the last block stay when it is full. What experiments hold is loaded in the order of ends, so
 * that starts come in later, about as many.
 */
const FULL_ENOUGH = 112;
/** How many blocks there is room for at first; it doubles. With shares, each experiment has a profile, so it is small. */
const FIRST_BLOCKS = 1;

/** More than any number of reservations. */
export const NO_LIMIT = 2 ** 30;

/** A block whose breakpoints are in the slabs. */
interface Inserted {
  base: number;
  length: number;
  raised: number;
  liveRaised: number;
}

/**
 * The sorted breakpoints of a step function, in blocks, and what each block is raised by: the storage of a `LoadProfile`. A
 * few typed arrays hold everything, because at a million reservations memory access takes the time.
 */
export class LoadBlocks {
  /** How many blocks there are. In the order of time, the arrays below have one entry for each. */
  protected count = 0;
  /** Each block's first breakpoint. */
  protected firsts = new Float64Array(FIRST_BLOCKS);
  /** Added to every load of the block without touching it. */
  protected raised = new Float64Array(FIRST_BLOCKS);
  /** The largest load of the block, with what it was raised by. */
  protected peaks = new Float64Array(FIRST_BLOCKS);
  /** The smallest load of the block, with what it was raised by. */
  protected lows = new Float64Array(FIRST_BLOCKS);
  /** Added to every number of reservations of the block without touching it. */
  protected liveRaised = new Int32Array(FIRST_BLOCKS);
  /** The largest number of reservations of the block, with what it was raised by. */
  protected livePeaks = new Int32Array(FIRST_BLOCKS);
  /** How many breakpoints the block has. */
  protected lengths = new Int32Array(FIRST_BLOCKS);
  /** Where in the slabs the block begins. */
  protected bases = new Int32Array(FIRST_BLOCKS);
  /**
   * The breakpoints of all blocks. Where a block begins are its times; `CAPACITY` further on, beside them in memory,
   * the load that holds from each on, without what the block was raised by.
   */
  protected points = new Float64Array(FIRST_BLOCKS * 2 * CAPACITY);
  /** The numbers of reservations that hold from each breakpoint on: a block begins at half of its base. */
  protected lives = new Int32Array(FIRST_BLOCKS * CAPACITY);
  /** The bases of removed blocks, to be used again. */
  protected readonly free: number[] = [];
  protected used = 0;

  constructor() {
    const base = this.place();
    this.points[base] = Number.NEGATIVE_INFINITY;
    this.insert(0, { base, length: 1, raised: 0, liveRaised: 0 });
  }

  /** The last block that begins at or before `time`. */
  protected blockAt(time: number): number {
    return lastAtOrBefore(this.firsts, 0, this.count, time);
  }

  /** Position of a block's last breakpoint at or before `time`; of its first one when none is. */
  protected positionIn(index: number, time: number): number {
    return lastAtOrBefore(this.points, this.startOf(index), this.endOf(index), time);
  }

  protected startOf(index: number): number {
    return this.bases[index] ?? 0;
  }

  protected endOf(index: number): number {
    return (this.bases[index] ?? 0) + (this.lengths[index] ?? 0);
  }

  protected loadAt(at: number): number {
    return this.points[at + CAPACITY] ?? 0;
  }

  /** How many reservations hold from a breakpoint of a block on. */
  protected liveAt(index: number, at: number): number {
    return (this.lives[at - this.startOf(index) / 2] ?? 0) + (this.liveRaised[index] ?? 0);
  }

  protected measure(index: number): void {
    const found = { peak: Number.NEGATIVE_INFINITY, low: Number.POSITIVE_INFINITY, live: -NO_LIMIT };
    const [start, end] = [this.startOf(index), this.endOf(index)];
    this.readLoads(index, start, end, found);
    this.readLives(index, start, end, found);
    this.peaks[index] = found.peak;
    this.lows[index] = found.low;
    this.livePeaks[index] = found.live;
  }

  /** Makes `time` a breakpoint. */
  protected cut(time: number): void {
    const index = this.blockAt(time);
    const at = this.positionIn(index, time);
    if (this.points[at] === time) return;
    const end = this.endOf(index);
    // What holds at `at` holds after it too: it is there twice, until its time is another one.
    this.shift(at + 1, at, end);
    this.points[at + 1] = time;
    const length = (this.lengths[index] ?? 0) + 1;
    this.lengths[index] = length;
    if (length === CAPACITY) this.split(index);
  }

  protected split(index: number): void {
    const kept = index === this.count - 1 ? FULL_ENOUGH : CAPACITY / 2;
    const upper = this.startOf(index) + kept;
    const base = this.place();
    this.shift(base, upper, this.endOf(index));
    this.lengths[index] = kept;
    const [raised, liveRaised] = [this.raised[index] ?? 0, this.liveRaised[index] ?? 0];
    this.insert(index + 1, { base, length: CAPACITY - kept, raised, liveRaised });
    this.measure(index);
  }

  /** Drops the breakpoint at `time` when the same holds on both sides of it. */
  protected join(time: number): void {
    const index = this.blockAt(time);
    const [start, end] = [this.startOf(index), this.endOf(index)];
    const at = this.positionIn(index, time);
    if (this.points[at] !== time || (at === start && index === 0)) return;
    const before = at > start ? index : index - 1;
    const left = at > start ? at - 1 : this.endOf(before) - 1;
    if (this.liveAt(before, left) !== this.liveAt(index, at)) return;
    const same = this.loadAt(left) + (this.raised[before] ?? 0);
    if (same !== this.loadAt(at) + (this.raised[index] ?? 0)) return;
    this.shift(at, at + 1, end);
    this.lengths[index] = end - start - 1;
    if (end - start === 1) this.remove(index);
    else {
      // The block keeps a breakpoint at which the same holds, so its extremes stay.
      if (at > start) return;
      this.firsts[index] = this.points[start] ?? 0;
      this.measure(index);
    }
  }

  protected readLoads(index: number, from: number, to: number, found: LoadExtremes): void {
    const points = this.points;
    let [peak, low] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let at = from + CAPACITY; at < to + CAPACITY; at += 1) {
      const load = points[at] ?? 0;
      if (load > peak) peak = load;
      if (load < low) low = load;
    }
    const raised = this.raised[index] ?? 0;
    found.peak = Math.max(found.peak, peak + raised);
    found.low = Math.min(found.low, low + raised);
  }

  protected readLives(index: number, from: number, to: number, found: LoadExtremes): void {
    const [lives, half] = [this.lives, this.startOf(index) / 2];
    let live = -NO_LIMIT;
    for (let at = from - half; at < to - half; at += 1) {
      const held = lives[at] ?? 0;
      if (held > live) live = held;
    }
    found.live = Math.max(found.live, live + (this.liveRaised[index] ?? 0));
  }

  /** Moves breakpoints, `from` to before `end`, within a block or to another. */
  protected shift(to: number, from: number, end: number): void {
    this.points.copyWithin(to, from, end);
    this.points.copyWithin(to + CAPACITY, from + CAPACITY, end + CAPACITY);
    const [source, target] = [halfBase(from), halfBase(to)];
    this.lives.copyWithin(to - target, from - source, end - source);
  }

  /** Room for a block. */
  protected place(): number {
    const free = this.free.pop();
    if (free !== undefined) return free;
    const base = this.used;
    this.used += 2 * CAPACITY;
    if (this.used > this.points.length) {
      this.points = doubled(this.points);
      this.lives = doubled(this.lives);
    }
    return base;
  }

  protected insert(index: number, { base, length, raised, liveRaised }: Inserted): void {
    if (this.count === this.firsts.length) {
      this.firsts = doubled(this.firsts);
      this.raised = doubled(this.raised);
      this.peaks = doubled(this.peaks);
      this.lows = doubled(this.lows);
      this.liveRaised = doubled(this.liveRaised);
      this.livePeaks = doubled(this.livePeaks);
      this.lengths = doubled(this.lengths);
      this.bases = doubled(this.bases);
    }
    for (const each of this.columns()) each.copyWithin(index + 1, index, this.count);
    this.count += 1;
    this.firsts[index] = this.points[base] ?? 0;
    this.raised[index] = raised;
    this.liveRaised[index] = liveRaised;
    this.lengths[index] = length;
    this.bases[index] = base;
    this.measure(index);
  }

  protected remove(index: number): void {
    this.free.push(this.startOf(index));
    for (const each of this.columns()) each.copyWithin(index, index + 1, this.count);
    this.count -= 1;
  }

  protected columns() {
    const floats = [this.firsts, this.raised, this.peaks, this.lows] as const;
    return [...floats, this.liveRaised, this.livePeaks, this.lengths, this.bases] as const;
  }
}

/** Half of the base of the block in which a position of the slab lies. */
export function halfBase(at: number): number {
  return Math.floor(at / (2 * CAPACITY)) * CAPACITY;
}
