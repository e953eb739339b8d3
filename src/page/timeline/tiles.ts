import { DAY, MINUTE } from '../../contract/durations.ts';
import type { Period } from '../../contract/instants.ts';
import type { Column } from '../service.ts';
import type { TimelineOptions } from './parts.ts';

/** The lengths of a column at each level, in milliseconds: whole minutes, hours and days, as most reservations have. */
export const LEVELS: readonly number[] = [
  ...[1, 2, 5, 15, 30, 60, 120, 240, 720].map((minutes) => minutes * MINUTE),
  ...[1, 2, 4].map((days) => days * DAY),
];
/** How many columns a tile has. */
export const TILE_COLUMNS = 256;
/** How wide a column is at least, in pixels. */
const LEAST_PIXELS = 1;
/** How far back the service answers is 24 hours: less, so that a question never comes too late. In milliseconds. */
const KEPT_BACK = 24 * 60 * MINUTE;
const ASKED_BACK = 23 * 60 * MINUTE;
/** How many requests are under way at once: as many as browsers send to one origin. */
const MOST_UNDER_WAY = 6;
/** How many tiles are kept at least. */
const MOST_KEPT = 400;

/** The level whose columns are just wide enough to be told apart. */
export function levelFor({ start, end }: Period, width: number): number {
  const least = ((end - start) / width) * LEAST_PIXELS;
  const found = LEVELS.findIndex((length) => length >= least);
  return found === -1 ? LEVELS.length - 1 : found;
}

/** The indices of a level's tiles that a window touches, in order. A tile's index is its start by its length. */
export function tilesOf({ start, end }: Period, level: number): number[] {
  const length = (LEVELS[level] ?? DAY) * TILE_COLUMNS;
  const [first, last] = [Math.floor(start / length), Math.ceil(end / length) - 1];
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** The time of a tile. */
export function tileWindow(level: number, index: number): Period {
  const length = (LEVELS[level] ?? DAY) * TILE_COLUMNS;
  return { start: index * length, end: (index + 1) * length };
}

/** How far back the use of links is known at all. */
export function knownFrom(now: number): number {
  return now - ASKED_BACK;
}

/**
 * The question to the service for a tile: the part of it that the service knows.
 *
 * @param before what was asked before; asked again while the service answers it, so that its ETag is found
 * @returns undefined where all of the tile is over
 */
export function questionOf(
  { start, end }: Period,
  level: number,
  now: number,
  before?: Period,
): (Period & { points: number }) | undefined {
  const length = LEVELS[level] ?? DAY;
  const hour = 60 * MINUTE;
  const isKnown = before && before.start > now - KEPT_BACK + 5 * MINUTE;
  const from = isKnown ? before.start : Math.max(start, Math.ceil(knownFrom(now) / hour) * hour);
  if (from >= end) return undefined;
  return { start: from, end, points: Math.max(1, Math.round((end - from) / length)) };
}

/** A part of a link's use at one level. */
export interface Tile extends Period {
  readonly key: string;
  /** Which of the links. */
  readonly link: number;
  readonly level: number;
  /** In order, of equal length, without a gap; undefined until they are loaded. */
  columns: readonly Column[] | undefined;
}

interface Entry extends Tile {
  asked: Period | undefined;
  /** The link's use may have changed since it was loaded. */
  isStale: boolean;
  hasFailed: boolean;
  request: AbortController | undefined;
}

/** Options of {@link Tiles}. */
export interface TileSource extends Pick<TimelineOptions, 'links' | 'columns'> {
  now(): number;
  /** A tile has new columns. */
  onChange(): void;
}

/** A tile that is asked for. */
export type Place = Pick<Tile, 'link' | 'level'> & { index: number };

/** Tiles of the links' use: loads those that are wanted, the first first, and keeps what was loaded as far as there is room. */
export class Tiles {
  readonly #source: TileSource;
  /** The least recently used first. */
  readonly #entries = new Map<string, Entry>();
  /** For each link the tile that is asked first whether the link has changed. */
  readonly #probes = new Map<number, Entry>();
  #wanted: Entry[] = [];
  #underWay = 0;

  constructor(source: TileSource) {
    this.#source = source;
  }

  /** Whether some wanted tile could not be loaded. */
  get hasFailed(): boolean {
    return this.#wanted.some((entry) => entry.hasFailed);
  }

  /** Whether some wanted tile is not there yet. */
  get isLoading(): boolean {
    return this.#wanted.some(({ columns, hasFailed, request }) => !columns && (!hasFailed || request));
  }

  /** Says which tiles are needed, the most urgent first. What is being loaded and no longer needed is given up. */
  want(places: readonly Place[]): void {
    const wanted = places.map((place) => this.#entry(place));
    const keys = new Set(wanted);
    for (const entry of this.#entries.values()) {
      if (!keys.has(entry)) entry.request?.abort();
    }
    this.#wanted = wanted;
    for (const [link, probe] of this.#probes) if (!keys.has(probe)) this.#probes.delete(link);
    this.#evict();
    this.#load();
  }

  /** Asks again for what is wanted of some links: one tile of each, and the others where that one has changed. */
  refresh(links: ReadonlySet<number>): void {
    const now = this.#source.now();
    for (const entry of this.#entries.values()) {
      entry.hasFailed = false;
      if (entry.columns && links.has(entry.link)) entry.isStale = true;
    }
    for (const link of links) this.#probes.delete(link);
    for (const entry of this.#wanted) {
      if (!links.has(entry.link)) continue;
      const before = this.#probes.get(entry.link);
      // The window of a tile that is partly over changes from hour to hour, so that its answer is new then.
      const isFirst = !before || (before.start < knownFrom(now) && entry.start >= knownFrom(now));
      if (entry.columns && isFirst) this.#probes.set(entry.link, entry);
    }
    this.#load();
  }

  /** The loaded tiles of a link that touch a window, the ones to draw first first: those of a level last. */
  over(link: number, { start, end }: Period, level: number): Tile[] {
    const found: Entry[] = [];
    let covered = 0;
    for (const index of tilesOf({ start, end }, level)) {
      const entry = this.#entries.get(`${link}/${level}/${index}`);
      if (entry?.columns) found.push(entry);
      if (entry?.columns || tileWindow(level, index).end <= knownFrom(this.#source.now())) covered += 1;
    }
    if (covered === tilesOf({ start, end }, level).length) return found;
    const others = [...this.#entries.values()].filter(
      (entry) =>
        entry.link === link &&
        entry.level !== level &&
        entry.columns &&
        entry.start < end &&
        entry.end > start,
    );
    const far = (entry: Entry): number => Math.abs(entry.level - level + 0.5);
    return [...others.toSorted((one, other) => far(other) - far(one)), ...found];
  }

  /** The free capacity of a link in a period, as exactly as it is known at the level or near it; undefined where it is not known. */
  free(link: number, { start, end }: Period, level: number): Omit<Column, 'start' | 'end'> | undefined {
    const columns = this.columns(link, { start, end }, level);
    if (columns.length === 0) return undefined;
    const known = columns.reduce(
      (sum, column) => sum + Math.min(column.end, end) - Math.max(column.start, start),
      0,
    );
    const from = Math.max(start, knownFrom(this.#source.now()));
    if (known < (end - from) * 0.99) return undefined;
    return {
      free: Math.min(...columns.map(({ free }) => free)),
      freeMax: Math.max(...columns.map(({ freeMax }) => freeMax)),
      vlans: Math.min(...columns.map(({ vlans }) => vlans)),
    };
  }

  /** The columns of a link in a window, of one level: the given one, or the nearest that has all of them. In order. */
  columns(link: number, { start, end }: Period, level: number): Column[] {
    const tiles = this.over(link, { start, end }, level);
    const levels = [...new Set(tiles.map((tile) => tile.level))].toReversed();
    const of = (one: number): Column[] =>
      tiles
        .filter((tile) => tile.level === one)
        .toSorted((tile, other) => tile.start - other.start)
        .flatMap((tile) => tile.columns?.filter((column) => column.start < end && column.end > start) ?? []);
    const length = (columns: readonly Column[]): number =>
      columns.reduce((sum, column) => sum + Math.min(column.end, end) - Math.max(column.start, start), 0);
    const all = levels.map(of);
    return all.toSorted((one, other) => length(other) - length(one))[0] ?? [];
  }

  /** Forgets what was loaded in a row: it is of two other sites now. */
  forget(link: number): void {
    for (const entry of this.#entries.values()) {
      if (entry.link !== link) continue;
      entry.request?.abort();
      this.#entries.delete(entry.key);
    }
    this.#wanted = this.#wanted.filter((entry) => entry.link !== link);
    this.#probes.delete(link);
  }

  #entry({ link, level, index }: Place): Entry {
    const key = `${link}/${level}/${index}`;
    const entry = this.#entries.get(key) ?? {
      ...{ key, link, level, ...tileWindow(level, index), columns: undefined, asked: undefined },
      ...{ isStale: false, hasFailed: false, request: undefined },
    };
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  #evict(): void {
    const most = Math.max(MOST_KEPT, 2 * this.#wanted.length);
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= most) return;
      this.#entries.delete(key);
    }
  }

  #load(): void {
    for (const entry of this.#wanted) {
      if (this.#underWay >= MOST_UNDER_WAY) return;
      const waits = entry.isStale && (this.#probes.get(entry.link) ?? entry) !== entry;
      const isNeeded = !entry.hasFailed && (!entry.columns || entry.isStale) && !waits;
      if (isNeeded && !entry.request) void this.#ask(entry);
    }
  }

  async #ask(entry: Entry): Promise<void> {
    const question = questionOf(entry, entry.level, this.#source.now(), entry.asked);
    const link = this.#source.links[entry.link];
    if (!question || !link) {
      entry.columns ??= [];
      entry.isStale = false;
      return;
    }
    const request = new AbortController();
    entry.request = request;
    this.#underWay += 1;
    const { points, ...asked } = question;
    try {
      const columns = await this.#source.columns(link, asked, points, request.signal);
      this.#answered(entry, asked, columns);
    } catch {
      // What was given up is not a failure.
      entry.hasFailed = !request.signal.aborted;
      if (this.#probes.get(entry.link) === entry) this.#probes.delete(entry.link);
      if (entry.hasFailed) this.#source.onChange();
    }
    entry.request = undefined;
    this.#underWay -= 1;
    this.#load();
  }

  #answered(entry: Entry, asked: Period, columns: readonly Column[]): void {
    const isSame = entry.columns === columns;
    if (this.#probes.get(entry.link) === entry) {
      this.#probes.delete(entry.link);
      // The answer is of the link's version: what was loaded of the link before is as it was.
      if (isSame) for (const one of this.#entries.values()) if (one.link === entry.link) one.isStale = false;
    }
    entry.isStale = false;
    entry.asked = asked;
    const isChanged = !entry.columns || (!isSame && !areEqual(entry.columns, columns));
    entry.columns = columns;
    if (!isChanged) return;
    this.#source.onChange();
  }
}

function areEqual(some: readonly Column[], others: readonly Column[]): boolean {
  return (
    some.length === others.length &&
    some.every((one, index) => {
      const other = others[index];
      return (
        one.start === other?.start &&
        one.free === other.free &&
        one.freeMax === other.freeMax &&
        one.vlans === other.vlans
      );
    })
  );
}
