import { yieldToEventLoop } from './event-loop.ts';
import { notBegun, StoreUnavailableError } from './store.ts';

/** Work that waits, and how its caller is told. */
interface Waiting<Work, Answer> {
  work: Work;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
}

/**
 * Work that waits for a database. What waits while other work is done is done together in the next transaction, each after those
 * before it. When one throws, each is done alone.
 */
export class Line<Work, Answer> {
  readonly #most: number;
  readonly #does: (works: readonly Work[]) => Promise<readonly Answer[]>;
  readonly #ended: () => void;
  readonly #waiting: Waiting<Work, Answer>[] = [];
  /** Resolves when no work is left. Undefined while nothing waits. */
  working: Promise<void> | undefined;

  /**
   * @param most how much is done together
   * @param does does work in one transaction, and answers each
   * @param ended is told when no work is left
   */
  constructor(
    most: number,
    does: (works: readonly Work[]) => Promise<readonly Answer[]>,
    ended: () => void = () => undefined,
  ) {
    [this.#most, this.#does, this.#ended] = [most, does, ended];
  }

  /** Does work when its turn comes. */
  run(work: Work): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ work, resolve, reject });
      this.working ??= this.#workOff();
    });
  }

  async #workOff(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Work that arrives in these turns of the event loop joins the group: in the first, callers of the group before get
      // their answers, and in the second they ask again. With 16 connections groups are half as large again as after one.
      for (let turn = 0; turn < 2 && this.#most > 1; turn += 1) await yieldToEventLoop();
      await this.#settle(this.#waiting.splice(0, this.#most), this.#waiting);
    }
    this.working = undefined;
    this.#ended();
  }

  /** Does the work of a group, and tells its callers. @param behind those that wait behind it */
  async #settle(group: readonly Waiting<Work, Answer>[], behind: Waiting<Work, Answer>[]): Promise<void> {
    try {
      const answers = await this.#does(group.map(({ work }) => work));
      for (const [index, { resolve }] of group.entries()) resolve(answers[index] as Answer);
    } catch (error) {
      const isAway = error instanceof StoreUnavailableError;
      if (group.length > 1 && !isAway) {
        const alone = [...group];
        for (let next = alone.shift(); next; next = alone.shift()) await this.#settle([next], alone);
        return;
      }
      for (const { reject } of group) reject(error);
      // What has not begun would wait as long again (THREATS.md 64).
      if (isAway) for (const { reject } of behind.splice(0)) reject(notBegun(error));
    }
  }
}
