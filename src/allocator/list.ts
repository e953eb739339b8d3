import { CommonOffset, type FoundOffset, movedBy } from './common-offset.ts';
import {
  type AllocationRules,
  type ChangeItem,
  type Decision,
  decideItems,
  type ItemDecision,
  type ItemOperation,
  type ItemOutcome,
  itemOperation,
  KEY_LIFETIME,
  type KeyedRequest,
  searchOf,
} from './decide.ts';
import type { Period } from './demand.ts';
import { atOnce, type Steps } from './steps.ts';
import type { IdempotencyRecord, ReservationRecord } from './store.ts';
import type { LinksView, Needs } from './view.ts';

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

/** A time of a link, in milliseconds. */
export interface Look {
  link: string;
  period: Period;
}

/** An operation: it names the rows that it needs, and then decides, as a function of what was read. */
export interface Operation extends Needs {
  /** How many changes it has. */
  readonly size: number;
  /** Whether it looks for a time, which may take long. */
  readonly isSearch: boolean;
  /** What it looks at first. */
  looks(known: Pick<LinksView, 'reservation'>): readonly Look[];
  decide(view: LinksView): Steps<Decision<ChangeOutcome>>;
}

/** How a list of changes is decided on. */
export interface ListTerms {
  /** Tell what else is free for each item that is refused. */
  explains?: boolean;
  /** Write nothing of a refusal: another route is looked for. */
  tentative?: boolean;
  /** The key of the whole list, under which it is done once. */
  keyed?: KeyedRequest | undefined;
  /** Move all creates by the smallest common offset at which all fit, so that none ends after this. Milliseconds. */
  earliest?: { until: number } | undefined;
}

/**
 * The operation of a list of changes, one or more: all are made, or none. Each is decided on as if those before it had been
 * made, but for refused ones.
 *
 * @throws RangeError for an empty list; {@link itemOperation} throws it too
 */
export function listOperation(
  items: readonly ChangeItem[],
  { explains = false, tentative = false, keyed, earliest }: ListTerms,
  rules: AllocationRules,
): Operation {
  if (items.length === 0) throw new RangeError('a list of changes has an item');
  const moved = (offset: number): ItemOperation[] =>
    items.map((item) => itemOperation(movedBy(item, offset), rules));
  const operations = moved(0);
  return {
    links: [...new Set(operations.flatMap(({ links }) => links))].toSorted(),
    size: items.length,
    isSearch: earliest !== undefined || items.some(isSearched),
    about: [...new Set(operations.flatMap(({ about }) => about ?? []))],
    counted: [...new Set(operations.flatMap(({ counts }) => counts ?? []))],
    named: operations.flatMap(({ named }) => named ?? []),
    keys: keyed ? [keyed] : [],
    looks: (known) =>
      operations.flatMap(({ links, period }) => {
        const looked = period(known);
        return looked ? links.map((link) => ({ link, period: looked })) : [];
      }),
    *decide(view) {
      const earlier = replayed(view, keyed);
      if (earlier) return earlier;
      const before = view.changes;
      const search = earliest && new CommonOffset(items, operations, { ...earliest, rules });
      const found = search && (yield* search.find(view));
      const refused = found?.isRefused ? moved(found.offset) : operations;
      const decisions = found?.attempt ?? (yield* decideItems(view, refused, { explains }));
      const answer = answerOf(decisions, found);
      const written = decisions.flatMap((decision) => decision.written);
      if (!answer.ok) {
        view.undo(before);
        return { answer, written: tentative ? [] : written.filter(({ change }) => !change) };
      }
      const [first] = written;
      if (keyed && first?.change) {
        const { createdBy, experiment, key, fingerprint } = keyed;
        const reservations = answer.records.map((record) => record?.id ?? '');
        const expires = view.now + KEY_LIFETIME;
        const record = { createdBy, experiment, key, fingerprint, reservations, expires };
        view.keep(record);
        first.change = { ...first.change, key: record };
      }
      return { answer, written };
    },
  };
}

/** Whether the service finds a create's period, which can be another one on another route. */
export function isSearched(item: ChangeItem): boolean {
  return item.action === 'create' && searchOf(item.request) !== undefined;
}

/**
 * The operation that writes the refusal of a list, which was decided on a snapshot.
 *
 * @param keyed the list may have been made meanwhile, under its idempotency key
 */
export function refusalOperation(
  refused: Decision<ChangeOutcome>,
  keyed: KeyedRequest | undefined,
): Operation {
  const links = refused.written.flatMap(({ audit }) => audit.map(({ link }) => link));
  return {
    links: [...new Set(links)].toSorted(),
    size: 1,
    isSearch: false,
    about: [],
    counted: [],
    named: [],
    keys: keyed ? [keyed] : [],
    looks: () => [],
    decide: (view) => atOnce(replayed(view, keyed) ?? refused),
  };
}

/** The decision on a list that was made before, under its idempotency key. */
function replayed(view: LinksView, keyed: KeyedRequest | undefined): Decision<KeyedOutcome> | undefined {
  const earlier = keyed && view.earlier(keyed);
  if (!earlier) return undefined;
  const found = earlier.reservations.map((id) => view.reservation(id));
  return { answer: replayOf(earlier, keyed, found), written: [] };
}

function answerOf(
  decisions: readonly ItemDecision[],
  found: FoundOffset | undefined,
): Exclude<ChangeOutcome, { reason: 'key_taken' }> {
  const items = decisions.map(({ answer }) => answer);
  const records = items.flatMap((item) => (item.ok ? item.record : []));
  if (records.length === items.length) {
    return { ok: true, records, offset: found?.attempt ? found.offset : 0 };
  }
  const givenUpAt = found?.givenUpAt;
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
