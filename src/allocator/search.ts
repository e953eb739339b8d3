import type { Plan } from './calendar.ts';
import type { Demand } from './demand.ts';
import { firstStart, type Offer, type OfferTerms, offersFor } from './offers.ts';

/** What the service finds by itself: a period of so many milliseconds, or a transfer of so many bytes at one rate. */
export type Search = { duration: number } | { volume: number };

/** How many bytes 1 Mbps carries in a millisecond. */
const BYTES = 125;

/** The demand that a request comes to, how it would be met, and, where it can't be, what would be accepted instead. */
export interface Judgement {
  demand: Demand;
  plan: Plan;
  /** Computed when asked for. */
  offers: () => Offer[];
}

/** Judges a demand as it was asked for. */
export function judge(demand: Demand, terms: OfferTerms): Judgement {
  const { calendar, experiment, now } = terms;
  return {
    demand,
    plan: calendar.plan(demand, now, { experiment }),
    offers: () => offersFor(demand, terms),
  };
}

/**
 * Finds a demand within a window. Where there is none, it judges the one that comes closest.
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
  const { calendar, experiment, expiry } = terms;
  const at = (start: number, bandwidth: number): Demand => ({ start, end: start + duration, bandwidth });
  const first = calendar.earliest(start, duration, bandwidth, experiment);
  if (first !== undefined && first + duration <= end) return judge(at(first, bandwidth), terms);
  const from = firstStart(start, terms);
  const most = calendar.mostBandwidth({ start: from, end, duration }, experiment);
  const best = most > 0 ? calendar.earliest(from, duration, most, experiment) : undefined;
  return {
    ...judge(at(best ?? start, bandwidth), terms),
    offers() {
      const offers: Offer[] = [];
      if (best !== undefined) {
        offers.push({ kind: 'most_bandwidth', startsNow: false, ...at(best, most) });
      }
      const later =
        first !== undefined && first < from
          ? calendar.earliest(from, duration, bandwidth, experiment)
          : first;
      if (later !== undefined && later + duration <= expiry) {
        offers.push({ kind: 'earliest', startsNow: false, ...at(later, bandwidth) });
      }
      return offers;
    },
  };
}

/** The transfer that ends first. In its place: the one that ends first after the deadline. */
function fastestIn(window: Demand, volume: number, terms: OfferTerms): Judgement {
  const { calendar, experiment, expiry } = terms;
  const found = calendar.fastest({ ...window, volume }, experiment);
  if (found) return judge(found, terms);
  const { start, end, bandwidth: most } = window;
  const slowest = { start, end, bandwidth: Math.ceil(volume / (BYTES * (end - start))) };
  const { plan } = judge(slowest, terms);
  return {
    demand: slowest,
    plan: plan.accepted
      ? // The transfer itself is limited to less than it needs.
        { accepted: false, refusals: [{ limit: 'bandwidth', capacity: most, free: most, start, end }] }
      : plan,
    offers() {
      const from = firstStart(start, terms);
      const later =
        from < expiry
          ? calendar.fastest({ ...window, start: from, end: expiry, volume }, experiment)
          : undefined;
      return later ? [{ kind: 'earliest', startsNow: false, ...later }] : [];
    },
  };
}
