import type { Link } from '../contract/links.ts';
import { type Demand, type Holding, type Period, TAG_PLACES, type TagPlace } from './demand.ts';
import { type LoadCursor, LoadProfile } from './load-profile.ts';

/**
 * A demand that would give a tenant more than its share. `held` is what it holds at the busiest instant of the
 * period, `allowed` the most it may hold at any instant. `bandwidth` is in Mbps; `tags` counts tags at the place that has
 * the fewest; `live` counts reservations that have not ended, on all links.
 */
export type ShareRefusal = { limit: 'share'; held: number; allowed: number } & Period &
  ({ of: 'bandwidth' } | { of: 'tags'; place: TagPlace } | { of: 'live' });

/** One tenant's use of the link: each reservation holds one tag at each place. */
interface Use {
  profile: LoadProfile;
  reservations: number;
}

/**
 * Limits what each tenant may hold of one link (THREATS.md 59): a share of the bandwidth, and the same share of the
 * tags at each place. A share is rounded down, but is at least 1 Mbps and one tag.
 *
 * @example
 * // A link of 1000 Mbps with 3 tags at each place, shared by 50 percent: 500 Mbps and one reservation at a time.
 */
export class Shares {
  readonly #bandwidth: number;
  readonly #tags: number;
  /** The place with the fewest tags. */
  readonly #place: TagPlace;
  readonly #uses = new Map<string, Use>();
  readonly #tenants = new Map<string, string>();

  /** @param percent 1 to 99 */
  constructor(link: Link, percent: number) {
    const sizeOf = (place: TagPlace): number => {
      const [from, to] = link[`${place}s`];
      return to - from + 1;
    };
    const [first = 'site1_s_tag'] = TAG_PLACES.toSorted((one, other) => sizeOf(one) - sizeOf(other));
    this.#place = first;
    this.#bandwidth = Math.max(1, Math.floor((link.bandwidth * percent) / 100));
    this.#tags = Math.max(1, Math.floor((sizeOf(first) * percent) / 100));
  }

  /** The tenant of a reservation; undefined for an unknown id. */
  tenantOf(id: string): string | undefined {
    return this.#tenants.get(id);
  }

  /** Adds a reservation to what its tenant holds. */
  add(id: string, tenant: string, { start, end, bandwidth }: Holding): void {
    const use = this.#uses.get(tenant) ?? { profile: new LoadProfile(), reservations: 0 };
    use.profile.add(start, end, bandwidth);
    use.reservations += 1;
    this.#uses.set(tenant, use);
    this.#tenants.set(id, tenant);
  }

  /** Removes a reservation; does nothing for an unknown id. */
  remove(id: string, { start, end, bandwidth }: Holding): void {
    const tenant = this.#tenants.get(id);
    const use = tenant === undefined ? undefined : this.#uses.get(tenant);
    if (tenant === undefined || !use) return;
    this.#tenants.delete(id);
    use.profile.add(start, end, -bandwidth);
    use.reservations -= 1;
    if (use.reservations === 0) this.#uses.delete(tenant);
  }

  /** The parts of its share that a demand would exceed; empty when it fits. */
  refusals(tenant: string, { start, end, bandwidth }: Demand): ShareRefusal[] {
    const period = { start, end };
    const held = this.#held(tenant, period);
    const found: ShareRefusal[] = [];
    if (held.bandwidth + bandwidth > this.#bandwidth) {
      found.push({
        limit: 'share',
        of: 'bandwidth',
        held: held.bandwidth,
        allowed: this.#bandwidth,
        ...period,
      });
    }
    if (held.tags + 1 > this.#tags) {
      const place = this.#place;
      found.push({ limit: 'share', of: 'tags', place, held: held.tags, allowed: this.#tags, ...period });
    }
    return found;
  }

  /** How much more a tenant may hold over a whole period, in Mbps; 0 when its share of the tags is used up. */
  freeBandwidth(tenant: string, period: Period): number {
    const held = this.#held(tenant, period);
    return held.tags < this.#tags ? Math.max(0, this.#bandwidth - held.bandwidth) : 0;
  }

  /** As `LinkCalendar.earliest`, by the share alone. */
  earliest(tenant: string, from: number, duration: number, bandwidth: number): number | undefined {
    if (bandwidth > this.#bandwidth) return undefined;
    const use = this.#uses.get(tenant);
    if (!use) return from;
    return use.profile.earliest(from, duration, {
      load: this.#bandwidth - bandwidth,
      live: this.#tags - 1,
    });
  }

  /** As `LinkCalendar.freeUntil`, by the share alone; `start` when nothing is free there. */
  freeUntil(tenant: string, start: number, bandwidth: number, latest: number): number {
    if (bandwidth > this.#bandwidth) return start;
    const limits = { load: this.#bandwidth - bandwidth, live: this.#tags - 1 };
    return this.#uses.get(tenant)?.profile.firstAbove(start, latest, limits) ?? latest;
  }

  /** The free part of a tenant's share from an instant on, in Mbps; 0 where its share of the tags is used up. */
  from(tenant: string, time: number): LoadCursor & { free(): number } {
    const held = (this.#uses.get(tenant)?.profile ?? new LoadProfile()).from(time);
    const free = (): number => (held.live() < this.#tags ? Math.max(0, this.#bandwidth - held.load()) : 0);
    return { ...held, free };
  }

  #held(tenant: string, { start, end }: Period): { bandwidth: number; tags: number } {
    const use = this.#uses.get(tenant);
    if (!use) return { bandwidth: 0, tags: 0 };
    const { peak, live } = use.profile.extremes(start, end);
    return { bandwidth: peak, tags: live };
  }
}
