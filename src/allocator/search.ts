import type { Demand } from './demand.ts';
import { durationOf, roundUp, slowestRate } from './fastest.ts';
import {
  firstStart,
  isEnough,
  OFFERED_UNIT,
  type Offer,
  type OfferTerms,
  offersFor,
  otherRoute,
} from './offers.ts';
import type { RoutePlan, Sending } from './route-use.ts';
import { type Steps, TooMuchError } from './steps.ts';

/** A search that the service is asked for: a period of so many milliseconds, or a transfer of so many bytes at one rate. */
export type Search = { duration: number } | { volume: number };

/** A volume, in bytes, that the most Mbps it may use can't carry within its window. */
export interface TooLow {
  volume: number;
  most: number;
}

/** That in a few words, for the audit. @param needed what would carry it */
export function tooLowReason({ most }: TooLow, needed: Demand): string {
  return `bandwidth: at most ${most} of ${needed.bandwidth} Mbps needed`;
}

/** The demand that a request comes to, how it would be met, and, where it can't be, what would be accepted instead. */
interface Judgement {
  demand: Demand;
  plan: RoutePlan;
  /** Why a volume is refused whatever is free: see {@link TooLow}. */
  tooLow?: TooLow;
  /** Looks for what would be accepted, and adds it to what was found, one by one. */
  offers: (found: Offer[]) => Steps<void>;
}

/** Judges a demand as it was asked for. */
export function* judge(demand: Demand, terms: OfferTerms): Steps<Judgement> {
  const { use, tenant } = terms;
  return {
    demand,
    plan: yield* use.plan(demand, { tenant }),
    offers: (found) => offersFor(demand, terms, found),
  };
}

/**
 * Finds a demand within a window. Where there is none, it judges the demand that comes closest.
 *
 * @param window its bandwidth is that of the period, or the most that the transfer may use
 */
export function judgeSearch(window: Demand, search: Search, terms: OfferTerms): Steps<Judgement> {
  if ('duration' in search) return earliestIn(window, search.duration, terms);
  return fastestIn(window, search.volume, terms);
}

/** The earliest start. In its place: the most for which some period fits in the window, or a start after it. */
function* earliestIn(window: Demand, duration: number, terms: OfferTerms): Steps<Judgement> {
  const { start, end, bandwidth } = window;
  const { use, tenant, expiry } = terms;
  const at = (start: number, bandwidth: number): Demand => ({ start, end: start + duration, bandwidth });
  const first = yield* use.earliest({ ...window, duration, tenant, unit: terms.unit });
  if (first !== undefined) return yield* judge(at(first, bandwidth), terms);
  const offered = { start: firstStart(start, terms), end, bandwidth, duration, tenant, unit: OFFERED_UNIT };
  const { most = 0, best, spent } = yield* closest();
  return {
    ...(yield* judge(at(best ?? start, bandwidth), terms)),
    *offers(found) {
      const offer = (kind: Offer['kind'], demand: Demand, via?: string[]): void => {
        found.push({ kind, startsNow: false, ...demand, ...(via ? { via } : {}) });
      };
      if (best !== undefined && isEnough(most, bandwidth)) offer('most_bandwidth', at(best, most));
      const longer = terms.longer?.();
      const over = longer && (yield* longer.use.earliest(offered));
      if (longer && over !== undefined) {
        const via = yield* otherRoute(at(over, bandwidth), longer, tenant);
        if (via) offer('other_route', at(over, bandwidth), via);
      }
      const later = yield* use.earliest({ ...offered, end: expiry });
      if (later !== undefined) offer('earliest', at(later, bandwidth));
      if (spent) throw spent;
    },
  };

  /** The most for which a period fits in the window, and the first one. That none fits for what was asked for is known by then. */
  function* closest(): Steps<{ most?: number; best?: number | undefined; spent?: TooMuchError }> {
    try {
      const most = yield* use.mostBandwidth(offered, tenant);
      return { most, best: most > 0 ? yield* use.earliest({ ...offered, bandwidth: most }) : undefined };
    } catch (error) {
      if (error instanceof TooMuchError) return { spent: error };
      throw error;
    }
  }
}

/** The transfer that ends first. Where there is none, it offers the transfer that ends first after the deadline. */
function* fastestIn(window: Demand, volume: number, terms: OfferTerms): Steps<Judgement> {
  const { use, tenant, expiry, unit } = terms;
  const found = yield* fastestWithin({ ...window, volume, unit }, terms);
  if (found) return yield* judge(found, terms);
  const { start, end, bandwidth: most } = window;
  const { capacity } = use;
  const needed = { start, end, bandwidth: slowestRate(volume, end - start) };
  const { plan } = yield* judge(needed, terms);
  const isTooLow = most < capacity && most < needed.bandwidth;
  const free = plan.accepted ? yield* use.freeBandwidth(window) : 0;
  return {
    demand: needed,
    plan: plan.accepted
      ? {
          accepted: false,
          link: use.first,
          refusals: [{ limit: 'bandwidth', capacity, free, start, end }],
        }
      : plan,
    ...(isTooLow ? { tooLow: { volume, most } } : {}),
    *offers(offered) {
      const sought = { ...window, volume, start: firstStart(window.start, terms), unit: OFFERED_UNIT };
      const longer = terms.longer?.();
      const over = longer && (yield* fastestWithin(sought, { ...terms, use: longer.use }));
      const via = longer && over && (yield* otherRoute(over, longer, tenant));
      if (over && via) offered.push({ kind: 'other_route', startsNow: false, ...over, via });
      const later = yield* fastestWithin({ ...sought, end: expiry }, terms);
      if (later) offered.push({ kind: 'earliest', startsNow: false, ...later });
    },
  };
}

/**
 * The transfer that ends first. Where a transfer can't begin, because not even the shortest one fits at the slowest rate that
 * would do, no rate is tried: a volume that is too large is refused without a look at every instant.
 */
function* fastestWithin(
  { start, end, bandwidth, volume, unit = 1 }: Sending,
  { use, tenant }: Pick<OfferTerms, 'use' | 'tenant'>,
): Steps<Demand | undefined> {
  const shortest = durationOf(volume, bandwidth, unit);
  for (let from = roundUp(start, unit); from + shortest <= end; ) {
    const slowest = slowestRate(volume, end - from);
    const sought = { start: from, end, bandwidth: slowest, duration: shortest, tenant, unit };
    const first = yield* use.earliest(sought);
    if (first === undefined) return undefined;
    if (first === from) return yield* use.fastest({ start: from, end, bandwidth, volume, unit }, tenant);
    from = first;
  }
  return undefined;
}
