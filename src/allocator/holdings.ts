import type { Link } from '../contract/links.ts';
import { type Holding, type Period, TAG_PLACES, type TagPlace, type Tags } from './demand.ts';
import { SortedTimes } from './sorted-times.ts';
import { TagLayer } from './tag-layer.ts';
import { doubledFloats, doubledShorts } from './typed-arrays.ts';

/** How many slots there are at first; the arrays double when they are full. */
const FIRST_CAPACITY = 256;
/** The end of a gap that is none: the tag is free for good, which {@link TagLayer} knows, or is in no range. */
const NO_GAP = Number.NEGATIVE_INFINITY;

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
    columns: 2 * TAG_PLACES.length,
    of: (slot, column) => this.#gapAfter(slot, column),
  });
  /** The tags of each place, with the slots that hold them. */
  readonly layers: Readonly<Record<TagPlace, TagLayer>>;
  readonly #slots = new Map<string, number>();
  readonly #ids: (string | undefined)[] = [];
  readonly #free: number[] = [];
  #starts = new Float64Array(FIRST_CAPACITY);
  #ends = new Float64Array(FIRST_CAPACITY);
  #bandwidths = new Float64Array(FIRST_CAPACITY);
  #tags: Record<TagPlace, Uint16Array> = {
    site1_s_tag: new Uint16Array(FIRST_CAPACITY),
    site1_c_tag: new Uint16Array(FIRST_CAPACITY),
    site2_s_tag: new Uint16Array(FIRST_CAPACITY),
    site2_c_tag: new Uint16Array(FIRST_CAPACITY),
  };
  /** For each place, until when a reservation's tag is free after it, in milliseconds. */
  #gapEnds = TAG_PLACES.map(() => new Float64Array(FIRST_CAPACITY));

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
  }

  /** How many reservations there are. */
  get size(): number {
    return this.#slots.size;
  }

  /** What the reservation holds; undefined for an unknown id. */
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
    return this.#tags[place][slot] ?? 0;
  }

  /** Adds a reservation whose id is not there yet. */
  add(id: string, { start, end, bandwidth, tags }: Holding): void {
    const slot = this.#free.pop() ?? this.#ids.length;
    if (slot >= this.#starts.length) this.#grow();
    this.#ids[slot] = id;
    this.#slots.set(id, slot);
    this.#starts[slot] = start;
    this.#ends[slot] = end;
    this.#bandwidths[slot] = bandwidth;
    for (const place of TAG_PLACES) this.#tags[place][slot] = tags[place];
    for (const [index, place] of TAG_PLACES.entries()) {
      // Tags outside the topology's ranges are ignored: they can't be allocated any more.
      const held = this.layers[place].has(tags[place])
        ? this.layers[place].hold(tags[place], slot)
        : { before: undefined, until: NO_GAP };
      this.#gapEnds[index]?.fill(held.until, slot, slot + 1);
      if (held.before !== undefined) this.#setGap(index, held.before, start);
    }
    this.byStart.add(start, slot);
    this.byEnd.add(end, slot);
  }

  /** Removes a reservation; does nothing for an unknown id. */
  remove(id: string): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) return;
    this.byStart.remove(this.#starts[slot] ?? 0, slot);
    this.byEnd.remove(this.#ends[slot] ?? 0, slot);
    for (const [index, place] of TAG_PLACES.entries()) {
      const tag = this.tagAt(slot, place);
      const before = this.layers[place].has(tag) ? this.layers[place].release(tag, slot) : undefined;
      if (before !== undefined) this.#setGap(index, before, this.#gapEnds[index]?.[slot] ?? NO_GAP);
    }
    this.#slots.delete(id);
    this.#ids[slot] = undefined;
    this.#free.push(slot);
  }

  /**
   * The earliest instant from `from` on at which some tag of a place is free for `duration` milliseconds. That is `from`
   * itself, or an instant at which a reservation ends.
   */
  earliestTag(place: TagPlace, from: number, duration: number): number {
    const layer = this.layers[place];
    const [length, end] = columnsAt(TAG_PLACES.indexOf(place));
    if (layer.isFreeAtEdge(from, from + duration)) return from;
    if (this.byEnd.largestUpTo(from, end, from + duration) >= from + duration) return from;
    return Math.min(layer.firstFreeForGood(), this.byEnd.firstAtLeast(from, length, duration));
  }

  /** Until when some tag of a place is free from `from` on, in milliseconds; infinity, or `from` when all are held. */
  tagFreeUntil(place: TagPlace, from: number): number {
    const [, end] = columnsAt(TAG_PLACES.indexOf(place));
    return Math.max(from, this.layers[place].freeAtEdgeUntil(from), this.byEnd.largestUpTo(from, end));
  }

  /** A column of `byEnd`: at each place the length and the end of the gap after a reservation on its tag. */
  #gapAfter(slot: number, column: number): number {
    const end = this.#gapEnds[column >>> 1]?.[slot] ?? NO_GAP;
    return column % 2 === 0 ? end - (this.#ends[slot] ?? 0) : end;
  }

  /** @param index of the place */
  #setGap(index: number, slot: number, until: number): void {
    const [ends, time, [length, end]] = [this.#gapEnds[index], this.#ends[slot] ?? 0, columnsAt(index)];
    if (!ends) return;
    const before = ends[slot] ?? NO_GAP;
    ends[slot] = until;
    this.byEnd.changed(time, slot, { column: length, before: before - time });
    this.byEnd.changed(time, slot, { column: end, before });
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
    this.#starts = doubledFloats(this.#starts);
    this.#ends = doubledFloats(this.#ends);
    this.#bandwidths = doubledFloats(this.#bandwidths);
    this.#gapEnds = this.#gapEnds.map(doubledFloats);
    for (const place of TAG_PLACES) this.#tags[place] = doubledShorts(this.#tags[place]);
  }
}

/** The columns of a place: the length of the gap, and its end. */
function columnsAt(index: number): readonly [length: number, end: number] {
  return [2 * index, 2 * index + 1];
}

/**
 * How many neighbours in time are checked before the search goes through all tags instead. On a link with many free tags a
 * few neighbours are enough; on one that is nearly full there are fewer tags than reservations.
 */
const NEIGHBOURS = 256;

/** The best tag that was found for a place so far. */
interface Candidate {
  tag: number;
  gap: number;
}

/**
 * Chooses a tag at each of the four places by best fit. The result is that of {@link TagLayer.bestFit}, but the search
 * starts from the reservations: it walks those that end before the period or start after it, nearest first; the first
 * whose tag is free leaves the smallest gap. At equal distances it checks all of them and takes the lowest tag.
 *
 * @param now milliseconds; time before it does not count as a gap, see {@link TagLayer.bestFit}
 * @param kept tags that are chosen already
 * @returns the tags; a place without a free tag is missing
 */
export function chooseTags(
  holdings: Holdings,
  { start, end }: Period,
  { now, kept }: { now: number; kept: Partial<Tags> },
): Partial<Tags> {
  const { layers } = holdings;
  const chosen: Partial<Tags> = { ...kept };
  const found: Partial<Record<TagPlace, Candidate>> = {};
  let open = TAG_PLACES.filter((place) => chosen[place] === undefined);
  const before = holdings.byEnd.downFrom(start);
  const after = holdings.byStart.upFrom(end);
  for (let seen = 0; seen < NEIGHBOURS && open.length > 0; seen += 1) {
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
    if (gap === Number.POSITIVE_INFINITY) {
      // No free tag has a neighbour: the lowest one is the best fit.
      for (const place of open) {
        const tag = layers[place].firstFree(start, end);
        if (tag !== undefined) chosen[place] = tag;
      }
      return chosen;
    }
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
    const tag = layers[place].bestFit(start, end, now);
    if (tag !== undefined) chosen[place] = tag;
  }
  return chosen;
}
