import type { Period, TagPlace } from './demand.ts';
import type { ShareRefusal } from './shares.ts';

/**
 * Why a demand was refused: which limit, how much is free, and over which part of the period.
 *
 * `bandwidth`: `free` Mbps in the tightest part of the period, `start` to `end`. `tags`: no tag of this place is
 * free from start to end of the whole period; the place has `total` of them. `share`: see {@link ShareRefusal}.
 */
export type Refusal =
  | ({ limit: 'bandwidth'; capacity: number; free: number } & Period)
  | ({ limit: 'tags'; place: TagPlace; total: number } & Period)
  | ShareRefusal;

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
