import { type CachedCalendar, canCatchUp, catchUp, evictEnded, readMissing } from './cached-calendar.ts';
import type { LinkCalendar } from './calendar.ts';
import { type ReadAhead, readAhead } from './link-view.ts';
import type { Operation } from './operations.ts';
import {
  type Decided,
  type IdempotencyKey,
  type LinkReading,
  type LinkTransaction,
  nameOfKey,
  StoreUnavailableError,
} from './store.ts';

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

/** The calendar in memory can't be brought up to date: it was dropped, or `canCatchUp` says no. */
export class OutdatedError extends Error {
  override readonly name = 'OutdatedError';
}

/**
 * Decides; where a calendar is outdated, it is read again and all is decided once more.
 *
 * @throws StoreUnavailableError where the database is another one by then: nothing was changed
 */
export async function decideAgain<Answer>(decide: () => Promise<Answer>): Promise<Answer> {
  try {
    return await decide();
  } catch (error) {
    if (!(error instanceof OutdatedError)) throw error;
  }
  try {
    return await decide();
  } catch (cause) {
    if (!(cause instanceof OutdatedError)) throw cause;
    throw new StoreUnavailableError('The database was replaced while it was read.', { cause });
  }
}

/** The link's calendar, lent to a group. */
export interface Loan {
  /** The calendar, which {@link end} gives back; undefined where none is in memory, or where it must be read again. */
  cached: CachedCalendar | undefined;
  /** Ends the loan. Only the first call counts. */
  end(): void;
}

/** Who has a link's calendar. */
export interface Lender {
  /** See `linkId`. */
  readonly id: string;
  /** When what is lent comes back; undefined while nothing is. */
  readonly returned: Promise<void> | undefined;
  /** Whether another process had changed the link before the last transaction. */
  shared: boolean;
  /** Reads the calendar if the operations need one and none is in memory. @param from the earliest instant, in milliseconds */
  load(operations: readonly Operation<unknown>[], from: number): Promise<void>;
  /** Lends the calendar. Only while nothing is lent. */
  lend(): Loan;
}

/** A link, and the operations that are decided on it. */
export interface LinkWork {
  queue: Lender;
  operations: readonly Operation<unknown>[];
}

/** A link while operations are decided on it. */
export interface OpenLink {
  /** The link's version. */
  version: number;
  /** As of that version, and as far back as the operations look; undefined where none of them needs it. */
  calendar: LinkCalendar | undefined;
}

/** What decisions leave of a link: what is written, and its version after that. */
export interface LinkResult extends Decided {
  version: number;
}

/** How links are changed in one transaction. */
interface Changing<Answer> {
  now: () => number;
  observe?: AllocatorObserver;
  /** Runs work in a transaction of the store on these links. */
  transact: (work: (links: readonly LinkTransaction[]) => Promise<Answer>) => Promise<Answer>;
  /** Idempotency keys, which are locked and looked up: asked for in the transaction. */
  keys: () => readonly IdempotencyKey[];
  /**
   * Decides; the changes stay in the calendars, or are taken back.
   *
   * @param links in the order of the work, as what it leaves is
   * @param at milliseconds
   */
  decide: (
    links: readonly OpenLink[],
    known: ReadAhead,
    at: number,
  ) => Decisions<Answer> | Promise<Decisions<Answer>>;
}

/** The answer, and what it leaves of each link. */
interface Decisions<Answer> {
  answer: Answer;
  left: readonly LinkResult[];
}

/**
 * Decides on operations and writes what was decided, in one transaction over their links. The calendars are borrowed when
 * the transaction has its locks, and given back when it is committed; after any error they are read anew.
 *
 * @param work of different links
 */
export async function changeTogether<Answer>(
  work: readonly LinkWork[],
  { now, observe, transact, keys, decide }: Changing<Answer>,
): Promise<Answer> {
  const began = performance.now();
  for (const { queue, operations } of work) await queue.load(operations, now());
  let loans: Loan[] = [];
  let giveBack = (): void => undefined;
  let isOver = false;
  try {
    const answer = await transact(async (links) => {
      const at = now();
      const own = new Map(keys().map((key) => [nameOfKey(key), key]));
      const taken = own.size > 0 ? await links[0]?.lockKeys([...own.values()], at) : undefined;
      const known = await readAhead(partsOf(work, links), { at, taken: taken ?? [] });
      const borrowed = await borrowAll(work.map(({ queue }) => queue));
      if (isOver) {
        // The time for the transaction ran out while this waited, so nothing below would end the loans.
        for (const loan of borrowed) loan.end();
        throw new OutdatedError();
      }
      loans = borrowed;
      for (const [index, { queue }] of work.entries()) {
        const version = loans[index]?.cached?.version;
        queue.shared = version !== undefined && version !== links[index]?.version;
      }
      const { open, cached } = await openAll(work, links, { loans, known, at });
      const { answer, left } = await decide(open, known, at);
      for (const [index, { changes, audit }] of left.entries()) {
        if (changes.length + audit.length > 0) await links[index]?.write({ changes, audit }, at);
      }
      giveBack = () => {
        for (const [index, loan] of loans.entries()) {
          const [held, version] = [cached[index], left[index]?.version];
          if (held && version !== undefined) loan.cached = evictEnded({ ...held, version }, now());
        }
      };
      return answer;
    });
    observe?.committed(
      work.reduce((sum, { operations }) => sum + operations.length, 0),
      performance.now() - began,
    );
    giveBack();
    return answer;
  } finally {
    isOver = true;
    for (const loan of loans) loan.end();
  }
}

/** How questions about links are answered. */
interface Asking<Answer> {
  now: () => number;
  /** Runs work on a snapshot of the store. */
  read: (work: (look: (link: string) => Promise<LinkReading>) => Promise<Answer>) => Promise<Answer>;
  /** Decides, and leaves the calendars as they were, also where it throws. */
  decide: (links: readonly OpenLink[], known: ReadAhead, at: number) => Answer | Promise<Answer>;
}

/** Decides on operations that change nothing, on a snapshot of their links. @param work of different links */
export async function askTogether<Answer>(
  work: readonly LinkWork[],
  { now, read, decide }: Asking<Answer>,
): Promise<Answer> {
  for (const { queue, operations } of work) await queue.load(operations, now());
  return read(async (look) => {
    const loans = await borrowAll(work.map(({ queue }) => queue));
    try {
      // Only now: what is read is not older than the calendars.
      const links: LinkReading[] = [];
      for (const { queue } of work) links.push(await look(queue.id));
      const at = now();
      const known = await readAhead(partsOf(work, links), { at, taken: [] });
      const { open, cached } = await openAll(work, links, { loans, known, at });
      try {
        return await decide(open, known, at);
      } finally {
        for (const [index, loan] of loans.entries()) {
          const held = cached[index];
          if (held) loan.cached = evictEnded(held, at);
        }
      }
    } finally {
      for (const loan of loans) loan.end();
    }
  });
}

function partsOf(
  work: readonly LinkWork[],
  links: readonly LinkReading[],
): { link: LinkReading; operations: readonly Operation<unknown>[] }[] {
  return work.map(({ queue, operations }, index) => {
    const link = links[index];
    if (!link) throw new RangeError(`link ${queue.id} is not open`);
    return { link, operations };
  });
}

/** Brings the calendars that were lent up to date. They are taken out of their loans until they are given back. */
async function openAll(
  work: readonly LinkWork[],
  links: readonly LinkReading[],
  { loans, known, at }: { loans: readonly Loan[]; known: ReadAhead; at: number },
): Promise<{ open: OpenLink[]; cached: Loan['cached'][] }> {
  for (const [index, { link, operations }] of partsOf(work, links).entries()) {
    const loan = loans[index];
    if (loan) await catchUpLoan(loan, link, operations, { known, at });
  }
  const cached = loans.map((loan) => loan.cached);
  for (const loan of loans) loan.cached = undefined;
  const open = links.map(({ version }, index) => ({ version, calendar: cached[index]?.calendar }));
  return { open, cached };
}

/**
 * Borrows the calendars of several links in one step, when all are free. A caller that holds one never waits for another, so
 * there is no deadlock.
 */
async function borrowAll(queues: readonly Lender[]): Promise<Loan[]> {
  for (;;) {
    const lent = queues.find(({ returned }) => returned);
    if (!lent) return queues.map((queue) => queue.lend());
    await lent.returned;
  }
}

/** Brings a calendar that was lent to the link's version, and as far back as the operations look. */
async function catchUpLoan(
  loan: Loan,
  link: LinkReading,
  operations: readonly Operation<unknown>[],
  { known, at }: { known: ReadAhead; at: number },
): Promise<void> {
  const { cached } = loan;
  const reaches = operations.flatMap((operation) => operation.from(known) ?? []);
  if (!cached && reaches.length === 0) return;
  if (!cached || !canCatchUp(cached, link)) {
    loan.cached = undefined;
    throw new OutdatedError();
  }
  const missing = await readMissing(cached, link, Math.min(at, ...reaches));
  // One that was changed half-way is not given back.
  loan.cached = undefined;
  loan.cached = catchUp(cached, missing);
}
