import type { Link } from '../contract/links.ts';
import { type CachedCalendar, catchUp, evictEnded, loadCalendar } from './cached-calendar.ts';
import type { LinkCalendar } from './calendar.ts';
import type { Decision, LinkView, Operation } from './operations.ts';
import {
  type IdempotencyKey,
  type IdempotencyRecord,
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

/** An operation, and how its caller is told. */
interface Waiting {
  operation: Operation<unknown>;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** An operation of the group threw: the group was rolled back. The database is not to blame. */
class UndecidedError extends Error {
  override readonly name = 'UndecidedError';
}

/** The calendar in memory is older than the deletions that the link still has rows for. */
class OutdatedError extends Error {
  override readonly name = 'OutdatedError';
}

/**
 * The operations that wait for one link, and the link's calendar (DESIGN.md, "Allocator").
 *
 * Operations that wait at the same time share one transaction, each as if those before it had been committed: lock the
 * link, let its calendar catch up, decide, write, commit, and only then answer. When one of a group throws, the group is
 * rolled back, and each goes back to the head of the queue to be decided on alone. When the database fails, every
 * operation in the queue fails too: waiting would not help them.
 *
 * A transaction owns the calendar while it runs; when it fails, the calendar is thrown away and read again.
 */
export class LinkQueue {
  readonly #options: LinkQueueOptions;
  #cached: CachedCalendar | undefined;
  /** Whether another process had changed the link before the last transaction. */
  #shared = false;
  #waiting: Waiting[] = [];
  /** How many operations, from the head of the queue on, are decided on alone. */
  #alone = 0;
  #working = false;

  constructor(options: LinkQueueOptions) {
    this.#options = options;
  }

  /** Decides on an operation. @throws StoreUnavailableError when the database is away; then nothing was changed */
  run<Answer>(operation: Operation<Answer>): Promise<Answer> {
    return new Promise<Answer>((resolve, reject) => {
      // Each answer goes to its own caller: the queue need not know its type.
      this.#waiting.push({ operation, resolve: (answer) => resolve(answer as Answer), reject });
      if (!this.#working) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#working = true;
    while (this.#waiting.length > 0) {
      await this.#options.gather();
      const size = this.#alone > 0 ? 1 : GROUP_SIZE;
      this.#alone = Math.max(0, this.#alone - 1);
      await this.#settle(this.#waiting.splice(0, size));
    }
    this.#working = false;
  }

  async #settle(group: readonly Waiting[]): Promise<void> {
    try {
      const decisions = await this.#transact(group.map(({ operation }) => operation));
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

  /** Decides on operations in one transaction; reads a calendar that is too old anew, once. */
  async #transact(operations: readonly Operation<unknown>[]): Promise<Decision<unknown>[]> {
    try {
      return await this.#decide(operations);
    } catch (error) {
      if (!(error instanceof OutdatedError)) throw error;
      return this.#decide(operations);
    }
  }

  async #decide(operations: readonly Operation<unknown>[]): Promise<Decision<unknown>[]> {
    const { id, link, share, store, now, observe } = this.#options;
    const began = now();
    let cached = this.#cached;
    this.#cached = undefined;
    const blank = { reservation: (): undefined => undefined };
    if (!cached && link && operations.some((operation) => operation.from(blank) !== undefined)) {
      cached = await loadCalendar(store, link, began, { id, share });
    }
    const work = (transaction: LinkTransaction): Promise<Decision<unknown>[]> =>
      // An error thrown in here rolls the transaction back, so that each operation can be tried again alone.
      orUndecided(async () => {
        if (cached && cached.version < transaction.forgotten) throw new OutdatedError();
        this.#shared = cached !== undefined && cached.version !== transaction.version;
        const at = now();
        const known = await readAhead(transaction, operations, at);
        if (cached) {
          const reaches = operations.map((operation) => operation.from(known) ?? at);
          cached = await catchUp(cached, transaction, Math.min(at, ...reaches));
        }
        const view = new GroupView(at, transaction.version, cached?.calendar, known);
        const decisions = operations.map((operation) => view.decide(operation));
        const changes = decisions.flatMap(({ change }) => change ?? []);
        const audit = decisions.flatMap((decision) => decision.audit ?? []);
        if (changes.length + audit.length > 0) await transaction.write({ changes, audit }, at);
        if (cached) cached = { ...cached, version: view.version };
        return decisions;
      });
    const decisions = await store.changeLink(id, work, this.#shared ? cached?.version : undefined);
    observe?.committed(operations.length, now() - began);
    // Only after the commit: after any error, the next group reads everything anew.
    this.#cached = cached && evictEnded(cached, now());
    return decisions;
  }
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
  transaction: LinkTransaction,
  operations: readonly Operation<unknown>[],
  now: number,
): Promise<Known> {
  const keys = new Map(operations.flatMap(({ key }) => (key ? [[nameOfKey(key), key]] : [])));
  const taken = keys.size > 0 ? await transaction.lockKeys([...keys.values()], now) : [];
  const counted = [...new Set(operations.flatMap(({ counts }) => counts ?? []))];
  const live = counted.length > 0 ? await transaction.countLive(counted, now) : new Map<string, number>();
  const ids = new Set([
    ...operations.flatMap(({ about }) => about ?? []),
    ...taken.map(({ reservation }) => reservation),
  ]);
  const found = ids.size > 0 ? await transaction.read([...ids]) : [];
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
