import {
  type Demand,
  type Holding,
  type Period,
  TAG_PLACES,
  type TagPlace,
  type Tags,
} from '../../src/allocator/demand.ts';
import type { Free, Plan } from '../../src/allocator/link-use.ts';
import type { Offer } from '../../src/allocator/offers.ts';
import type { Refusal } from '../../src/allocator/refusals.ts';
import { MINUTE } from '../../src/contract/durations.ts';
import type { Link } from '../../src/contract/links.ts';

/** How a refused demand was asked for. */
export interface Asked {
  now: number;
  expiry: number;
  startsNow?: boolean;
  /** The reservation that was to be updated. */
  own?: string;
  /** Whether another start may be offered. */
  movable?: boolean;
}

/**
 * Gives the answer that is due from the allocator, by brute force: a list of reservations, checked in every
 * millisecond, or unit. It is slow, so its times are a few dozen of them apart.
 */
export class Oracle {
  readonly #link: Link;
  readonly #share: number;
  readonly #unit: number;
  /** The tenant that asks the searches, whose share is a limit; undefined for none. */
  tenant: string | undefined;
  readonly #held = new Map<string, Holding>();

  /**
   * @param share how much of the link one tenant may have at any instant, in percent
   * @param unit every time is a multiple of so many milliseconds
   */
  constructor(link: Link, share = 100, unit = 1) {
    this.#link = link;
    this.#share = share;
    this.#unit = unit;
  }

  /** The live reservations by id. */
  get held(): ReadonlyMap<string, Holding> {
    return this.#held;
  }

  get capacity(): number {
    return this.#link.bandwidth;
  }

  hold(id: string, holding: Holding): void {
    this.#held.set(id, holding);
  }

  drop(id: string): void {
    this.#held.delete(id);
  }

  /**
   * @param own the reservation that is updated: its use does not count, and its free tags stay
   * @param tenant whose share is a limit
   */
  plan(demand: Demand, own?: string, tenant?: string): Plan {
    const keep = own === undefined ? undefined : this.#held.get(own)?.tags;
    const refusals: Refusal[] = [];
    const tags: Tags = { site1_s_tag: 0, site1_c_tag: 0, site2_s_tag: 0, site2_c_tag: 0 };
    const capacity = this.#link.bandwidth;
    const free = Math.max(0, this.#free(demand, own));
    if (demand.bandwidth > free) {
      const tight = (at: number): boolean => Math.max(0, capacity - this.#load(at, own)) === free;
      const start = this.#instants(demand).find(tight) ?? demand.start;
      const end = this.#instants({ start, end: demand.end }).find((at) => !tight(at)) ?? demand.end;
      refusals.push({ limit: 'bandwidth', capacity, free, start, end });
    }
    for (const place of TAG_PLACES) {
      const free = this.#freeTags(place, demand, own);
      const [best] = free;
      if (best === undefined) {
        const { start, end } = demand;
        refusals.push({ limit: 'tags', place, total: this.#tagsOf(place).length, start, end });
      } else tags[place] = keep && free.includes(keep[place]) ? keep[place] : best;
    }
    refusals.push(...this.#shareRefusals(demand, tenant, own));
    const [first, ...rest] = refusals;
    return first ? { accepted: false, refusals: [first, ...rest] } : { accepted: true, tags };
  }

  /** The most Mbps that the link accepts over a period. */
  most(period: Period, own?: string): number {
    const bandwidths = Array.from({ length: this.#link.bandwidth }, (_, index) => index + 1);
    return bandwidths.findLast((bandwidth) => this.#accepts({ ...period, bandwidth }, own)) ?? 0;
  }

  /** The earliest accepted start from `from` on, for a demand that ends by `by`, of those that are `every` milliseconds apart. */
  earliest(
    { start: from, end: by, bandwidth, duration }: Demand & { duration: number },
    { own, every = this.#unit }: { own?: string; every?: number } = {},
  ): number | undefined {
    const first = every === MINUTE ? Math.ceil(from / MINUTE) * MINUTE : from;
    return instants({ start: first, end: by - duration + 1 }, every).find((start) =>
      this.#accepts({ start, end: start + duration, bandwidth }, own),
    );
  }

  /** The latest accepted end for a demand that starts at `start`, `latest` at most. */
  freeUntil(start: number, bandwidth: number, latest: number, own?: string): number | undefined {
    return instants({ start: start + this.#unit, end: latest + 1 }, this.#unit).findLast((end) =>
      this.#accepts({ start, end, bandwidth }, own),
    );
  }

  /** The alternatives that are due in place of a refused demand, the best of each kind that is worth having. */
  offers(demand: Demand, { now, expiry, startsNow = false, own, movable = true }: Asked): Offer[] {
    const { start, end, bandwidth } = demand;
    const duration = end - start;
    const current = own === undefined ? undefined : this.#held.get(own);
    const offers: Offer[] = [];
    const canStart = startsNow || start >= now || start === current?.start;
    const most = this.most(demand, own);
    if (canStart && most > 0 && 10 * most >= bandwidth)
      offers.push({ kind: 'most_bandwidth', startsNow, start, end, bandwidth: most });
    const from = Math.max(start, now) + (startsNow ? 1000 : 0);
    const sought = { start: from, end: expiry, bandwidth, duration };
    const later = movable ? this.earliest(sought, { own, every: MINUTE }) : undefined;
    if (later !== undefined) {
      const until = later + duration;
      const whole = until === expiry ? until : until - (until % MINUTE);
      const about = { kind: 'earliest', startsNow: false, start: later, bandwidth } as const;
      offers.push({ ...about, end: whole > later ? whole : until });
    }
    const free = this.freeUntil(start, bandwidth, end - 1, own) ?? start;
    const isExact = free === expiry || free === current?.end;
    const until = isExact ? free : free - (free % MINUTE);
    const lasts = until - start;
    if (canStart && lasts >= 10 * MINUTE && 10 * lasts >= duration) {
      offers.push({ kind: 'longest', startsNow, start, end: until, bandwidth });
    }
    // What starts now can be asked for a second later.
    const last = now + (startsNow ? 1000 : 0);
    if (current && current.end <= last) return [];
    return offers.filter((offer) => offer.end > last && !(current && isSame(offer, current)));
  }

  /** The alternatives that are due in place of a search that found nothing. */
  searchOffers(
    { start, end, bandwidth }: Demand,
    search: { duration: number } | { volume: number },
    { now, expiry, startsNow = false }: Asked,
  ): Offer[] {
    const from = Math.max(start, now) + (startsNow ? 1000 : 0);
    const about = { startsNow: false } as const;
    if ('volume' in search) {
      const later = this.fastest({ start: from, end: expiry, bandwidth, ...search }, MINUTE);
      return later ? [{ kind: 'earliest', ...about, ...later }] : [];
    }
    const { duration } = search;
    const every = MINUTE;
    const starts = instants({ start: Math.ceil(from / every) * every, end: end - duration + 1 }, every);
    const most = Math.max(0, ...starts.map((each) => this.most({ start: each, end: each + duration })));
    const isLittle = most === 0 || 10 * most < bandwidth;
    const first = isLittle
      ? undefined
      : this.earliest({ start: from, end, bandwidth: most, duration }, { every });
    const later = this.earliest({ start: from, end: expiry, bandwidth, duration }, { every });
    const at = (start: number, bandwidth: number): Demand => ({ start, end: start + duration, bandwidth });
    return [
      ...(first === undefined ? [] : [{ kind: 'most_bandwidth', ...about, ...at(first, most) } as const]),
      ...(later === undefined ? [] : [{ kind: 'earliest', ...about, ...at(later, bandwidth) } as const]),
    ];
  }

  /** What is free throughout each of the at most 20 parts of a period. */
  parts({ start, end }: Period, own?: string): Demand[] {
    const parts = Math.min(20, end - start);
    return Array.from({ length: parts }, (_, index) => {
      const [from, to] = [index, index + 1].map((each) => start + Math.floor((each * (end - start)) / parts));
      const part = { start: from ?? start, end: to ?? end };
      return { ...part, bandwidth: Math.max(0, this.#free(part, own)) };
    });
  }

  /** Every accepted start within a window, one by one. */
  starts({ start, end, bandwidth, duration }: Demand & { duration: number }): number[] {
    return instants({ start, end: end - duration + 1 }, this.#unit).filter((each) =>
      this.#accepts({ start: each, end: each + duration, bandwidth }),
    );
  }

  /** The accepted demand for a volume that ends first within a window; of equals, the slowest. @param every its times are multiples of it */
  fastest(
    { start, end, bandwidth, volume }: Demand & { volume: number },
    every = this.#unit,
  ): Demand | undefined {
    const rates = Array.from({ length: bandwidth }, (_, index) => index + 1);
    const demands = rates.flatMap((rate) => {
      // In whole numbers, as no quotient is exact for sure.
      const whole = every === MINUTE ? BigInt(MINUTE) : 1n;
      const perStep = 125n * BigInt(rate) * whole;
      const duration = Number(((BigInt(volume) + perStep - 1n) / perStep) * whole);
      const first = this.earliest({ start, end, bandwidth: rate, duration }, { every });
      return first === undefined ? [] : [{ start: first, end: first + duration, bandwidth: rate }];
    });
    return demands.toSorted((one, other) => one.end - other.end || one.bandwidth - other.bandwidth)[0];
  }

  /** The most Mbps that are accepted for some period of a duration within a window. */
  mostBandwidth({ start, end, duration }: Period & { duration: number }): number {
    const starts = instants({ start, end: end - duration + 1 }, this.#unit);
    return Math.max(0, ...starts.map((each) => this.most({ start: each, end: each + duration })));
  }

  /** What is free in each millisecond of a period. */
  free(period: Period): Free[] {
    return this.#instants(period).map((start) => {
      const bandwidth = Math.max(0, this.#link.bandwidth - this.#load(start));
      const tags = TAG_PLACES.map((place) => this.#freeTags(place, { start, end: start + 1 }).length);
      return { start, end: start + 1, bandwidth, bandwidthMax: bandwidth, tags: Math.min(...tags) };
    });
  }

  #accepts(demand: Demand, own?: string): boolean {
    return (
      demand.bandwidth <= this.#free(demand, own) &&
      this.#isWithinShare(demand, own) &&
      TAG_PLACES.every((place) => this.#freeTags(place, demand, own).length > 0)
    );
  }

  #isWithinShare({ start, end, bandwidth }: Demand, own?: string): boolean {
    const current = own === undefined ? undefined : this.#held.get(own);
    // An update to no more than before needs no share.
    const grows = !current || start < current.start || end > current.end || bandwidth > current.bandwidth;
    return !grows || this.#shareRefusals({ start, end, bandwidth }, this.tenant, own).length === 0;
  }

  #shareRefusals({ start, end, bandwidth }: Demand, tenant?: string, own?: string): Refusal[] {
    if (tenant === undefined || this.#share === 100) return [];
    const of = (whole: number): number => Math.max(1, Math.floor((whole * this.#share) / 100));
    const sizeOf = (place: TagPlace): number => this.#tagsOf(place).length;
    const [place = 'site1_s_tag'] = TAG_PLACES.toSorted((one, other) => sizeOf(one) - sizeOf(other));
    const mbps = of(this.#link.bandwidth);
    const tags = of(sizeOf(place));
    const held = this.#instants({ start, end }).map((at) =>
      this.#others(at, own).filter((each) => each.tenant === tenant),
    );
    const most = Math.max(...held.map((each) => each.reduce((sum, { bandwidth }) => sum + bandwidth, 0)));
    const many = Math.max(...held.map((each) => each.length));
    const about = { limit: 'share', start, end } as const;
    return [
      ...(most + bandwidth > mbps ? [{ ...about, of: 'bandwidth', held: most, allowed: mbps } as const] : []),
      ...(many + 1 > tags ? [{ ...about, of: 'tags', place, held: many, allowed: tags } as const] : []),
    ];
  }

  /** The instants of a period at which something may change, and its first one. */
  #instants({ start, end }: Period): number[] {
    const whole = instants({ start: start - (start % this.#unit), end }, this.#unit);
    return [start, ...whole.slice(1)];
  }

  #others(at: number, own?: string): Holding[] {
    return [...this.#held]
      .filter(([id, { start, end }]) => id !== own && start <= at && at < end)
      .map(([, holding]) => holding);
  }

  #load(at: number, own?: string): number {
    return this.#others(at, own).reduce((sum, { bandwidth }) => sum + bandwidth, 0);
  }

  #free(period: Period, own?: string): number {
    const at = this.#instants(period);
    return Math.min(...at.map((each) => this.#link.bandwidth - this.#load(each, own)));
  }

  #tagsOf(place: TagPlace): number[] {
    const [from, to] = this.#link[`${place}s`];
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  }

  #isHeld(place: TagPlace, tag: number, at: number, own?: string): boolean {
    return this.#others(at, own).some(({ tags }) => tags[place] === tag);
  }

  #freeTags(place: TagPlace, period: Period, own?: string): number[] {
    return this.#tagsOf(place).filter(
      (tag) => !this.#instants(period).some((at) => this.#isHeld(place, tag, at, own)),
    );
  }
}

function isSame(one: Demand, other: Demand): boolean {
  return one.start === other.start && one.end === other.end && one.bandwidth === other.bandwidth;
}

/** The instants of a period, a unit apart. */
function instants({ start, end }: Period, unit: number): number[] {
  const length = Math.max(0, Math.ceil((end - start) / unit));
  return Array.from({ length }, (_, index) => start + index * unit);
}
