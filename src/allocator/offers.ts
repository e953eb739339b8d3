import { MAX_FREE_PARTS } from '../contract/problems.ts';
import { BudgetSpentError } from './budget.ts';
import type { Demand, Period } from './demand.ts';
import type { RouteCalendar } from './route-calendar.ts';

/**
 * A demand that would be accepted now in place of a refused one, the best of its kind.
 *
 * `most_bandwidth`: the same period with as much as is free. `earliest`: the same bandwidth and duration, as early as it
 * can start. `longest`: the same start and bandwidth, as late as it can end.
 */
export type Offer = {
  kind: 'most_bandwidth' | 'earliest' | 'longest';
  /** To be asked for with `start_now`, within {@link STAYS_TRUE}; its start is that of the refused demand. */
  startsNow: boolean;
} & Demand;

/** For how long an offer that starts now stays true, unless something else is booked: 1 s, in milliseconds. */
export const STAYS_TRUE = 1000;

/** The terms of an offer, besides the refused demand. */
export interface OfferTerms {
  /** For an update, without the reservation. */
  calendar: RouteCalendar;
  /** Whose share counts. */
  tenant: string;
  /** Milliseconds. */
  now: number;
  /** Nothing is offered that ends later. Milliseconds. */
  expiry: number;
  /** Whether the refused request said `start_now`. */
  startsNow: boolean;
  /** The reservation that was to be updated: a share counts only for what goes beyond it, and it is not offered itself. */
  current?: Demand;
  /** Whether another start may be offered. Default: yes. */
  movable?: boolean;
  /** Whether an offer keeps to the caller's rules. Default: yes. */
  allows?: (offer: Demand) => boolean;
}

/** Offers in place of a refused demand: one of each kind at most, in the order of {@link Offer}; each is looked for when it is asked for. */
export function* offersFor(demand: Demand, terms: OfferTerms): Generator<Offer> {
  const { now, startsNow, current, allows } = terms;
  const lasts = (until: number): boolean => until > now + (startsNow ? STAYS_TRUE : 0);
  if (current && !lasts(current.end)) return;
  for (const offer of eachKind(demand, terms)) {
    const isNew = !(current && isSame(offer, current));
    if (lasts(offer.end) && isNew && (allows?.(offer) ?? true)) yield offer;
  }
}

function* eachKind(demand: Demand, terms: OfferTerms): Generator<Offer> {
  const { now, expiry, startsNow, current, movable = true } = terms;
  const { start, end, bandwidth } = demand;
  // Another start that has passed can't be asked for again.
  const canStart = startsNow || start >= now || start === current?.start;
  const most = canStart ? mostBandwidth(demand, terms) : 0;
  if (most > 0) yield { kind: 'most_bandwidth', startsNow, start, end, bandwidth: most };
  const duration = end - start;
  const later = movable ? earliest(demand, terms) : Number.POSITIVE_INFINITY;
  if (later + duration <= expiry) {
    yield { kind: 'earliest', startsNow: false, start: later, end: later + duration, bandwidth };
  }
  const until = canStart ? latestEnd(demand, terms) : start;
  if (until > start) yield { kind: 'longest', startsNow, start, end: until, bandwidth };
}

/** The earliest start that can be offered: a start at once has passed by the time it is asked for. */
export function firstStart(start: number, { now, startsNow }: Pick<OfferTerms, 'now' | 'startsNow'>): number {
  return Math.max(start, now) + (startsNow ? STAYS_TRUE : 0);
}

function mostBandwidth(demand: Demand, { calendar, tenant, current }: OfferTerms): number {
  const most = calendar.freeBandwidth(demand, tenant);
  if (!current || demand.start < current.start || demand.end > current.end) return most;
  return Math.max(most, Math.min(current.bandwidth, calendar.freeBandwidth(demand)));
}

function earliest({ start, end, bandwidth }: Demand, terms: OfferTerms): number {
  const { calendar, tenant, current } = terms;
  const [from, duration] = [firstStart(start, terms), end - start];
  const first = calendar.earliest(from, duration, bandwidth, tenant) ?? Number.POSITIVE_INFINITY;
  if (!current || bandwidth > current.bandwidth) return first;
  const within = calendar.earliest(Math.max(from, current.start), duration, bandwidth);
  return within !== undefined && within + duration <= current.end ? Math.min(first, within) : first;
}

function latestEnd({ start, end, bandwidth }: Demand, terms: OfferTerms): number {
  const { calendar, tenant, current } = terms;
  const last = calendar.freeUntil(start, bandwidth, end, tenant) ?? start;
  if (!current || bandwidth > current.bandwidth || start < current.start) return last;
  const within = Math.min(end, current.end);
  return Math.max(last, (start < within && calendar.freeUntil(start, bandwidth, within)) || start);
}

function isSame(one: Demand, other: Demand): boolean {
  return one.start === other.start && one.end === other.end && one.bandwidth === other.bandwidth;
}

/** The bandwidth that is free in the period of a refused demand, and the offers in its place. */
export interface Explanation {
  /** The period that was asked for in at most {@link MAX_FREE_PARTS} parts, with the Mbps that are free throughout each. */
  free: Demand[];
  offers: Offer[];
  /** The question's budget was spent before each kind of offer was looked for. */
  isGivenUp?: true;
}

/** Nothing was looked for. */
export const UNEXPLAINED: Explanation = { free: [], offers: [] };

/** The free capacity over a period, and the offers that are found before the question's budget is spent. */
export function explained(calendar: RouteCalendar, period: Period, offers: Iterable<Offer>): Explanation {
  const explanation: Explanation = { free: [], offers: [] };
  try {
    explanation.free = calendar
      .columns(period, MAX_FREE_PARTS)
      .map(({ start, end, bandwidth }) => ({ start, end, bandwidth }));
    for (const offer of offers) explanation.offers.push(offer);
  } catch (error) {
    if (!(error instanceof BudgetSpentError)) throw error;
    explanation.isGivenUp = true;
  }
  return explanation;
}
