import { linkId } from '../contract/links.ts';
import {
  type AllocationRules,
  type ChangeItem,
  type Decision,
  type ItemOutcome,
  type KeyedRequest,
  linksUnder,
  routesOf,
} from './decide.ts';
import { Line } from './line.ts';
import type { LinkUse } from './link-use.ts';
import {
  type ChangeOutcome,
  isSearched,
  type KeyedOutcome,
  type ListTerms,
  type Look,
  listOperation,
  type Operation,
  refusalOperation,
  replayOf,
} from './list.ts';
import type { Network } from './network.ts';
import { type AskedBy, QuestionEndedError, Questions } from './questions.ts';
import type { RouteUse } from './route-use.ts';
import { type AskedRoutes, allowedRoutes } from './routes.ts';
import { finish, type Steps, TooMuchError } from './steps.ts';
import {
  type ReservationRecord,
  type ReservationStore,
  type StoreReading,
  StoreUnavailableError,
} from './store.ts';
import { LinksView, type Needs, readAhead } from './view.ts';

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

/** Options of an {@link Allocator}. */
export interface AllocatorOptions extends AllocationRules {
  network: Network;
  store: ReservationStore;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  observe?: AllocatorObserver;
}

/** How a list of changes is decided on. */
export interface ChangeTerms {
  /** Decide and answer, and write nothing. What is refused is told with what else is free. */
  dryRun?: boolean;
  /** The key of the whole list, under which it is done once. */
  keyed?: KeyedRequest | undefined;
  /** Move all creates by the smallest common offset at which all fit, so that none ends after this. Milliseconds. */
  earliest?: { until: number } | undefined;
  /** Who asks, for the part that is a question. */
  askedBy?: AskedBy | undefined;
}

/** The versions of the links that an answer about free capacity shows, and its time in milliseconds. */
export interface LinksState {
  versions: readonly number[];
  now: number;
}

/** What may keep a refusal from being told with what else is free. */
const UNEXPLAINABLE = [QuestionEndedError, TooMuchError, StoreUnavailableError];
/** How often a time or a route is looked for without a lock. */
const ATTEMPTS = 3;
/** How many operations are decided together at most, so that the first does not wait long for the last. */
const GROUP_SIZE = 64;
/** How long a search may take with the links locked, in milliseconds: what takes long was found before, without. */
const MAX_LOCKED_MS = 1000;

/**
 * Decides on reservations (allocator/README.md).
 *
 * Each decision is made inside the transaction that writes it, over the rows that it reads there. So any number of allocators on one
 * database agree, and a crash leaves no half-written reservation.
 */
export class Allocator {
  readonly #options: AllocatorOptions;
  readonly #questions = new Questions();
  /** Operations that wait, by what they wait for: the ids of their links, or a file with one writer. */
  readonly #lines = new Map<string, Line<Operation, Decision<ChangeOutcome>>>();

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

  /** Ends all questions: the server stops. @returns resolves when all that waits for a decision has it */
  async stop(): Promise<void> {
    this.#questions.stop();
    await Promise.all([...this.#lines.values()].map(({ working }) => working));
  }

  /**
   * Creates, updates and deletes reservations on any links: all items, or none when one is refused.
   *
   * A dry run is a question: it takes no lock, and writes nothing. Nor does a search: where the period of a create is to be found, or the
   * best of several routes, it is found on a snapshot, and decided on with its links locked. Where others were faster there,
   * {@link ATTEMPTS} times, all links that it may use are locked, and it is found under their locks.
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
    const { keyed, earliest, askedBy } = terms;
    const list = items.map((item) => this.#overOnly(item));
    if (terms.dryRun) return (await this.#rehearse(list, terms)).answer;
    const isSearch = earliest !== undefined || list.some(isSearched);
    if (!isSearch && !list.some(isOpen)) return this.#makeOrExplain(list, { keyed }, askedBy);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const decision = await this.#rehearse(list, terms);
      const { answer: found } = decision;
      if (isRefusedByLinks(found) && decision.isSettled) return this.#run(refusalOperation(decision, keyed));
      if (!found.ok) break;
      const fixed = list.map((item, index) => asFound(item, found.records[index]));
      const outcome = await this.#make(fixed, { keyed, tentative: true });
      // Others may have been faster there.
      if (!isRefusedByLinks(outcome)) {
        return outcome.ok && !outcome.replayed ? { ...outcome, offset: found.offset } : outcome;
      }
    }
    return this.#makeOrExplain(list, { keyed, earliest }, askedBy);
  }

  /** Makes the changes of a list, or none of them. */
  #make(items: readonly ChangeItem[], terms: ListTerms): Promise<ChangeOutcome> {
    return this.#run(listOperation(items, terms, this.#options));
  }

  /** The same. What else is free for each item that is refused is told, after those before it. */
  async #makeOrExplain(
    items: readonly ChangeItem[],
    terms: ListTerms,
    askedBy: AskedBy | undefined,
  ): Promise<ChangeOutcome> {
    const answer = await this.#make(items, terms);
    if (!isRefusedByLinks(answer)) return answer;
    try {
      const { answer: told } = await this.#rehearse(items, { askedBy });
      // What was in the way has gone meanwhile.
      if (told.ok) return await this.#make(items, terms);
      if (told.reason !== 'refused') return answer;
      return { ...answer, items: answer.items.map((item, index) => explainedBy(item, told.items[index])) };
    } catch (error) {
      // That it is refused is certain, and in the audit.
      if (UNEXPLAINABLE.some((known) => error instanceof known)) return answer;
      throw error;
    }
  }

  /** The decision on a list, on a snapshot, with what else is free where it is refused. Nothing is written. */
  async #rehearse(
    items: readonly ChangeItem[],
    { earliest, askedBy }: Pick<ChangeTerms, 'earliest' | 'askedBy'>,
  ): Promise<Decision<ChangeOutcome> & { isSettled: boolean }> {
    const { store, now } = this.#options;
    const operation = listOperation(items, { explains: true, earliest }, this.#options);
    const view = new LinksView(now(), { ...this.#options, reading: store });
    view.know(await readAhead(store, operation, view.now));
    const decision = await this.#questions.ask(rehearsal(operation, view, store), askedBy);
    return { ...decision, written: decision.written.filter(({ change }) => !change) };
  }

  /**
   * Decides on an operation with its links locked, and writes what was decided. Those that wait for the same links share a
   * transaction; on a database with one writer, all that wait.
   */
  async #run(operation: Operation): Promise<ChangeOutcome> {
    const name = this.#options.store.hasOneWriter ? '' : operation.links.join(' ');
    const known = this.#lines.get(name);
    const line =
      known ??
      new Line(
        GROUP_SIZE,
        (all) => this.#together(all),
        () => this.#lines.delete(name),
      );
    this.#lines.set(name, line);
    return (await line.run(operation)).answer;
  }

  /** Decides on operations in one transaction over their links, each after those before it. */
  async #together(operations: readonly Operation[]): Promise<Decision<ChangeOutcome>[]> {
    const { store, now, observe } = this.#options;
    const began = performance.now();
    const needs = needsOf(operations);
    const decisions = await store.changeLinks(needs, async (transaction) => {
      const view = new LinksView(now(), { ...this.#options, reading: transaction });
      // The rows of creates are asked for together with what else they need.
      const isKnown = needs.about.length === 0;
      const rows = isKnown ? loadFirst(operations, view) : undefined;
      const [known] = await Promise.all([readAhead(transaction, needs, view.now), rows]);
      view.know(known);
      if (!isKnown) await loadFirst(operations, view);
      const decisions: Decision<ChangeOutcome>[] = [];
      for (const operation of operations) {
        const most = operation.isSearch ? MAX_LOCKED_MS : Number.POSITIVE_INFINITY;
        decisions.push(await finish(operation.decide(view), { most }));
      }
      const written = decisions.flatMap((decision) => decision.written);
      if (written.length > 0) {
        const changes = written.flatMap(({ change }) => change ?? []);
        await transaction.write({ changes, audit: written.flatMap(({ audit }) => audit) }, view.now);
      }
      return decisions;
    });
    const size = operations.reduce((sum, operation) => sum + operation.size, 0);
    observe?.committed(size, performance.now() - began);
    return decisions;
  }

  /** A create over the only route that it may take; where there are several, as it is. */
  #overOnly(item: ChangeItem): ChangeItem {
    if (item.action !== 'create' || item.request.route) return item;
    const [only, another] = allowedRoutes(this.#options.network, item.request);
    if (!only || another) return item;
    const route = only.map(({ site1, site2 }) => linkId(site1, site2));
    return { ...item, request: { ...item.request, route } };
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
   * Asks what is free between two sites, over the routes that may be taken. It changes nothing, and waits for no writer.
   *
   * @param question reads rows of each link as it needs them, one link after the other
   * @throws RangeError when there is no route
   * @throws TooMuchError where it takes too much
   * @throws QuestionEndedError
   * @throws StoreUnavailableError when the database is away
   */
  async ask<Answer>(
    asked: AskedRoutes,
    question: (use: RouteUse, state: LinksState) => Steps<Answer>,
    askedBy?: AskedBy,
  ): Promise<Answer> {
    const { store, now, network } = this.#options;
    const { ids, open } = linksUnder(routesOf(asked, { network }));
    const view = new LinksView(now(), { ...this.#options, reading: store });
    view.renew(await store.versions(ids));
    const state = { versions: ids.map((id) => view.version(id)), now: view.now };
    return this.#questions.ask(question(open(view), state), askedBy);
  }

  /** Asks the same of each link of the network, one after the other; see {@link ask}. @returns the answers, in the links' order */
  async askEach<Answer>(question: (use: LinkUse) => Steps<Answer>, askedBy?: AskedBy): Promise<Answer[]> {
    const { store, now, network } = this.#options;
    const options = { ...this.#options, reading: store };
    function* each(): Steps<Answer[]> {
      const answers: Answer[] = [];
      for (const { site1, site2 } of network.links) {
        // A view of its own: the rows of one link are gone before those of the next are read.
        const view = new LinksView(now(), options);
        answers.push(yield* question(view.use(linkId(site1, site2))));
        yield;
      }
      return answers;
    }
    return this.#questions.ask(each(), askedBy);
  }
}

/** How often a list is decided on, where links change meanwhile. */
const READINGS = 3;

/**
 * Decides on a list by rows that are read one after the other. Where a link has changed meanwhile, what was read of it is read
 * again, and the list is decided on anew.
 *
 * @returns the decision, and whether all its rows are of one instant
 */
function* rehearsal(
  operation: Operation,
  view: LinksView,
  store: Pick<StoreReading, 'versions'>,
): Steps<Decision<ChangeOutcome> & { isSettled: boolean }> {
  for (let reading = 1; ; reading += 1) {
    for (const { link, period } of looksOf([operation], view)) yield* view.use(link).cover(period);
    const decision = yield* operation.decide(view);
    view.undo(0);
    let isSettled = true;
    yield store.versions(operation.links).then((versions) => {
      isSettled = !view.renew(versions);
    });
    if (isSettled || reading === READINGS) return { ...decision, isSettled };
  }
}

/** Reads the rows that operations look at first. */
async function loadFirst(operations: readonly Operation[], view: LinksView): Promise<void> {
  await Promise.all(looksOf(operations, view).map(({ link, period }) => view.use(link).load(period)));
}

/** What operations look at first; what meets is one look. */
function looksOf(operations: readonly Operation[], view: LinksView): Look[] {
  const looks: Look[] = [];
  const all = operations.flatMap((operation) => operation.looks(view));
  for (const { link, period } of all.toSorted((one, other) => one.period.start - other.period.start)) {
    const before = looks.findLast((look) => look.link === link);
    if (before && before.period.end >= period.start) {
      const end = Math.max(before.period.end, period.end);
      before.period = { start: before.period.start, end };
    } else looks.push({ link, period });
  }
  return looks;
}

/** What operations need together. */
function needsOf(operations: readonly Operation[]): Needs {
  const [first, second] = operations;
  if (first && !second) return first;
  const all = <Need>(of: (needs: Needs) => readonly Need[]): Need[] => [...new Set(operations.flatMap(of))];
  return {
    links: all(({ links }) => links).toSorted(),
    about: all(({ about }) => about),
    counted: all(({ counted }) => counted),
    named: all(({ named }) => named),
    keys: all(({ keys }) => keys),
  };
}

/** A refused item with what else is free, where it is refused in a rehearsal too. */
function explainedBy(item: ItemOutcome, told: ItemOutcome | undefined): ItemOutcome {
  if (item.ok || item.reason !== 'refused' || !told || told.ok || told.reason !== 'refused') return item;
  const { free, offers, isGivenUp } = told;
  return { ...item, free, offers, ...(isGivenUp ? { isGivenUp } : {}) };
}

/** Whether a create may take any of several routes. */
function isOpen(item: ChangeItem): boolean {
  return item.action === 'create' && !item.request.route;
}

function isRefusedByLinks(outcome: ChangeOutcome): outcome is Extract<ChangeOutcome, { reason: 'refused' }> {
  if (outcome.ok || outcome.reason !== 'refused') return false;
  return outcome.items.some((item) => !item.ok && item.reason === 'refused');
}

/** A create over the route, and at the time, that were found for it. */
function asFound(item: ChangeItem, found: ReservationRecord | null | undefined): ChangeItem {
  if (item.action !== 'create' || !found) return item;
  const { duration: _duration, volume: _volume, ...request } = item.request;
  const { hops, start, end, bandwidth } = found;
  return {
    ...item,
    request: { ...request, start, end, bandwidth, route: hops.map(({ link }) => link) },
  };
}
