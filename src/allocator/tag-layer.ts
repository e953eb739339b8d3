import type { TagRange } from '../contract/links.ts';

/** In place of a slot where there is none. */
export const NONE = -1;

/** Where the period of a slot is read, in milliseconds. */
interface SlotTimes {
  startOf(slot: number): number;
  endOf(slot: number): number;
}

/** How many more slots than it has a tag gets room for: an eighth of them, and so many. */
const SPARE = 4;
/** How many slots are filled in without a stop: some milliseconds. */
const FILLED_AT_ONCE = 50_000;

/**
 * The VLAN tags of one layer (S or C) at one end of a link, each with the reservations that hold it. A tag is held by
 * one reservation at a time (allocator/README.md).
 *
 * The slots that hold a tag, with their starts, are beside each other in the order of time. All tags share two arrays. A
 * tag that has no room left moves to their end; when that is reached, all are packed into new ones.
 */
export class TagLayer {
  readonly #first: number;
  readonly #times: SlotTimes;
  /** How many tags there are. For each, in order, the arrays below have one entry. */
  readonly size: number;
  /** Where in the shared arrays the slots of each tag begin. */
  readonly #bases: Int32Array;
  /** How many slots hold each tag. */
  readonly #lengths: Int32Array;
  /** For how many there is room. */
  readonly #rooms: Int32Array;
  /** When each tag is held for the first time; infinity for a tag that is not held. */
  readonly #firstStarts: Float64Array;
  /** From when on each tag is free for good; negative infinity for a tag that is not held. */
  readonly #lastEnds: Float64Array;

  /** The least of `#lastEnds` and the largest of `#firstStarts`; NaN where they must be looked for again. */
  #earliestLastEnd = Number.NaN;
  #latestStart = Number.NaN;

  #starts = new Float64Array(0);
  #slots = new Int32Array(0);
  /** Where the shared arrays are unused from. */
  #used = 0;

  /** @param range inclusive, `[from, to]` */
  constructor([from, to]: TagRange, times: SlotTimes) {
    this.size = to - from + 1;
    this.#first = from;
    this.#times = times;
    this.#bases = new Int32Array(this.size);
    this.#lengths = new Int32Array(this.size);
    this.#rooms = new Int32Array(this.size);
    this.#firstStarts = new Float64Array(this.size).fill(Number.POSITIVE_INFINITY);
    this.#lastEnds = new Float64Array(this.size).fill(Number.NEGATIVE_INFINITY);
  }

  /** Whether the tag is in the layer's range. */
  has(tag: number): boolean {
    return tag >= this.#first && tag < this.#first + this.size;
  }

  /** Whether `tag` is free for the whole of `[start, end)`; false for a tag outside the range. */
  isFree(tag: number, start: number, end: number): boolean {
    return this.has(tag) && !this.#isHeld(tag - this.#first, start, end);
  }

  /**
   * The tag that wastes least among those that are held only after `[start, end)`, only before it, or not at all: the one
   * with the smallest gap; on a tie the lowest. The gap is infinite without a neighbour, and a neighbour that ended by `now`
   * does not count.
   */
  bestAtEdge(start: number, end: number, now: number): { tag: number; gap: number } | undefined {
    let best: { tag: number; gap: number } | undefined;
    for (let index = 0; index < this.size; index += 1) {
      const [firstStart, lastEnd] = [this.#firstStarts[index] ?? 0, this.#lastEnds[index] ?? 0];
      if (lastEnd > start && firstStart < end) continue;
      const isBefore = lastEnd > start;
      const toLeft = lastEnd > now ? start - lastEnd : Number.POSITIVE_INFINITY;
      const gap = isBefore ? firstStart - end : toLeft;
      if (!best || gap < best.gap) best = { tag: this.#first + index, gap };
    }
    return best;
  }

  /** Whether some tag is free for `[start, end)` since it is held only afterwards, only before, or not at all. */
  isFreeAtEdge(start: number, end: number): boolean {
    return this.firstFreeForGood() <= start || this.#latestFirstStart() >= end;
  }

  /** From when on some tag is free for good, in milliseconds. */
  firstFreeForGood(): number {
    if (Number.isNaN(this.#earliestLastEnd)) this.#earliestLastEnd = least(this.#lastEnds);
    return this.#earliestLastEnd;
  }

  /**
   * Until when some tag is free from `from` on that is held only afterwards, only before, or not at all: infinity for one
   * that is free for good; negative infinity when there is none.
   */
  freeAtEdgeUntil(from: number): number {
    return this.firstFreeForGood() <= from ? Number.POSITIVE_INFINITY : this.#latestFirstStart();
  }

  /**
   * The earliest instant from which some tag is free until `until`: `earliest` at the least, and `until` when all are held
   * just before it.
   */
  freeSince(until: number, earliest: number): number {
    let since = until;
    for (let index = 0; index < this.size && since > earliest; index += 1) {
      since = Math.min(since, this.#endBefore(index, this.#position(index, until)));
    }
    return Math.max(since, earliest);
  }

  /**
   * Holds a tag that is free for the slot's period.
   *
   * @returns the slots that hold it before and next, or {@link NONE}
   * @throws RangeError when it is not free: a defect of the caller
   */
  hold(tag: number, slot: number): { before: number; next: number } {
    const [start, end] = [this.#times.startOf(slot), this.#times.endOf(slot)];
    if (!this.isFree(tag, start, end)) throw notFree(tag);
    const index = tag - this.#first;
    const length = this.#lengths[index] ?? 0;
    if (length === this.#rooms[index]) this.#makeRoom(index);
    const at = this.#position(index, start);
    const last = (this.#bases[index] ?? 0) + length;
    const found = { before: this.#slotBefore(index, at), next: at < last ? (this.#slots[at] ?? NONE) : NONE };
    if (at < last) {
      this.#starts.copyWithin(at + 1, at, last);
      this.#slots.copyWithin(at + 1, at, last);
    }
    this.#starts[at] = start;
    this.#slots[at] = slot;
    this.#lengths[index] = length + 1;
    const [firstStart, lastEnd] = [this.#firstStarts[index] ?? start, this.#lastEnds[index] ?? end];
    this.#setEdges(index, Math.min(firstStart, start), Math.max(lastEnd, end));
    return found;
  }

  /**
   * Holds the tags of many slots in one pass, where none is held yet: of slots 0 to before `count`, which are in the order
   * of their ends. It stops now and then, so that others may have their turn.
   *
   * @param tagOf the tag of a slot; one outside the range is not held
   * @param follow is told the slots that hold a tag one after the other
   * @throws RangeError when a tag would be held twice at one time
   */
  *fill(
    count: number,
    tagOf: (slot: number) => number,
    follow: (before: number, next: number) => void,
  ): Generator<void> {
    const lengths = this.#lengths;
    for (let slot = 0; slot < count; slot += 1) {
      const tag = tagOf(slot);
      if (this.has(tag)) lengths[tag - this.#first] = (lengths[tag - this.#first] ?? 0) + 1;
    }
    this.#pack();
    lengths.fill(0);
    for (let slot = 0; slot < count; slot += 1) {
      if (slot % FILLED_AT_ONCE === 0) yield;
      const tag = tagOf(slot);
      if (!this.has(tag)) continue;
      const index = tag - this.#first;
      const [start, length] = [this.#times.startOf(slot), lengths[index] ?? 0];
      if (start < (this.#lastEnds[index] ?? 0)) throw notFree(tag);
      const at = (this.#bases[index] ?? 0) + length;
      if (length > 0) follow(this.#slots[at - 1] ?? NONE, slot);
      else this.#firstStarts[index] = start;
      this.#starts[at] = start;
      this.#slots[at] = slot;
      lengths[index] = length + 1;
      this.#lastEnds[index] = this.#times.endOf(slot);
    }
    [this.#latestStart, this.#earliestLastEnd] = [Number.NaN, Number.NaN];
  }

  /**
   * Releases a tag that the slot holds.
   *
   * @returns the slot that holds it before, or {@link NONE}
   * @throws RangeError when the slot does not hold it: a defect of the caller
   */
  release(tag: number, slot: number): number {
    const index = this.has(tag) ? tag - this.#first : NONE;
    const last = (this.#bases[index] ?? 0) + (this.#lengths[index] ?? 0);
    const at = index === NONE ? last : this.#position(index, this.#times.startOf(slot));
    if (at >= last || this.#slots[at] !== slot) throw new RangeError(`tag ${tag} is not held by ${slot}`);
    this.#starts.copyWithin(at, at + 1, last);
    this.#slots.copyWithin(at, at + 1, last);
    const base = this.#bases[index] ?? 0;
    this.#lengths[index] = last - 1 - base;
    const firstStart = last - 1 > base ? (this.#starts[base] ?? 0) : Number.POSITIVE_INFINITY;
    this.#setEdges(index, firstStart, this.#endBefore(index, last - 1));
    return this.#slotBefore(index, at);
  }

  /** Takes note of when a tag is held for the first time, and from when on it is free for good. */
  #setEdges(index: number, start: number, end: number): void {
    const [startBefore, endBefore] = [this.#firstStarts[index], this.#lastEnds[index]];
    this.#firstStarts[index] = start;
    this.#lastEnds[index] = end;
    if (start !== startBefore && (startBefore === this.#latestStart || start > this.#latestStart)) {
      this.#latestStart = Number.NaN;
    }
    if (end !== endBefore && (endBefore === this.#earliestLastEnd || end < this.#earliestLastEnd)) {
      this.#earliestLastEnd = Number.NaN;
    }
  }

  /** The latest of the instants at which each tag is held for the first time. */
  #latestFirstStart(): number {
    if (Number.isNaN(this.#latestStart)) {
      let latest = Number.NEGATIVE_INFINITY;
      for (let index = 0; index < this.size; index += 1) {
        const start = this.#firstStarts[index] ?? 0;
        if (start > latest) latest = start;
      }
      this.#latestStart = latest;
    }
    return this.#latestStart;
  }

  #isHeld(index: number, start: number, end: number): boolean {
    return this.#endBefore(index, this.#position(index, end)) > start;
  }

  /** The first position of a tag's slots that starts at `time` or later, or that after its last one. */
  #position(index: number, time: number): number {
    const starts = this.#starts;
    let low = this.#bases[index] ?? 0;
    let high = low + (this.#lengths[index] ?? 0);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((starts[middle] ?? 0) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The slot before a position of a tag's slots; {@link NONE} before its first one. */
  #slotBefore(index: number, at: number): number {
    return at > (this.#bases[index] ?? 0) ? (this.#slots[at - 1] ?? NONE) : NONE;
  }

  /** When the period before a position of a tag's slots ends; negative infinity before its first one. */
  #endBefore(index: number, at: number): number {
    const slot = this.#slotBefore(index, at);
    return slot === NONE ? Number.NEGATIVE_INFINITY : this.#times.endOf(slot);
  }

  /** Gives a tag room for more slots. */
  #makeRoom(index: number): void {
    const room = roomFor(this.#lengths[index] ?? 0);
    if (this.#used + room > this.#starts.length) this.#pack();
    else {
      const [base, length] = [this.#bases[index] ?? 0, this.#lengths[index] ?? 0];
      this.#starts.copyWithin(this.#used, base, base + length);
      this.#slots.copyWithin(this.#used, base, base + length);
      this.#bases[index] = this.#used;
      this.#rooms[index] = room;
      this.#used += room;
    }
  }

  /** Moves all tags into new arrays, without the places that others have left. */
  #pack(): void {
    const [starts, slots] = [this.#starts, this.#slots];
    let total = 0;
    for (const length of this.#lengths) total += roomFor(length);
    const size = total + Math.ceil(total / 4);
    this.#starts = new Float64Array(size);
    this.#slots = new Int32Array(size);
    this.#used = 0;
    for (let index = 0; index < this.size; index += 1) {
      const [base, length] = [this.#bases[index] ?? 0, this.#lengths[index] ?? 0];
      this.#starts.set(starts.subarray(base, base + length), this.#used);
      this.#slots.set(slots.subarray(base, base + length), this.#used);
      this.#bases[index] = this.#used;
      this.#rooms[index] = roomFor(length);
      this.#used += roomFor(length);
    }
  }
}

function notFree(tag: number): RangeError {
  return new RangeError(`tag ${tag} is not free`);
}

/** For how many slots a tag gets room that has so many. */
function roomFor(length: number): number {
  return length + (length >>> 3) + SPARE;
}

function least(values: Float64Array): number {
  let found = Number.POSITIVE_INFINITY;
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] ?? 0;
    if (value < found) found = value;
  }
  return found;
}
