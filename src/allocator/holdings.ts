import { type Holding, TAG_PLACES, type TagPlace, type Tags } from './demand.ts';
import { SortedTimes } from './sorted-times.ts';
import { doubledFloats, doubledShorts } from './typed-arrays.ts';

/** How many slots there are at first; the arrays double when they are full. */
const FIRST_CAPACITY = 256;

/**
 * The reservations on a link with what they hold, by id and in the order of their starts and ends. A million of them take
 * some 200 MB: the numbers are in typed arrays, each reservation in a slot, which is used again once it is removed.
 */
export class Holdings {
  readonly byStart = new SortedTimes();
  readonly byEnd = new SortedTimes();
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
    this.byStart.add(start, slot);
    this.byEnd.add(end, slot);
  }

  /** Removes a reservation; does nothing for an unknown id. */
  remove(id: string): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) return;
    this.byStart.remove(this.#starts[slot] ?? 0, slot);
    this.byEnd.remove(this.#ends[slot] ?? 0, slot);
    this.#slots.delete(id);
    this.#ids[slot] = undefined;
    this.#free.push(slot);
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
    for (const place of TAG_PLACES) this.#tags[place] = doubledShorts(this.#tags[place]);
  }
}
