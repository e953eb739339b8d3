import type { Link } from '../contract/links.ts';
import { type Demand, type Holding, type Period, TAG_PLACES, type TagPlace, type Tags } from './demand.ts';
import { chooseTags, Holdings } from './holdings.ts';
import { LoadProfile } from './load-profile.ts';
import { type ShareRefusal, Shares } from './shares.ts';

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

/** How a demand would be met: with these tags; or every limit that it breaks. */
export type Plan = { accepted: true; tags: Tags } | { accepted: false; refusals: [Refusal, ...Refusal[]] };

/**
 * What is held and what is free on one link: bandwidth over time and the four layers of tags. Pure memory; the
 * store's rows are the truth, and the calendar catches up with them before each decision.
 *
 * Rules (SPEC.md, "Limits" 2; DESIGN.md, "Allocator"): at every instant the sum of bandwidths is at most the
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
  readonly #holdings: Holdings;
  readonly #shares: Shares | undefined;

  /** @param share how much of the link one experiment may have at any instant, in percent, 1 to 100 */
  constructor(link: Link, share = 100) {
    this.#shares = share < 100 ? new Shares(link, share) : undefined;
    this.#capacity = link.bandwidth;
    this.#holdings = new Holdings(link);
  }

  /**
   * Finds tags for a demand, or every limit that it breaks. It changes nothing.
   *
   * @param now milliseconds; see {@link TagLayer.bestFit}
   * @param keep tags to prefer where they are free: those of the reservation that is being updated
   * @param experiment whose share counts; undefined for an update that asks for no more than before
   */
  plan(demand: Demand, now: number, { keep, experiment }: { keep?: Tags; experiment?: string } = {}): Plan {
    const { start, end } = demand;
    const refusals: Refusal[] = [];
    const free = Math.max(0, this.#capacity - this.#load.peak(start, end));
    if (demand.bandwidth > free) refusals.push(this.#bandwidthRefusal(demand, free));
    const kept: Partial<Tags> = {};
    for (const place of TAG_PLACES) {
      const tag = keep?.[place];
      if (tag !== undefined && this.#holdings.layers[place].isFree(tag, start, end)) kept[place] = tag;
    }
    const tags = chooseTags(this.#holdings, { start, end }, { now, kept });
    for (const place of TAG_PLACES) {
      const total = this.#holdings.layers[place].size;
      if (tags[place] === undefined) refusals.push({ limit: 'tags', place, total, start, end });
    }
    if (this.#shares && experiment !== undefined) refusals.push(...this.#shares.refusals(experiment, demand));
    const [first, ...rest] = refusals;
    if (first) return { accepted: false, refusals: [first, ...rest] };
    return { accepted: true, tags: tags as Tags };
  }

  /**
   * As {@link plan}, for a reservation that is held already: what it holds counts as free, and its tags stay where they
   * can.
   */
  planUpdate(id: string, demand: Demand, now: number, experiment?: string): Plan {
    const keep = this.#holdings.get(id)?.tags;
    const given = { ...(keep ? { keep } : {}), ...(experiment === undefined ? {} : { experiment }) };
    return this.without(id, () => this.plan(demand, now, given));
  }

  /** Runs `ask` as if a reservation were not there, and puts it back whatever happens. */
  without<Answer>(id: string, ask: (rest: LinkCalendar) => Answer): Answer {
    const held = this.#holdings.get(id);
    const experiment = this.#shares?.experimentOf(id);
    this.remove(id);
    try {
      return ask(this);
    } finally {
      if (held) this.put(id, experiment === undefined ? held : { ...held, experiment });
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
    this.#holdings.add(id, holding);
    if (this.#shares && holding.experiment !== undefined) this.#shares.add(id, holding.experiment, holding);
  }

  /** Removes a reservation; does nothing for an unknown id. */
  remove(id: string): void {
    const held = this.#holdings.get(id);
    if (!held) return;
    this.#load.add(held.start, held.end, -held.bandwidth);
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
   * @returns whether there were any
   */
  evict(until: number, atMost: number): boolean {
    for (let gone = 0; gone < atMost; gone += 1) {
      const first = this.#holdings.byEnd.first();
      const id = first && first.time <= until ? this.#holdings.idAt(first.slot) : undefined;
      if (id === undefined) return gone > 0;
      this.remove(id);
    }
    return true;
  }

  /**
   * The bandwidth that is free over a whole period, in Mbps; 0 when the tags of a place are used up.
   *
   * @param experiment whose share counts
   */
  freeBandwidth({ start, end }: Period, experiment?: string): number {
    const tagsLeft = TAG_PLACES.every(
      (place) => this.#holdings.layers[place].firstFree(start, end) !== undefined,
    );
    if (!tagsLeft) return 0;
    const free = Math.max(0, this.#capacity - this.#load.peak(start, end));
    if (!this.#shares || experiment === undefined) return free;
    return Math.min(free, this.#shares.freeBandwidth(experiment, { start, end }));
  }

  /**
   * The earliest start from `from` on at which `bandwidth` Mbps and tags are free for `duration` milliseconds;
   * undefined when the link, or the share, is too small. Exact: each limit in turn moves the start to the first instant
   * that it allows, until all agree.
   *
   * @param experiment whose share is a limit too
   */
  earliest(from: number, duration: number, bandwidth: number, experiment?: string): number | undefined {
    if (bandwidth > this.#capacity) return undefined;
    let start = from;
    for (;;) {
      let next = this.#load.earliest(start, duration, this.#capacity - bandwidth);
      for (const place of TAG_PLACES) next = this.#holdings.earliestTag(place, next, duration);
      if (this.#shares && experiment !== undefined) {
        const shared = this.#shares.earliest(experiment, next, duration, bandwidth);
        if (shared === undefined) return undefined;
        next = shared;
      }
      if (next === start) return start;
      start = next;
    }
  }

  /**
   * Until when `bandwidth` Mbps and tags are free from `start` on, in milliseconds: the latest end of a demand that would
   * be accepted, `latest` at most; undefined when nothing is free at the start.
   *
   * @param experiment whose share is a limit too
   */
  freeUntil(start: number, bandwidth: number, latest: number, experiment?: string): number | undefined {
    if (bandwidth > this.#capacity) return undefined;
    let end = this.#load.firstAbove(start, latest, this.#capacity - bandwidth);
    for (const place of TAG_PLACES) end = Math.min(end, this.#holdings.tagFreeUntil(place, start));
    if (this.#shares && experiment !== undefined)
      end = this.#shares.freeUntil(experiment, start, bandwidth, end);
    return end > start ? end : undefined;
  }

  #bandwidthRefusal({ start, end }: Demand, free: number): Refusal {
    const capacity = this.#capacity;
    for (const segment of this.#load.segments(start, end)) {
      if (Math.max(0, capacity - segment.load) === free) {
        return { limit: 'bandwidth', capacity, free, start: segment.start, end: segment.end };
      }
    }
    return { limit: 'bandwidth', capacity, free, start, end };
  }
}
