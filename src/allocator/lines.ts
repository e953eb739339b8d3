import type { Decision } from './decide.ts';
import { yieldToEventLoop } from './event-loop.ts';
import type { Operation } from './list.ts';
import { notBegun, StoreUnavailableError } from './store.ts';

/** How many operations are decided together at most, so that the first does not wait long for the last. */
const GROUP_SIZE = 64;

/** An operation that waits, and how its caller is told. */
interface Waiting {
  operation: Operation<unknown>;
  resolve: (decision: Decision<unknown>) => void;
  reject: (error: unknown) => void;
}

/**
 * Operations that wait for one link each. Those that wait while others are decided are decided together in the next transaction, each
 * after those before it. When one throws, each is decided alone.
 */
export class Lines {
  readonly #decide: (operations: readonly Operation<unknown>[]) => Promise<Decision<unknown>[]>;
  /** Those that wait, by the link's id. A link has a line while an operation of it is decided. */
  readonly #lines = new Map<string, Waiting[]>();

  /** @param decide decides on operations in one transaction */
  constructor(decide: (operations: readonly Operation<unknown>[]) => Promise<Decision<unknown>[]>) {
    this.#decide = decide;
  }

  /** Decides on an operation of one link. */
  run<Answer>(link: string, operation: Operation<Answer>): Promise<Decision<Answer>> {
    return new Promise((resolve, reject) => {
      // Each answer goes to its own caller: the line need not know its type.
      const waiting = { operation, resolve: (made: unknown) => resolve(made as Decision<Answer>), reject };
      const line = this.#lines.get(link);
      if (line) line.push(waiting);
      else void this.#workOff(link, [waiting]);
    });
  }

  async #workOff(link: string, line: Waiting[]): Promise<void> {
    this.#lines.set(link, line);
    while (line.length > 0) {
      // In this turn of the event loop the callers of the last group ask again.
      await yieldToEventLoop();
      await this.#settle(line.splice(0, GROUP_SIZE), line);
    }
    this.#lines.delete(link);
  }

  /** Decides on a group, and tells its callers. @param behind those that wait behind it */
  async #settle(group: readonly Waiting[], behind: Waiting[]): Promise<void> {
    try {
      const decisions = await this.#decide(group.map(({ operation }) => operation));
      for (const [index, { resolve }] of group.entries()) resolve(decisions[index] as Decision<unknown>);
    } catch (error) {
      if (error instanceof StoreUnavailableError) {
        for (const { reject } of group) reject(error);
        // What has not begun would wait as long again (THREATS.md 64).
        for (const { reject } of behind.splice(0)) reject(notBegun(error));
      } else if (group.length > 1) {
        const alone = [...group];
        for (let next = alone.shift(); next; next = alone.shift()) await this.#settle([next], alone);
      } else for (const { reject } of group) reject(error);
    }
  }
}
