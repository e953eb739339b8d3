import type { Link } from '../contract/links.ts';
import type { Refusal } from './calendar.ts';
import type { Offer } from './offers.ts';
import type { ReservationRecord } from './store.ts';

/** The answer to a request. Refusals are values: they are everyday outcomes, not faults. */
export type Outcome = { ok: true; record: ReservationRecord } | RefusedOutcome;

/** A demand that can't be met: every limit that it broke, and what would be accepted in its place. */
export interface RefusedOutcome {
  ok: false;
  reason: 'refused';
  link: Link;
  refusals: readonly [Refusal, ...Refusal[]];
  offers: Offer[];
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
