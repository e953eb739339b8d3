import {
  type ChangeOutcome,
  type ChangeTerms,
  changeOperation,
  type KeyedOutcome,
  refusalOperation,
  replayOf,
} from './change-operation.ts';
import { yieldToEventLoop } from './event-loop.ts';
import type { AllocatorObserver } from './link-decisions.ts';
import { askLinks, changeLinks, LinkQueue } from './link-queue.ts';
import { linkId, type Network } from './network.ts';
import {
  askOperation,
  type ChangeItem,
  deciding,
  type KeyedRequest,
  type LinksState,
  type Operation,
  searchOf,
} from './operations.ts';
import type { RouteCalendar } from './route-calendar.ts';
import type { AskedRoutes } from './routes.ts';
import type { ReservationRecord, ReservationStore } from './store.ts';

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
 * Decides on reservations (allocator/README.md).
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
   * Creates, updates and deletes reservations on any links: all items, or none when one is refused.
   *
   * Items of one link wait in its queue, and share a transaction with others that wait there. Items of several links have a
   * transaction of their own. A dry run is a question: it takes no lock, and writes nothing.
   *
   * Where a create may take several routes, the best is found on a snapshot, and decided on with its links locked. Where
   * others were faster there, {@link ATTEMPTS} times, all links that it may use are locked.
   *
   * Under an idempotency key a list is done once: within `KEY_LIFETIME` the same request gets the first one's answer,
   * whichever process it reaches. A refused list leaves its key free.
   *
   * @throws RangeError when there is no item, there is no route for a create, or its window is shorter than its
   * duration: the caller checks first
   * @throws StoreUnavailableError when the database is away; then nothing was changed
   * @throws CommitUnknownError when the database was lost while it committed
   */
  async change(items: readonly ChangeItem[], terms: ChangeTerms = {}): Promise<ChangeOutcome> {
    const direct = items.map((item) => this.#overOneLink(item));
    if (direct.every((item) => !isOpen(item) && !this.#hasDetour(item))) return this.#make(direct, terms);
    if (terms.dryRun) return this.#make(items, terms);
    if (!terms.earliest && direct.every((item) => !isOpen(item) && !isSearch(item))) {
      const outcome = await this.#make(direct, { ...terms, tentative: true });
      if (!isRefusedByLinks(outcome)) return outcome;
    }
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const question = changeOperation(items, { earliest: terms.earliest, dryRun: true }, this.#options);
      const decision = await this.#ask(deciding(question));
      const { answer: found } = decision;
      if (isRefusedByLinks(found)) return this.#run(refusalOperation(decision, terms.keyed));
      if (!found.ok) break;
      const routed = items.map((item, index) => overRoute(item, found.records[index]));
      const outcome = await this.#make(routed, { ...terms, tentative: true });
      // Others may have been faster, on that route.
      if (!isRefusedByLinks(outcome)) return outcome;
    }
    return this.#make(items, terms);
  }

  /** Decides on items, over the routes that they may take. */
  #make(items: readonly ChangeItem[], terms: ChangeTerms): Promise<ChangeOutcome> {
    const operation = changeOperation(items, terms, this.#options);
    return terms.dryRun ? this.#ask(operation) : this.#run(operation);
  }

  #run<Answer>(operation: Operation<Answer>): Promise<Answer> {
    const queues = operation.links.map((id) => this.#queue(id));
    const [queue] = queues;
    if (queue && queues.length === 1) return queue.run(operation);
    return changeLinks(queues, operation, this.#options);
  }

  #ask<Answer>(operation: Operation<Answer>): Promise<Answer> {
    const queues = operation.links.map((id) => this.#queue(id));
    const [queue] = queues;
    if (queue && queues.length === 1) return queue.ask(operation);
    return askLinks(queues, operation, this.#options);
  }

  /** A create between two sites that a link connects, over that link; else the item as it is. */
  #overOneLink(item: ChangeItem): ChangeItem {
    if (item.action !== 'create' || item.request.route) return item;
    const { site1, site2, via = [] } = item.request;
    const link = via.length === 0 ? this.#options.network.between(site1, site2) : undefined;
    return link ? { ...item, request: { ...item.request, route: [linkId(site1, site2)] } } : item;
  }

  /** Whether a create between two sites that a link connects may take another route too. */
  #hasDetour(item: ChangeItem): boolean {
    return item.action === 'create' && !item.request.direct && this.#options.network.detour > 0;
  }

  /**
   * Reads what an idempotency key stands for. {@link change} looks again in its transaction; this is for a caller that must
   * know before it checks rules which the first request passed and a replay need not.
   *
   * @returns undefined when the key is free
   */
  async replay(request: KeyedRequest): Promise<KeyedOutcome | undefined> {
    const { store, now } = this.#options;
    const earlier = await store.findKey(request, now());
    if (!earlier) return undefined;
    return replayOf(earlier, request, await Promise.all(earlier.reservations.map((id) => store.find(id))));
  }

  /**
   * Asks what is free between two sites, over the routes that may be taken. It changes nothing, and waits for no writer of
   * another process.
   *
   * @param from milliseconds; what ended before is not read
   * @param question is asked once, and not kept waiting; the calendars are lent to it until it returns
   * @throws RangeError when there is no route
   * @throws StoreUnavailableError when the database is away
   */
  ask<Answer>(
    asked: AskedRoutes,
    from: number,
    question: (calendar: RouteCalendar, state: LinksState) => Answer,
  ): Promise<Answer> {
    const { network } = this.#options;
    return this.#ask(askOperation(asked, { network, from }, question));
  }

  #queue(id: string): LinkQueue {
    const known = this.#queues.get(id);
    if (known) return known;
    const { network, store, now, gather = yieldToEventLoop, observe, maxShare } = this.#options;
    const link = network.byId(id);
    const queue = new LinkQueue({ id, link, store, now, gather, observe, share: maxShare });
    this.#queues.set(id, queue);
    return queue;
  }
}

/** How often a route is looked for without a lock. */
const ATTEMPTS = 3;

/** Whether a create may take any of several routes. */
function isOpen(item: ChangeItem): boolean {
  return item.action === 'create' && !item.request.route;
}

/** Whether the service finds a create's period, which can be another one on another route. */
function isSearch(item: ChangeItem): boolean {
  return item.action === 'create' && searchOf(item.request) !== undefined;
}

function isRefusedByLinks(outcome: ChangeOutcome): outcome is Extract<ChangeOutcome, { reason: 'refused' }> {
  if (outcome.ok || outcome.reason !== 'refused') return false;
  return outcome.items.some((item) => !item.ok && item.reason === 'refused');
}

/** A create over the route that was found for it. */
function overRoute(item: ChangeItem, found: ReservationRecord | null | undefined): ChangeItem {
  if (item.action !== 'create' || !found) return item;
  return { ...item, request: { ...item.request, route: found.hops.map(({ link }) => link) } };
}
