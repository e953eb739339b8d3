import type { Link } from '../contract/links.ts';
import type { Demand } from './demand.ts';
import { linkId } from './network.ts';
import { offersFor } from './offers.ts';
import { type Outcome, reasonOf } from './outcome.ts';
import type { LinkView, Question, Verdict } from './question.ts';
import { KEY_LIFETIME, type KeyedRequest, type Repetition, repetitionOf } from './repetition.ts';
import type { AuditEntry, ReservationRecord } from './store.ts';

/** A new reservation to be decided on. */
export interface BookingRequest extends Demand {
  site1: string;
  site2: string;
  experiment: string;
  createdBy: string;
  /** When the experiment ends: no alternative is offered beyond it. Milliseconds. */
  expiry: number;
}

/** What the question of a booking needs besides the request. */
export interface BookingTerms {
  link: Link;
  /** Makes the reservation's id. */
  newId: () => string;
  /** Decide and answer, and leave nothing behind. */
  dryRun: boolean;
  /** How many reservations that have not ended one experiment may have, on all links. Default: any number. */
  maxLive?: number;
}

/** Whether a link can be had. */
export function bookingQuestion(request: BookingRequest, terms: BookingTerms): Question<Outcome> {
  return {
    ...counted(request, terms),
    from: () => request.start,
    decide: (view) => decide(view, request, terms),
  };
}

/** Whether a link can be had under a key that stands for one reservation at most. */
export function keyedBookingQuestion(
  request: BookingRequest & KeyedRequest,
  terms: BookingTerms,
): Question<Outcome | Repetition> {
  const { createdBy, experiment, key, fingerprint } = request;
  return {
    ...counted(request, terms),
    key: { createdBy, experiment, key },
    from: () => request.start,
    decide(view) {
      const earlier = view.remembered(request);
      if (earlier) return { answer: repetitionOf(earlier, request, view.reservation(earlier.reservation)) };
      const { change, ...verdict } = decide(view, request, terms);
      if (!change) return verdict;
      const expires = view.now + KEY_LIFETIME;
      const kept = { createdBy, experiment, key, fingerprint, reservation: change.record.id, expires };
      return { ...verdict, change: { ...change, key: kept } };
    },
  };
}

function counted({ experiment }: BookingRequest, { maxLive }: BookingTerms): { counts?: string } {
  return maxLive === undefined ? {} : { counts: experiment };
}

function decide(view: LinkView, request: BookingRequest, terms: BookingTerms): Verdict<Outcome> {
  const { site1, site2, start, end, bandwidth, experiment, createdBy } = request;
  const { link, newId, dryRun, maxLive = Number.POSITIVE_INFINITY } = terms;
  const { now, calendar } = view;
  const demand = { start, end, bandwidth };
  const entry = { at: now, action: 'book', by: createdBy, experiment, demand } as const;
  const decision = calendar.decide(demand, now, { experiment });
  const live = Number.isFinite(maxLive) ? view.live(experiment) : 0;
  if (!decision.accepted || live >= maxLive) {
    const tooMany = { limit: 'share', of: 'live', held: live, allowed: maxLive, start, end } as const;
    const [first, ...rest] = [
      ...(decision.accepted ? [] : decision.refusals),
      ...(live >= maxLive ? [tooMany] : []),
    ];
    const refusals = [first ?? tooMany, ...rest] as const;
    // With too many live ones, nothing else would be accepted either.
    const offers =
      live >= maxLive ? [] : offersFor(demand, calendar, experiment, { from: start, expiry: request.expiry });
    const audit: AuditEntry = { ...entry, reservation: null, tags: null, why: reasonOf(refusals) };
    return { answer: { ok: false, reason: 'refused', link, refusals, offers }, ...(dryRun ? {} : { audit }) };
  }
  const { tags } = decision;
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
