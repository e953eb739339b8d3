import type { Link } from '../contract/links.ts';
import type { Demand } from './demand.ts';
import { linkId } from './network.ts';
import {
  type Decision,
  type LinkView,
  type Operation,
  type Outcome,
  offersFor,
  reasonOf,
} from './operation.ts';
import type { AuditEntry, IdempotencyKey, IdempotencyRecord, ReservationRecord } from './store.ts';

/** A new reservation to be decided on. */
export interface CreateRequest extends Demand {
  site1: string;
  site2: string;
  experiment: string;
  createdBy: string;
  /** When the experiment ends: no alternative is offered beyond it. Milliseconds. */
  expiry: number;
}

/** A request under an idempotency key, and what tells it from other requests under the same key. */
export interface KeyedRequest extends IdempotencyKey {
  /** Equal for equal requests. */
  fingerprint: string;
}

/** How long an idempotency key stands for its reservation (DESIGN.md, "List, links, …"): 24 h, in milliseconds. */
export const KEY_LIFETIME = 24 * 3600 * 1000;

/** The answer to a request whose idempotency key stands for a reservation already. */
export type Replay =
  /** The same request: its reservation, as it is now. */
  | { ok: true; record: ReservationRecord; replayed: true }
  /** The same request, whose reservation was deleted since. */
  | { ok: false; reason: 'deleted'; reservation: string }
  /** Another request. */
  | { ok: false; reason: 'key_taken' };

/** What the operation needs besides the request. */
export interface CreateTerms {
  link: Link;
  /** Makes the reservation's id. */
  newId: () => string;
  /** Decide and answer, and write nothing. */
  dryRun: boolean;
  /** How many reservations that have not ended one experiment may have, on all links. Default: any number. */
  maxLive?: number;
}

/**
 * The answer to a request whose idempotency key is taken.
 *
 * @param earlier what the key stands for
 * @param record its reservation; undefined when it was deleted since
 */
export function replayOf(
  earlier: IdempotencyRecord,
  { fingerprint }: KeyedRequest,
  record: ReservationRecord | undefined,
): Replay {
  if (earlier.fingerprint !== fingerprint) return { ok: false, reason: 'key_taken' };
  return record
    ? { ok: true, record, replayed: true }
    : { ok: false, reason: 'deleted', reservation: earlier.reservation };
}

/** Creates a reservation; under an idempotency key, at most one. */
export function createOperation(
  request: CreateRequest,
  keyed: KeyedRequest | undefined,
  terms: CreateTerms,
): Operation<Outcome | Replay> {
  return {
    ...(terms.maxLive === undefined ? {} : { counts: request.experiment }),
    ...(keyed ? { key: keyed } : {}),
    from: () => request.start,
    decide(view) {
      if (!keyed) return decide(view, request, terms);
      const earlier = view.idempotencyRecord(keyed);
      if (earlier) return { answer: replayOf(earlier, keyed, view.reservation(earlier.reservation)) };
      const { change, ...decision } = decide(view, request, terms);
      if (!change) return decision;
      const { createdBy, experiment, key, fingerprint } = keyed;
      const [reservation, expires] = [change.record.id, view.now + KEY_LIFETIME];
      const record = { createdBy, experiment, key, fingerprint, reservation, expires };
      return { ...decision, change: { ...change, key: record } };
    },
  };
}

function decide(view: LinkView, request: CreateRequest, terms: CreateTerms): Decision<Outcome> {
  const { site1, site2, start, end, bandwidth, experiment, createdBy } = request;
  const { link, newId, dryRun, maxLive = Number.POSITIVE_INFINITY } = terms;
  const { now, calendar } = view;
  const demand = { start, end, bandwidth };
  const entry = { at: now, action: 'book', by: createdBy, experiment, demand } as const;
  const plan = calendar.plan(demand, now, { experiment });
  const live = Number.isFinite(maxLive) ? view.live(experiment) : 0;
  if (!plan.accepted || live >= maxLive) {
    const tooMany = { limit: 'share', of: 'live', held: live, allowed: maxLive, start, end } as const;
    const [first, ...rest] = [...(plan.accepted ? [] : plan.refusals), ...(live >= maxLive ? [tooMany] : [])];
    const refusals = [first ?? tooMany, ...rest] as const;
    // With too many live reservations, no other demand would be accepted either.
    const offers =
      live >= maxLive ? [] : offersFor(demand, calendar, experiment, { from: start, expiry: request.expiry });
    const audit: AuditEntry = { ...entry, reservation: null, tags: null, why: reasonOf(refusals) };
    return { answer: { ok: false, reason: 'refused', link, refusals, offers }, ...(dryRun ? {} : { audit }) };
  }
  const { tags } = plan;
  const record: ReservationRecord = {
    id: newId(),
    link: linkId(site1, site2),
    reversed: site1 !== link.site1,
    ...demand,
    tags,
    experiment,
    createdBy,
    createdAt: now,
  };
  const answer: Outcome = { ok: true, record };
  if (dryRun) return { answer };
  const audit: AuditEntry = { ...entry, reservation: record.id, tags, why: null };
  return { answer, change: { action: 'book', record }, audit };
}
