/** A {@link RateLimit} with this many names forgets those whose limit is whole again. */
const MOST_NAMES = 10_000;

/**
 * A limit of events for each name: so many at once, and as many in each period after that, at an even rate, so that a
 * program that waits as it is told goes on soon.
 *
 * For each name one number is kept: when its limit will be whole again (the generic cell rate algorithm, ITU-T I.371). They
 * are in memory: each replica has its own, and a restart forgets them. Events that are under way at once are counted when
 * they end, so they may go beyond the limit, which then takes longer to be whole: up to two periods.
 */
export class RateLimit {
  readonly #most: number;
  readonly #period: number;
  readonly #now: () => number;
  readonly #wholeAt = new Map<string, number>();
  #sweepAt = MOST_NAMES;

  /**
   * @param most events at once, and in each period after that; `Infinity` for no limit
   * @param period milliseconds
   * @param now milliseconds, of a clock that may be set back
   */
  constructor(most: number, period: number, now: () => number) {
    [this.#most, this.#period, this.#now] = [most, period, now];
  }

  /** Milliseconds until one more event is within the limit; 0 where it is now. */
  wait(name: string): number {
    const wait = this.#used(name) + this.#period / this.#most - this.#period;
    // Less than a millisecond is an error of rounding.
    return wait < 1 ? 0 : wait;
  }

  /** Counts events, also beyond the limit. */
  count(name: string, events = 1): void {
    if (!Number.isFinite(this.#most)) return;
    if (this.#wholeAt.size >= this.#sweepAt) {
      for (const known of this.#wholeAt.keys()) if (this.#used(known) === 0) this.#wholeAt.delete(known);
      this.#sweepAt = Math.max(MOST_NAMES, 2 * this.#wholeAt.size);
    }
    const used = this.#used(name) + (events * this.#period) / this.#most;
    this.#wholeAt.set(name, this.#now() + Math.min(used, 2 * this.#period - 1));
  }

  /** For how many milliseconds from now on the limit is not whole. */
  #used(name: string): number {
    const left = (this.#wholeAt.get(name) ?? 0) - this.#now();
    // Far more than a period is left only where the clock was set back.
    return left > 0 && left < 2 * this.#period ? left : 0;
  }
}
