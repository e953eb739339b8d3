import type { LinkCalendar } from './calendar.ts';
import type { Demand, Period } from './demand.ts';

/** A demand that would be accepted now in place of the refused one. */
export type Offer = Demand;

/**
 * What would be accepted in place of a refused demand: the same period with as much bandwidth as there is, and the
 * same bandwidth and duration at the earliest start that it can have.
 *
 * @param experiment whose share counts
 * @param later where to look for another start, in milliseconds; undefined when the start can't move
 */
export function offersFor(
  demand: Demand,
  calendar: LinkCalendar,
  experiment: string,
  later: { from: number; expiry: number } | undefined,
): Offer[] {
  const offers: Offer[] = [];
  const { start: asked, end } = demand;
  const most = calendar.most(demand, experiment);
  if (most > 0) offers.push({ start: asked, end, bandwidth: most });
  if (!later) return offers;
  const duration = end - asked;
  const start = calendar.earliest(later.from, duration, demand.bandwidth, experiment);
  if (start !== undefined && start + duration <= later.expiry) {
    const moved: Period = { start, end: start + duration };
    offers.push({ ...moved, bandwidth: demand.bandwidth });
  }
  return offers;
}
