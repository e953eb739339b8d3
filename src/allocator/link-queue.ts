import type { Link } from '../contract/links.ts';
import { type CachedCalendar, loadCalendar } from './cached-calendar.ts';
import {
  type AllocatorObserver,
  askTogether,
  changeTogether,
  decideAgain,
  type Lender,
  type Loan,
  OutdatedError,
  reachesOf,
} from './link-decisions.ts';
import type { Decision, Operation } from './operations.ts';
import { notBegun, type ReservationStore, RolledBackError, StoreUnavailableError } from './store.ts';

/** How many changes share one transaction at most, so that the first does not wait long for the last. */
const GROUP_SIZE = 64;

/** Options of a {@link LinkQueue}. */
export interface LinkQueueOptions {
  /** See `linkId`. */
  id: string;
  /** Undefined for a link that left the topology: then its reservations can only be deleted. */
  link: Link | undefined;
  store: ReservationStore;
  /** See `AllocatorOptions.maxShare`. */
  share?: number;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Resolves when every request that has arrived is in the queue, so that they share a transaction. */
  gather: () => Promise<void>;
  observe?: AllocatorObserver;
}

/** An operation of the group threw: the group was rolled back. The database is not to blame. */
class UndecidedError extends Error {
  override readonly name = 'UndecidedError';
}

/** An operation, and how its caller is told. */
interface Waiting {
  operation: Operation<unknown>;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** A caller that waits until the queue is idle, and then calls `resume` to let it continue. */
interface Pause {
  pause: (resume: () => void) => void;
  reject: (error: unknown) => void;
}

/**
 * Decides on a group of operations.
 *
 * @param join adds those that have come to wait meanwhile to the group's operations; called before any is looked at
 */
type DecideGroup = (
  operations: readonly Operation<unknown>[],
  join: () => void,
) => Promise<Decision<unknown>[]>;

/**
 * Operations that wait, decided in groups, one group after the other. When one of a group throws, each goes back to the
 * head to be decided on alone. When the database fails, all that wait fail too: waiting would not help them.
 */
class Groups {
  readonly #gather: () => Promise<void>;
  readonly #decide: DecideGroup;
  #waiting: (Waiting | Pause)[] = [];
  /** How many operations, from the head on, are decided on alone. */
  #alone = 0;
  #working = false;

  constructor(gather: () => Promise<void>, decide: DecideGroup) {
    this.#gather = gather;
    this.#decide = decide;
  }

  run<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return new Promise<Answer>((resolve, reject) => {
      // Each answer goes to its own caller: the group need not know its type.
      this.#add({ operation, resolve: (answer) => resolve(answer as Answer), reject });
    });
  }

  /** Resolves once what waits now is decided. Nothing else is until the function that it gives is called. */
  pause(): Promise<() => void> {
    return new Promise((resolve, reject) => this.#add({ pause: resolve, reject }));
  }

  /** Fails all that wait, since the database failed at other work: each would wait as long again (THREATS.md 64). */
  fail(failure: StoreUnavailableError): void {
    this.#alone = 0;
    const waited = notBegun(failure);
    for (const { reject } of this.#waiting.splice(0)) reject(waited);
  }

  #add(waiting: Waiting | Pause): void {
    this.#waiting.push(waiting);
    if (!this.#working) void this.#work();
  }

  async #work(): Promise<void> {
    this.#working = true;
    while (this.#waiting.length > 0) {
      const [first] = this.#waiting;
      if (first && 'pause' in first) {
        this.#waiting.shift();
        await new Promise<void>((resume) => first.pause(resume));
        continue;
      }
      await this.#gather();
      await this.#settle(this.#alone > 0);
    }
    this.#working = false;
  }

  /** Decides on those at the head. @param isAlone whether on the first of them only */
  async #settle(isAlone: boolean): Promise<void> {
    this.#alone = Math.max(0, this.#alone - 1);
    const group: Waiting[] = [];
    const operations: Operation<unknown>[] = [];
    let [isOpen, changes] = [true, 0];
    const join = (): void => {
      // The database may have given up on the transaction before it began.
      while (isOpen) {
        const [next] = this.#waiting;
        if (!next || 'pause' in next) return;
        const size = next.operation.needs.length;
        if (group.length > 0 && (isAlone || changes + size > GROUP_SIZE)) return;
        changes += size;
        this.#waiting.shift();
        group.push(next);
        operations.push(next.operation);
      }
    };
    join();
    try {
      const decisions = await decideAgain(() => this.#decide(operations, join));
      for (const [index, { resolve }] of group.entries()) resolve(decisions[index]?.answer);
    } catch (error) {
      const refused = error instanceof UndecidedError || error instanceof RolledBackError;
      if (refused && group.length > 1) {
        this.#waiting.unshift(...group);
        this.#alone = group.length;
        return;
      }
      const cause = refused ? (error.cause ?? error) : error;
      for (const { reject } of group) reject(cause);
      if (cause instanceof StoreUnavailableError) this.fail(cause);
    } finally {
      isOpen = false;
    }
  }
}

/**
 * The operations that wait for one link, and the link's calendar (allocator/README.md).
 *
 * Operations that change something share a transaction when they wait at the same time, each as if those before it had
 * been committed: lock the link, let its calendar catch up, decide, write, commit, and only then answer. Questions share a
 * snapshot of the database in the same way, and write nothing.
 *
 * The calendar is lent to one group at a time, and only for as long as nothing outside this process can hold that group
 * up: a change borrows it when it has its locks. So a question never waits for another process. A change that fails does
 * not give the calendar back: it is read again.
 */
export class LinkQueue implements Lender {
  /** See `linkId`. */
  readonly id: string;
  /** Whether another process had changed the link before the last transaction: then its changes are read with the lock. */
  shared = false;
  readonly #options: LinkQueueOptions;
  readonly #changes: Groups;
  readonly #questions: Groups;
  #cached: CachedCalendar | undefined;
  /** The calendar is being read. */
  #loading: Promise<void> | undefined;
  /** Resolves when the loan has ended; undefined while nothing is lent. */
  #returned: Promise<void> | undefined;

  constructor(options: LinkQueueOptions) {
    this.id = options.id;
    this.#options = options;
    this.#changes = new Groups(options.gather, (operations, join) => this.#change(operations, join));
    this.#questions = new Groups(options.gather, (operations) => this.#answer(operations));
  }

  /** Decides on an operation. @throws StoreUnavailableError when the database is away; then nothing was changed */
  run<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return this.#changes.run(operation);
  }

  /**
   * Decides on an operation that changes nothing, without the link's lock.
   *
   * @throws StoreUnavailableError when the database is away
   */
  ask<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return this.#questions.run(operation);
  }

  /** Decides on operations in one transaction, which those that wait join until it has the link's lock. */
  #change(operations: readonly Operation<unknown>[], join: () => void): Promise<Decision<unknown>[]> {
    const { id, store } = this.#options;
    return changeTogether([this], operations, {
      ...this.#options,
      transact: (work) => {
        const since = this.shared ? this.#cached?.version : undefined;
        return store.changeLinks(
          [id],
          (transaction) => {
            join();
            return orUndecided(() => work(transaction));
          },
          since,
        );
      },
    });
  }

  /** Decides on operations that change nothing, on a snapshot. */
  #answer(operations: readonly Operation<unknown>[]): Promise<Decision<unknown>[]> {
    const { store } = this.#options;
    return askTogether([this], operations, {
      ...this.#options,
      read: (work) => store.readLinks((snapshot) => orUndecided(() => work(snapshot))),
    });
  }

  async load(operations: readonly Operation<unknown>[], from: number): Promise<void> {
    const { id, link, share, store } = this.#options;
    if (this.#cached || !link || reachesOf(id, operations).length === 0) return;
    this.#loading ??= loadCalendar(store, link, from, { id, share })
      .then((loaded) => {
        this.#cached ??= loaded;
      })
      .finally(() => {
        this.#loading = undefined;
      });
    await this.#loading;
  }

  get returned(): Promise<void> | undefined {
    return this.#returned;
  }

  lend(): Loan {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#returned = promise;
    const lent = this.#cached;
    let isOut = true;
    const loan: Loan = {
      cached: lent,
      end: () => {
        if (!isOut) return;
        // Where none was lent, one may have been read meanwhile.
        if (lent || loan.cached) this.#cached = loan.cached;
        isOut = false;
        this.#returned = undefined;
        resolve();
      },
    };
    return loan;
  }

  /** Resolves once the changes that wait now are decided on. None is until the function that it gives is called. */
  pause(): Promise<() => void> {
    return this.#changes.pause();
  }

  /** Fails the changes that wait, since the database failed at other work. */
  fail(failure: StoreUnavailableError): void {
    this.#changes.fail(failure);
  }
}

/** The tools of operations over several links. */
type SeveralLinks = Pick<LinkQueueOptions, 'store' | 'now' | 'observe'>;

/**
 * Decides on an operation over several links in a transaction of its own. The links' queues decide on nothing else meanwhile:
 * two pieces of work of this process would wait for each other's calendar.
 *
 * @param queues of the operation's links, in their order
 * @throws StoreUnavailableError when the database is away; then all that waits for the links fails too
 */
export async function runOnSeveral<Answer>(
  queues: readonly LinkQueue[],
  operation: Operation<Answer>,
  options: SeveralLinks,
): Promise<Answer> {
  const resume: (() => void)[] = [];
  try {
    for (const queue of queues) resume.push(await queue.pause());
    const decisions = await decideAgain(() =>
      changeTogether(queues, [operation], {
        ...options,
        transact: (work) => options.store.changeLinks(operation.links, work),
      }),
    );
    return answerIn(decisions);
  } catch (error) {
    const cause = error instanceof RolledBackError ? (error.cause ?? error) : error;
    if (cause instanceof StoreUnavailableError) for (const queue of queues) queue.fail(cause);
    throw cause;
  } finally {
    for (const each of resume) each();
  }
}

/** Decides on an operation over several links that changes nothing, on a snapshot. */
export async function askSeveral<Answer>(
  queues: readonly LinkQueue[],
  operation: Operation<Answer>,
  options: SeveralLinks,
): Promise<Answer> {
  const read: ReservationStore['readLinks'] = (work) => options.store.readLinks(work);
  return answerIn(await decideAgain(() => askTogether(queues, [operation], { ...options, read })));
}

/** The answer of the only operation, which need not tell its type on the way. */
function answerIn<Answer>([decision]: readonly Decision<unknown>[]): Answer {
  return decision?.answer as Answer;
}

/** An error of an operation rolls the transaction back, so that each operation can be tried again alone. */
async function orUndecided<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof StoreUnavailableError || cause instanceof OutdatedError) throw cause;
    throw new UndecidedError('an operation of the group failed', { cause });
  }
}
