import type { Link } from '../contract/links.ts';
import {
  type BatchItem,
  type BatchOutcome,
  type BatchStep,
  type BatchTerms,
  decideTogether,
  type ItemFailure,
  replayOfBatch,
} from './batch.ts';
import type { LinkCalendar } from './calendar.ts';
import { yieldToEventLoop } from './event-loop.ts';
import type { AllocatorObserver } from './link-decisions.ts';
import { LinkQueue } from './link-queue.ts';
import { linkId, type Network } from './network.ts';
import {
  askOperation,
  type CreateOutcome,
  type CreateRequest,
  createOperation,
  type DeleteTerms,
  deleteOperation,
  type KeyedRequest,
  type LinkState,
  type Operation,
  type Outcome,
  type Replay,
  replayOf,
  type UpdateOutcome,
  type UpdateRequest,
  type UpdateTerms,
  updateOperation,
} from './operations.ts';
import type { ReservationStore } from './store.ts';

/** What an allocator needs. */
export interface AllocatorOptions {
  network: Network;
  store: ReservationStore;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Makes a reservation's id. */
  newId: () => string;
  /**
   * How much of a link one tenant may have at any instant, in percent of its bandwidth and of the tags at each
   * place, 1 to 100 (THREATS.md 59). A tenant is a project with all its experiments, or an experiment without a project.
   * Default: all of it.
   */
  maxShare?: number;
  /**
   * How many reservations that have not ended one tenant may have, on all links. Default: no limit. Every
   * allocator on a database is given the same.
   */
  maxLive?: number;
  /**
   * Resolves when every request that has arrived is in its queue, so that they share a transaction. Default: after one
   * round of the event loop.
   */
  gather?: () => Promise<void>;
  observe?: AllocatorObserver;
}

/**
 * Decides on reservations, one link at a time (allocator/README.md).
 *
 * Each decision is made inside the transaction that writes it; see {@link LinkQueue}. So any number of allocators on one
 * database agree, and a crash leaves no half-written reservation.
 */
export class Allocator {
  readonly #options: AllocatorOptions;
  readonly #queues = new Map<string, LinkQueue>();

  /** @throws RangeError for a limit out of its bounds */
  constructor(options: AllocatorOptions) {
    const { maxShare = 100, maxLive = 1 } = options;
    if (!Number.isInteger(maxShare) || maxShare < 1 || maxShare > 100) {
      throw new RangeError('maxShare is a whole number from 1 to 100');
    }
    if (!Number.isSafeInteger(maxLive) || maxLive < 1) {
      throw new RangeError('maxLive is a whole number, 1 or more');
    }
    this.#options = options;
  }

  /**
   * Creates a reservation.
   *
   * Under an idempotency key it is created once: within `KEY_LIFETIME` the same request gets the first one's reservation,
   * whichever process it reaches. A refused request leaves its key free.
   *
   * @param dryRun decide and answer, and write nothing
   * @throws RangeError when the sites are not connected, or a search's window is shorter than its duration: the caller
   * checks first
   * @throws StoreUnavailableError when the database is away; then nothing was changed
   * @throws CommitUnknownError when the database was lost while it committed
   */
  create(request: CreateRequest & KeyedRequest & { name?: undefined }): Promise<Outcome | Replay>;
  create(request: CreateRequest & KeyedRequest): Promise<CreateOutcome | Replay>;
  create(request: CreateRequest & { key?: undefined; name?: undefined }, dryRun?: boolean): Promise<Outcome>;
  create(request: CreateRequest & { key?: undefined }, dryRun?: boolean): Promise<CreateOutcome>;
  create(
    request: CreateRequest & (KeyedRequest | { key?: undefined }),
    dryRun = false,
  ): Promise<CreateOutcome | Replay> {
    const { newId, maxLive } = this.#options;
    const { search, start, end } = request;
    if (search && 'duration' in search && start + search.duration > end) {
      throw new RangeError('the window is shorter than the duration');
    }
    const id = linkId(request.site1, request.site2);
    const terms = { link: this.#link(id), newId, dryRun, maxLive };
    const keyed = request.key === undefined ? undefined : request;
    return this.#decide(id, createOperation(request, keyed, terms), dryRun);
  }

  /**
   * Reads what a request's idempotency key stands for. {@link create} looks again under the link's lock; this is for a
   * caller that must know before it checks rules which the first request passed and a replay need not.
   *
   * @returns undefined when the key is free
   */
  async replay(request: KeyedRequest): Promise<Replay | undefined> {
    const { store, now } = this.#options;
    const earlier = await store.findKey(request, now());
    return earlier && replayOf(earlier, request, await store.find(earlier.reservations[0] ?? ''));
  }

  /**
   * Updates a reservation: releases what it holds and decides anew, in one transaction. A refused update changes
   * nothing; the tags stay when they can.
   *
   * @returns undefined when there is no such reservation
   * @throws as {@link create} does
   */
  async update<Fault>(
    id: string,
    update: UpdateRequest,
    terms: UpdateTerms<Fault>,
  ): Promise<UpdateOutcome<Fault> | undefined> {
    const found = await this.#options.store.find(id);
    if (!found) return undefined;
    const link = this.#link(found.link);
    return this.#decide(found.link, updateOperation({ link, found, update }, terms), terms.dryRun);
  }

  /**
   * Deletes a reservation; its tags and bandwidth are free again at once.
   *
   * @returns whether there was one
   * @throws as {@link create} does
   */
  async delete(id: string, terms: DeleteTerms): Promise<boolean> {
    const found = await this.#options.store.find(id);
    return found ? this.#decide(found.link, deleteOperation(id, terms)) : false;
  }

  /**
   * Creates, updates and deletes reservations on any links: all, or none when one is refused.
   *
   * @param terms `keyed` as for {@link create}: a batch is done once under its key
   * @throws RangeError when the sites of a create are not connected, or there is no item
   * @throws as {@link create} does
   */
  async batch<Fault>(
    items: readonly BatchItem<Fault>[],
    terms: BatchTerms = {},
  ): Promise<BatchOutcome<Fault>> {
    const { store, now, observe, newId, maxLive } = this.#options;
    if (items.length === 0) throw new RangeError('a batch has an item');
    const found = await Promise.all(
      items.map((item) => (item.action === 'create' ? undefined : store.find(item.id))),
    );
    const missing: { index: number; outcome: ItemFailure<Fault> }[] = [];
    const steps = items.flatMap((item, index): BatchStep<Fault>[] => {
      if (item.action === 'create') {
        const { request } = item;
        const id = linkId(request.site1, request.site2);
        const limits = maxLive === undefined ? {} : { maxLive };
        const createTerms = { link: this.#link(id), newId, dryRun: false, ...limits };
        const operation = (offset: number) => {
          const moved = { ...request, start: request.start + offset, end: request.end + offset };
          return createOperation(moved, undefined, createTerms);
        };
        const { start, end, bandwidth, experiment, tenant = experiment } = request;
        return [{ index, queue: this.#queue(id), operation, creates: { start, end, bandwidth, tenant } }];
      }
      const record = found[index];
      if (!record) {
        missing.push({ index, outcome: { ok: false, reason: 'missing', reservation: item.id } });
        return [];
      }
      const { link } = record;
      const operation =
        item.action === 'update'
          ? updateOperation({ link: this.#link(link), found: record, update: item.update }, item.terms)
          : deleteOperation(item.id, item.terms);
      return [{ index, queue: this.#queue(link), operation: () => operation, reservation: item.id }];
    });
    if (missing.length === 0) return decideTogether({ store, now, observe }, steps, terms);
    // Nothing will be done; but what else is wrong is said too.
    const others =
      steps.length > 0 && (await decideTogether<Fault>({ store, now }, steps, { ...terms, dryRun: true }));
    const refused = others && !others.ok && others.reason === 'refused' ? others.items : [];
    const all = [...missing, ...refused].toSorted((one, other) => one.index - other.index);
    return { ok: false, reason: 'refused', items: all };
  }

  /**
   * What a batch's idempotency key stands for; see {@link replay}.
   *
   * @returns undefined when the key is free
   */
  async replayBatch(request: KeyedRequest): Promise<BatchOutcome<never> | undefined> {
    const { store, now } = this.#options;
    const earlier = await store.findKey(request, now());
    if (!earlier) return undefined;
    if (earlier.fingerprint !== request.fingerprint) return { ok: false, reason: 'key_taken' };
    return replayOfBatch(await Promise.all(earlier.reservations.map((id) => store.find(id))));
  }

  /**
   * Asks a link's calendar a question. It changes nothing, and waits for no writer of another process.
   *
   * @param link its sites, either way round
   * @param from milliseconds; what ended before is not read
   * @param question is asked once, and not kept waiting; the calendar is lent to it until it returns
   * @throws RangeError when the sites are not connected
   * @throws StoreUnavailableError when the database is away
   */
  ask<Answer>(
    { site1, site2 }: Pick<Link, 'site1' | 'site2'>,
    from: number,
    question: (calendar: LinkCalendar, link: LinkState) => Answer,
  ): Promise<Answer> {
    const id = linkId(site1, site2);
    this.#link(id);
    return this.#queue(id).ask(askOperation(from, question));
  }

  /** A dry run is a question: it takes no lock. */
  #decide<Answer>(link: string, operation: Operation<Answer>, dryRun = false): Promise<Answer> {
    const queue = this.#queue(link);
    return dryRun ? queue.ask(operation) : queue.run(operation);
  }

  #link(id: string): Link {
    const link = this.#options.network.byId(id);
    if (!link) throw new RangeError(`there is no link ${id}`);
    return link;
  }

  #queue(id: string): LinkQueue {
    const known = this.#queues.get(id);
    if (known) return known;
    const { network, store, now, gather = yieldToEventLoop, observe, maxShare } = this.#options;
    const queue = new LinkQueue({
      id,
      link: network.byId(id),
      store,
      now,
      gather,
      observe,
      share: maxShare,
    });
    this.#queues.set(id, queue);
    return queue;
  }
}
