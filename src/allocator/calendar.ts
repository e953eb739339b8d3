import type { Link } from '../contract/links.ts';
import { type Demand, type Holding, type Period, TAG_PLACES, type TagPlace, type Tags } from './demand.ts';
import type { BandwidthPart } from './fastest.ts';
import { chooseTags, Holdings } from './holdings.ts';
import { type LoadCursor, LoadProfile } from './load-profile.ts';
import { mostWithin } from './most-bandwidth.ts';
import { type ShareRefusal, Shares } from './shares.ts';

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

/** How a demand would be met: with these tags; or every limit that it breaks. */
export type Plan = { accepted: true; tags: Tags } | { accepted: false; refusals: [Refusal, ...Refusal[]] };

/** How many steps of the load are appended without a stop: some milliseconds. */
const STEPS_AT_ONCE = 20_000;

/**
 * The use and the free capacity of one link: bandwidth over time and the four layers of tags. Pure memory; the
 * store's rows are the truth, and the calendar catches up with them before each decision.
 *
 * Rules (contract/README.md, "Limits" 2; allocator/README.md): at every instant the sum of bandwidths is at most the
 * capacity, and no two reservations hold the same tag in the same place.
 *
 * @example
 * // A link of 1000 Mbps, 600 booked from 10:00 to 11:00:
 * // 500 from 10:30 to 11:30 is refused: 600 + 500 = 1100 > 1000; 400 are free from 10:30 to 11:00.
 * // 500 from 11:00 to 12:00 is accepted: the first has ended at 11:00.
 */
export class LinkCalendar {
  readonly #capacity: number;
  readonly #load = new LoadProfile();
  /** The reservations that hold no tag of a place, since theirs is outside its range. There are none as a rule. */
  readonly #outside: Partial<Record<TagPlace, LoadProfile>> = {};
  readonly #holdings: Holdings;
  readonly #shares: Shares | undefined;

  /** @param share how much of the link one tenant may have at any instant, in percent, 1 to 100 */
  constructor(link: Link, share = 100) {
    this.#shares = share < 100 ? new Shares(link, share) : undefined;
    this.#capacity = link.bandwidth;
    this.#holdings = new Holdings(link);
  }

  /**
   * Finds tags for a demand, or every limit that it breaks. It changes nothing.
   *
   * @param now milliseconds; see `Holdings.bestFit`
   * @param keep tags to prefer where they are free: those of the reservation that is being updated
   * @param tenant whose share counts; undefined for an update that asks for no more than before
   */
  plan(demand: Demand, now: number, { keep, tenant }: { keep?: Tags; tenant?: string } = {}): Plan {
    const { start, end } = demand;
    const refusals: Refusal[] = [];
    const free = Math.max(0, this.#capacity - this.#load.peak(start, end));
    if (demand.bandwidth > free) refusals.push(this.#bandwidthRefusal(demand, free));
    const kept: Partial<Tags> = {};
    for (const place of TAG_PLACES) {
      const tag = keep?.[place];
      if (tag !== undefined && this.#holdings.layers[place].isFree(tag, start, end)) kept[place] = tag;
    }
    // Where something is missing, it is enough to know whether there are tags: the best ones take longer to find.
    const tags = refusals.length > 0 ? undefined : chooseTags(this.#holdings, { start, end }, { now, kept });
    for (const place of TAG_PLACES) {
      if (tags || kept[place] !== undefined || this.#holdings.hasFreeTag(place, { start, end })) continue;
      refusals.push({ limit: 'tags', place, total: this.#holdings.layers[place].size, start, end });
    }
    if (this.#shares && tenant !== undefined) refusals.push(...this.#shares.refusals(tenant, demand));
    const [first, ...rest] = refusals;
    if (first) return { accepted: false, refusals: [first, ...rest] };
    return { accepted: true, tags: tags as Tags };
  }

  /** Runs `ask` as if a reservation were not there, and puts it back whatever happens. */
  without<Answer>(id: string, ask: (rest: LinkCalendar) => Answer): Answer {
    const held = this.#holdings.get(id);
    const tenant = this.#shares?.tenantOf(id);
    this.remove(id);
    try {
      return ask(this);
    } finally {
      if (held) this.put(id, tenant === undefined ? held : { ...held, tenant });
    }
  }

  /** Adds a reservation, in place of what was held under its id. */
  put(id: string, holding: Holding): void {
    this.remove(id);
    this.add(id, holding);
  }

  /** Adds a reservation whose id holds nothing yet: as {@link put}, without a search for the id. */
  add(id: string, holding: Holding): void {
    const { start, end, bandwidth } = holding;
    this.#load.add(start, end, bandwidth);
    this.#countOutside(holding, 1);
    this.#holdings.add(id, holding);
    if (this.#shares && holding.tenant !== undefined) this.#shares.add(id, holding.tenant, holding);
  }

  /**
   * Adds one of many reservations to a new calendar, in the order of their ends. Nothing else may be asked of it until
   * {@link arrange} has ended.
   *
   * @throws RangeError when it ends before the last one: a defect of the caller
   */
  append(id: string, holding: Holding): void {
    this.#countOutside(holding, 1);
    this.#holdings.append(id, holding);
    if (this.#shares && holding.tenant !== undefined) this.#shares.add(id, holding.tenant, holding);
  }

  /**
   * Arranges the reservations that were appended, in one pass each: by the tags of each place, by their ends, and by the
   * bandwidth that they take together. It stops wherever others may have their turn.
   *
   * @throws RangeError when two hold a tag at one time
   */
  *arrange(): Generator<void> {
    for (const place of TAG_PLACES) yield* this.#holdings.holdTags(place);
    yield;
    this.#holdings.arrangeEnds();
    yield;
    let steps = 0;
    for (const step of this.#holdings.steps()) {
      this.#load.append(step);
      steps += 1;
      if (steps % STEPS_AT_ONCE === 0) yield;
    }
  }

  /** Removes a reservation; does nothing for an unknown id. */
  remove(id: string): void {
    const held = this.#holdings.get(id);
    if (!held) return;
    this.#load.add(held.start, held.end, -held.bandwidth);
    this.#countOutside(held, -1);
    this.#holdings.remove(id);
    this.#shares?.remove(id, held);
  }

  /** How many reservations are in memory. */
  get size(): number {
    return this.#holdings.size;
  }

  /**
   * Evicts reservations that ended by an instant, the earliest first.
   *
   * @param until milliseconds
   * @param atMost how many, so that no request pays for many
   * @returns the last end among them; undefined when there were none
   */
  evict(until: number, atMost: number): number | undefined {
    let last: number | undefined;
    for (let gone = 0; gone < atMost; gone += 1) {
      const first = this.#holdings.byEnd.first();
      const id = first && first.time <= until ? this.#holdings.idAt(first.slot) : undefined;
      if (id === undefined) break;
      last = first?.time;
      this.remove(id);
    }
    return last;
  }

  /**
   * The bandwidth that is free over a whole period, in Mbps; 0 when the tags of a place are used up.
   *
   * @param tenant whose share counts
   */
  freeBandwidth({ start, end }: Period, tenant?: string): number {
    if (!TAG_PLACES.every((place) => this.#holdings.hasFreeTag(place, { start, end }))) return 0;
    const free = Math.max(0, this.#capacity - this.#load.peak(start, end));
    if (!this.#shares || tenant === undefined) return free;
    return Math.min(free, this.#shares.freeBandwidth(tenant, { start, end }));
  }

  /**
   * The earliest start from `from` on at which `bandwidth` Mbps and tags are free for `duration` milliseconds;
   * undefined when the link, or the share, is too small. Exact: each limit in turn moves the start to the first instant
   * that it allows, until all agree.
   *
   * @param tenant whose share is a limit too
   * @param latest no later start is looked for
   */
  earliest(
    from: number,
    duration: number,
    bandwidth: number,
    tenant?: string,
    latest: number = Number.POSITIVE_INFINITY,
  ): number | undefined {
    if (bandwidth > this.#capacity) return undefined;
    const limits = { load: this.#capacity - bandwidth };
    let start = from;
    while (start <= latest) {
      let next = this.#load.earliest(start, duration, limits, latest);
      if (next > latest) return undefined;
      for (const place of TAG_PLACES) next = this.#holdings.earliestTag(place, next, duration);
      if (this.#shares && tenant !== undefined) {
        const shared = this.#shares.earliest(tenant, next, duration, bandwidth);
        if (shared === undefined) return undefined;
        next = shared;
      }
      if (next === start) return start;
      start = next;
    }
    return undefined;
  }

  /**
   * Until when `bandwidth` Mbps and tags are free from `start` on, in milliseconds: the latest end of a demand that would
   * be accepted, `latest` at most; undefined when nothing is free at the start.
   *
   * @param tenant whose share is a limit too
   */
  freeUntil(start: number, bandwidth: number, latest: number, tenant?: string): number | undefined {
    if (bandwidth > this.#capacity) return undefined;
    let end = this.#load.firstAbove(start, latest, { load: this.#capacity - bandwidth });
    for (const place of TAG_PLACES) end = Math.min(end, this.#holdings.tagFreeUntil(place, start));
    if (this.#shares && tenant !== undefined) end = this.#shares.freeUntil(tenant, start, bandwidth, end);
    return end > start ? end : undefined;
  }

  /** When the first reservation ends that ends after an instant; undefined when none does. Milliseconds. */
  nextEnd(after: number): number | undefined {
    return this.#holdings.byEnd.upFrom(after + 1).time();
  }

  /** When the first reservation starts that starts at an instant or after it; undefined when none does. Milliseconds. */
  nextStart(from: number): number | undefined {
    return this.#holdings.byStart.upFrom(from).time();
  }

  /** The free capacity of the link over a period, in stretches over which nothing changes. */
  *steps({ start, end }: Period): Generator<Free> {
    const link = this.#load.from(start);
    const outside = TAG_PLACES.map((place) => this.#outside[place]?.from(start));
    let open: Free | undefined;
    for (const period of stretches([link, ...outside], { start, end })) {
      const bandwidth = Math.max(0, this.#capacity - link.load());
      const tags = this.#freeTags((index) => link.live() - (outside[index]?.live() ?? 0));
      if (open?.bandwidth === bandwidth && open.tags === tags) open.end = period.end;
      else {
        if (open) yield open;
        open = { ...period, bandwidth, bandwidthMax: bandwidth, tags };
      }
    }
    if (open) yield open;
  }

  /**
   * The free capacity of the link in each of `count` columns of equal width that make up a period; fewer columns where it has
   * fewer milliseconds. Column `i` of `n` begins at `start + floor(i * length / n)`.
   */
  columns({ start, end }: Period, count: number): Free[] {
    const length = end - start;
    const columns = Math.min(count, length);
    const startOf = (index: number): number => start + Math.floor((index * length) / columns);
    return Array.from({ length: columns }, (_, index) => {
      const column = { start: startOf(index), end: startOf(index + 1) };
      const { peak, low, live } = this.#load.extremes(column.start, column.end);
      return {
        ...column,
        bandwidth: Math.max(0, this.#capacity - peak),
        bandwidthMax: Math.max(0, this.#capacity - low),
        tags: this.#freeTags((at) => this.#mostHeld(TAG_PLACES[at], column, live)),
      };
    });
  }

  /**
   * Every start at which a demand of `duration` milliseconds would be accepted that lies within `start` to `end`: as
   * runs from a first start to a last, both included. A run is as long as it can be, so a start beside it is refused.
   *
   * @param tenant whose share is a limit too
   */
  *slots(
    { start, end, bandwidth, duration }: Demand & { duration: number },
    tenant?: string,
  ): Generator<{ first: number; last: number }> {
    for (let from = start; ; ) {
      const first = this.earliest(from, duration, bandwidth, tenant, end - duration);
      if (first === undefined) return;
      const last = this.#lastOfRun(first, { end, bandwidth, duration }, tenant);
      yield { first, last };
      from = last + 1;
    }
  }

  /** The bandwidth that is free over a period for a new reservation of a tenant. */
  freeParts(period: Period, tenant?: string): Generator<BandwidthPart> {
    const share = tenant === undefined ? undefined : this.#shares;
    return share && tenant !== undefined
      ? this.#sharedSteps(period, tenant, share)
      : this.#freeBlocks(period);
  }

  /** A bound of how many milliseconds those tags are free that are free at some instant of a period. */
  tagsWithin(period: Period): number {
    return Math.min(...TAG_PLACES.map((place) => this.#holdings.longestFree(place, period)));
  }

  /** The earliest start, from `start` on, for which each place has a tag that is free until an instant. */
  tagsSince(until: number, start: number): number {
    const since = TAG_PLACES.map((place) => this.#holdings.layers[place].freeSince(until, start));
    return Math.max(...since);
  }

  /**
   * The most Mbps for which some period of `duration` milliseconds within `start` to `end` would be accepted; 0 when none
   * would.
   *
   * @param tenant whose share is a limit too
   */
  mostBandwidth(window: Period & { duration: number }, tenant?: string): number {
    const { end, duration } = window;
    return mostWithin(window, this.#capacity, {
      earliest: (from, bandwidth) => this.earliest(from, duration, bandwidth, tenant, end - duration),
      free: (period) => this.freeBandwidth(period, tenant),
    });
  }

  /** Counts a reservation at the places where it holds none of the tags. */
  #countOutside({ start, end, tags }: Holding, live: 1 | -1): void {
    for (const place of TAG_PLACES) {
      if (this.#holdings.layers[place].has(tags[place])) continue;
      this.#outside[place] ??= new LoadProfile();
      this.#outside[place].add(start, end, 0, live);
    }
  }

  /**
   * How many tags are free at the place with the fewest.
   *
   * @param heldAt how many are held at a place, by its index
   */
  #freeTags(heldAt: (index: number) => number): number {
    const free = TAG_PLACES.map((place, index) => this.#holdings.layers[place].size - heldAt(index));
    return Math.max(0, Math.min(...free));
  }

  /** How many tags of a place are held at the busiest instant of a period, where so many reservations are live. */
  #mostHeld(place: TagPlace | undefined, { start, end }: Period, live: number): number {
    const outside = place && this.#outside[place];
    if (!outside) return live;
    let most = 0;
    const cursor = outside.from(start);
    for (let from = start; from < end; cursor.advance()) {
      const until = Math.min(end, cursor.end());
      most = Math.max(most, this.#load.extremes(from, until).live - cursor.live());
      from = until;
    }
    return most;
  }

  /** The bandwidth that is free for a new reservation. */
  *#freeBlocks({ start, end }: Period): Generator<BandwidthPart> {
    const free = (load: number): number => Math.max(0, this.#capacity - load);
    for (const block of this.#load.blocks(start, end)) {
      const { peak, low, length: steps, startOf, loadOf } = block;
      const freeIn = (step: number): number => free(loadOf(step));
      yield {
        start: block.start,
        end: block.end,
        least: free(peak),
        most: free(low),
        steps,
        startOf,
        freeIn,
      };
    }
  }

  /** The bandwidth that is free for a new reservation of a tenant, in single steps. */
  *#sharedSteps(period: Period, tenant: string, shares: Shares): Generator<BandwidthPart> {
    const link = this.#load.from(period.start);
    const share = shares.from(tenant, period.start);
    for (const { start, end } of stretches([link, share], period)) {
      const free = Math.min(Math.max(0, this.#capacity - link.load()), share.free());
      yield { start, end, least: free, most: free, steps: 1, startOf: () => start, freeIn: () => free };
    }
  }

  /** For each place, the earliest start from an instant on for which it has a tag that is free for so many milliseconds. */
  tagStarts(duration: number): ((from: number) => number)[] {
    return TAG_PLACES.map((place) => (from) => this.#holdings.earliestTag(place, from, duration));
  }

  /** The last start of a run that begins with `first`, for demands that end by `end`. */
  #lastOfRun(
    first: number,
    { end, bandwidth, duration }: { end: number; bandwidth: number; duration: number },
    tenant?: string,
  ): number {
    let until = this.#load.firstAbove(first, end, { load: this.#capacity - bandwidth });
    if (this.#shares && tenant !== undefined) {
      until = this.#shares.freeUntil(tenant, first, bandwidth, until);
    }
    let last = until - duration;
    for (const place of TAG_PLACES) {
      for (let start = first; start <= last; ) {
        const sameTag = this.#holdings.tagFreeUntil(place, start) - duration;
        // Another tag may be free from then on.
        start = sameTag + 1;
        if (this.#holdings.earliestTag(place, start, duration) > start) last = Math.min(last, sameTag);
      }
    }
    return last;
  }

  #bandwidthRefusal({ start, end }: Demand, free: number): Refusal {
    const capacity = this.#capacity;
    const load = capacity - free;
    const from = this.#load.firstAbove(start, end, { load: load - 1 });
    const until = this.#load.firstBelow(from, end, load);
    return { limit: 'bandwidth', capacity, free, start: from, end: until };
  }
}

/** The stretches of a period over which none of some profiles changes. At each, their cursors stand there. */
function* stretches(cursors: readonly (LoadCursor | undefined)[], { start, end }: Period): Generator<Period> {
  for (let from = start; from < end; ) {
    let until = end;
    for (const cursor of cursors) if (cursor) until = Math.min(until, cursor.end());
    yield { start: from, end: until };
    for (const cursor of cursors) if (cursor && cursor.end() <= until) cursor.advance();
    from = until;
  }
}
