import type { Link } from '../contract/links.ts';
import { type CachedCalendar, catchUp, evictEnded, loadCalendar, readMissing } from './cached-calendar.ts';
import { GroupView, type Known, readAhead } from './link-view.ts';
import type { Decision, Operation } from './operations.ts';
import {
  type LinkReading,
  type LinkTransaction,
  nameOfKey,
  type ReservationStore,
  RolledBackError,
  StoreUnavailableError,
} from './store.ts';

/** How many operations share one transaction at most, so that the first does not wait long for the last. */
const GROUP_SIZE = 64;

/** Told what an allocator does, for metrics: after the fact, never within a transaction. It never throws. */
export interface AllocatorObserver {
  /**
   * A transaction on a link was committed.
   *
   * @param size how many requests were decided in it
   * @param milliseconds from asking for the link's lock to the end of the commit
   */
  committed(size: number, milliseconds: number): void;
}

/** What a link's queue works with. */
export interface LinkQueueOptions {
  /** See `linkId`. */
  id: string;
  /** Undefined for a link that left the topology: then its reservations can only be deleted. */
  link: Link | undefined;
  store: ReservationStore;
  /** See `AllocatorOptions.maxShare`. */
  share?: number | undefined;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Resolves when every request that has arrived is in the queue, so that they share a transaction. */
  gather: () => Promise<void>;
  observe?: AllocatorObserver | undefined;
}

/** An operation of the group threw: the group was rolled back. The database is not to blame. */
class UndecidedError extends Error {
  override readonly name = 'UndecidedError';
}

/** The calendar in memory is older than the deletions that the link still has rows for, or was thrown away meanwhile. */
export class OutdatedError extends Error {
  override readonly name = 'OutdatedError';
}

/** An operation, and how its caller is told. */
interface Waiting {
  operation: Operation<unknown>;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** Somebody who waits until nothing is decided, and says when that may go on. */
interface Pause {
  pause: (goOn: () => void) => void;
}

type DecideGroup = (operations: readonly Operation<unknown>[]) => Promise<Decision<unknown>[]>;

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
        await new Promise<void>((goOn) => first.pause(goOn));
        continue;
      }
      await this.#gather();
      const size = this.#alone > 0 ? 1 : GROUP_SIZE;
      this.#alone = Math.max(0, this.#alone - 1);
      const group: Waiting[] = [];
      for (let next = this.#waiting[0]; next && 'operation' in next && group.length < size; ) {
        group.push(next);
        this.#waiting.shift();
        next = this.#waiting[0];
      }
      await this.#settle(group);
    }
    this.#working = false;
  }

  async #settle(group: readonly Waiting[]): Promise<void> {
    try {
      const decisions = await this.#decideAgain(group.map(({ operation }) => operation));
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
      // The others would each wait as long again (HOSTILE.md 64); nothing of theirs was written.
      this.#alone = 0;
      const waited = new StoreUnavailableError(cause.message, { cause: cause.cause });
      const others = this.#waiting.filter((each) => 'operation' in each);
      this.#waiting = this.#waiting.filter((each) => 'pause' in each);
      for (const { reject } of others) reject(waited);
    }
  }

  /** Decides on a group; on a calendar that is too old, once more. */
  async #decideAgain(operations: readonly Operation<unknown>[]): Promise<Decision<unknown>[]> {
    try {
      return await this.#decide(operations);
    } catch (error) {
      if (!(error instanceof OutdatedError)) throw error;
      return this.#decide(operations);
    }
  }
}

/** The link's calendar, lent to a group. */
export interface Loan {
  /** What is given back; undefined where there is no calendar in memory, and for one that must be read again. */
  cached: CachedCalendar | undefined;
  /** Ends the loan. Only the first call counts. */
  end(): void;
}

/**
 * The operations that wait for one link, and the link's calendar (DESIGN.md, "Allocator").
 *
 * Operations that change something share a transaction when they wait at the same time, each as if those before it had
 * been committed: lock the link, let its calendar catch up, decide, write, commit, and only then answer. Questions share a
 * snapshot of the database in the same way, and write nothing.
 *
 * The calendar is lent to one group at a time, and only for as long as nothing outside this process can hold that group
 * up: a change borrows it when it has its locks. So a question never waits for another process. A change that fails does
 * not give the calendar back: it is read again.
 */
export class LinkQueue {
  /** See `linkId`. */
  readonly id: string;
  readonly #options: LinkQueueOptions;
  readonly #changes: Groups;
  readonly #questions: Groups;
  #cached: CachedCalendar | undefined;
  /** The calendar is being read. */
  #loading: Promise<void> | undefined;
  /** Resolves when the loan has ended; undefined while nothing is lent. */
  #returned: Promise<void> | undefined;
  /** Whether another process had changed the link before the last transaction. */
  #shared = false;

  constructor(options: LinkQueueOptions) {
    this.id = options.id;
    this.#options = options;
    this.#changes = new Groups(options.gather, (operations) => this.#change(operations));
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

  /** Decides on operations in one transaction. */
  async #change(operations: readonly Operation<unknown>[]): Promise<Decision<unknown>[]> {
    const { id, store, now, observe } = this.#options;
    const began = now();
    await this.load(operations, began);
    let loan: Loan | undefined;
    let cached: CachedCalendar | undefined;
    let isOver = false;
    const work = (transaction: LinkTransaction): Promise<Decision<unknown>[]> =>
      // An error thrown in here rolls the transaction back, so that each operation can be tried again alone.
      orUndecided(async () => {
        const at = now();
        const keys = new Map(operations.flatMap(({ key }) => (key ? [[nameOfKey(key), key]] : [])));
        const taken = keys.size > 0 ? await transaction.lockKeys([...keys.values()], at) : [];
        const known = await readAhead([{ link: transaction, operations }], { at, taken });
        loan = await this.#borrow();
        if (isOver) {
          // The time for the transaction ran out while this waited, so nothing below would end the loan.
          loan.end();
          throw new OutdatedError();
        }
        this.#shared = loan.cached !== undefined && loan.cached.version !== transaction.version;
        await catchUpLoan(loan, transaction, operations, { known, at });
        cached = loan.cached;
        loan.cached = undefined;
        const view = new GroupView(at, transaction.version, cached?.calendar, known);
        const decisions = operations.map((operation) => view.decide(operation));
        const changes = decisions.flatMap(({ change }) => change ?? []);
        const audit = decisions.flatMap((decision) => decision.audit ?? []);
        if (changes.length + audit.length > 0) await transaction.write({ changes, audit }, at);
        if (cached) cached = { ...cached, version: view.version };
        return decisions;
      });
    try {
      const decisions = await store.changeLink(id, work, this.#shared ? this.#cached?.version : undefined);
      observe?.committed(operations.length, now() - began);
      // Only after the commit: after any error, the next group reads everything anew.
      if (loan && cached) loan.cached = evictEnded(cached, now());
      return decisions;
    } finally {
      isOver = true;
      loan?.end();
    }
  }

  /** Decides on operations that change nothing, on a snapshot. */
  async #answer(operations: readonly Operation<unknown>[]): Promise<Decision<unknown>[]> {
    const { id, store, now } = this.#options;
    await this.load(operations, now());
    return store.readLinks((look) =>
      orUndecided(async () => {
        const loan = await this.#borrow();
        try {
          // Only now: what is read is not older than the calendar.
          const link = await look(id);
          const at = now();
          const known = await readAhead([{ link, operations }], { at, taken: [] });
          await catchUpLoan(loan, link, operations, { known, at });
          const view = new GroupView(at, link.version, loan.cached?.calendar, known);
          const decisions = operations.map((operation) => view.decide(operation));
          if (loan.cached) loan.cached = evictEnded(loan.cached, at);
          return decisions;
        } finally {
          loan.end();
        }
      }),
    );
  }

  /** Reads the calendar where there is none and one is needed. @param from milliseconds */
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

  /** Waits until nothing is lent. */
  async #borrow(): Promise<Loan> {
    const [loan] = await borrowAll([this]);
    if (!loan) throw new RangeError('nothing was lent');
    return loan;
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

/**
 * Borrows the calendars of several links, all at once: whoever holds one never waits for another, so no two wait for each
 * other.
 */
export async function borrowAll(queues: readonly LinkQueue[]): Promise<Loan[]> {
  for (;;) {
    const lent = queues.find(({ returned }) => returned);
    if (!lent) return queues.map((queue) => queue.lend());
    await lent.returned;
  }
}

/** Brings a calendar that was lent to the link's version, and as far back as the operations look. */
export async function catchUpLoan(
  loan: Loan,
  link: LinkReading,
  operations: readonly Operation<unknown>[],
  { known, at }: { known: Known; at: number },
): Promise<void> {
  const { cached } = loan;
  const reaches = operations.flatMap((operation) => operation.from(known) ?? []);
  if (!cached && reaches.length === 0) return;
  if (!cached || cached.version < link.forgotten) {
    loan.cached = undefined;
    throw new OutdatedError();
  }
  const missing = await readMissing(cached, link, Math.min(at, ...reaches));
  // One that was changed half-way is not given back.
  loan.cached = undefined;
  loan.cached = catchUp(cached, missing);
}

async function orUndecided<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof StoreUnavailableError || cause instanceof OutdatedError) throw cause;
    throw new UndecidedError('an operation of the group failed', { cause });
  }
}
