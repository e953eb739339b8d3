import type { Link } from '../contract/links.ts';
import { type CachedCalendar, loadCalendar } from './cached-calendar.ts';
import {
  type AllocatorObserver,
  askTogether,
  changeTogether,
  decideAgain,
  type Lender,
  type Loan,
  type OpenLink,
  OutdatedError,
} from './link-decisions.ts';
import { GroupView, type ReadAhead } from './link-view.ts';
import type { Decision, Operation } from './operations.ts';
import {
  type LinkTransaction,
  notBegun,
  type ReservationStore,
  RolledBackError,
  StoreUnavailableError,
} from './store.ts';

/** How many operations share one transaction at most, so that the first does not wait long for the last. */
const GROUP_SIZE = 64;

/** What a link's queue works with. */
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
    return new Promise((resolve) => this.#add({ pause: resolve }));
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
      await this.#settle(this.#alone > 0 ? 1 : GROUP_SIZE);
    }
    this.#working = false;
  }

  /** Takes those at the head. @param most how many at most */
  #take(most: number): Waiting[] {
    const next = this.#waiting.slice(0, most).findIndex((each) => 'pause' in each);
    return this.#waiting.splice(0, next < 0 ? most : next).filter((each) => 'operation' in each);
  }

  /** Decides on those at the head. @param size how many at most */
  async #settle(size: number): Promise<void> {
    this.#alone = Math.max(0, this.#alone - 1);
    const group: Waiting[] = [];
    const operations: Operation<unknown>[] = [];
    let isOpen = true;
    const join = (): void => {
      // The database may have given up on the transaction before it began.
      const more = isOpen ? this.#take(size - group.length) : [];
      group.push(...more);
      operations.push(...more.map(({ operation }) => operation));
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
      const away = cause instanceof StoreUnavailableError;
      for (const { reject } of group) reject(cause);
      if (!away) return;
      // The others would each wait as long again (THREATS.md 64); nothing of theirs was written.
      this.#alone = 0;
      const waited = notBegun(cause);
      const others = this.#waiting.filter((each) => 'operation' in each);
      this.#waiting = this.#waiting.filter((each) => 'pause' in each);
      for (const { reject } of others) reject(waited);
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
    return changeTogether([{ queue: this, operations }], {
      ...this.#options,
      transact: (work) => {
        const since = this.shared ? this.#cached?.version : undefined;
        const changed = (transaction: LinkTransaction): Promise<Decision<unknown>[]> => {
          join();
          return orUndecided(() => work([transaction]));
        };
        return store.changeLink(id, changed, since);
      },
      keys: () => operations.flatMap(({ key }) => key ?? []),
      decide: ([link], known, at) => {
        const { decisions, version } = decideAll(operations, link, known, at);
        const changes = decisions.flatMap(({ change }) => change ?? []);
        const audit = decisions.flatMap((decision) => decision.audit ?? []);
        return { answer: decisions, left: [{ changes, audit, version }] };
      },
    });
  }

  /** Decides on operations that change nothing, on a snapshot. */
  #answer(operations: readonly Operation<unknown>[]): Promise<Decision<unknown>[]> {
    const { store } = this.#options;
    return askTogether([{ queue: this, operations }], {
      ...this.#options,
      read: (work) => store.readLinks((look) => orUndecided(() => work(look))),
      decide: ([link], known, at) => decideAll(operations, link, known, at).decisions,
    });
  }

  /** Reads the calendar if the operations need one and none is in memory. @param from the earliest instant, in milliseconds */
  async load(operations: readonly Operation<unknown>[], from: number): Promise<void> {
    const { id, link, share, store } = this.#options;
    const blank = { reservation: (): undefined => undefined };
    if (this.#cached || !link || operations.every((each) => each.from(blank) === undefined)) return;
    this.#loading ??= loadCalendar(store, link, from, { id, share })
      .then((loaded) => {
        this.#cached ??= loaded;
      })
      .finally(() => {
        this.#loading = undefined;
      });
    await this.#loading;
  }

  /** When what is lent comes back; undefined while nothing is. */
  get returned(): Promise<void> | undefined {
    return this.#returned;
  }

  /** Lends the calendar. Only while nothing is lent. */
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
}

/** Decides on each operation as if those before it had been committed. */
function decideAll(
  operations: readonly Operation<unknown>[],
  link: OpenLink | undefined,
  known: ReadAhead,
  at: number,
): { decisions: Decision<unknown>[]; version: number } {
  if (!link) throw new RangeError('the link is not open');
  const view = new GroupView(at, link.version, link.calendar, known);
  const decisions = operations.map((operation) => view.decide(operation));
  return { decisions, version: view.version };
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
