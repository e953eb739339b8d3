import { MINUTE } from '../contract/durations.ts';
import { type AlternativeKind, MAX_FREE_PARTS } from '../contract/problems.ts';
import type { Demand, Period } from './demand.ts';
import { roundDown } from './fastest.ts';
import type { RouteUse } from './route-use.ts';
import { sitesOf } from './routes.ts';
import { type Steps, TooMuchError } from './steps.ts';

/**
 * A demand that would be accepted now in place of a refused one, the best of its kind that is worth having.
 *
 * `most_bandwidth`: the same period with as much as is free. `other_route`: the same demand over the best of the longer routes.
 * `earliest`: the same bandwidth, and the same duration or up to a minute less, as early as it can start. `longest`: the same
 * start and bandwidth, as late as it can end.
 */
export type Offer = {
  kind: AlternativeKind;
  /** Of `other_route`: the sites that it passes, in order. */
  via?: string[];
  /** To be asked for with `start_now`, within {@link STAYS_TRUE}; its start is that of the refused demand. */
  startsNow: boolean;
} & Demand;

/** An offer's times are whole minutes, unless they are those that were asked for, or the expiry. In milliseconds. */
export const OFFERED_UNIT = MINUTE;

/** An offer has at least a tenth of the bandwidth, and of the length, that was asked for. */
const TENTH = 10;

/** Whether a period that is shorter than was asked for is worth having. @param length of both, in milliseconds */
export function isLongEnough(length: number, asked: number): boolean {
  return length >= 10 * MINUTE && TENTH * length >= asked;
}

/** For how long an offer that starts now stays true, unless something else is booked: 1 s, in milliseconds. */
export const STAYS_TRUE = 1000;

/** Routes with more hops than those which are taken where nothing is asked. */
export interface LongerRoutes {
  use: RouteUse;
  /** The site at which they begin. */
  site1: string;
}

/** The terms of an offer, besides the refused demand. */
export interface OfferTerms {
  /** For an update, without the reservation. */
  use: RouteUse;
  /** Opens the routes with more hops, if there are any. Default: none, as for a demand that names its route. */
  longer?: () => LongerRoutes | undefined;
  /** Whose share counts. */
  tenant: string;
  /** Milliseconds. */
  now: number;
  /** Nothing is offered that ends later. Milliseconds. */
  expiry: number;
  /** Of a search: what is found has times that are multiples of so many milliseconds. Default: 1. */
  unit?: number | undefined;
  /** Whether the refused request said `start_now`. */
  startsNow: boolean;
  /** The reservation that was to be updated: a share counts only for what goes beyond it, and it is not offered itself. */
  current?: Demand;
  /** Whether another start may be offered. Default: yes. */
  movable?: boolean;
  /** Whether an offer keeps to the caller's rules. Default: yes. */
  allows?: (offer: Demand) => boolean;
}

/**
 * Looks for offers in place of a refused demand: one of each kind at most, in the order of {@link Offer}.
 *
 * @param found is given them one by one
 */
export function* offersFor(demand: Demand, terms: OfferTerms, found: Offer[]): Steps<void> {
  const { tenant, now, expiry, startsNow, current, movable = true, allows } = terms;
  const { start, end, bandwidth } = demand;
  const lasts = (until: number): boolean => until > now + (startsNow ? STAYS_TRUE : 0);
  if (current && !lasts(current.end)) return;
  const offer = (each: Offer): void => {
    const isNew = !(current && isSame(each, current));
    if (lasts(each.end) && isNew && (allows?.(each) ?? true)) found.push(each);
  };
  // Another start that has passed can't be asked for again.
  const canStart = startsNow || start >= now || start === current?.start;
  const most = canStart ? yield* mostBandwidth(demand, terms) : 0;
  if (isEnough(most, bandwidth)) offer({ kind: 'most_bandwidth', startsNow, start, end, bandwidth: most });
  const longer = canStart ? terms.longer?.() : undefined;
  const via = longer && (yield* otherRoute(demand, longer, tenant));
  if (via) offer({ kind: 'other_route', startsNow, ...demand, via });
  const duration = end - start;
  const later = movable ? yield* earliest(demand, terms) : Number.POSITIVE_INFINITY;
  if (later + duration <= expiry) {
    const until = later + duration;
    // A length of less than a minute stays as it is.
    const whole = until === expiry ? until : roundDown(until, OFFERED_UNIT);
    offer({
      ...{ kind: 'earliest', startsNow: false, start: later, bandwidth },
      end: whole > later ? whole : until,
    });
  }
  const until = canStart ? yield* latestEnd(demand, terms) : start;
  if (isLongEnough(until - start, duration))
    offer({ kind: 'longest', startsNow, start, end: until, bandwidth });
}

/** The earliest start that can be offered: a start at once has passed by the time it is asked for. */
export function firstStart(start: number, { now, startsNow }: Pick<OfferTerms, 'now' | 'startsNow'>): number {
  return Math.max(start, now) + (startsNow ? STAYS_TRUE : 0);
}

/** Whether an offer has enough of the bandwidth that was asked for. */
export function isEnough(bandwidth: number, asked: number): boolean {
  return bandwidth > 0 && TENTH * bandwidth >= asked;
}

/** The sites that the best longer route for a demand passes; undefined where none carries it. */
export function* otherRoute(
  demand: Demand,
  { use, site1 }: LongerRoutes,
  tenant: string,
): Steps<string[] | undefined> {
  const plan = yield* use.plan(demand, { tenant });
  return plan.accepted ? sitesOf(plan.route, site1).slice(1, -1) : undefined;
}

function* mostBandwidth(demand: Demand, { use, tenant, current }: OfferTerms): Steps<number> {
  const most = yield* use.freeBandwidth(demand, tenant);
  if (!current || demand.start < current.start || demand.end > current.end) return most;
  return Math.max(most, Math.min(current.bandwidth, yield* use.freeBandwidth(demand)));
}

function* earliest({ start, end, bandwidth }: Demand, terms: OfferTerms): Steps<number> {
  const { use, tenant, current, expiry } = terms;
  const duration = end - start;
  const sought = { start: firstStart(start, terms), end: expiry, bandwidth, duration, unit: OFFERED_UNIT };
  const first = (yield* use.earliest({ ...sought, tenant })) ?? Number.POSITIVE_INFINITY;
  if (!current || bandwidth > current.bandwidth) return first;
  const from = Math.max(sought.start, current.start);
  const within = yield* use.earliest({ ...sought, start: from, end: current.end });
  return within === undefined ? first : Math.min(first, within);
}

function* latestEnd(demand: Demand, { use, tenant, current, expiry }: OfferTerms): Steps<number> {
  const { start, end, bandwidth } = demand;
  let last = (yield* use.freeUntil(demand, tenant)) ?? start;
  if (current && bandwidth <= current.bandwidth && start >= current.start) {
    const within = Math.min(end, current.end);
    const own = start < within ? yield* use.freeUntil({ start, end: within, bandwidth }) : undefined;
    last = Math.max(last, own ?? start);
  }
  // An end that is there already, or can't be later, stays as it is.
  return last === expiry || last === current?.end ? last : roundDown(last, OFFERED_UNIT);
}

function isSame(one: Demand, other: Demand): boolean {
  return one.start === other.start && one.end === other.end && one.bandwidth === other.bandwidth;
}

/** The bandwidth that is free in the period of a refused demand, and the offers in its place. */
export interface Explanation {
  /** The period that was asked for in at most {@link MAX_FREE_PARTS} parts, with the Mbps that are free throughout each. */
  free: Demand[];
  offers: Offer[];
  /** The question was given up before each kind of offer was looked for. */
  isGivenUp?: true;
}

/** Nothing was looked for. */
export const UNEXPLAINED: Explanation = { free: [], offers: [] };

/** The free capacity over a period, and the offers that are found before the question is given up. */
export function* explained(
  use: RouteUse,
  period: Period,
  offers: (found: Offer[]) => Steps<void>,
): Steps<Explanation> {
  const explanation: Explanation = { free: [], offers: [] };
  try {
    const columns = yield* use.columns(period, MAX_FREE_PARTS);
    explanation.free = columns.map(({ start, end, bandwidth }) => ({ start, end, bandwidth }));
    yield* offers(explanation.offers);
  } catch (error) {
    if (!(error instanceof TooMuchError)) throw error;
    explanation.isGivenUp = true;
  }
  return explanation;
}
