import { DAY } from '../contract/durations.ts';
import type { Link } from '../contract/links.ts';
import { type Demand, type Period, TAG_PLACES, type Tags } from './demand.ts';
import type { FreeStep } from './fastest.ts';
import { type Load, Profile } from './profile.ts';
import type { Refusal } from './refusals.ts';
import { Share } from './shares.ts';
import { finish, type Steps, TooMuchError } from './steps.ts';
import type { HeldReservation } from './store.ts';
import { PlaceTags } from './tags.ts';

/** The free capacity of a link over a period. */
export interface Free extends Period {
  /** Mbps that are free throughout the period. */
  bandwidth: number;
  /** Mbps that are free at its best instant. */
  bandwidthMax: number;
  /**
   * How many tags are free at its worst instant, at the place with the fewest. No tag needs to be free for the whole
   * period.
   */
  tags: number;
}

/** How a demand would be met: with these tags; or every limit that it breaks. */
export type Plan = { accepted: true; tags: Tags } | { accepted: false; refusals: [Refusal, ...Refusal[]] };

/** Reads the rows that overlap a period, {@link MAX_ROWS} and one more at most. */
type ReadRows = (period: Period) => Promise<readonly HeldReservation[]>;

/** How many rows of a link are read at most. */
export const MAX_ROWS = 200_000;
/** How many rows are taken without a stop: some milliseconds. */
const ROWS_AT_ONCE = 2000;

/** A demand for some time within a window, and whose share is a limit too. */
export interface Sought extends Demand {
  /** Milliseconds. */
  duration: number;
  tenant?: string | undefined;
}

/** Runs of starts: from each first start to its last, both included. */
export interface Slot {
  first: number;
  last: number;
}

/**
 * The use and the free capacity of one link, over the rows of its reservations. A method reads those that overlap the time that
 * it looks at, where they are not known (steps.ts). What is known of other times only shows that something is taken.
 *
 * Rules (contract/README.md, "Limits" 2; allocator/README.md): at every instant the sum of bandwidths is at most the
 * capacity, and no two reservations hold the same tag in the same place.
 *
 * @example
 * // A link of 1000 Mbps, 600 booked from 10:00 to 11:00:
 * // 500 from 10:30 to 11:30 is refused: 600 + 500 = 1100 > 1000; 400 are free from 10:30 to 11:00.
 * // 500 from 11:00 to 12:00 is accepted: the first has ended at 11:00.
 */
export class LinkUse {
  /** See `linkId`. */
  readonly id: string;
  readonly link: Link;
  readonly #rows = new Map<string, HeldReservation>();
  /** The ids of those that were put or removed here: the store does not know of that yet. */
  readonly #own = new Set<string>();
  readonly #share: Share | undefined;
  readonly #tags: readonly PlaceTags[];
  readonly #read: ReadRows;
  /** The periods of which all rows are known. They are apart from each other. */
  #known: Period[] = [];
  /** What all reservations take together; undefined where the rows are others since. */
  #load: Profile | undefined;
  /** The same for each place, of the reservations whose tag there is in the range. As a rule these are all. */
  #tagged: Profile[] | undefined;
  readonly #ofTenants = new Map<string, Profile>();

  /** @param share how much of the link one tenant may have at any instant, in percent, 1 to 100. Default: 100 */
  constructor(id: string, link: Link, { share = 100, read }: { share?: number | undefined; read: ReadRows }) {
    this.id = id;
    this.link = link;
    this.#read = read;
    this.#share = share < 100 ? new Share(link, share) : undefined;
    this.#tags = TAG_PLACES.map((place) => new PlaceTags(place, link[`${place}s`], this.#rows));
  }

  /** Reads the rows of a period, but for those that were changed here. @throws TooMuchError for more than {@link MAX_ROWS} */
  load(period: Period): Promise<void> {
    return finish(this.#take(period), { most: Number.POSITIVE_INFINITY });
  }

  *#take(period: Period): Steps<void> {
    let rows: readonly HeldReservation[] = [];
    yield this.#read(period).then((found) => {
      rows = found;
    });
    if (rows.length + this.#rows.size > MAX_ROWS) throw new TooMuchError();
    for (const [index, row] of rows.entries()) {
      if (!this.#own.has(row.id) && !this.#rows.has(row.id)) this.#rows.set(row.id, row);
      if (index % ROWS_AT_ONCE === ROWS_AT_ONCE - 1) yield;
    }
    const apart = ({ start, end }: Period): boolean => end < period.start || start > period.end;
    const meeting = [period, ...this.#known.filter((known) => !apart(known))];
    const start = Math.min(...meeting.map((known) => known.start));
    const end = Math.max(...meeting.map((known) => known.end));
    this.#known = [...this.#known.filter(apart), { start, end }];
    this.#load = undefined;
    this.#changed();
  }

  /** Reads the rows of a period that are not known: at least as much time as before in all, so that a search reads seldom. */
  *cover({ start, end }: Period): Steps<void> {
    const before = this.#known.find((known) => known.start <= start && known.end >= start);
    const from = before?.end ?? start;
    if (from >= end) return;
    const all = this.#known.reduce((sum, known) => sum + known.end - known.start, 0);
    yield* this.#take({ start: from, end: Math.max(end, from + (before ? Math.max(DAY, all) : all)) });
  }

  /** Adds a reservation, in place of what was held under its id. */
  put(row: HeldReservation): void {
    this.remove(row.id);
    this.#rows.set(row.id, row);
    this.#load?.add(row);
    this.#changed();
  }

  /** Removes a reservation; does nothing for an unknown id. */
  remove(id: string): void {
    this.#own.add(id);
    const row = this.#rows.get(id);
    if (!row) return;
    this.#rows.delete(id);
    this.#load?.add(row, -1);
    this.#changed();
  }

  #changed(): void {
    for (const tags of this.#tags) tags.changed();
    this.#tagged = undefined;
    this.#ofTenants.clear();
  }

  /** A reservation that was read; undefined for an unknown id. */
  get(id: string): HeldReservation | undefined {
    return this.#rows.get(id);
  }

  /**
   * Finds tags for a demand, or every limit that it breaks. It changes nothing.
   *
   * @param keep tags to prefer where they are free: those of the reservation that is being updated
   * @param tenant whose share counts; undefined for an update that asks for no more than before
   */
  *plan(demand: Demand, { keep, tenant }: { keep?: Tags; tenant?: string } = {}): Steps<Plan> {
    const { start, end, bandwidth } = demand;
    yield* this.cover(demand);
    const refusals: Refusal[] = [];
    if (bandwidth > this.#freeIn(demand)) refusals.push(this.#bandwidthRefusal(demand));
    const chosen: Partial<Tags> = {};
    for (const tags of this.#tags) {
      const tag = tags.lowestFree(demand, keep?.[tags.place]);
      if (tag === undefined) {
        refusals.push({ limit: 'tags', place: tags.place, total: tags.size, start, end });
      } else chosen[tags.place] = tag;
    }
    if (this.#share && tenant !== undefined) {
      refusals.push(...this.#share.refusals(this.#loadOf(tenant), demand));
    }
    const [first, ...rest] = refusals;
    if (first) return { accepted: false, refusals: [first, ...rest] };
    return { accepted: true, tags: chosen as Tags };
  }

  /**
   * The bandwidth that is free over a whole period, in Mbps; 0 when the tags of a place are used up.
   *
   * @param tenant whose share counts
   */
  *freeBandwidth(period: Period, tenant?: string): Steps<number> {
    yield* this.cover(period);
    if (this.#tags.some((tags) => tags.lowestFree(period) === undefined)) return 0;
    const free = this.#freeIn(period);
    if (!this.#share || tenant === undefined) return free;
    return Math.min(free, this.#share.left(this.#loadOf(tenant).extremes(period).most));
  }

  /**
   * The earliest start at which the link accepts a demand within a window, or undefined. The answer is exact: each limit in turn
   * moves the start to the first instant that it allows, until all agree.
   */
  *earliest({ start: from, end, bandwidth, duration, tenant }: Sought): Steps<number | undefined> {
    const limits = this.#limits(bandwidth, tenant);
    if (!limits) return undefined;
    for (let start = from; start + duration <= end; ) {
      yield* this.cover({ start, end: start + duration });
      let next = start;
      for (const { profile, limit } of this.#under(limits)) next = profile.earliest(next, duration, limit);
      for (const tags of this.#tags) next = tags.earliest(next, duration);
      if (next === start) return start;
      start = next;
    }
    return undefined;
  }

  /**
   * Until when a bandwidth and tags are free from `start` on, in milliseconds: the latest end of a demand that would
   * be accepted, `end` at most; undefined when nothing is free at the start.
   *
   * @param tenant whose share is a limit too
   */
  *freeUntil({ start, end, bandwidth }: Demand, tenant?: string): Steps<number | undefined> {
    const limits = this.#limits(bandwidth, tenant);
    if (!limits) return undefined;
    yield* this.cover({ start, end });
    const until = Math.min(
      this.#loadUntil({ start, end }, limits),
      ...this.#tags.map((tags) => tags.freeUntil(start)),
    );
    return until > start ? until : undefined;
  }

  /** The free capacity of the link over a period, in stretches over which nothing changes. @param most how many of them */
  *steps(period: Period, most = Number.POSITIVE_INFINITY): Steps<Free[]> {
    const found: Free[] = [];
    yield* this.cover(period);
    for (const { start, end, bandwidth: taken } of this.#all().steps(period)) {
      const bandwidth = Math.max(0, this.link.bandwidth - taken);
      const tags = this.#freeTags({ start, end: start + 1 });
      const open = found.at(-1);
      if (open?.bandwidth === bandwidth && open.tags === tags) open.end = end;
      else if (found.length === most) break;
      else found.push({ start, end, bandwidth, bandwidthMax: bandwidth, tags });
    }
    return found;
  }

  /**
   * The free capacity of the link in each of `count` columns of equal width that make up a period; fewer columns where it has
   * fewer milliseconds. Column `i` of `n` begins at `start + floor(i * length / n)`.
   */
  *columns({ start, end }: Period, count: number): Steps<Free[]> {
    yield* this.cover({ start, end });
    const length = end - start;
    const columns = Math.min(count, length);
    const startOf = (index: number): number => start + Math.floor((index * length) / columns);
    const found: Free[] = [];
    for (let index = 0; index < columns; index += 1) {
      const column = { start: startOf(index), end: startOf(index + 1) };
      const { most, least } = this.#all().extremes(column);
      found.push({
        ...column,
        bandwidth: Math.max(0, this.link.bandwidth - most.bandwidth),
        bandwidthMax: Math.max(0, this.link.bandwidth - least),
        tags: this.#freeTags(column),
      });
    }
    return found;
  }

  /** The bandwidth that is free over a period for a new reservation, step by step. @param tenant whose share is a limit too */
  *freeSteps(period: Period, tenant?: string): Steps<FreeStep[]> {
    yield* this.cover(period);
    const share = this.#share;
    const own = share && tenant !== undefined ? this.#loadOf(tenant) : undefined;
    return [...this.#all().steps(period)].flatMap(({ start, end, bandwidth }) => {
      const free = Math.max(0, this.link.bandwidth - bandwidth);
      if (!share || !own) return [{ start, end, free }];
      return [...own.steps({ start, end })].map((step) => ({
        start: step.start,
        end: step.end,
        free: Math.min(free, share.left(step)),
      }));
    });
  }

  /**
   * The earliest start, from an instant on, from which each place has a tag that is free for so many milliseconds; exact for a
   * period within the time that is known, as {@link freeSteps} leaves it.
   */
  tagsFrom(from: number, duration: number): number {
    for (let start = from; ; ) {
      const next = this.#tags.reduce((at, tags) => tags.earliest(at, duration), start);
      if (next === start) return start;
      start = next;
    }
  }

  /** Since when each place has a tag that is free until an instant, which is known. */
  tagsSince(until: number): number {
    return Math.max(...this.#tags.map((tags) => tags.freeSince(until)));
  }

  /**
   * When the first reservation ends after an instant, and when the first one starts at another or after it, of those that are known;
   * infinity for never. Milliseconds.
   */
  nextChanges(ends: number, starts: number): { end: number; start: number } {
    const found = { end: Number.POSITIVE_INFINITY, start: Number.POSITIVE_INFINITY };
    for (const { start, end } of this.#rows.values()) {
      if (end > ends && end < found.end) found.end = end;
      if (start >= starts && start < found.start) found.start = start;
    }
    return found;
  }

  #all(): Profile {
    this.#load ??= new Profile(this.#rows.values());
    return this.#load;
  }

  /** What a tenant holds. */
  #loadOf(tenant: string): Profile {
    const known = this.#ofTenants.get(tenant);
    if (known) return known;
    const own = new Profile([...this.#rows.values()].filter((row) => row.tenant === tenant));
    this.#ofTenants.set(tenant, own);
    return own;
  }

  #allTagged(): Profile[] {
    this.#tagged ??= this.#tags.map((tags) => {
      const rows = [...this.#rows.values()].filter((row) => tags.has(row.tags[tags.place]));
      return rows.length === this.#rows.size ? this.#all() : new Profile(rows);
    });
    return this.#tagged;
  }

  /** How many tags are free at the worst instant of a period, at the place with the fewest. */
  #freeTags(period: Period): number {
    const held = new Map<Profile, number>();
    const free = this.#tags.map((tags, index) => {
      const profile = this.#allTagged()[index] ?? this.#all();
      const live = held.get(profile) ?? profile.extremes(period).most.live;
      held.set(profile, live);
      return tags.size - live;
    });
    return Math.max(0, Math.min(...free));
  }

  /** The bandwidth that is free over a whole period, whatever the tags. */
  #freeIn(period: Period): number {
    return Math.max(0, this.link.bandwidth - this.#all().extremes(period).most.bandwidth);
  }

  /** How much may be held for a demand to fit; undefined where it never does. */
  #limits(bandwidth: number, tenant: string | undefined): Limits | undefined {
    const all = { bandwidth: this.link.bandwidth - bandwidth, live: Number.POSITIVE_INFINITY };
    if (all.bandwidth < 0) return undefined;
    if (!this.#share || tenant === undefined) return { all };
    const { allowed } = this.#share;
    const own = { bandwidth: allowed.bandwidth - bandwidth, live: allowed.live - 1 };
    return own.bandwidth < 0 ? undefined : { all, tenant, own };
  }

  #under({ all, tenant, own }: Limits): { profile: Profile; limit: Load }[] {
    const link = { profile: this.#all(), limit: all };
    return own && tenant !== undefined ? [link, { profile: this.#loadOf(tenant), limit: own }] : [link];
  }

  /** Until when the bandwidth of a demand fits, from the start of a period on. */
  #loadUntil({ start, end }: Period, limits: Limits): number {
    return this.#under(limits).reduce(
      (until, { profile, limit }) => profile.firstAbove({ start, end: until }, limit),
      end,
    );
  }

  #bandwidthRefusal({ start, end }: Demand): Refusal {
    const [capacity, free] = [this.link.bandwidth, this.#freeIn({ start, end })];
    const taken = capacity - free;
    const live = Number.POSITIVE_INFINITY;
    const from = this.#all().firstAbove({ start, end }, { bandwidth: taken - 1, live });
    const until = this.#all().firstWithin({ start: from, end }, { bandwidth: taken - 1, live });
    return { limit: 'bandwidth', capacity, free, start: from, end: until };
  }
}

/** How much may be held at any instant: by all, and by a tenant. */
interface Limits {
  all: Load;
  tenant?: string;
  own?: Load;
}
