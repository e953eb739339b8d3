import type { Link } from '../contract/links.ts';
import type { LinkCalendar, Refusal } from './calendar.ts';
import type { Demand } from './demand.ts';
import type {
  AuditEntry,
  IdempotencyKey,
  IdempotencyRecord,
  ReservationRecord,
  WrittenChange,
} from './store.ts';

/**
 * What waits in a link's queue: it names what must be read for it, and then decides, as a pure function of what was
 * read. `createOperation`, `updateOperation` and `deleteOperation` make them.
 */
export interface Operation<Answer> {
  /** The id of the reservation to read. */
  readonly about?: string;
  /** The idempotency key to lock and read. */
  readonly key?: IdempotencyKey;
  /** The experiment whose live reservations are counted. */
  readonly counts?: string;
  /** The earliest instant that it looks at, in milliseconds; undefined when it needs no calendar. */
  from(view: Pick<LinkView, 'reservation'>): number | undefined;
  decide(view: LinkView): Decision<Answer>;
}

/** The result of an operation: the answer, the change to write, and its row in the audit. */
export interface Decision<Answer> {
  answer: Answer;
  change?: WrittenChange;
  audit?: AuditEntry;
}

/** A link as an operation sees it: with the changes of the operations before it in the same transaction. */
export interface LinkView {
  /** Milliseconds. */
  now: number;
  /** @throws RangeError for an operation whose `from` is undefined */
  readonly calendar: LinkCalendar;
  /** The reservation that the operation is about, or that its key stands for; undefined when it was deleted. */
  reservation(id: string): ReservationRecord | undefined;
  /** How many reservations of the experiment have not ended, on all links. @throws RangeError when they were not counted */
  live(experiment: string): number;
  /** What the operation's key stands for; undefined when the key is free. */
  idempotencyRecord(key: IdempotencyKey): IdempotencyRecord | undefined;
}

/** The answer to a create or an update. Refusals are values: they are everyday outcomes, not faults. */
export type Outcome = { ok: true; record: ReservationRecord } | RefusedOutcome;

/** A demand that can't be met: every limit that it broke, and what would be accepted in its place. */
export interface RefusedOutcome {
  ok: false;
  reason: 'refused';
  link: Link;
  refusals: readonly [Refusal, ...Refusal[]];
  offers: Offer[];
}

/** A demand that would be accepted now in place of the refused one. */
export type Offer = Demand;

/**
 * Offers in place of a refused demand: the same period with as much bandwidth as is free, and the same bandwidth and
 * duration at the earliest possible start.
 *
 * @param experiment whose share counts
 * @param later where to look for another start, in milliseconds; undefined when the start can't change
 */
export function offersFor(
  demand: Demand,
  calendar: LinkCalendar,
  experiment: string,
  later: { from: number; expiry: number } | undefined,
): Offer[] {
  const { bandwidth } = demand;
  const most = calendar.most(demand, experiment);
  const offers: Offer[] = most > 0 ? [{ start: demand.start, end: demand.end, bandwidth: most }] : [];
  if (!later) return offers;
  const duration = demand.end - demand.start;
  const start = calendar.earliest(later.from, duration, bandwidth, experiment);
  if (start !== undefined && start + duration <= later.expiry) {
    offers.push({ start, end: start + duration, bandwidth });
  }
  return offers;
}

/**
 * A refusal in a few words, for the audit: "bandwidth: 400 of 1000 Mbps free", "tags: no site1_s_tag of 100 free",
 * "share: 400 of 500 Mbps held".
 */
export function reasonOf(refusals: readonly Refusal[]): string {
  return refusals.map(wordsOf).join('; ');
}

function wordsOf(refusal: Refusal): string {
  if (refusal.limit === 'bandwidth') {
    return `bandwidth: ${refusal.free} of ${refusal.capacity} Mbps free`;
  }
  if (refusal.limit === 'tags') return `tags: no ${refusal.place} of ${refusal.total} free`;
  const counted = { bandwidth: 'Mbps held', tags: 'tags held', live: 'live reservations' }[refusal.of];
  return `share: ${refusal.held} of ${refusal.allowed} ${counted}`;
}
