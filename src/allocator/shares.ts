import type { Link } from '../contract/links.ts';
import { type Demand, type Period, TAG_PLACES, type TagPlace } from './demand.ts';
import type { Load, Profile } from './profile.ts';

/**
 * A demand that would give a tenant more than its share. `held` is what it holds at the busiest instant of the
 * period, `allowed` the most it may hold at any instant. `bandwidth` is in Mbps; `tags` counts tags at the place that has
 * the fewest; `live` counts reservations that have not ended, on all links.
 */
export type ShareRefusal = { limit: 'share'; held: number; allowed: number } & Period &
  ({ of: 'bandwidth' } | { of: 'tags'; place: TagPlace } | { of: 'live' });

/** How many tags a place of a link has. */
export function sizeOf(link: Link, place: TagPlace): number {
  const [from, to] = link[`${place}s`];
  return to - from + 1;
}

/**
 * What each tenant may hold of one link (THREATS.md 59): a share of the bandwidth, and the same share of the
 * tags at each place. A share is rounded down, but is at least 1 Mbps and one tag. Each reservation holds one tag at each place.
 *
 * @example
 * // A link of 1000 Mbps with 3 tags at each place, shared by 50 percent: 500 Mbps and one reservation at a time.
 */
export class Share {
  /** The most at any instant. */
  readonly allowed: Load;
  /** The place with the fewest tags. */
  readonly #place: TagPlace;

  /** @param percent 1 to 100 */
  constructor(link: Link, percent: number) {
    const [place = 'site1_s_tag'] = TAG_PLACES.toSorted(
      (one, other) => sizeOf(link, one) - sizeOf(link, other),
    );
    const part = (whole: number): number => Math.max(1, Math.floor((whole * percent) / 100));
    this.#place = place;
    this.allowed = { bandwidth: part(link.bandwidth), live: part(sizeOf(link, place)) };
  }

  /** The parts of its share that a demand would exceed; empty when it fits. @param held what the tenant holds */
  refusals(held: Profile, { start, end, bandwidth }: Demand): ShareRefusal[] {
    const period = { start, end };
    const { most } = held.extremes(period);
    const found: ShareRefusal[] = [];
    if (most.bandwidth + bandwidth > this.allowed.bandwidth) {
      const allowed = this.allowed.bandwidth;
      found.push({ limit: 'share', of: 'bandwidth', held: most.bandwidth, allowed, ...period });
    }
    if (most.live + 1 > this.allowed.live) {
      const allowed = this.allowed.live;
      found.push({ limit: 'share', of: 'tags', place: this.#place, held: most.live, allowed, ...period });
    }
    return found;
  }

  /** How much more a tenant may hold where it holds so much, in Mbps; 0 when its share of the tags is used up. */
  left({ bandwidth, live }: Load): number {
    return live < this.allowed.live ? Math.max(0, this.allowed.bandwidth - bandwidth) : 0;
  }
}
