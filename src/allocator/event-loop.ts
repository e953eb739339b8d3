/** For how long work goes on in one turn of the event loop, in milliseconds. Then others have their turn. */
export const MAX_BLOCKING_MS = 15;

/** Lets the event loop come round: every request that has arrived is read, and what waits has its turn. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** For how long the questions of one turn go on, in milliseconds: the last look of each may take as long again. */
const MAX_QUESTIONS_MS = MAX_BLOCKING_MS / 2;

/** The turns of the event loop, in each of which questions are answered for a few milliseconds, all of them together. */
export class LoopTurns {
  readonly #now: () => number;
  /** When the questions of this turn began. */
  #began: number | undefined;

  /** @param now milliseconds of a clock that is never set */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Whether others are to have their turn. The first question of a turn begins its time. */
  get isOver(): boolean {
    if (this.#began !== undefined) return this.#now() - this.#began >= MAX_QUESTIONS_MS;
    this.#began = this.#now();
    setImmediate(() => {
      this.#began = undefined;
    });
    return false;
  }

  /** Resolves in a turn that has time for a question. */
  async next(): Promise<void> {
    while (this.isOver) await yieldToEventLoop();
  }
}
