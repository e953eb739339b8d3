/** A stretch of time over which a load is constant: `[start, end)` in milliseconds, load in Mbps. */
export interface LoadSegment {
  start: number;
  end: number;
  load: number;
}

/** Breakpoints that lie together. `loads[i]` plus `raised` holds from `times[i]` to the next breakpoint. */
interface Block {
  times: number[];
  loads: number[];
  /** Added to every load of the block without touching it. */
  raised: number;
  /** The largest of `loads`, without `raised`. */
  peak: number;
}

const BLOCK_SIZE = 512;

/**
 * How much of a link is taken at every instant: a step function over time, kept as sorted breakpoints in blocks, so
 * that a check and a change cost about the square root of the number of breakpoints (DESIGN.md, "Allocator").
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
  #blocks: Block[] = [{ times: [Number.NEGATIVE_INFINITY], loads: [0], raised: 0, peak: 0 }];

  /** Adds `delta` Mbps (negative to release) over `[start, end)`. */
  add(start: number, end: number, delta: number): void {
    this.#cut(start);
    this.#cut(end);
    const [first, from] = this.#locate(start);
    const [last, to] = this.#locate(end);
    for (let index = first; index <= last; index += 1) {
      const block = this.#block(index);
      const low = index === first ? from : 0;
      const high = index === last ? to : block.times.length;
      if (low === 0 && high === block.times.length) {
        block.raised += delta;
      } else if (low < high) {
        for (let at = low; at < high; at += 1) block.loads[at] = (block.loads[at] ?? 0) + delta;
        block.peak = largest(block.loads);
      }
    }
    this.#join(end);
    this.#join(start);
  }

  /** The highest load at any instant of `[start, end)`, in Mbps. */
  peak(start: number, end: number): number {
    const [first, from] = this.#locate(start);
    let peak = Number.NEGATIVE_INFINITY;
    for (let index = first; index < this.#blocks.length; index += 1) {
      const block = this.#block(index);
      if (index > first && (block.times[0] ?? 0) >= end) break;
      const whole = index > first && (this.#blocks[index + 1]?.times[0] ?? Number.POSITIVE_INFINITY) <= end;
      if (whole) {
        peak = Math.max(peak, block.peak + block.raised);
        continue;
      }
      for (let at = index === first ? from : 0; at < block.times.length; at += 1) {
        if ((block.times[at] ?? 0) >= end) break;
        peak = Math.max(peak, (block.loads[at] ?? 0) + block.raised);
      }
    }
    return peak;
  }

  /** The stretches of constant load that make up `[start, end)`, in order. */
  *segments(start: number, end: number): Generator<LoadSegment> {
    const [first, from] = this.#locate(start);
    let open: LoadSegment | undefined;
    for (let index = first; index < this.#blocks.length; index += 1) {
      const block = this.#block(index);
      for (let at = index === first ? from : 0; at < block.times.length; at += 1) {
        const time = block.times[at] ?? 0;
        if (time >= end) {
          if (open) yield { ...open, end };
          return;
        }
        if (open) yield { ...open, end: time };
        open = { start: Math.max(time, start), end, load: (block.loads[at] ?? 0) + block.raised };
      }
    }
    if (open) yield open;
  }

  /**
   * The earliest instant from `from` on at which `duration` milliseconds pass with a load of at most `limit` Mbps.
   * There is always one, since the last reservation ends.
   */
  earliest(from: number, duration: number, limit: number): number {
    const [first, offset] = this.#locate(from);
    let candidate = from;
    for (let index = first; index < this.#blocks.length; index += 1) {
      const block = this.#block(index);
      if ((block.times[0] ?? 0) >= candidate + duration) return candidate;
      if (block.peak + block.raised <= limit) continue;
      for (let at = index === first ? offset : 0; at < block.times.length; at += 1) {
        if ((block.times[at] ?? 0) >= candidate + duration) return candidate;
        if ((block.loads[at] ?? 0) + block.raised > limit) candidate = this.#timeAfter(index, at);
      }
    }
    return candidate;
  }

  #timeAfter(index: number, at: number): number {
    return this.#block(index).times[at + 1] ?? this.#blocks[index + 1]?.times[0] ?? Number.POSITIVE_INFINITY;
  }

  #block(index: number): Block {
    const block = this.#blocks[index];
    if (!block) throw new RangeError(`no block ${index}`);
    return block;
  }

  /** Block and position of the last breakpoint at or before `time`. */
  #locate(time: number): [index: number, at: number] {
    const index = lastAtOrBefore(
      this.#blocks.length,
      (candidate) => this.#block(candidate).times[0] ?? 0,
      time,
    );
    const { times } = this.#block(index);
    return [index, lastAtOrBefore(times.length, (candidate) => times[candidate] ?? 0, time)];
  }

  /** Makes `time` a breakpoint. */
  #cut(time: number): void {
    const [index, at] = this.#locate(time);
    const block = this.#block(index);
    if (block.times[at] === time) return;
    block.times.splice(at + 1, 0, time);
    block.loads.splice(at + 1, 0, block.loads[at] ?? 0);
    if (block.times.length > 2 * BLOCK_SIZE) this.#split(index);
  }

  #split(index: number): void {
    const block = this.#block(index);
    const times = block.times.splice(BLOCK_SIZE);
    const loads = block.loads.splice(BLOCK_SIZE);
    block.peak = largest(block.loads);
    this.#blocks.splice(index + 1, 0, { times, loads, raised: block.raised, peak: largest(loads) });
  }

  /** Drops the breakpoint at `time` when the load is the same on both sides of it. */
  #join(time: number): void {
    const [index, at] = this.#locate(time);
    const block = this.#block(index);
    const before = at > 0 ? block : this.#blocks[index - 1];
    if (!before || block.times[at] !== time) return;
    const left = (before.loads[at > 0 ? at - 1 : before.loads.length - 1] ?? 0) + before.raised;
    if (left !== (block.loads[at] ?? 0) + block.raised) return;
    block.times.splice(at, 1);
    block.loads.splice(at, 1);
    if (block.times.length === 0) this.#blocks.splice(index, 1);
    else block.peak = largest(block.loads);
  }
}

function largest(values: readonly number[]): number {
  let found = Number.NEGATIVE_INFINITY;
  for (const value of values) if (value > found) found = value;
  return found;
}

/** The last index in `[0, length)` whose value is at most `limit`; 0 when none is. Values rise. */
function lastAtOrBefore(length: number, valueAt: (index: number) => number, limit: number): number {
  let low = 0;
  let high = length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (valueAt(middle) <= limit) low = middle;
    else high = middle - 1;
  }
  return low;
}
