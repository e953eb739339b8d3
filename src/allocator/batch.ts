import { MAX_BLOCKING_MS, yieldToEventLoop } from './event-loop.ts';
import {
  type AllocatorObserver,
  askTogether,
  changeTogether,
  decideAgain,
  type LinkResult,
  type OpenLink,
} from './link-decisions.ts';
import type { LinkQueue } from './link-queue.ts';
import { copyOf, GroupView, type ReadAhead } from './link-view.ts';
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
import {
  type Decided,
  type IdempotencyRecord,
  nameOfKey,
  type ReservationRecord,
  type ReservationStore,
  type WrittenChange,
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
  dryRun?: boolean;
  /** The key of the whole batch. */
  keyed?: KeyedRequest;
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
  creates?: { start: number; end: number; bandwidth: number; tenant: string };
  /** The id of the reservation of an update or a deletion. */
  reservation?: string;
}

/** What a batch is decided with. */
export interface BatchOptions {
  store: ReservationStore;
  now: () => number;
  observe?: AllocatorObserver;
}

/** One way to do the batch: the decision on each step, in their order. */
interface Attempt {
  views: Map<LinkQueue, GroupView>;
  decisions: Decision<unknown>[];
}

/** How many offsets are tried at most before a search is given up: each costs a decision on every item. */
const MOST_OFFSETS = 256;
/** How many are tried in one turn of the event loop at most, and in {@link MAX_BLOCKING_MS}: others have their turn before the next. */
const OFFSETS_IN_A_TURN = 16;

/**
 * Decides on a batch in one transaction over all its links: all or none (contract/README.md, "Extensions").
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
  return decideAgain(() => (terms.dryRun ? batch.rehearse() : batch.change()));
}

class Batch<Fault> {
  readonly #options: BatchOptions;
  readonly #steps: readonly BatchStep<Fault>[];
  readonly #terms: BatchTerms;
  /** In the order of the links' ids. */
  readonly #work: readonly { queue: LinkQueue; operations: Operation<unknown>[] }[];

  constructor(options: BatchOptions, steps: readonly BatchStep<Fault>[], terms: BatchTerms) {
    this.#options = options;
    this.#steps = steps;
    this.#terms = terms;
    const operations = Map.groupBy(steps, ({ queue }) => queue);
    this.#work = [...operations]
      .map(([queue, own]) => ({ queue, operations: own.map(({ operation }) => operation(0)) }))
      .toSorted((one, other) => (one.queue.id < other.queue.id ? -1 : 1));
  }

  rehearse(): Promise<BatchOutcome<Fault>> {
    const { store } = this.#options;
    return askTogether<BatchOutcome<Fault>>(this.#work, {
      ...this.#options,
      read: (work) => store.readLinks(work),
      decide: async (links, known, at) => {
        const { attempt, offset } = await this.#decide(links, known, at);
        const outcome = this.#outcomeOf(attempt, offset);
        undo(attempt);
        return outcome;
      },
    });
  }

  async change(): Promise<BatchOutcome<Fault>> {
    const { store } = this.#options;
    const { keyed } = this.#terms;
    const ids = this.#work.map(({ queue }) => queue.id);
    const resume: (() => void)[] = [];
    try {
      for (const { queue } of this.#work) resume.push(await queue.pause());
      return await changeTogether<BatchOutcome<Fault>>(this.#work, {
        ...this.#options,
        transact: (work) => store.changeLinks(ids, work),
        keys: () => (keyed ? [keyed] : []),
        decide: async (links, known, at) => {
          const earlier = keyed && known.keys.get(nameOfKey(keyed));
          if (earlier) return { answer: this.#replay(earlier, known), left: links.map(unchanged) };
          const { attempt, offset } = await this.#decide(links, known, at);
          const answer = this.#outcomeOf(attempt, offset);
          if (!answer.ok) undo(attempt);
          return { answer, left: this.#left(links, attempt, answer.ok, at) };
        },
      });
    } finally {
      for (const each of resume) each();
    }
  }

  #replay({ fingerprint, reservations }: IdempotencyRecord, known: ReadAhead): BatchOutcome<Fault> {
    if (fingerprint !== this.#terms.keyed?.fingerprint) return { ok: false, reason: 'key_taken' };
    // The same request has the same links, so all were read.
    return replayOfBatch(reservations.map((id) => known.reservation(id)));
  }

  /**
   * Decides on every step; with `earliest`, at the smallest offset at which all are accepted in their order. The changes
   * stay in the calendars. Between turns of the event loop nothing of the batch is in them.
   */
  async #decide(
    links: readonly OpenLink[],
    known: ReadAhead,
    at: number,
  ): Promise<{ attempt: Attempt; offset: number }> {
    const attemptOf = (steps: readonly BatchStep<Fault>[], offset: number): Attempt => {
      const shared = copyOf(known);
      const views = new Map<LinkQueue, GroupView>();
      for (const [index, { version, calendar }] of links.entries()) {
        const queue = this.#work[index]?.queue;
        if (queue) views.set(queue, new GroupView(at, version, calendar, shared));
      }
      try {
        const decisions = steps.map(({ queue, operation }) => {
          const view = views.get(queue);
          if (!view) throw new RangeError(`link ${queue.id} is not open`);
          return view.decide(operation(offset));
        });
        return { views, decisions };
      } catch (error) {
        undo({ views });
        throw error;
      }
    };
    const { earliest } = this.#terms;
    const lastEnd = Math.max(...this.#steps.map(({ creates }) => creates?.end ?? Number.NEGATIVE_INFINITY));
    let [began, end] = [performance.now(), OFFSETS_IN_A_TURN];
    for (let [offset, tries] = [0, 0]; earliest && tries < MOST_OFFSETS; tries += 1) {
      if (tries === end || performance.now() - began >= MAX_BLOCKING_MS) {
        await yieldToEventLoop();
        [began, end] = [performance.now(), tries + OFFSETS_IN_A_TURN];
      }
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
      const next = alone > offset ? alone : this.#nextOffset(links, offset);
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
    const { start, end, bandwidth, tenant } = step.creates;
    const calendar = before.views.get(step.queue)?.calendar;
    const found = calendar?.earliest(start + offset, end - start, bandwidth, tenant);
    return found === undefined ? Number.POSITIVE_INFINITY : found - start;
  }

  /** The next offset at which more can be free for some create: where one begins as a reservation ends. */
  #nextOffset(links: readonly OpenLink[], offset: number): number {
    const calendars = new Map(this.#work.map(({ queue }, index) => [queue, links[index]?.calendar]));
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

  /** What is to be written on each link: all decisions, or only the refusals where the batch is refused. */
  #left(
    links: readonly OpenLink[],
    { views, decisions }: Attempt,
    isDone: boolean,
    at: number,
  ): readonly LinkResult[] {
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
    return links.map((link, index) => {
      const queue = this.#work[index]?.queue;
      const own = queue && decided.get(queue);
      const version = (isDone && queue && views.get(queue)?.version) || link.version;
      return { ...unchanged(link), ...own, version };
    });
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

function unchanged({ version }: OpenLink): LinkResult {
  return { changes: [], audit: [], version };
}

function undo({ views }: Pick<Attempt, 'views'>): void {
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
