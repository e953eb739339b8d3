/** Lets the event loop come round: every request that has arrived is read, and what waits has its turn. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** For how long a slice of work goes on, in milliseconds. Then others have their turn. */
export const MAX_SLICE_MS = 5;

/** Work that takes long, in slices with a turn of the event loop between two. The first one begins with it. */
export class Slices {
  #began = performance.now();
  #before = 0;
  #count = 1;

  /** How many slices there were, with this one. */
  get count(): number {
    return this.#count;
  }

  /** How long all slices took, in milliseconds. */
  get spent(): number {
    return this.#before + performance.now() - this.#began;
  }

  /** Whether others are to have their turn. */
  get isOver(): boolean {
    return performance.now() - this.#began >= MAX_SLICE_MS;
  }

  /** Resolves where another slice begins. @param turn by default, the next turn of the event loop */
  async next(turn: () => Promise<void> = yieldToEventLoop): Promise<void> {
    this.#before = this.spent;
    // What is waited for is not this work's own time.
    this.#began = Number.POSITIVE_INFINITY;
    await turn();
    this.#began = performance.now();
    this.#count += 1;
  }
}
