import type { Demand, Period } from './demand.ts';

/** What reservations take together: Mbps, and how many they are. */
export interface Load {
  bandwidth: number;
  live: number;
}

/**
 * What reservations take together over time: one entry for each instant at which that changes, in order.
 *
 * @example
 * // 600 Mbps from 9:00 to 12:00 and 300 from 11:00 to 14:00: 600 from 9:00, 900 from 11:00, 300 from 12:00, 0 from 14:00.
 */
export class Profile {
  readonly #times: number[] = [];
  readonly #bandwidths: number[] = [];
  readonly #lives: number[] = [];

  constructor(demands: Iterable<Demand>) {
    const starts = [...demands].sort((one, other) => one.start - other.start);
    const ends = starts.toSorted((one, other) => one.end - other.end);
    let [bandwidth, live, started] = [0, 0, 0];
    for (const [ended, { end, bandwidth: freed }] of ends.entries()) {
      for (let next = starts[started]; next && next.start < end; next = starts[started]) {
        bandwidth += next.bandwidth;
        live += 1;
        started += 1;
        this.#set(next.start, bandwidth, live);
      }
      bandwidth -= freed;
      live = started - ended - 1;
      this.#set(end, bandwidth, live);
    }
  }

  /** From an instant on there is so much. All that changes at one instant counts together: an end makes room for a start. */
  #set(time: number, bandwidth: number, live: number): void {
    const at = this.#times.at(-1) === time ? this.#times.length - 1 : this.#times.length;
    this.#times[at] = time;
    this.#bandwidths[at] = bandwidth;
    this.#lives[at] = live;
  }

  /** Adds what a reservation takes. @param sign -1 takes it away */
  add({ start, end, bandwidth }: Demand, sign: 1 | -1 = 1): void {
    const [first, last] = [this.#changeAt(start), this.#changeAt(end)];
    for (let at = first; at < last; at += 1) {
      this.#bandwidths[at] = (this.#bandwidths[at] ?? 0) + sign * bandwidth;
      this.#lives[at] = (this.#lives[at] ?? 0) + sign;
    }
  }

  /** The stretches of a period, in order. */
  *steps({ start, end }: Period): Generator<Period & Load> {
    let from = start;
    for (let at = this.#indexAt(start); from < end; at += 1) {
      const until = Math.min(end, this.#times[at + 1] ?? Number.POSITIVE_INFINITY);
      yield { start: from, end: until, ...this.#at(at) };
      from = until;
    }
  }

  /** The most of a period, of each at any of its instants; and the least Mbps. */
  extremes({ start, end }: Period): { most: Load; least: number } {
    const first = this.#indexAt(start);
    const most = this.#at(first);
    let least = most.bandwidth;
    for (let at = first + 1; (this.#times[at] ?? end) < end; at += 1) {
      const { bandwidth, live } = this.#at(at);
      if (bandwidth > most.bandwidth) most.bandwidth = bandwidth;
      least = Math.min(least, bandwidth);
      if (live > most.live) most.live = live;
    }
    return { most, least };
  }

  /** When the load first exceeds a limit in a period; the period's end where it never does. */
  firstAbove({ start, end }: Period, limit: Load): number {
    for (let at = this.#indexAt(start); ; at += 1) {
      if (this.#isAbove(at, limit)) return Math.max(start, this.#times[at] ?? start);
      if ((this.#times[at + 1] ?? end) >= end) return end;
    }
  }

  /** When the load is first within a limit in a period; the period's end where it never is. */
  firstWithin({ start, end }: Period, limit: Load): number {
    for (let at = this.#indexAt(start); this.#isAbove(at, limit); at += 1) {
      if ((this.#times[at + 1] ?? end) >= end) return end;
      start = this.#times[at + 1] ?? end;
    }
    return start;
  }

  /** The earliest start, at an instant or after it, from which the load stays within a limit for so many milliseconds. */
  earliest(from: number, duration: number, limit: Load): number {
    let start = from;
    for (let at = this.#indexAt(from); at < this.#times.length; at += 1) {
      if ((this.#times[at] ?? 0) >= start + duration) break;
      if (this.#isAbove(at, limit)) start = this.#times[at + 1] ?? Number.POSITIVE_INFINITY;
    }
    return start;
  }

  /** The index of the entry at an instant, which is made if it is not there yet. */
  #changeAt(time: number): number {
    const before = this.#indexAt(time);
    if (this.#times[before] === time) return before;
    const { bandwidth, live } = this.#at(before);
    this.#times.splice(before + 1, 0, time);
    this.#bandwidths.splice(before + 1, 0, bandwidth);
    this.#lives.splice(before + 1, 0, live);
    return before + 1;
  }

  /** The index of the last entry at an instant or before it; -1 where there is none. */
  #indexAt(time: number): number {
    let [low, high] = [0, this.#times.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#times[middle] ?? 0) <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  #at(index: number): Load {
    return { bandwidth: this.#bandwidths[index] ?? 0, live: this.#lives[index] ?? 0 };
  }

  #isAbove(index: number, limit: Load): boolean {
    return (this.#bandwidths[index] ?? 0) > limit.bandwidth || (this.#lives[index] ?? 0) > limit.live;
  }
}
