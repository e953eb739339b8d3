import { applyAccepted, type DecidedList, decideItems, decideOne, undoneTo } from './attempt.ts';
import type { Budget } from './budget.ts';
import { CommonOffset, movedBy } from './common-offset.ts';
import {
  type AllocationRules,
  type ChangeItem,
  type Decision,
  type ItemDecision,
  type ItemOperation,
  type ItemOutcome,
  itemOperation,
  KEY_LIFETIME,
  type KeyedRequest,
  type LinksView,
  type Operation,
} from './operations.ts';
import type { IdempotencyRecord, ReservationRecord } from './store.ts';
import type { AskedBy } from './user-lines.ts';

/** The answer to a list of changes: all were made, or none. */
export type ChangeOutcome =
  | KeyedOutcome
  /** Nothing was changed. Each item's outcome is what it would have been after those before it that can be done. */
  | {
      ok: false;
      reason: 'refused';
      items: ItemOutcome[];
      /** The search for a common offset was given up: none below this one fits. Milliseconds. */
      givenUpAt?: number;
    };

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
  /** Decide and answer, and write nothing. What is refused is told with what else is free. */
  dryRun?: boolean;
  /** Write nothing of a refusal: another route is looked for. */
  tentative?: boolean;
  /** The key of the whole list, under which it is done once. */
  keyed?: KeyedRequest;
  /** Move all creates by the smallest common offset at which all fit, so that none ends after this. Milliseconds. */
  earliest?: { until: number } | undefined;
  /** Who asks, for the part that is a question. */
  askedBy?: AskedBy | undefined;
}

/**
 * The operation of a list of changes, one or more: all are made, or none. Each is decided on as if those before it had been
 * made, but for refused ones.
 *
 * @param budget of a question: it may be asked again, and goes on
 * @throws RangeError where there is no item, or as {@link itemOperation} does
 */
export function changeOperation(
  items: readonly ChangeItem[],
  terms: ChangeTerms,
  rules: AllocationRules,
  budget?: Budget,
): Operation<ChangeOutcome> {
  if (items.length === 0) throw new RangeError('a list of changes has an item');
  const movedNeeds = (offset: number): ItemOperation[] =>
    items.map((item, index) =>
      itemOperation(
        movedBy(item, offset),
        budget ? { ...rules, asked: { budget, state: `item ${index}` } } : rules,
      ),
    );
  const needs = movedNeeds(0);
  const { keyed, earliest } = terms;
  const search = earliest && new CommonOffset(items, needs, { ...earliest, rules, budget: budget?.again() });
  function* decideInSteps(view: LinksView): Generator<void, Decision<ChangeOutcome>> {
    const found = search && (yield* search.find(view));
    const refused = found?.isRefused ? movedNeeds(found.offset) : needs;
    const attempt = found?.attempt ?? (yield* decideItems(view, refused, { budget }));
    const isOk = attempt.decisions.every(({ answer }) => answer.ok);
    if (terms.dryRun || !isOk) yield* undoneTo(view, attempt.before);
    const searched = found?.attempt ? found : { givenUpAt: found?.givenUpAt };
    return concluded(view, attempt, searched, terms);
  }
  return {
    links: linksOf(needs),
    needs,
    key: keyed,
    decide(view) {
      const earlier = replayed(view, keyed);
      if (earlier) return earlier;
      const [only, ...others] = needs;
      // Most lists have one change, and many of them wait: steps would cost each of them more than it needs.
      if (!only || search || others.length > 0) return decideInSteps(view);
      return concluded(view, decideOne(view, only, budget), {}, terms);
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

/** The decision on a list: all is written, or only the refusals where an item is refused; nothing in a dry run. */
function concluded(
  view: LinksView,
  { decisions }: DecidedList,
  searched: { offset?: number; givenUpAt?: number | undefined },
  { dryRun = false, tentative = false, keyed }: ChangeTerms,
): Decision<ChangeOutcome> {
  const answer = answerOf(decisions, searched);
  const written = tentative && !answer.ok ? [] : decisions.flatMap((decision) => decision.written);
  if (dryRun || !answer.ok) return { answer, written: written.filter(({ change }) => !change) };
  applyAccepted(view, decisions.at(-1));
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
  decisions: readonly ItemDecision[],
  { offset = 0, givenUpAt }: { offset?: number; givenUpAt?: number | undefined },
): Exclude<ChangeOutcome, { reason: 'key_taken' }> {
  const items = decisions.map(({ answer }) => answer);
  const records = items.flatMap((item) => (item.ok ? item.record : []));
  if (records.length === items.length) return { ok: true, records, offset };
  return { ok: false, reason: 'refused', items, ...(givenUpAt === undefined ? {} : { givenUpAt }) };
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
