import type { Link } from '../contract/links.ts';
import { type CachedCalendar, catchUp, evictEnded, loadCalendar, readMissing } from './cached-calendar.ts';
import type { LinkCalendar } from './calendar.ts';
import type { Decision, LinkView, Operation } from './operations.ts';
import {
  type IdempotencyKey,
  type IdempotencyRecord,
  type LinkReading,
  type LinkTransaction,
  nameOfKey,
  type ReservationRecord,
  type ReservationStore,
  RolledBackError,
  StoreUnavailableError,
  type WrittenChange,
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
class OutdatedError extends Error {
  override readonly name = 'OutdatedError';
}

/** An operation, and how its caller is told. */
interface Waiting {
  operation: Operation<unknown>;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

type DecideGroup = (operations: readonly Operation<unknown>[]) => Promise<Decision<unknown>[]>;

/**
 * Operations that wait, decided in groups, one group after the other. When one of a group throws, each goes back to the
 * head to be decided on alone. When the database fails, all that wait fail too: waiting would not help them.
 */
class Groups {
  readonly #gather: () => Promise<void>;
  readonly #decide: DecideGroup;
  #waiting: Waiting[] = [];
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
      this.#waiting.push({ operation, resolve: (answer) => resolve(answer as Answer), reject });
      if (!this.#working) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#working = true;
    while (this.#waiting.length > 0) {
      await this.#gather();
      const size = this.#alone > 0 ? 1 : GROUP_SIZE;
      this.#alone = Math.max(0, this.#alone - 1);
      await this.#settle(this.#waiting.splice(0, size));
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
      for (const { reject } of this.#waiting.splice(0)) reject(waited);
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
interface Loan {
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
  readonly #options: LinkQueueOptions;
  readonly #changes: Groups;
  readonly #questions: Groups;
  #cached: CachedCalendar | undefined;
  /** The calendar is being read. */
  #loading: Promise<void> | undefined;
  /** Resolves when the last loan has ended. */
  #returned: Promise<void> = Promise.resolve();
  /** Whether another process had changed the link before the last transaction. */
  #shared = false;

  constructor(options: LinkQueueOptions) {
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
    await this.#load(operations, began);
    let loan: Loan | undefined;
    let cached: CachedCalendar | undefined;
    let isOver = false;
    const work = (transaction: LinkTransaction): Promise<Decision<unknown>[]> =>
      // An error thrown in here rolls the transaction back, so that each operation can be tried again alone.
      orUndecided(async () => {
        const at = now();
        const keys = new Map(operations.flatMap(({ key }) => (key ? [[nameOfKey(key), key]] : [])));
        const taken = keys.size > 0 ? await transaction.lockKeys([...keys.values()], at) : [];
        const known = await readAhead(transaction, operations, { at, taken });
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
    await this.#load(operations, now());
    return store.readLink(id, (look) =>
      orUndecided(async () => {
        const loan = await this.#borrow();
        try {
          // Only now: what is read is not older than the calendar.
          const link = await look();
          const at = now();
          const known = await readAhead(link, operations, { at, taken: [] });
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

  /** Reads the calendar where there is none and one is needed. */
  async #load(operations: readonly Operation<unknown>[], from: number): Promise<void> {
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

  /** Waits until the last loan has ended. */
  async #borrow(): Promise<Loan> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const returned = this.#returned;
    this.#returned = promise;
    await returned;
    const lent = this.#cached;
    let isOut = true;
    const loan: Loan = {
      cached: lent,
      end: () => {
        // Where none was lent, one may have been read meanwhile.
        if (isOut && (lent || loan.cached)) this.#cached = loan.cached;
        isOut = false;
        resolve();
      },
    };
    return loan;
  }
}

/** Brings a calendar that was lent to the link's version, and as far back as the operations look. */
async function catchUpLoan(
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

/** The rows that the operations need. */
interface Known {
  reservation(id: string): ReservationRecord | undefined;
  records: Map<string, ReservationRecord>;
  /** How many live reservations each experiment has that an operation counts. */
  live: Map<string, number>;
  keys: Map<string, IdempotencyRecord>;
}

async function readAhead(
  link: LinkReading,
  operations: readonly Operation<unknown>[],
  { at, taken }: { at: number; taken: readonly IdempotencyRecord[] },
): Promise<Known> {
  const counted = [...new Set(operations.flatMap(({ counts }) => counts ?? []))];
  const live = counted.length > 0 ? await link.countLive(counted, at) : new Map<string, number>();
  const ids = new Set([
    ...operations.flatMap(({ about }) => about ?? []),
    ...taken.map(({ reservation }) => reservation),
  ]);
  const found = ids.size > 0 ? await link.read([...ids]) : [];
  const records = new Map(found.map((record) => [record.id, record]));
  return {
    records,
    live,
    keys: new Map(taken.map((record) => [nameOfKey(record), record])),
    reservation: (id) => records.get(id),
  };
}

async function orUndecided<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof StoreUnavailableError || cause instanceof OutdatedError) throw cause;
    throw new UndecidedError('an operation of the group failed', { cause });
  }
}

/** A link within a transaction: each operation sees the changes of those before it. */
class GroupView implements LinkView {
  readonly now: number;
  readonly #calendar: LinkCalendar | undefined;
  readonly #known: Known;
  #version: number;

  constructor(now: number, version: number, calendar: LinkCalendar | undefined, known: Known) {
    this.now = now;
    this.#version = version;
    this.#calendar = calendar;
    this.#known = known;
  }

  get version(): number {
    return this.#version;
  }

  get calendar(): LinkCalendar {
    if (!this.#calendar) throw new RangeError('the operation needs no calendar');
    return this.#calendar;
  }

  reservation(id: string): ReservationRecord | undefined {
    return this.#known.records.get(id);
  }

  live(experiment: string): number {
    const live = this.#known.live.get(experiment);
    if (live === undefined) throw new RangeError('the reservations of this experiment were not counted');
    return live;
  }

  idempotencyRecord(key: IdempotencyKey): IdempotencyRecord | undefined {
    return this.#known.keys.get(nameOfKey(key));
  }

  decide(operation: Operation<unknown>): Decision<unknown> {
    const decision = operation.decide(this);
    if (decision.change) this.#apply(decision.change);
    return decision;
  }

  #apply({ action, record, key }: WrittenChange): void {
    this.#version += 1;
    const { live } = this.#known;
    const counted = live.get(record.experiment);
    if (counted !== undefined && record.end > this.now) {
      live.set(record.experiment, counted + { book: 1, amend: 0, cancel: -1 }[action]);
    }
    if (action === 'cancel') {
      this.#known.records.delete(record.id);
      this.#calendar?.remove(record.id);
    } else {
      this.#known.records.set(record.id, record);
      this.#calendar?.put(record.id, record);
    }
    if (key) this.#known.keys.set(nameOfKey(key), key);
  }
}
