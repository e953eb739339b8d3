import { type CachedCalendar, canCatchUp, catchUp, evictEnded, readMissing } from './cached-calendar.ts';
import { Slices } from './event-loop.ts';
import { type OpenLink, type ReadAhead, readAhead, TransactionView } from './link-view.ts';
import type { Decision, LinksView, Operation } from './operations.ts';
import {
  type LinkReading,
  nameOfKey,
  type ReservationStore,
  type StoreTransaction,
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

/** The tools of every decision. */
interface Deciding {
  /** Milliseconds. */
  now: () => number;
  observe?: AllocatorObserver;
}

/**
 * Decides on operations and writes what was decided, in one transaction over their links. The calendars are borrowed when
 * the transaction has its locks, and given back when it is committed; after any error they are read anew.
 *
 * @param lenders of different links, in the order of their ids
 * @param operations those that are there when the transaction has its locks
 * @param transact runs work in a transaction of the store on these links
 */
export async function changeTogether(
  lenders: readonly Lender[],
  operations: readonly Operation<unknown>[],
  {
    now,
    observe,
    transact,
  }: Deciding & {
    transact: (
      work: (transaction: StoreTransaction) => Promise<Decision<unknown>[]>,
    ) => Promise<Decision<unknown>[]>;
  },
): Promise<Decision<unknown>[]> {
  const began = performance.now();
  for (const lender of lenders) await lender.load(operations, now());
  let loans: Loan[] = [];
  let giveBack = (): void => undefined;
  let isOver = false;
  try {
    const decisions = await transact(async (transaction) => {
      const at = now();
      const { links } = transaction;
      const keys = new Map(operations.flatMap(({ key }) => (key ? [[nameOfKey(key), key]] : [])));
      const taken = keys.size > 0 ? await transaction.lockKeys([...keys.values()], at) : [];
      const known = await readAhead(transaction, operations, { at, taken });
      const borrowed = await borrowAll(lenders);
      if (isOver) {
        // The time for the transaction ran out while this waited, so nothing below would end the loans.
        for (const loan of borrowed) loan.end();
        throw new OutdatedError();
      }
      loans = borrowed;
      for (const [index, lender] of lenders.entries()) {
        const version = loans[index]?.cached?.version;
        lender.shared = version !== undefined && version !== links[index]?.version;
      }
      const { view, cached } = await openAll(links, operations, { loans, known, at });
      const decisions = await decideAll(operations, view);
      const written = decisions.flatMap((decision) => decision.written);
      const changes = written.flatMap(({ change }) => change ?? []);
      if (written.length > 0) {
        await transaction.write({ changes, audit: written.flatMap(({ audit }) => audit) }, at);
      }
      giveBack = () => {
        for (const [index, loan] of loans.entries()) {
          const [held, id] = [cached[index], lenders[index]?.id];
          if (held && id !== undefined) {
            loan.cached = evictEnded({ ...held, version: view.version(id) }, now());
          }
        }
      };
      return decisions;
    });
    observe?.committed(
      operations.reduce((sum, { needs }) => sum + needs.length, 0),
      performance.now() - began,
    );
    giveBack();
    return decisions;
  } finally {
    isOver = true;
    for (const loan of loans) loan.end();
  }
}

/**
 * Decides on operations that change nothing, on a snapshot of their links, without any lock.
 *
 * @param lenders as of {@link changeTogether}
 * @param read runs work on a snapshot of the store
 */
export async function askTogether(
  lenders: readonly Lender[],
  operations: readonly Operation<unknown>[],
  { now, read }: Deciding & { read: ReservationStore['readLinks'] },
): Promise<Decision<unknown>[]> {
  for (const lender of lenders) await lender.load(operations, now());
  return read(async (snapshot) => {
    const loans = await borrowAll(lenders);
    try {
      // Only now: what is read is not older than the calendars.
      const links: LinkReading[] = [];
      for (const { id } of lenders) links.push(await snapshot.look(id));
      const at = now();
      const known = await readAhead(snapshot, operations, { at, taken: [] });
      const { view, cached } = await openAll(links, operations, { loans, known, at });
      try {
        return await decideAll(operations, view);
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

/** Decides on each operation as if those before it had been committed, in slices: the calendars stay lent between two. */
async function decideAll(
  operations: readonly Operation<unknown>[],
  view: LinksView,
): Promise<Decision<unknown>[]> {
  const slices = new Slices();
  const decisions: Decision<unknown>[] = [];
  for (const operation of operations) {
    const steps = operation.decide(view);
    decisions.push(Symbol.iterator in steps ? await slices.finish(steps) : steps);
  }
  return decisions;
}

/** Brings the calendars that were lent up to date. They are taken out of their loans until they are given back. */
async function openAll(
  links: readonly LinkReading[],
  operations: readonly Operation<unknown>[],
  { loans, known, at }: { loans: readonly Loan[]; known: ReadAhead; at: number },
): Promise<{ view: LinksView; cached: Loan['cached'][] }> {
  for (const [index, link] of links.entries()) {
    const loan = loans[index];
    const reaches = reachesOf(link.id, operations, (about) => known.records.get(about));
    if (loan) await catchUpLoan(loan, link, { reaches, at });
  }
  const cached = loans.map((loan) => loan.cached);
  for (const loan of loans) loan.cached = undefined;
  const open = links.map(({ id, version }, index): [string, OpenLink] => [
    id,
    { version, calendar: cached[index]?.calendar },
  ]);
  return { view: new TransactionView(at, new Map(open), known), cached };
}

/** The earliest instants of a link that operations look at, in milliseconds; none where they need no calendar of it. */
export function reachesOf(
  link: string,
  operations: readonly Operation<unknown>[],
  reservation: LinksView['reservation'] = () => undefined,
): number[] {
  const known = { reservation };
  return operations.flatMap(({ needs }) =>
    needs.flatMap((each) => (each.links.includes(link) ? (each.from(known) ?? []) : [])),
  );
}

/**
 * Borrows the calendars of several links in one step, when all are free. A caller that holds one never waits for another, so
 * there is no deadlock.
 */
async function borrowAll(lenders: readonly Lender[]): Promise<Loan[]> {
  for (;;) {
    const lent = lenders.find(({ returned }) => returned);
    if (!lent) return lenders.map((lender) => lender.lend());
    await lent.returned;
  }
}

/** Brings a calendar that was lent to the link's version, and as far back as the operations look. */
async function catchUpLoan(
  loan: Loan,
  link: LinkReading,
  { reaches, at }: { reaches: readonly number[]; at: number },
): Promise<void> {
  const { cached } = loan;
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
