import { BudgetSpentError } from './budget.ts';
import type { Demand } from './demand.ts';
import { firstStart, type Offer, type OfferTerms, offersFor } from './offers.ts';
import type { RoutePlan } from './route-calendar.ts';
import { durationOf, slowestRate } from './transfer.ts';

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
  /** Each is looked for when it is asked for. */
  offers: () => Iterable<Offer>;
}

/** Judges a demand as it was asked for. */
export function judge(demand: Demand, terms: OfferTerms): Judgement {
  const { calendar, tenant, now } = terms;
  return {
    demand,
    plan: calendar.plan(demand, { now, tenant }),
    offers: () => offersFor(demand, terms),
  };
}

/**
 * Finds a demand within a window. Where there is none, it judges the demand that comes closest.
 *
 * @param window its bandwidth is that of the period, or the most that the transfer may use
 */
export function judgeSearch(window: Demand, search: Search, terms: OfferTerms): Judgement {
  return 'duration' in search
    ? earliestIn(window, search.duration, terms)
    : fastestIn(window, search.volume, terms);
}

/** The earliest start. In its place: the most for which some period fits in the window, or a start after it. */
function earliestIn({ start, end, bandwidth }: Demand, duration: number, terms: OfferTerms): Judgement {
  const { calendar, tenant, expiry } = terms;
  const at = (start: number, bandwidth: number): Demand => ({ start, end: start + duration, bandwidth });
  const first = calendar.earliest(start, duration, bandwidth, tenant);
  if (first !== undefined && first + duration <= end) return judge(at(first, bandwidth), terms);
  const from = firstStart(start, terms);
  const { most = 0, best, spent } = closest();
  return {
    ...judge(at(best ?? start, bandwidth), terms),
    *offers() {
      if (best !== undefined) yield { kind: 'most_bandwidth', startsNow: false, ...at(best, most) };
      const later =
        first !== undefined && first < from ? calendar.earliest(from, duration, bandwidth, tenant) : first;
      if (later !== undefined && later + duration <= expiry) {
        yield { kind: 'earliest', startsNow: false, ...at(later, bandwidth) };
      }
      if (spent) throw spent;
    },
  };

  /** The most for which a period fits in the window, and the first one. That none fits for what was asked for is known by then. */
  function closest(): { most?: number; best?: number | undefined; spent?: BudgetSpentError } {
    try {
      const most = calendar.mostBandwidth({ start: from, end, duration }, tenant);
      return { most, best: most > 0 ? calendar.earliest(from, duration, most, tenant) : undefined };
    } catch (error) {
      if (error instanceof BudgetSpentError) return { spent: error };
      throw error;
    }
  }
}

/** The transfer that ends first. Where there is none, it offers the transfer that ends first after the deadline. */
function fastestIn(window: Demand, volume: number, terms: OfferTerms): Judgement {
  const { calendar, expiry } = terms;
  const found = fastestWithin(window, volume, terms);
  if (found) return judge(found, terms);
  const { start, end, bandwidth: most } = window;
  const { capacity } = calendar;
  const needed = { start, end, bandwidth: slowestRate(volume, end - start) };
  const { plan } = judge(needed, terms);
  const isTooLow = most < capacity && most < needed.bandwidth;
  return {
    demand: needed,
    plan: plan.accepted
      ? {
          accepted: false,
          link: calendar.first,
          refusals: [{ limit: 'bandwidth', capacity, free: calendar.freeBandwidth(window), start, end }],
        }
      : plan,
    ...(isTooLow ? { tooLow: { volume, most } } : {}),
    *offers() {
      const later = fastestWithin({ ...window, start: firstStart(start, terms), end: expiry }, volume, terms);
      if (later) yield { kind: 'earliest', startsNow: false, ...later };
    },
  };
}

/**
 * The transfer that ends first, as `RouteCalendar.fastest` finds it. Where a transfer can't begin, because not even the shortest one fits at the slowest rate that
 * would do, no rate is tried: a volume that is too large is refused without a look at every instant.
 */
function fastestWithin(
  { start, end, bandwidth }: Demand,
  volume: number,
  { calendar, tenant }: OfferTerms,
): Demand | undefined {
  const shortest = durationOf(volume, bandwidth);
  for (let from = start; from + shortest <= end; ) {
    const slowest = slowestRate(volume, end - from);
    const first = calendar.earliest(from, shortest, slowest, tenant);
    if (first === undefined) return undefined;
    if (first === from) return calendar.fastest({ start: from, end, bandwidth, volume }, tenant);
    from = first;
  }
  return undefined;
}
