import { MAX_BLOCKING_MS, yieldToEventLoop } from './event-loop.ts';
import {
  type AllocationRules,
  type ChangeItem,
  type Decision,
  type ItemOperation,
  type ItemOutcome,
  itemOperation,
  KEY_LIFETIME,
  type KeyedRequest,
  type LinksView,
  type Operation,
} from './operations.ts';
import type { IdempotencyRecord, ReservationRecord } from './store.ts';

/** The answer to a list of changes: all were made, or none. */
export type ChangeOutcome =
  | KeyedOutcome
  /** Nothing was changed. Each item's outcome is what it would have been after those before it that can be done. */
  | { ok: false; reason: 'refused'; items: ItemOutcome[] };

/** The answer to a list that was made, now or before under its idempotency key, or whose key is another request's. */
export type KeyedOutcome =
  | {
      ok: true;
      /** Of each item: for a deletion as it was, and in a replay null for what was deleted since. */
      records: (ReservationRecord | null)[];
      /** By how much the creates were moved, in milliseconds. */
      offset: number;
      /** Only in a replay, which changes nothing: the ids that the idempotency key stands for. */
      replayed?: readonly string[];
    }
  /** The idempotency key is another request's. */
  | { ok: false; reason: 'key_taken' };

/** How a list of changes is decided on. */
export interface ChangeTerms {
  /** Decide and answer, and write nothing. */
  dryRun?: boolean;
  /** Write nothing of a refusal: another route is looked for. */
  tentative?: boolean;
  /** The key of the whole list, under which it is done once. */
  keyed?: KeyedRequest;
  /** Move all creates by the smallest common offset at which all fit, so that none ends after this. Milliseconds. */
  earliest?: { until: number };
}

/**
 * The operation of a list of changes, one or more: all are made, or none. Each is decided on as if those before it had been
 * made, but for refused ones.
 *
 * @throws RangeError where there is no item, or as {@link itemOperation} does
 */
export function changeOperation(
  items: readonly ChangeItem[],
  terms: ChangeTerms,
  rules: AllocationRules,
): Operation<ChangeOutcome> {
  if (items.length === 0) throw new RangeError('a list of changes has an item');
  const needs = items.map((item) => itemOperation(item, rules));
  const { keyed, earliest } = terms;
  return {
    links: linksOf(needs),
    needs,
    key: keyed,
    decide(view) {
      const earlier = replayed(view, keyed);
      if (earlier) return earlier;
      if (!earliest) return concluded(view, decideItems(view, needs), 0, terms);
      const at = (offset: number): ItemOperation[] =>
        items.map((item) => itemOperation(movedBy(item, offset), rules));
      return firstOffset(view, { items, at }, earliest.until).then((found) => {
        const { attempt = decideItems(view, needs), offset = 0 } = found ?? {};
        return concluded(view, attempt, offset, terms);
      });
    },
  };
}

/**
 * The operation that writes the refusal of a list, which was decided on a snapshot.
 *
 * @param keyed the list may have been made meanwhile, under its idempotency key
 */
export function refusalOperation(
  refused: Decision<ChangeOutcome>,
  keyed: KeyedRequest | undefined,
): Operation<ChangeOutcome> {
  const links = refused.written.flatMap(({ audit }) => audit.map(({ link }) => link));
  return {
    links: [...new Set(links)].toSorted(),
    needs: [],
    key: keyed,
    decide: (view) => replayed(view, keyed) ?? refused,
  };
}

/** The decision on a list that was made before, under its idempotency key. */
function replayed(view: LinksView, keyed: KeyedRequest | undefined): Decision<KeyedOutcome> | undefined {
  const earlier = keyed && view.idempotencyRecord(keyed);
  if (!earlier) return undefined;
  const found = earlier.reservations.map((id) => view.reservation(id));
  return { answer: replayOf(earlier, keyed, found), written: [] };
}

function linksOf(needs: readonly ItemOperation[]): readonly string[] {
  const [first] = needs;
  if (first && needs.length === 1) return first.links;
  return [...new Set(needs.flatMap(({ links }) => links))].toSorted();
}

function movedBy(item: ChangeItem, offset: number): ChangeItem {
  if (item.action !== 'create') return item;
  const { start, end } = item.request;
  return { ...item, request: { ...item.request, start: start + offset, end: end + offset } };
}

/** A list that was decided on: the decision on each item, in their order. */
interface Attempt {
  decisions: Decision<ItemOutcome>[];
  /** How many changes the view had before. */
  before: number;
}

/** Decides on each item, and makes its changes in the view, but for the last one's, which no item sees. */
function decideItems(view: LinksView, operations: readonly ItemOperation[]): Attempt {
  const before = view.changes;
  const decisions: Decision<ItemOutcome>[] = [];
  try {
    for (const operation of operations) {
      applyLast(view, decisions);
      decisions.push(operation.decide(view));
    }
  } catch (error) {
    view.undo(before);
    throw error;
  }
  return { decisions, before };
}

function applyLast(view: LinksView, decisions: readonly Decision<ItemOutcome>[]): void {
  for (const { change } of decisions.at(-1)?.written ?? []) if (change) view.apply(change);
}

/** The decision on a list: all is written, or only the refusals where an item is refused; nothing in a dry run. */
function concluded(
  view: LinksView,
  { decisions, before }: Attempt,
  offset: number,
  { dryRun = false, tentative = false, keyed }: ChangeTerms,
): Decision<ChangeOutcome> {
  const answer = answerOf(decisions, offset);
  const written = tentative && !answer.ok ? [] : decisions.flatMap((decision) => decision.written);
  if (dryRun || !answer.ok) {
    view.undo(before);
    return { answer, written: written.filter(({ change }) => !change) };
  }
  applyLast(view, decisions);
  const [first] = written;
  if (!keyed || !first?.change) return { answer, written };
  const { createdBy, experiment, key, fingerprint } = keyed;
  const reservations = answer.records.map((record) => record?.id ?? '');
  const expires = view.now + KEY_LIFETIME;
  const record: IdempotencyRecord = { createdBy, experiment, key, fingerprint, reservations, expires };
  view.keep(record);
  first.change = { ...first.change, key: record };
  return { answer, written };
}

function answerOf(
  decisions: readonly Decision<ItemOutcome>[],
  offset: number,
): Exclude<ChangeOutcome, { reason: 'key_taken' }> {
  const items = decisions.map(({ answer }) => answer);
  const records = items.flatMap((item) => (item.ok ? item.record : []));
  return records.length === items.length
    ? { ok: true, records, offset }
    : { ok: false, reason: 'refused', items };
}

/**
 * The answer to a list whose idempotency key is taken.
 *
 * @param earlier what the key stands for
 * @param found its reservations as they are now; undefined for those that were deleted since
 */
export function replayOf(
  earlier: IdempotencyRecord,
  { fingerprint }: KeyedRequest,
  found: readonly (ReservationRecord | undefined)[],
): KeyedOutcome {
  if (earlier.fingerprint !== fingerprint) return { ok: false, reason: 'key_taken' };
  const records = found.map((record) => record ?? null);
  return { ok: true, records, offset: 0, replayed: earlier.reservations };
}

/** How many offsets are tried at most before a search is given up: each costs a decision on every item. */
const MOST_OFFSETS = 256;
/** How many are tried in one turn of the event loop at most, and in {@link MAX_BLOCKING_MS}: others have their turn before the next. */
const OFFSETS_IN_A_TURN = 16;

/** A list of which the creates move together. */
interface MovingList {
  items: readonly ChangeItem[];
  /** The items' operations with all creates moved by so many milliseconds. */
  at: (offset: number) => readonly ItemOperation[];
}

/**
 * Finds the smallest offset at which all items are accepted in their order. Between turns of the event loop nothing of the
 * list is in the calendars.
 *
 * @param until no create may end after this, in milliseconds
 * @returns the offset, with the list decided on there; undefined where there is none
 */
async function firstOffset(
  view: LinksView,
  list: MovingList,
  until: number,
): Promise<{ offset: number; attempt: Attempt } | undefined> {
  const lastEnd = Math.max(...list.items.map((item) => (item.action === 'create' ? item.request.end : 0)));
  let [began, end] = [performance.now(), OFFSETS_IN_A_TURN];
  for (let [offset, tries] = [0, 0]; tries < MOST_OFFSETS; tries += 1) {
    if (tries === end || performance.now() - began >= MAX_BLOCKING_MS) {
      await yieldToEventLoop();
      [began, end] = [performance.now(), tries + OFFSETS_IN_A_TURN];
    }
    const attempt = decideItems(view, list.at(offset));
    const failed = attempt.decisions.findIndex(({ answer }) => !answer.ok);
    if (failed < 0) return { offset, attempt };
    view.undo(attempt.before);
    const alone = startAlone(view, list, { attempt, failed, offset });
    const next = alone > offset ? alone : nextOffset(view, list, offset);
    if (lastEnd + next > until) return undefined;
    offset = next;
  }
  return undefined;
}

/**
 * The smallest offset, from one at which a create failed, at which it would be accepted after the updates and deletions before
 * it, without the list's other creates; infinity for a failure that no offset mends.
 */
function startAlone(
  view: LinksView,
  { items, at }: MovingList,
  { attempt, failed, offset }: { attempt: Attempt; failed: number; offset: number },
): number {
  const item = items[failed];
  const answer = attempt.decisions[failed]?.answer;
  if (item?.action !== 'create' || !answer || answer.ok || answer.reason !== 'refused')
    return Number.POSITIVE_INFINITY;
  const isFull = answer.refusals.some((refusal) => refusal.limit === 'share' && refusal.of === 'live');
  if (isFull) return Number.POSITIVE_INFINITY;
  const { demand, tenant } = answer;
  const earlier = at(offset).filter((_, index) => index < failed && items[index]?.action !== 'create');
  const { decisions, before } = decideItems(view, earlier);
  applyLast(view, decisions);
  const routes = at(offset)[failed]?.routes?.(view);
  const found = routes?.earliest(demand.start, demand.end - demand.start, demand.bandwidth, tenant);
  view.undo(before);
  return found === undefined ? Number.POSITIVE_INFINITY : found - item.request.start;
}

/** The next offset at which more can be free for some create: where one begins as a reservation ends. */
function nextOffset(view: LinksView, { items, at }: MovingList, offset: number): number {
  const operations = at(offset);
  const offsets = items.flatMap((item, index) => {
    if (item.action !== 'create') return [];
    const { start } = item.request;
    const ends = operations[index]?.links.flatMap(
      (link) => view.calendar(link).nextEnd(start + offset) ?? [],
    );
    return ends?.map((end) => end - start) ?? [];
  });
  return Math.min(...offsets);
}
