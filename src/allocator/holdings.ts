import type { Link } from '../contract/links.ts';
import { type Holding, type Period, TAG_PLACES, type TagPlace, type Tags } from './demand.ts';
import type { LoadStep } from './load-profile.ts';
import { SortedTimes } from './sorted-times.ts';
import { NONE, TagLayer } from './tag-layer.ts';
import { doubled } from './typed-arrays.ts';

/** How many slots there are at first; the arrays double when they are full. */
const FIRST_CAPACITY = 256;
/** How many places there are. */
const PLACES = TAG_PLACES.length;

/**
 * The reservations on a link with what they hold: by id, in the order of their starts and ends, and by tag. A million of
 * them take some 200 MB: the numbers are in typed arrays, each reservation in a slot, which is used again once it is
 * removed.
 *
 * A tag is free before its first reservation, after its last one, and in the gaps between two. Each gap belongs to the
 * reservation that ends where it begins; `byEnd` knows the longest and the furthest of each block.
 */
export class Holdings {
  readonly byStart = new SortedTimes();
  readonly byEnd = new SortedTimes({
    columns: PLACES,
    endOf: (slot, place) => this.#gapEnd(this.#nexts[PLACES * slot + place] ?? NONE),
  });
  /** The tags of each place, with the slots that hold them. */
  readonly layers: Readonly<Record<TagPlace, TagLayer>>;
  readonly #slots = new Map<string, number>();
  readonly #ids: (string | undefined)[] = [];
  readonly #free: number[] = [];
  #starts = new Float64Array(FIRST_CAPACITY);
  #ends = new Float64Array(FIRST_CAPACITY);
  #bandwidths = new Float64Array(FIRST_CAPACITY);
  /** The tags of each slot, place by place. */
  #tags = new Uint16Array(PLACES * FIRST_CAPACITY);
  /** For each slot, place by place, the slot that holds its tag next; {@link NONE} where it is free for good. */
  #nexts = new Int32Array(PLACES * FIRST_CAPACITY);
  /** The layers in the order of the places. */
  readonly #layers: readonly TagLayer[];

  constructor(link: Pick<Link, `${TagPlace}s`>) {
    const times = {
      startOf: (slot: number) => this.#starts[slot] ?? 0,
      endOf: (slot: number) => this.#ends[slot] ?? 0,
    };
    this.layers = {
      site1_s_tag: new TagLayer(link.site1_s_tags, times),
      site1_c_tag: new TagLayer(link.site1_c_tags, times),
      site2_s_tag: new TagLayer(link.site2_s_tags, times),
      site2_c_tag: new TagLayer(link.site2_c_tags, times),
    };
    this.#layers = TAG_PLACES.map((place) => this.layers[place]);
  }

  /** How many reservations there are. */
  get size(): number {
    return this.#slots.size;
  }

  /** The share that the reservation holds; undefined for an unknown id. */
  get(id: string): Holding | undefined {
    const slot = this.#slots.get(id);
    if (slot === undefined) return undefined;
    return {
      start: this.#starts[slot] ?? 0,
      end: this.#ends[slot] ?? 0,
      bandwidth: this.#bandwidths[slot] ?? 0,
      tags: this.#tagsOf(slot),
    };
  }

  /** The id of the reservation in a slot; undefined for a free slot. */
  idAt(slot: number): string | undefined {
    return this.#ids[slot];
  }

  /** The tag that the reservation in a slot holds at a place. */
  tagAt(slot: number, place: TagPlace): number {
    return this.#tagAt(slot, TAG_PLACES.indexOf(place));
  }

  /** Adds a reservation whose id is not there yet. */
  add(id: string, holding: Holding): void {
    const slot = this.#keep(id, holding);
    for (let place = 0; place < PLACES; place += 1) this.#hold(slot, place);
    this.byStart.add(holding.start, slot);
    this.byEnd.add(holding.end, slot);
  }

  /**
   * Adds a reservation to those that are loaded first, in the order of their ends, which is then the order of their slots.
   * {@link holdTags} for each place and then {@link arrangeEnds} must follow before anything is asked.
   *
   * @throws RangeError when it ends before the last one: a defect of the caller
   */
  append(id: string, holding: Holding): void {
    const slot = this.#keep(id, holding);
    if (holding.end < (this.#ends[slot - 1] ?? holding.end))
      throw new RangeError(`${id} ends before the last one`);
    this.byStart.add(holding.start, slot);
  }

  /**
   * Holds the tags of a place for all reservations that were appended. It stops now and then.
   *
   * @throws RangeError when one is held twice at one time
   */
  *holdTags(place: TagPlace): Generator<void> {
    const column = TAG_PLACES.indexOf(place);
    yield* this.layers[place].fill(
      this.size,
      (slot) => this.#tagAt(slot, column),
      (slot, next) => {
        this.#nexts[PLACES * slot + column] = next;
      },
    );
  }

  /** Brings the ends of all reservations that were appended into order, with the gaps of their tags. */
  arrangeEnds(): void {
    this.byEnd.fill(this.#ends.subarray(0, this.size));
  }

  /** The load of all reservations together, from each instant on at which one starts or ends, in the order of time. */
  *steps(): Generator<LoadStep> {
    const starts = this.byStart.upFrom(Number.NEGATIVE_INFINITY);
    const ends = this.byEnd.upFrom(Number.NEGATIVE_INFINITY);
    let [load, live] = [0, 0];
    // The last start comes before the last end.
    for (let end = ends.time(); end !== undefined; end = ends.time()) {
      const time = Math.min(starts.time() ?? end, end);
      for (; starts.time() === time; starts.advance()) {
        load += this.#bandwidths[starts.slot()] ?? 0;
        live += 1;
      }
      for (; ends.time() === time; ends.advance()) {
        load -= this.#bandwidths[ends.slot()] ?? 0;
        live -= 1;
      }
      yield { time, load, live };
    }
  }

  /** Removes a reservation; does nothing for an unknown id. */
  remove(id: string): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) return;
    this.byStart.remove(this.#starts[slot] ?? 0, slot);
    this.byEnd.remove(this.#ends[slot] ?? 0, slot);
    for (let place = 0; place < PLACES; place += 1) this.#release(slot, place);
    this.#slots.delete(id);
    this.#ids[slot] = undefined;
    this.#free.push(slot);
  }

  /**
   * The earliest instant from `from` on at which some tag of a place is free for `duration` milliseconds. That is `from`
   * itself, or an instant at which a reservation ends.
   */
  earliestTag(place: TagPlace, from: number, duration: number): number {
    if (this.hasFreeTag(place, { start: from, end: from + duration })) return from;
    const first = this.byEnd.firstAtLeast(from, TAG_PLACES.indexOf(place), duration);
    return Math.min(this.layers[place].firstFreeForGood(), first);
  }

  /** Whether some tag of a place is free for a whole period. It looks for no other one. */
  hasFreeTag(place: TagPlace, { start, end }: Period): boolean {
    if (this.layers[place].isFreeAtEdge(start, end)) return true;
    return this.byEnd.furthestUpTo(start, TAG_PLACES.indexOf(place), end) >= end;
  }

  /** Until when some tag of a place is free from `from` on, in milliseconds; infinity, or `from` when all are held. */
  tagFreeUntil(place: TagPlace, from: number): number {
    const furthest = this.byEnd.furthestUpTo(from, TAG_PLACES.indexOf(place));
    return Math.max(from, this.layers[place].freeAtEdgeUntil(from), furthest);
  }

  /** A bound of how long a tag of a place is free that is free at some instant of a period, in milliseconds. */
  longestFree(place: TagPlace, { start, end }: Period): number {
    const layer = this.layers[place];
    if (layer.isFreeAtEdge(end - 1, start + 1)) return Number.POSITIVE_INFINITY;
    return this.byEnd.longestAround(start, end, TAG_PLACES.indexOf(place));
  }

  /**
   * The free tag of a place that wastes least: the one whose neighbours in time leave the smallest gap on one side of the
   * period; on a tie the lowest. Undefined when none is free. It walks the gaps around the period: where few tags are free,
   * it looks at few.
   *
   * A neighbour that ended by `now` does not count, so that the choice is the same whether or not ended reservations are
   * still in memory.
   *
   * @example
   * // Tag 10 is held until 09:00, tag 11 until 09:59, tag 12 never; asked for 10:00 to 11:00: tag 11 (gap of a minute).
   */
  bestFit(place: TagPlace, { start, end }: Period, now: number): number | undefined {
    const column = TAG_PLACES.indexOf(place);
    const edge = this.layers[place].bestAtEdge(start, end, now);
    let [best, smallest] = [edge?.tag, edge?.gap ?? Number.POSITIVE_INFINITY];
    this.byEnd.eachAround(start, end, column, (slot) => {
      const toRight = this.#gapEnd(this.#nexts[PLACES * slot + column] ?? NONE) - end;
      const ended = this.#ends[slot] ?? 0;
      const gap = ended > now ? Math.min(toRight, start - ended) : toRight;
      const tag = this.#tagAt(slot, column);
      if (gap > smallest || (gap === smallest && tag > (best ?? tag))) return;
      [best, smallest] = [tag, gap];
    });
    return best;
  }

  #tagAt(slot: number, place: number): number {
    return this.#tags[PLACES * slot + place] ?? 0;
  }

  /** Gives a reservation a slot, in which its numbers are. */
  #keep(id: string, { start, end, bandwidth, tags }: Holding): number {
    const slot = this.#free.pop() ?? this.#ids.length;
    if (slot >= this.#starts.length) this.#grow();
    this.#ids[slot] = id;
    this.#slots.set(id, slot);
    this.#starts[slot] = start;
    this.#ends[slot] = end;
    this.#bandwidths[slot] = bandwidth;
    for (let place = 0; place < PLACES; place += 1) {
      this.#tags[PLACES * slot + place] = tags[TAG_PLACES[place] ?? 'site1_s_tag'];
      this.#nexts[PLACES * slot + place] = NONE;
    }
    return slot;
  }

  /** Holds a slot's tag at a place. Tags outside the topology's ranges are ignored: they can't be allocated any more. */
  #hold(slot: number, place: number): void {
    const [layer, tag] = [this.#layers[place], this.#tagAt(slot, place)];
    if (!layer?.has(tag)) return;
    const { before, next } = layer.hold(tag, slot);
    this.#nexts[PLACES * slot + place] = next;
    this.#follow(before, place, slot);
  }

  #release(slot: number, place: number): void {
    const [layer, tag] = [this.#layers[place], this.#tagAt(slot, place)];
    if (!layer?.has(tag)) return;
    const before = layer.release(tag, slot);
    this.#follow(before, place, this.#nexts[PLACES * slot + place] ?? NONE);
  }

  /** Takes note that a slot's tag is held next by another one. */
  #follow(slot: number, place: number, next: number): void {
    if (slot === NONE) return;
    const at = PLACES * slot + place;
    const before = this.#gapEnd(this.#nexts[at] ?? NONE);
    this.#nexts[at] = next;
    this.byEnd.changed(this.#ends[slot] ?? 0, slot, { column: place, before });
  }

  /** When a gap ends that is followed by a slot; negative infinity for none, since {@link TagLayer} knows those. */
  #gapEnd(next: number): number {
    return next === NONE ? Number.NEGATIVE_INFINITY : (this.#starts[next] ?? 0);
  }

  #tagsOf(slot: number): Tags {
    return {
      site1_s_tag: this.tagAt(slot, 'site1_s_tag'),
      site1_c_tag: this.tagAt(slot, 'site1_c_tag'),
      site2_s_tag: this.tagAt(slot, 'site2_s_tag'),
      site2_c_tag: this.tagAt(slot, 'site2_c_tag'),
    };
  }

  #grow(): void {
    this.#starts = doubled(this.#starts);
    this.#ends = doubled(this.#ends);
    this.#bandwidths = doubled(this.#bandwidths);
    this.#tags = doubled(this.#tags);
    this.#nexts = doubled(this.#nexts);
  }
}

/**
 * How many neighbours in time are checked before the search goes through all tags instead. On a link with many free tags a
 * few neighbours are enough; on one that is nearly full there are fewer tags than reservations.
 */
const NEIGHBOURS = 256;
/** After how many of them it asks whether there is any free tag at all: mostly one is found by then. */
const FIRST_NEIGHBOURS = 16;

/** The best tag that was found for a place so far. */
interface Candidate {
  tag: number;
  gap: number;
}

/**
 * Chooses a tag at each of the four places by best fit. The result is that of {@link Holdings.bestFit}, but the search
 * starts from the reservations: it walks those that end before the period or start after it, nearest first; the first
 * whose tag is free leaves the smallest gap. At equal distances it checks all of them and takes the lowest tag.
 *
 * @param now milliseconds; time before it does not count as a gap, see {@link Holdings.bestFit}
 * @param kept tags that are chosen already
 * @returns the tags; undefined when no tag of some place is free
 */
export function chooseTags(
  holdings: Holdings,
  { start, end }: Period,
  { now, kept }: { now: number; kept: Partial<Tags> },
): Tags | undefined {
  const { layers } = holdings;
  const chosen: Partial<Tags> = { ...kept };
  const found: Partial<Record<TagPlace, Candidate>> = {};
  let open = TAG_PLACES.filter((place) => chosen[place] === undefined);
  const before = holdings.byEnd.downFrom(start);
  const after = holdings.byStart.upFrom(end);
  for (let seen = 0; seen < NEIGHBOURS && open.length > 0; seen += 1) {
    if (seen === FIRST_NEIGHBOURS) {
      const hasTag = (place: TagPlace): boolean =>
        found[place] !== undefined || holdings.hasFreeTag(place, { start, end });
      if (!open.every(hasTag)) return undefined;
    }
    const ended = before.time() ?? Number.NEGATIVE_INFINITY;
    const toLeft = ended > now ? start - ended : Number.POSITIVE_INFINITY;
    const toRight = (after.time() ?? Number.POSITIVE_INFINITY) - end;
    const gap = Math.min(toLeft, toRight);
    open = open.filter((place) => {
      const best = found[place];
      if (!best || best.gap >= gap) return true;
      chosen[place] = best.tag;
      return false;
    });
    // No free tag has a neighbour.
    if (gap === Number.POSITIVE_INFINITY) break;
    const nearest = toLeft <= toRight ? before : after;
    const slot = nearest.slot();
    nearest.advance();
    for (const place of open) {
      const tag = holdings.tagAt(slot, place);
      const lower = tag < (found[place]?.tag ?? Number.POSITIVE_INFINITY);
      if (lower && layers[place].isFree(tag, start, end)) found[place] = { tag, gap };
    }
  }
  for (const place of open) {
    const tag = holdings.bestFit(place, { start, end }, now);
    if (tag === undefined) return undefined;
    chosen[place] = tag;
  }
  return chosen as Tags;
}
