import type { TagRange } from '../contract/links.ts';
import type { Holding, Period, TagPlace } from './demand.ts';

/** A tag from an instant on: held until then, or free until then. */
const FOREVER = Number.POSITIVE_INFINITY;

/**
 * The tags of one layer (S or C) at one end of a link, over the reservations that hold them.
 *
 * @example
 * // Tags 1 to 2, 1 held from 9:00 to 10:00: the lowest free tag is 2 at 9:30, and 1 from 10:00 on.
 */
export class PlaceTags {
  readonly place: TagPlace;
  readonly #first: number;
  /** How many tags there are. */
  readonly size: number;
  readonly #rows: ReadonlyMap<string, Holding>;
  /** Whether some tag is held by none of the rows; undefined where they are others since. */
  #isOneUnheld: boolean | undefined;
  /** When each tag is held: periods that do not overlap, in order. Undefined where the rows are others since. */
  #held: Map<number, Period[]> | undefined;

  /** @param range inclusive, `[from, to]` */
  constructor(place: TagPlace, [from, to]: TagRange, rows: ReadonlyMap<string, Holding>) {
    this.place = place;
    this.#first = from;
    this.size = to - from + 1;
    this.#rows = rows;
  }

  /** The rows are others. */
  changed(): void {
    [this.#isOneUnheld, this.#held] = [undefined, undefined];
  }

  /** Whether a tag is in the range. A reservation from before the topology changed may hold another. */
  has(tag: number): boolean {
    return tag >= this.#first && tag < this.#first + this.size;
  }

  /** The lowest tag that is free throughout a period; undefined where there is none. @param kept is taken where it is free */
  lowestFree({ start, end }: Period, kept?: number): number | undefined {
    const isHeld = new Uint8Array(this.size);
    for (const row of this.#rows.values()) {
      const tag = row.tags[this.place];
      if (row.start < end && row.end > start && this.has(tag)) isHeld[tag - this.#first] = 1;
    }
    if (kept !== undefined && this.has(kept) && isHeld[kept - this.#first] === 0) return kept;
    const index = isHeld.indexOf(0);
    return index < 0 ? undefined : this.#first + index;
  }

  /** The earliest start, from an instant on, from which some tag is free for so many milliseconds. */
  earliest(from: number, duration: number): number {
    return this.#best(FOREVER, from, Math.min, (periods) => {
      let start = from;
      for (const held of periods) {
        if (held.start >= start + duration) break;
        if (held.end > start) start = held.end;
      }
      return start;
    });
  }

  /** Until when some tag is free from an instant on; the instant itself when none is. */
  freeUntil(from: number): number {
    return this.#best(from, FOREVER, Math.max, (periods) => {
      const next = periods.find(({ end }) => end > from);
      return next ? Math.max(from, next.start) : FOREVER;
    });
  }

  /** Since when some tag is free until an instant; the instant itself when none is. */
  freeSince(until: number): number {
    return this.#best(until, Number.NEGATIVE_INFINITY, Math.min, (periods) => {
      const last = periods.findLast(({ start }) => start < until);
      return last ? Math.min(until, last.end) : Number.NEGATIVE_INFINITY;
    });
  }

  /**
   * The best of what the tags have.
   *
   * @param worst where there is no tag @param unheld of a tag that nobody holds: nothing is better
   */
  #best(
    worst: number,
    unheld: number,
    better: (one: number, other: number) => number,
    of: (periods: readonly Period[]) => number,
  ): number {
    this.#isOneUnheld ??= this.#countHeld() < this.size;
    if (this.#isOneUnheld) return unheld;
    this.#held ??= this.#periods();
    let best = worst;
    for (const periods of this.#held.values()) {
      best = better(best, of(periods));
      if (best === unheld) break;
    }
    return best;
  }

  #countHeld(): number {
    const tags = new Set<number>();
    for (const row of this.#rows.values()) if (this.has(row.tags[this.place])) tags.add(row.tags[this.place]);
    return tags.size;
  }

  #periods(): Map<number, Period[]> {
    const held = new Map<number, Period[]>();
    for (const row of this.#rows.values()) {
      const tag = row.tags[this.place];
      if (!this.has(tag)) continue;
      const known = held.get(tag);
      if (known) known.push(row);
      else held.set(tag, [row]);
    }
    for (const periods of held.values()) periods.sort((one, other) => one.start - other.start);
    return held;
  }
}
