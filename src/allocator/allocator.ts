import { linkId } from '../contract/links.ts';
import { Budget, TurnOverError } from './budget.ts';
import {
  type ChangeOutcome,
  type ChangeTerms,
  changeOperation,
  type KeyedOutcome,
  refusalOperation,
  replayOf,
} from './change-operation.ts';
import { movedBy } from './common-offset.ts';
import { LoopTurns, stepsOf, yieldToEventLoop } from './event-loop.ts';
import type { AllocatorObserver } from './link-decisions.ts';
import { askSeveral, LinkQueue, runOnSeveral } from './link-queue.ts';
import type { Network } from './network.ts';
import {
  askOperation,
  type ChangeItem,
  type Decision,
  deciding,
  type ItemOutcome,
  type KeyedRequest,
  type LinksState,
  type Operation,
  searchOf,
} from './operations.ts';
import type { RouteCalendar } from './route-calendar.ts';
import { type AskedRoutes, allowedRoutes } from './routes.ts';
import type { ReservationRecord, ReservationStore } from './store.ts';
import { type AskedBy, throwIfGone, UserLines } from './user-lines.ts';

/** Options of an {@link Allocator}. */
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
  /** In which turns of the event loop questions are answered. */
  turns?: LoopTurns;
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
  readonly #turns: LoopTurns;
  readonly #lines = new UserLines();

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
    this.#turns = options.turns ?? new LoopTurns();
  }

  /**
   * Creates, updates and deletes reservations on any links: all items, or none when one is refused.
   *
   * Items of one link wait in its queue, and share a transaction with others that wait there. Items of several links have a
   * transaction of their own. A dry run is a question: it takes no lock, and writes nothing.
   *
   * Where a create may take several routes, and the shortest one is not free or not the only one, the best is found on a
   * snapshot, and decided on with its links locked. Where others were faster there, {@link ATTEMPTS} times, all links that it
   * may use are locked.
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
    const tried = items.map((item) => this.#overShortest(item));
    const shortest = tried.map(({ item }) => item);
    const isOnly = tried.every((each) => each.isOnly);
    const list = isOnly ? shortest : items;
    if (terms.dryRun) return (await this.#rehearse(list, terms)).answer;
    if (isOnly && !terms.earliest) return this.#explained(list, await this.#make(list, terms), terms);
    if (!terms.earliest && shortest.every((item) => !isOpen(item) && !isSearch(item))) {
      const outcome = await this.#make(shortest, { ...terms, tentative: true });
      if (!isRefusedByLinks(outcome)) return outcome;
    }
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const decision = await this.#rehearse(list, terms);
      const { answer: found } = decision;
      if (isRefusedByLinks(found)) return this.#run(refusalOperation(decision, terms.keyed));
      if (!found.ok) break;
      const routed = list.map((item, index) => movedBy(overRoute(item, found.records[index]), found.offset));
      const outcome = await this.#make(routed, { ...terms, earliest: undefined, tentative: true });
      // Others may have been faster, on that route.
      if (!isRefusedByLinks(outcome)) return outcome.ok ? { ...outcome, offset: found.offset } : outcome;
    }
    return this.#explained(list, await this.#make(list, terms), terms);
  }

  /** Makes the changes of a list, or none of them. */
  #make(items: readonly ChangeItem[], terms: ChangeTerms): Promise<ChangeOutcome> {
    return this.#run(changeOperation(items, terms, this.#options));
  }

  /** The decision on a list, on a snapshot, with what else is free where it is refused. Nothing is written. */
  #rehearse(
    items: readonly ChangeItem[],
    { earliest, askedBy }: ChangeTerms,
  ): Promise<Decision<ChangeOutcome>> {
    return this.#askInTurns(askedBy, (budget) =>
      deciding(changeOperation(items, { earliest, dryRun: true }, this.#options, budget)),
    );
  }

  /** An outcome with what else is free for each item that is refused. */
  async #explained(
    items: readonly ChangeItem[],
    outcome: ChangeOutcome,
    { askedBy }: ChangeTerms,
  ): Promise<ChangeOutcome> {
    if (!isRefusedByLinks(outcome)) return outcome;
    const { answer: told } = await this.#rehearse(items, { askedBy });
    if (told.ok || told.reason !== 'refused') return outcome;
    return {
      ...outcome,
      items: outcome.items.map((item, index) => explainedBy(item, told.items[index])),
    };
  }

  /** Decides on an operation with its links locked. */
  #run<Answer>(operation: Operation<Answer>): Promise<Answer> {
    const queues = operation.links.map((id) => this.#queue(id));
    const [queue, next] = queues;
    return queue && !next ? queue.run(operation) : runOnSeveral(queues, operation, this.#options);
  }

  /** Decides on an operation that changes nothing, on a snapshot. */
  #ask<Answer>(operation: Operation<Answer>): Promise<Answer> {
    const queues = operation.links.map((id) => this.#queue(id));
    const [queue, next] = queues;
    return queue && !next ? queue.ask(operation) : askSeveral(queues, operation, this.#options);
  }

  /**
   * Asks a question, which goes on in later turns of the event loop where it takes long. From the second on, a user has one
   * at a time.
   *
   * @param make the question, which is asked again in each turn, and goes on by its budget
   * @throws BudgetSpentError where it is spent, and the question does not end with what it has
   * @throws AbandonedError where the request has gone
   */
  async #askInTurns<Answer>(
    askedBy: AskedBy | undefined,
    make: (budget: Budget) => Operation<Answer>,
  ): Promise<Answer> {
    let leave: (() => void) | undefined;
    await this.#turns.begin();
    const operation = orUnfinished(make(new Budget(this.#turns)));
    try {
      for (;;) {
        const answer = await this.#ask(operation);
        if (answer !== UNFINISHED) return answer;
        throwIfGone(askedBy);
        leave ??= askedBy && (await this.#lines.enter(askedBy));
        await this.#turns.goOn();
        throwIfGone(askedBy);
      }
    } finally {
      leave?.();
    }
  }

  /** A create over the shortest route that it may take, where no other one is as short; else the item as it is. */
  #overShortest(item: ChangeItem): { item: ChangeItem; isOnly: boolean } {
    if (item.action !== 'create' || item.request.route) return { item, isOnly: true };
    const [shortest, next] = allowedRoutes(this.#options.network, item.request) ?? [];
    if (!shortest || shortest.length === next?.length) return { item, isOnly: false };
    // A search over several links may take long, and others would wait for each of their locks.
    if (isSearch(item) && shortest.length > 1) return { item, isOnly: false };
    const route = shortest.map(({ site1, site2 }) => linkId(site1, site2));
    return { item: { ...item, request: { ...item.request, route } }, isOnly: next === undefined };
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
   * @param question is asked in one or more turns of the event loop: where the calendar's searches throw, because a turn is
   * over, it is asked again, and keeps what it has; the calendars are lent to it until it returns
   * @throws RangeError when there is no route
   * @throws BudgetSpentError where its looks are used up
   * @throws AbandonedError where the request has gone
   * @throws StoreUnavailableError when the database is away
   */
  ask<Answer>(
    asked: AskedRoutes,
    from: number,
    question: (calendar: RouteCalendar, state: LinksState) => Answer,
    askedBy?: AskedBy,
  ): Promise<Answer> {
    const { network } = this.#options;
    return this.#askInTurns(askedBy, (budget) =>
      askOperation(asked, { network, from, asked: { budget, state: '' } }, question),
    );
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

/** The answer of a question whose turn was over. */
const UNFINISHED = Symbol('unfinished');

/** An operation that tells where its turn was over, so that others which are asked with it are not asked again. */
function orUnfinished<Answer>(operation: Operation<Answer>): Operation<Answer | typeof UNFINISHED> {
  return {
    ...operation,
    *decide(view) {
      try {
        return yield* stepsOf(operation.decide(view));
      } catch (error) {
        if (!(error instanceof TurnOverError)) throw error;
        return { answer: UNFINISHED, written: [] };
      }
    },
  };
}

/** A refused item with what else is free, where it is refused in a rehearsal too. */
function explainedBy(item: ItemOutcome, told: ItemOutcome | undefined): ItemOutcome {
  if (item.ok || item.reason !== 'refused' || !told || told.ok || told.reason !== 'refused') return item;
  const { free, offers, isGivenUp } = told;
  return { ...item, free, offers, ...(isGivenUp ? { isGivenUp } : {}) };
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
