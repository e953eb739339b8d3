import type { Link } from '../contract/links.ts';
import type { AllocatorObserver } from './observer.ts';
import { carry, loadProjection, type Projection, withoutEnded } from './projection.ts';
import type { LinkView, Question, Verdict } from './question.ts';
import {
  type BookingKey,
  type LinkTransaction,
  nameOfKey,
  type RememberedBooking,
  type ReservationRecord,
  type ReservationStore,
  RolledBackError,
  StoreUnavailableError,
  type WrittenChange,
} from './store.ts';

/** How many questions are decided together at most: so long nobody waits for others. */
const GROUP_SIZE = 64;

/** What a link's queue works with. */
export interface LinkQueueOptions {
  /** See `linkId`. */
  id: string;
  /** Undefined for a link that left the topology: then nothing can be booked on it, only given back. */
  link: Link | undefined;
  store: ReservationStore;
  /** See `AllocatorOptions.maxShare`. */
  share?: number | undefined;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Resolves when those who ask at this moment have asked, so that they are decided on together. */
  gather: () => Promise<void>;
  observe?: AllocatorObserver | undefined;
}

/** A question with those who wait for its answer. */
interface Waiting {
  question: Question<unknown>;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** One of a group failed: nothing of the group was written, and it says nothing about the database. */
class UndecidedError extends Error {
  override readonly name = 'UndecidedError';
}

/** The calendar in memory is older than what the link remembers of its cancellations. */
class OutdatedError extends Error {
  override readonly name = 'OutdatedError';
}

/**
 * The questions that wait for one link, and the link's calendar (DESIGN.md, "Allocator").
 *
 * Whoever waits is decided on together, in one transaction, each as if those before it had been committed: lock the
 * link, carry the calendar to its version, decide, write, commit, and only then answer. Each has its own answer. Where
 * one of a group fails by itself, nothing of the group is written, and each goes back to the head of the queue, to be
 * decided on alone. When the database fails, all that wait are told so, for none of them could do better.
 *
 * While a transaction is under way the calendar belongs to it; whatever fails, the calendar is thrown away and read
 * again.
 */
export class LinkQueue {
  readonly #options: LinkQueueOptions;
  #projection: Projection | undefined;
  /** Whether somebody else had changed the link the last time. */
  #shared = false;
  #waiting: Waiting[] = [];
  /** How many of those that wait, from the first on, are decided on alone. */
  #alone = 0;
  #working = false;

  constructor(options: LinkQueueOptions) {
    this.#options = options;
  }

  /** Asks a question. @throws StoreUnavailableError when the database is away; then nothing was changed */
  ask<Answer>(question: Question<Answer>): Promise<Answer> {
    return new Promise<Answer>((resolve, reject) => {
      // An answer goes to its own question: the queue need not know of what kind it is.
      this.#waiting.push({ question, resolve: (answer) => resolve(answer as Answer), reject });
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
      const verdicts = await this.#transact(group.map(({ question }) => question));
      for (const [index, { resolve }] of group.entries()) resolve(verdicts[index]?.answer);
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

  /** Decides on questions in one transaction; a calendar that turns out to be too old is read anew, once. */
  async #transact(questions: readonly Question<unknown>[]): Promise<Verdict<unknown>[]> {
    try {
      return await this.#decide(questions);
    } catch (error) {
      if (!(error instanceof OutdatedError)) throw error;
      return this.#decide(questions);
    }
  }

  async #decide(questions: readonly Question<unknown>[]): Promise<Verdict<unknown>[]> {
    const { id, link, share, store, now, observe } = this.#options;
    const began = now();
    let projection = this.#projection;
    this.#projection = undefined;
    const blank = { reservation: (): undefined => undefined };
    if (!projection && link && questions.some((question) => question.from(blank) !== undefined)) {
      projection = await loadProjection(store, link, began, { id, share });
    }
    const work = (transaction: LinkTransaction): Promise<Verdict<unknown>[]> =>
      // What throws in here is rolled back, so that each may be tried again alone.
      orUndecided(async () => {
        if (projection && projection.version < transaction.forgotten) throw new OutdatedError();
        this.#shared = projection !== undefined && projection.version !== transaction.version;
        const at = now();
        const known = await readAhead(transaction, questions, at);
        if (projection) {
          const reaches = questions.map((question) => question.from(known) ?? at);
          projection = await carry(projection, transaction, Math.min(at, ...reaches));
        }
        const decided = decideAll(questions, new GroupView(at, projection, known));
        const changes = decided.flatMap(({ change }) => change ?? []);
        const audit = decided.flatMap((verdict) => verdict.audit ?? []);
        if (changes.length + audit.length > 0) await transaction.write({ changes, audit }, at);
        if (projection) projection = { ...projection, version: transaction.version + changes.length };
        return decided;
      });
    const verdicts = await store.changeLink(id, work, this.#shared ? projection?.version : undefined);
    observe?.committed(questions.length, now() - began);
    // Only now: had anything thrown on the way, the next group would read everything anew.
    this.#projection = projection && withoutEnded(projection, now());
    return verdicts;
  }
}

/** What the questions need, as the database has it. */
interface Known {
  reservation(id: string): ReservationRecord | undefined;
  records: Map<string, ReservationRecord>;
  /** How many live reservations the experiments have that are counted. */
  live: Map<string, number>;
  keys: Map<string, RememberedBooking>;
}

async function readAhead(
  transaction: LinkTransaction,
  questions: readonly Question<unknown>[],
  now: number,
): Promise<Known> {
  const keys = new Map(questions.flatMap(({ key }) => (key ? [[nameOfKey(key), key]] : [])));
  const kept = keys.size > 0 ? await transaction.claim([...keys.values()], now) : [];
  const counted = [...new Set(questions.flatMap(({ counts }) => counts ?? []))];
  const live = counted.length > 0 ? await transaction.countLive(counted, now) : new Map<string, number>();
  const ids = new Set([
    ...questions.flatMap(({ about }) => about ?? []),
    ...kept.map(({ reservation }) => reservation),
  ]);
  const found = ids.size > 0 ? await transaction.read([...ids]) : [];
  const records = new Map(found.map((record) => [record.id, record]));
  return {
    records,
    live,
    keys: new Map(kept.map((booking) => [nameOfKey(booking), booking])),
    reservation: (id) => records.get(id),
  };
}

/** Decides on each in turn. */
function decideAll(questions: readonly Question<unknown>[], view: GroupView): Verdict<unknown>[] {
  return questions.map((question) => {
    const verdict = question.decide(view);
    if (verdict.change) view.take(verdict.change);
    return verdict;
  });
}

async function orUndecided<Answer>(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof StoreUnavailableError || cause instanceof OutdatedError) throw cause;
    throw new UndecidedError('a group could not be decided', { cause });
  }
}

/** A link within a transaction: what each decision changes, the next one sees. */
class GroupView implements LinkView {
  readonly now: number;
  readonly #projection: Projection | undefined;
  readonly #known: Known;

  constructor(now: number, projection: Projection | undefined, known: Known) {
    this.now = now;
    this.#projection = projection;
    this.#known = known;
  }

  get calendar() {
    if (!this.#projection) throw new RangeError('no calendar was asked for');
    return this.#projection.calendar;
  }

  reservation(id: string): ReservationRecord | undefined {
    return this.#known.records.get(id);
  }

  live(experiment: string): number {
    const live = this.#known.live.get(experiment);
    if (live === undefined) throw new RangeError('nobody counted that experiment');
    return live;
  }

  remembered(key: BookingKey): RememberedBooking | undefined {
    return this.#known.keys.get(nameOfKey(key));
  }

  take({ action, record, key }: WrittenChange): void {
    const { live } = this.#known;
    const counted = live.get(record.experiment);
    if (counted !== undefined && record.end > this.now) {
      live.set(record.experiment, counted + { book: 1, amend: 0, cancel: -1 }[action]);
    }
    if (action === 'cancel') {
      this.#known.records.delete(record.id);
      this.#projection?.calendar.drop(record.id);
    } else {
      this.#known.records.set(record.id, record);
      this.#projection?.calendar.hold(record.id, record);
    }
    if (key) this.#known.keys.set(nameOfKey(key), key);
  }
}
