import { evictEnded } from './cached-calendar.ts';
import {
  type AllocatorObserver,
  borrowAll,
  catchUpLoan,
  type LinkQueue,
  type Loan,
  OutdatedError,
} from './link-queue.ts';
import { copyOf, GroupView, type Known, readAhead } from './link-view.ts';
import {
  type CreateOutcome,
  type CreateRequest,
  type Decision,
  type DeleteTerms,
  KEY_LIFETIME,
  type KeyedRequest,
  type Operation,
  type UpdateOutcome,
  type UpdateRequest,
  type UpdateTerms,
} from './operations.ts';
import type {
  Decided,
  IdempotencyRecord,
  LinkReading,
  LinkTransaction,
  ReservationRecord,
  ReservationStore,
  WrittenChange,
} from './store.ts';

/** One change of a batch. A create has no search: a batch moves as a whole (`earliest`). */
export type BatchItem<Fault> =
  | { action: 'create'; request: CreateRequest & { search?: undefined } }
  | { action: 'update'; id: string; update: UpdateRequest; terms: UpdateTerms<Fault> }
  | { action: 'delete'; id: string; terms: DeleteTerms };

/** Why an item can't be done. `missing`: there is no such reservation. */
export type ItemFailure<Fault> =
  | Exclude<CreateOutcome | UpdateOutcome<Fault>, { ok: true }>
  | { ok: false; reason: 'missing'; reservation: string };

/** The answer to a batch. */
export type BatchOutcome<Fault> =
  | {
      ok: true;
      /** Of each item; null for a deletion, and in a replay for what was deleted since. */
      records: (ReservationRecord | null)[];
      /** By how much the creates were moved, in milliseconds. */
      offset: number;
      replayed?: true;
    }
  /** Nothing was changed; every item that can't be done, by its place in the batch. */
  | { ok: false; reason: 'refused'; items: { index: number; outcome: ItemFailure<Fault> }[] }
  /** The idempotency key is another request's. */
  | { ok: false; reason: 'key_taken' };

/** How a batch is decided on. */
export interface BatchTerms {
  /** Decide and answer, and write nothing. */
  dryRun?: boolean | undefined;
  /** The key of the whole batch. */
  keyed?: KeyedRequest | undefined;
  /** Move all creates by the smallest common offset at which all fit, so that none ends after this. Milliseconds. */
  earliest?: { until: number } | undefined;
}

/** An item, as its link decides on it. */
export interface BatchStep<Fault> {
  /** Its place in the batch. */
  index: number;
  /** The queue of its link. */
  queue: LinkQueue;
  /** @param offset by which a create is moved, in milliseconds */
  operation(offset: number): Operation<CreateOutcome | UpdateOutcome<Fault> | boolean | undefined>;
  /** What a create asks for, before it is moved. */
  creates?: { start: number; end: number; bandwidth: number; experiment: string };
  /** The id of the reservation of an update or a deletion. */
  reservation?: string;
}

/** What a batch is decided with. */
export interface BatchOptions {
  store: ReservationStore;
  now: () => number;
  observe?: AllocatorObserver | undefined;
}

/** A link while a batch is decided on. */
interface OpenLink {
  queue: LinkQueue;
  link: LinkReading;
  loan: Loan;
  /** Its calendar; undefined where no item needs one. */
  cached: Loan['cached'];
}

/** One way to do the batch: the decision on each step, in their order. */
interface Attempt {
  views: Map<LinkQueue, GroupView>;
  decisions: Decision<unknown>[];
}

/** How many offsets are tried at most before a search is given up: each costs a decision on every item. */
const MOST_OFFSETS = 256;

/**
 * Decides on a batch in one transaction over all its links: all or none (ANSWERS.md, "HTTP").
 *
 * The links' queues decide on nothing else meanwhile: two pieces of work of this process would wait for each other's
 * calendar. A batch that is refused takes its changes back in memory, so that the calendars stay.
 *
 * @param steps in the order of the batch: each is decided on as if those before it had been done, but for refused ones
 * @param terms `dryRun` decides on a snapshot, without any lock
 * @throws as `Allocator.create` does
 */
export async function decideTogether<Fault>(
  options: BatchOptions,
  steps: readonly BatchStep<Fault>[],
  terms: BatchTerms,
): Promise<BatchOutcome<Fault>> {
  const batch = new Batch(options, steps, terms);
  const decide = () => (terms.dryRun ? batch.rehearse() : batch.change());
  try {
    return await decide();
  } catch (error) {
    // A calendar that was too old is read again, once.
    if (!(error instanceof OutdatedError)) throw error;
    return decide();
  }
}

class Batch<Fault> {
  readonly #options: BatchOptions;
  readonly #steps: readonly BatchStep<Fault>[];
  readonly #terms: BatchTerms;
  /** In the order of their links' ids. */
  readonly #queues: readonly LinkQueue[];

  constructor(options: BatchOptions, steps: readonly BatchStep<Fault>[], terms: BatchTerms) {
    this.#options = options;
    this.#steps = steps;
    this.#terms = terms;
    const queues = new Set(steps.map(({ queue }) => queue));
    this.#queues = [...queues].toSorted((one, other) => (one.id < other.id ? -1 : 1));
  }

  async rehearse(): Promise<BatchOutcome<Fault>> {
    const { store, now } = this.#options;
    await this.#load(now());
    return store.readLinks(async (look) => {
      const loans = await borrowAll(this.#queues);
      try {
        // Only now: what is read is not older than the calendars.
        const links: LinkReading[] = [];
        for (const { id } of this.#queues) links.push(await look(id));
        const at = now();
        const known = await this.#readAhead(links, at);
        const open = await this.#catchUp(links, loans, { known, at });
        const { attempt, offset } = this.#decide(open, known, at);
        const outcome = this.#outcomeOf(attempt, offset);
        undo(attempt);
        for (const { loan, cached } of open) loan.cached = cached;
        return outcome;
      } finally {
        for (const loan of loans) loan.end();
      }
    });
  }

  async change(): Promise<BatchOutcome<Fault>> {
    const { store, now, observe } = this.#options;
    const began = now();
    const goOn: (() => void)[] = [];
    let loans: Loan[] = [];
    let settle = (): void => undefined;
    let isOver = false;
    const work = async (links: readonly LinkTransaction[]): Promise<BatchOutcome<Fault>> => {
      const at = now();
      const earlier = await this.#earlier(links, at);
      if (earlier) return this.#replay(links, earlier);
      const known = await this.#readAhead(links, at);
      const borrowed = await borrowAll(this.#queues);
      if (isOver) {
        // The time for the transaction ran out while this waited, so nothing below would end the loans.
        for (const loan of borrowed) loan.end();
        throw new OutdatedError();
      }
      loans = borrowed;
      const open = await this.#catchUp(links, loans, { known, at });
      const { attempt, offset } = this.#decide(open, known, at);
      const outcome = this.#outcomeOf(attempt, offset);
      if (!outcome.ok) undo(attempt);
      const decided = this.#decided(attempt, outcome.ok, at);
      for (const [index, { queue }] of open.entries()) {
        const { changes, audit } = decided.get(queue) ?? { changes: [], audit: [] };
        if (changes.length + audit.length > 0) await links[index]?.write({ changes, audit }, at);
      }
      settle = () => {
        for (const { queue, loan, cached, link } of open) {
          const version = outcome.ok ? (attempt.views.get(queue)?.version ?? link.version) : link.version;
          loan.cached = cached && evictEnded({ ...cached, version }, now());
        }
      };
      return outcome;
    };
    try {
      for (const queue of this.#queues) goOn.push(await queue.pause());
      await this.#load(began);
      const outcome = await store.changeLinks(
        this.#queues.map(({ id }) => id),
        work,
      );
      observe?.committed(this.#steps.length, now() - began);
      // Only after the commit: after any error, the calendars are read anew.
      settle();
      return outcome;
    } finally {
      isOver = true;
      for (const loan of loans) loan.end();
      for (const each of goOn) each();
    }
  }

  async #load(from: number): Promise<void> {
    for (const queue of this.#queues) await queue.load(this.#operationsOf(queue), from);
  }

  #operationsOf(queue: LinkQueue): Operation<unknown>[] {
    return this.#steps.filter((step) => step.queue === queue).map(({ operation }) => operation(0));
  }

  async #earlier(links: readonly LinkTransaction[], at: number): Promise<IdempotencyRecord | undefined> {
    const { keyed } = this.#terms;
    // The key is locked for all links by whichever asks.
    const found = keyed && (await links[0]?.lockKeys([keyed], at));
    return found?.[0];
  }

  async #replay(
    links: readonly LinkReading[],
    { fingerprint, reservations }: IdempotencyRecord,
  ): Promise<BatchOutcome<Fault>> {
    if (fingerprint !== this.#terms.keyed?.fingerprint) return { ok: false, reason: 'key_taken' };
    const found = new Map<string, ReservationRecord>();
    // The same request has the same links.
    for (const link of links)
      for (const record of await link.read(reservations)) found.set(record.id, record);
    return replayOfBatch(reservations.map((id) => found.get(id)));
  }

  #readAhead(links: readonly LinkReading[], at: number): Promise<Known> {
    const parts = this.#queues.flatMap((queue, index) => {
      const link = links[index];
      return link ? [{ link, operations: this.#operationsOf(queue) }] : [];
    });
    return readAhead(parts, { at, taken: [] });
  }

  async #catchUp(
    links: readonly LinkReading[],
    loans: readonly Loan[],
    { known, at }: { known: Known; at: number },
  ): Promise<OpenLink[]> {
    const open: OpenLink[] = [];
    for (const [index, queue] of this.#queues.entries()) {
      const [link, loan] = [links[index], loans[index]];
      if (!link || !loan) throw new RangeError(`link ${queue.id} is not open`);
      await catchUpLoan(loan, link, this.#operationsOf(queue), { known, at });
      open.push({ queue, link, loan, cached: loan.cached });
    }
    // What is changed below is given back only once it is committed, or taken back.
    for (const { loan } of open) loan.cached = undefined;
    return open;
  }

  /**
   * Decides on every step; with `earliest`, at the smallest offset at which all are accepted in their order. The changes
   * stay in the calendars.
   */
  #decide(open: readonly OpenLink[], known: Known, at: number): { attempt: Attempt; offset: number } {
    const attemptOf = (steps: readonly BatchStep<Fault>[], offset: number): Attempt => {
      const shared = copyOf(known);
      const views = new Map(
        open.map(({ queue, link, cached }) => [
          queue,
          new GroupView(at, link.version, cached?.calendar, shared),
        ]),
      );
      const decisions = steps.map(({ queue, operation }) => {
        const view = views.get(queue);
        if (!view) throw new RangeError(`link ${queue.id} is not open`);
        return view.decide(operation(offset));
      });
      return { views, decisions };
    };
    const { earliest } = this.#terms;
    const lastEnd = Math.max(...this.#steps.map(({ creates }) => creates?.end ?? Number.NEGATIVE_INFINITY));
    for (let [offset, tries] = [0, 0]; earliest && tries < MOST_OFFSETS; tries += 1) {
      const attempt = attemptOf(this.#steps, offset);
      const failed = this.#steps.findIndex((step, index) =>
        failureOf(step, attempt.decisions[index]?.answer),
      );
      if (failed < 0) return { attempt, offset };
      undo(attempt);
      const before = attemptOf(
        this.#steps.slice(0, failed).filter(({ creates }) => !creates),
        0,
      );
      const alone = this.#startAlone(failed, attempt, { before, offset });
      undo(before);
      const next = alone > offset ? alone : this.#nextOffset(open, offset);
      if (lastEnd + next > earliest.until) break;
      offset = next;
    }
    return { attempt: attemptOf(this.#steps, 0), offset: 0 };
  }

  /**
   * The smallest offset, from one at which a create failed, at which it would be accepted without the batch's other creates;
   * infinity for a failure that no offset mends.
   *
   * @param before the updates and deletions before it, done
   */
  #startAlone(
    index: number,
    { decisions }: Attempt,
    { before, offset }: { before: Attempt; offset: number },
  ): number {
    const step = this.#steps[index];
    const failure = step && failureOf(step, decisions[index]?.answer);
    const isFull =
      failure?.reason === 'refused' &&
      failure.refusals.some((refusal) => refusal.limit === 'share' && refusal.of === 'live');
    if (!step?.creates || failure?.reason !== 'refused' || isFull) return Number.POSITIVE_INFINITY;
    const { start, end, bandwidth, experiment } = step.creates;
    const calendar = before.views.get(step.queue)?.calendar;
    const found = calendar?.earliest(start + offset, end - start, bandwidth, experiment);
    return found === undefined ? Number.POSITIVE_INFINITY : found - start;
  }

  /** The next offset at which more can be free for some create: where one begins as a reservation ends. */
  #nextOffset(open: readonly OpenLink[], offset: number): number {
    const calendars = new Map(open.map(({ queue, cached }) => [queue, cached?.calendar]));
    const offsets = this.#steps.flatMap(({ creates, queue }) => {
      const end = creates && calendars.get(queue)?.nextEnd(creates.start + offset);
      return creates && end !== undefined ? [end - creates.start] : [];
    });
    return Math.min(...offsets);
  }

  #outcomeOf({ decisions }: Attempt, offset: number): BatchOutcome<Fault> {
    const items = this.#steps.flatMap((step, at) => {
      const outcome = failureOf<Fault>(step, decisions[at]?.answer);
      return outcome ? [{ index: step.index, outcome }] : [];
    });
    if (items.length > 0) return { ok: false, reason: 'refused', items };
    return { ok: true, records: decisions.map(({ answer }) => recordOf(answer)), offset };
  }

  /** What each link has to write: everything, or of a refused batch the refusals. */
  #decided({ decisions }: Attempt, isDone: boolean, at: number): Map<LinkQueue, Decided> {
    const decided = new Map<LinkQueue, { changes: WrittenChange[]; audit: Decided['audit'][number][] }>();
    const ids = this.#steps.map(({ reservation }, index) => {
      return reservation ?? recordOf(decisions[index]?.answer)?.id ?? '';
    });
    let key = isDone ? this.#keyFor(ids, at) : undefined;
    for (const [index, { queue }] of this.#steps.entries()) {
      const { change, audit } = decisions[index] ?? {};
      const own = decided.get(queue) ?? { changes: [], audit: [] };
      decided.set(queue, own);
      if (audit && (isDone || audit.tags === null)) own.audit.push(audit);
      if (!isDone || !change) continue;
      own.changes.push(key ? { ...change, key } : change);
      key = undefined;
    }
    return decided;
  }

  #keyFor(reservations: readonly string[], at: number): IdempotencyRecord | undefined {
    const { keyed } = this.#terms;
    if (!keyed) return undefined;
    const { createdBy, experiment, key, fingerprint } = keyed;
    return { createdBy, experiment, key, fingerprint, reservations, expires: at + KEY_LIFETIME };
  }
}

/** The answer to a batch that was done before under the same key. @param found what its items are now, in their order */
export function replayOfBatch(
  found: readonly (ReservationRecord | undefined)[],
): Extract<BatchOutcome<never>, { ok: true }> {
  return { ok: true, records: found.map((record) => record ?? null), offset: 0, replayed: true };
}

function undo({ views }: Attempt): void {
  for (const view of views.values()) view.undo();
}

function failureOf<Fault>(
  { reservation = '' }: BatchStep<Fault>,
  answer: unknown,
): ItemFailure<Fault> | undefined {
  if (answer === undefined || answer === false) return { ok: false, reason: 'missing', reservation };
  if (answer === true) return undefined;
  // The step's own operation gave it.
  const outcome = answer as CreateOutcome | UpdateOutcome<Fault>;
  return outcome.ok ? undefined : outcome;
}

/** The reservation that a step left; null after a deletion. */
function recordOf(answer: unknown): ReservationRecord | null {
  return typeof answer === 'object' && answer !== null && 'record' in answer
    ? (answer.record as ReservationRecord)
    : null;
}
