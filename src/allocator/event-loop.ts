/** Lets the event loop come round: every request that has arrived is read, and what waits has its turn. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** For how long a slice of work goes on, in milliseconds. Then others have their turn. */
export const MAX_SLICE_MS = 5;

/**
 * Work that takes long, in slices with a turn of the event loop between two. The first one begins with it. Only its own time counts,
 * not what it waits for.
 */
export class Slices {
  /** When it went on last; infinity while it waits. */
  #began = performance.now();
  /** How long this slice took before that, and those before it. */
  #inSlice = 0;
  #before = 0;
  #count = 1;

  /** How many slices there were, with this one. */
  get count(): number {
    return this.#count;
  }

  /** How long all slices took, in milliseconds. */
  get spent(): number {
    return this.#before + this.#own;
  }

  /** Whether others are to have their turn. */
  get isOver(): boolean {
    return this.#own >= MAX_SLICE_MS;
  }

  get #own(): number {
    return this.#inSlice + Math.max(0, performance.now() - this.#began);
  }

  /** Waits for something that is not this work's own. */
  async wait(work: PromiseLike<unknown>): Promise<void> {
    this.#inSlice = this.#own;
    this.#began = Number.POSITIVE_INFINITY;
    try {
      await work;
    } finally {
      this.#began = performance.now();
    }
  }

  /** Resolves where another slice begins. @param turn by default, the next turn of the event loop */
  async next(turn: () => Promise<void> = yieldToEventLoop): Promise<void> {
    await this.wait(turn());
    this.#before += this.#inSlice;
    this.#inSlice = 0;
    this.#count += 1;
  }
}
