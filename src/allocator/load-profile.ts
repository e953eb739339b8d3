import { CAPACITY, halfBase, LoadBlocks, type LoadExtremes, NO_LIMIT } from './load-blocks.ts';

/** The load from an instant on, until the next step. */
export interface LoadStep {
  /** Milliseconds. */
  time: number;
  /** Mbps. */
  load: number;
  /** How many reservations. */
  live: number;
}

/** The limits of a load: Mbps, and reservations, of which any number is allowed when unsaid. */
export interface LoadLimits {
  load: number;
  live?: number;
}

/** A position in a profile: a stretch over which nothing changes. It is invalid once the profile changes. */
export interface LoadCursor {
  /** When the stretch ends, in milliseconds; infinity for the last. */
  end(): number;
  /** Mbps. */
  load(): number;
  /** How many reservations. */
  live(): number;
  advance(): void;
}

/** Some stretches beside each other over which nothing changes. It is invalid once the profile changes. */
export interface LoadBlock {
  start: number;
  end: number;
  /** Bounds of its load, in Mbps. */
  peak: number;
  low: number;
  /** How many stretches; the first begins with the block. */
  length: number;
  startOf(at: number): number;
  /** Mbps. */
  loadOf(at: number): number;
}

/** How many a block gets where they are appended. The room is for breakpoints that come in between later. */
const FILLED = 224;

/** The change that a reservation makes. */
interface Change {
  /** Mbps. */
  delta: number;
  /** How many reservations. */
  live: number;
}

/**
 * How much of a link is taken at every instant, and by how many reservations: a step function over time, kept as sorted
 * breakpoints in blocks, so that a check and a change cost about the square root of the number of breakpoints
 * (allocator/README.md). A block that lies wholly within a period is neither read nor written: its raise and its
 * extremes are in arrays of their own. A few typed arrays hold everything, because at a million reservations memory
 * access takes the time.
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
export class LoadProfile extends LoadBlocks {
  /**
   * Adds a reservation of `delta` Mbps over `[start, end)`; a negative one is removed.
   *
   * @param live how many reservations more that are
   */
  add(start: number, end: number, delta: number, live = Math.sign(delta)): void {
    this.cut(start);
    this.cut(end);
    const first = this.blockAt(start);
    const last = this.blockAt(end);
    const from = this.positionIn(first, start);
    const to = this.positionIn(last, end);
    if (first === last) this.#addWithin(first, from, to, { delta, live });
    else {
      this.#addWithin(first, from, this.endOf(first), { delta, live });
      this.#raise(first + 1, last, { delta, live });
      this.#addWithin(last, this.startOf(last), to, { delta, live });
    }
    this.join(end);
    this.join(start);
  }

  /**
   * Appends a step that comes after all others, to a profile that has no more than such steps yet: one of many
   * reservations is made in one walk, without {@link add} for each. The last step has no load.
   */
  append({ time, load, live }: LoadStep): void {
    const index = this.count - 1;
    const last = this.endOf(index) - 1;
    if (this.loadAt(last) === load && this.liveAt(index, last) === live) return;
    const isFilled = (this.lengths[index] ?? 0) === FILLED;
    const at = isFilled ? this.place() : last + 1;
    this.points[at] = time;
    this.points[at + CAPACITY] = load;
    this.lives[at - halfBase(at)] = live;
    if (isFilled) this.insert(index + 1, { base: at, length: 1, raised: 0, liveRaised: 0 });
    else {
      this.lengths[index] = last + 2 - this.startOf(index);
      this.peaks[index] = Math.max(this.peaks[index] ?? 0, load);
      this.lows[index] = Math.min(this.lows[index] ?? 0, load);
      this.livePeaks[index] = Math.max(this.livePeaks[index] ?? 0, live);
    }
  }

  /** The highest load at any instant of `[start, end)`, in Mbps. */
  peak(start: number, end: number): number {
    const first = this.blockAt(start);
    const at = this.blockAt(end);
    const last = Math.max(first, (this.firsts[at] ?? 0) < end ? at : at - 1);
    let peak = this.#peakWithin(first, this.positionIn(first, start), end);
    for (let index = first + 1; index < last; index += 1) {
      const whole = this.peaks[index] ?? 0;
      if (whole > peak) peak = whole;
    }
    return last > first ? Math.max(peak, this.#peakWithin(last, this.startOf(last), end)) : peak;
  }

  /** The extremes over `[start, end)`. */
  extremes(start: number, end: number): LoadExtremes {
    const first = this.blockAt(start);
    const at = this.blockAt(end);
    const last = Math.max(first, (this.firsts[at] ?? 0) < end ? at : at - 1);
    let [peak, low, live] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, 0];
    for (let index = first + 1; index < last; index += 1) {
      const [highest, lowest] = [this.peaks[index] ?? 0, this.lows[index] ?? 0];
      const most = this.livePeaks[index] ?? 0;
      if (highest > peak) peak = highest;
      if (lowest < low) low = lowest;
      if (most > live) live = most;
    }
    const extremes = { peak, low, live };
    this.#extremesWithin(first, this.positionIn(first, start), end, extremes);
    if (last > first) this.#extremesWithin(last, this.startOf(last), end, extremes);
    return extremes;
  }

  /** The stretches over which nothing changes from `time` on. */
  from(time: number): LoadCursor {
    let index = this.blockAt(time);
    let at = this.positionIn(index, time);
    let end = this.endOf(index);
    return {
      end: () => this.#timeAfter(index, at),
      load: () => this.loadAt(at) + (this.raised[index] ?? 0),
      live: () => this.liveAt(index, at),
      advance: () => {
        at += 1;
        if (at < end || index + 1 === this.count) return;
        index += 1;
        at = this.startOf(index);
        end = this.endOf(index);
      },
    };
  }

  /** The blocks of stretches that make up `[start, end)`, in order. */
  *blocks(start: number, end: number): Generator<LoadBlock> {
    const points = this.points;
    for (let index = this.blockAt(start); index < this.count; index += 1) {
      const from = Math.max(start, this.firsts[index] ?? 0);
      if (from >= end) return;
      const last = this.endOf(index);
      const first = this.positionIn(index, from);
      const raised = this.raised[index] ?? 0;
      yield {
        start: from,
        end: Math.min(end, this.#timeAfter(index, last - 1)),
        peak: this.peaks[index] ?? 0,
        low: this.lows[index] ?? 0,
        length: this.#positionFrom(index, first + 1, end) - first,
        startOf: (at) => (at === 0 ? from : (points[first + at] ?? 0)),
        loadOf: (at) => (points[first + at + CAPACITY] ?? 0) + raised,
      };
    }
  }

  /**
   * The earliest instant from `from` on at which `duration` milliseconds pass within the limits. There is always one, since
   * the last reservation ends.
   *
   * A block that is within the limits, or above them all the time, is not read. Another one that lies in the period is read
   * from its end, since the last instant above a limit is where the next candidate comes after. No breakpoint is read
   * twice.
   *
   * @param latest where the search ends: what it finds after that may be too early
   */
  earliest(from: number, duration: number, limits: LoadLimits, latest = Number.POSITIVE_INFINITY): number {
    const first = this.blockAt(from);
    let candidate = from;
    for (let index = first; index < this.count && candidate <= latest; index += 1) {
      if (index > first && (this.firsts[index] ?? 0) >= candidate + duration) return candidate;
      if (this.#isWithin(index, limits)) continue;
      const end = this.endOf(index);
      if ((this.lows[index] ?? 0) > limits.load) candidate = this.#timeAfter(index, end - 1);
      else {
        const start = index === first ? this.positionIn(index, from) : this.startOf(index);
        if ((this.points[end - 1] ?? 0) < candidate + duration) {
          const at = this.#lastAbove(index, start, end, limits);
          if (at >= start) candidate = this.#timeAfter(index, at);
        } else {
          const found = this.#earliestWithin(index, { start, candidate, duration, limits });
          if (found.isSure) return found.candidate;
          candidate = found.candidate;
        }
      }
    }
    return candidate;
  }

  /** The first instant of `[from, until)` that is above a limit; `until` when there is none. */
  firstAbove(from: number, until: number, limits: LoadLimits): number {
    const first = this.blockAt(from);
    for (let index = first; index < this.count; index += 1) {
      if (index > first && (this.firsts[index] ?? 0) >= until) return until;
      if (this.#isWithin(index, limits)) continue;
      const [start, end] = [this.startOf(index), this.endOf(index)];
      const highest = limits.load - (this.raised[index] ?? 0);
      const most = (limits.live ?? NO_LIMIT) - (this.liveRaised[index] ?? 0);
      for (let at = index === first ? this.positionIn(index, from) : start; at < end; at += 1) {
        const time = Math.max(from, this.points[at] ?? 0);
        if (time >= until) return until;
        if (this.loadAt(at) > highest || (this.lives[at - start / 2] ?? 0) > most) return time;
      }
    }
    return until;
  }

  /** The first instant of `[from, until)` with a load below so many Mbps; `until` when there is none. */
  firstBelow(from: number, until: number, load: number): number {
    const first = this.blockAt(from);
    for (let index = first; index < this.count; index += 1) {
      if (index > first && (this.firsts[index] ?? 0) >= until) return until;
      if ((this.lows[index] ?? 0) >= load) continue;
      const [end, lowest] = [this.endOf(index), load - (this.raised[index] ?? 0)];
      let at = index === first ? this.positionIn(index, from) : this.startOf(index);
      while (at < end && this.loadAt(at) >= lowest) at += 1;
      if (at < end) return Math.min(until, Math.max(from, this.points[at] ?? 0));
    }
    return until;
  }

  /** Whether the whole of a block is within the limits. */
  #isWithin(index: number, { load, live = NO_LIMIT }: LoadLimits): boolean {
    return (this.peaks[index] ?? 0) <= load && (this.livePeaks[index] ?? 0) <= live;
  }

  /** The last breakpoint within a block, from `first` to before `end`, that is above a limit; `first - 1` for none. */
  #lastAbove(index: number, first: number, end: number, { load, live }: LoadLimits): number {
    const highest = load - (this.raised[index] ?? 0);
    let at = end - 1;
    if (live === undefined) while (at >= first && this.loadAt(at) <= highest) at -= 1;
    else {
      const [half, most] = [this.startOf(index) / 2, live - (this.liveRaised[index] ?? 0)];
      while (at >= first && this.loadAt(at) <= highest && (this.lives[at - half] ?? 0) <= most) at -= 1;
    }
    return at;
  }

  /** As {@link earliest}, from the breakpoint `start` of a block to its end. */
  #earliestWithin(
    index: number,
    {
      start,
      candidate,
      duration,
      limits,
    }: { start: number; candidate: number; duration: number; limits: LoadLimits },
  ): { candidate: number; isSure: boolean } {
    const [points, lives] = [this.points, this.lives];
    const [end, half] = [this.endOf(index), this.startOf(index) / 2];
    const highest = limits.load - (this.raised[index] ?? 0);
    const most = (limits.live ?? NO_LIMIT) - (this.liveRaised[index] ?? 0);
    let [earliest, isAbove] = [candidate, false];
    for (let at = start; at < end; at += 1) {
      const time = points[at] ?? 0;
      if (isAbove) earliest = time;
      else if (time >= earliest + duration) return { candidate: earliest, isSure: true };
      isAbove = (points[at + CAPACITY] ?? 0) > highest || (lives[at - half] ?? 0) > most;
    }
    return { candidate: isAbove ? this.#timeAfter(index, end - 1) : earliest, isSure: false };
  }

  #timeAfter(index: number, at: number): number {
    if (at + 1 < this.endOf(index)) return this.points[at + 1] ?? 0;
    return index + 1 < this.count ? (this.firsts[index + 1] ?? 0) : Number.POSITIVE_INFINITY;
  }

  #peakWithin(index: number, from: number, end: number): number {
    const to = this.endOf(index);
    let peak = this.loadAt(from);
    for (let at = from + 1; at < to && (this.points[at] ?? 0) < end; at += 1) {
      const load = this.loadAt(at);
      if (load > peak) peak = load;
    }
    return peak + (this.raised[index] ?? 0);
  }

  /** Widens the extremes that are found by those of a block, from a position to before `end`. */
  #extremesWithin(index: number, from: number, end: number, found: LoadExtremes): void {
    const readsLoads =
      (this.peaks[index] ?? 0) > found.peak || (this.lows[index] ?? Number.POSITIVE_INFINITY) < found.low;
    const readsLives = (this.livePeaks[index] ?? 0) > found.live;
    if (!readsLoads && !readsLives) return;
    const to = this.#positionFrom(index, from + 1, end);
    if (readsLoads) this.readLoads(index, from, to, found);
    if (readsLives) this.readLives(index, from, to, found);
  }

  /** The first position of a block from `from` on whose breakpoint is at `time` or later; that after its last one. */
  #positionFrom(index: number, from: number, time: number): number {
    const points = this.points;
    let [low, high] = [from, this.endOf(index)];
    if (high > low && (points[high - 1] ?? 0) < time) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((points[middle] ?? 0) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Raises whole blocks, `first` to before `last`. */
  #raise(first: number, last: number, { delta, live }: Change): void {
    const [raised, peaks, lows] = [this.raised, this.peaks, this.lows];
    const [liveRaised, livePeaks] = [this.liveRaised, this.livePeaks];
    for (let index = first; index < last; index += 1) {
      raised[index] = (raised[index] ?? 0) + delta;
      peaks[index] = (peaks[index] ?? 0) + delta;
      lows[index] = (lows[index] ?? 0) + delta;
      liveRaised[index] = (liveRaised[index] ?? 0) + live;
      livePeaks[index] = (livePeaks[index] ?? 0) + live;
    }
  }

  #addWithin(index: number, from: number, to: number, change: Change): void {
    if (from === this.startOf(index) && to === this.endOf(index)) this.#raise(index, index + 1, change);
    else if (from < to) {
      const { delta, live } = change;
      const [points, lives, half] = [this.points, this.lives, this.startOf(index) / 2];
      let [peak, low, most] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, -NO_LIMIT];
      for (let at = from; at < to; at += 1) {
        const load = (points[at + CAPACITY] ?? 0) + delta;
        points[at + CAPACITY] = load;
        if (load > peak) peak = load;
        if (load < low) low = load;
        const held = (lives[at - half] ?? 0) + live;
        lives[at - half] = held;
        if (held > most) most = held;
      }
      const raised = this.raised[index] ?? 0;
      const liveRaised = this.liveRaised[index] ?? 0;
      // An extreme that the change leads away from may have been here: then the rest of the block must be measured.
      const isMeasured =
        (delta < 0 && peak - delta + raised >= (this.peaks[index] ?? 0)) ||
        (delta > 0 && low - delta <= this.#lowestBeside(index, from, to)) ||
        (live < 0 && most - live + liveRaised >= (this.livePeaks[index] ?? 0));
      if (isMeasured) this.measure(index);
      else {
        this.peaks[index] = Math.max(this.peaks[index] ?? 0, peak + raised);
        this.lows[index] = Math.min(this.lows[index] ?? 0, low + raised);
        this.livePeaks[index] = Math.max(this.livePeaks[index] ?? 0, most + liveRaised);
      }
    }
  }

  /**
   * The lowest load of a block without its raise, negative infinity when it is also beside a part of the block, as at
   * the end of all reservations.
   */
  #lowestBeside(index: number, from: number, to: number): number {
    const low = (this.lows[index] ?? 0) - (this.raised[index] ?? 0);
    const isBefore = from > this.startOf(index) && this.loadAt(from - 1) === low;
    const isAfter = to < this.endOf(index) && this.loadAt(to) === low;
    return isBefore || isAfter ? Number.NEGATIVE_INFINITY : low;
  }
}
