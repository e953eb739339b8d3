import { describe, expect, it } from 'vitest';
import type { Period } from '../../../src/contract/instants.ts';
import type { Column } from '../../../src/page/service.ts';
import {
  LEVELS,
  levelFor,
  type Place,
  questionOf,
  TILE_COLUMNS,
  Tiles,
  tilesOf,
  tileWindow,
} from '../../../src/page/timeline/tiles.ts';

const [HOUR, DAY] = [3_600_000, 86_400_000];
const NOW = Date.UTC(2026, 10, 22, 10, 30);
/** A column is 15 minutes long. */
const LEVEL = 3;
const FIRST = tilesOf({ start: NOW + 3 * DAY, end: NOW + 4 * DAY }, LEVEL)[0] ?? 0;

describe('tiles', () => {
  it('have columns that can be told apart, and cover a window without a gap', () => {
    const widths = [HOUR, DAY, 7 * DAY, 30 * DAY, 366 * DAY, 732 * DAY].map((length) => {
      const level = levelFor({ start: NOW, end: NOW + length }, 1000);
      return ((LEVELS[level] ?? 0) / length) * 1000;
    });
    for (const width of widths.slice(1)) expect(width).toBeGreaterThanOrEqual(1);
    for (const width of widths.slice(1)) expect(width).toBeLessThan(3);
    const window = { start: NOW, end: NOW + 30 * DAY };
    const windows = tilesOf(window, LEVEL).map((index) => tileWindow(LEVEL, index));
    expect(windows[0]?.start).toBeLessThanOrEqual(window.start);
    expect(windows.at(-1)?.end).toBeGreaterThanOrEqual(window.end);
    for (const [index, { start }] of windows.entries())
      if (index > 0) expect(start).toBe(windows[index - 1]?.end);
  });

  it('are asked for from where the service knows the use, and the same is asked as long as it answers', () => {
    const tile = { start: NOW - 30 * HOUR, end: NOW + 34 * HOUR };
    const question = questionOf(tile, LEVEL, NOW);
    expect(question).toMatchObject({ start: Date.UTC(2026, 10, 21, 12), end: tile.end });
    expect(questionOf(tile, LEVEL, NOW + HOUR, question)?.start).toBe(question?.start);
    expect(questionOf(tile, LEVEL, NOW + 2 * HOUR, question)?.start).toBeGreaterThan(question?.start ?? 0);
    expect(questionOf({ start: NOW - 9 * DAY, end: NOW - 8 * DAY }, LEVEL, NOW)).toBeUndefined();
    const whole = tileWindow(LEVEL, FIRST);
    expect(questionOf(whole, LEVEL, NOW)).toEqual({ ...whole, points: TILE_COLUMNS });
  });
});

/** A service whose answers wait until they are let go. */
class Service {
  readonly asked: { site: string; start: number; signal: AbortSignal; answer(free: number | Error): void }[] =
    [];
  readonly #answers = new Map<string, readonly Column[]>();
  changes = 0;

  readonly tiles = new Tiles({
    links: ['a', 'b'].map((site1) => ({ site1, site2: 'z', bandwidth: 100 })),
    now: () => NOW,
    onChange: () => {
      this.changes += 1;
    },
    columns: ({ site1 }, window, points, signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        this.asked.push({
          site: site1,
          start: window.start,
          signal,
          answer: (free) => {
            if (free instanceof Error) reject(free);
            else resolve(this.#same(site1, window, points, free));
          },
        });
      }),
  });

  /** The same array where nothing has changed, as after a 304. */
  #same(site: string, { start, end }: Period, points: number, free: number): readonly Column[] {
    const key = `${site} ${start}`;
    const before = this.#answers.get(key);
    if (before?.[0]?.free === free) return before;
    const length = (end - start) / points;
    const found = Array.from({ length: points }, (_, index) => ({
      ...{ start: start + index * length, end: start + (index + 1) * length },
      ...{ free, freeMax: free + 1, vlans: 7 },
    }));
    this.#answers.set(key, found);
    return found;
  }

  /** Answers all that wait, also what is asked for then; gives what was asked, as site and tile. */
  async answerAll(free: (site: string) => number): Promise<string[]> {
    const done: string[] = [];
    for (let next = this.asked.shift(); next; next = this.asked.shift()) {
      next.answer(free(next.site));
      if (!next.signal.aborted)
        done.push(`${next.site}${tilesOf({ ...next, end: next.start + 1 }, LEVEL)[0]}`);
      await new Promise(setImmediate);
    }
    return done;
  }
}

const places = (...indices: number[]): Place[] =>
  [0, 1].flatMap((link) => indices.map((index) => ({ link, level: LEVEL, index: FIRST + index })));
const names = (...tiles: [site: string, index: number][]): string[] =>
  tiles.map(([site, index]) => `${site}${FIRST + index}`);

describe('loading', () => {
  it('asks for the most urgent first, six at once, and once only', async () => {
    const service = new Service();
    service.tiles.want(places(0, 1, 2, 3));
    service.tiles.want(places(0, 1, 2, 3));
    expect(service.asked).toHaveLength(6);
    const done = await service.answerAll(() => 10);
    expect(done).toHaveLength(8);
    expect(done.slice(0, 2)).toEqual(names(['a', 0], ['a', 1]));
    expect(service.tiles.isLoading).toBe(false);
    service.tiles.want(places(1, 2));
    expect(service.asked).toEqual([]);
  });

  it('gives up what is out of view, and asks again when it is back', async () => {
    const service = new Service();
    service.tiles.want(places(0));
    const [first] = service.asked;
    service.tiles.want(places(5));
    expect(first?.signal.aborted).toBe(true);
    expect(await service.answerAll(() => 10)).toEqual(names(['a', 5], ['b', 5]));
    service.tiles.want(places(0));
    expect(await service.answerAll(() => 10)).toEqual(names(['a', 0], ['b', 0]));
    expect(service.tiles.hasFailed).toBe(false);
  });

  it('asks one tile of each link whether anything has changed, and the others where it has', async () => {
    const service = new Service();
    service.tiles.want(places(0, 1, 2));
    await service.answerAll(() => 10);
    service.changes = 0;
    service.tiles.refresh(new Set([0, 1]));
    expect(await service.answerAll(() => 10)).toEqual(names(['a', 0], ['b', 0]));
    expect(service.changes).toBe(0);
    service.tiles.refresh(new Set([0, 1]));
    const changed = await service.answerAll((site) => (site === 'a' ? 10 : 20));
    expect(changed).toEqual(names(['a', 0], ['b', 0], ['b', 1], ['b', 2]));
    expect(service.changes).toBe(3);
  });

  it('asks again after a change for what was out of view meanwhile, and not for what has not changed', async () => {
    const service = new Service();
    service.tiles.want(places(0));
    await service.answerAll(() => 10);
    service.tiles.want(places(1));
    await service.answerAll(() => 10);
    service.tiles.refresh(new Set([0, 1]));
    await service.answerAll((site) => (site === 'a' ? 10 : 20));
    service.tiles.want(places(0));
    expect(await service.answerAll(() => 20)).toEqual(names(['b', 0]));
  });

  it('tries what has failed again at the next refresh, and shows what it had', async () => {
    const service = new Service();
    service.tiles.want(places(0));
    service.asked.shift()?.answer(new Error('503'));
    await service.answerAll(() => 10);
    expect(service.tiles.hasFailed).toBe(true);
    const { start } = tileWindow(LEVEL, FIRST);
    const hour = { start: start + HOUR, end: start + 2 * HOUR };
    expect(service.tiles.free(0, hour, LEVEL)).toBeUndefined();
    expect(service.tiles.free(1, hour, LEVEL)).toEqual({ free: 10, freeMax: 11, vlans: 7 });
    service.tiles.refresh(new Set([0, 1]));
    await service.answerAll(() => 10);
    expect(service.tiles.hasFailed).toBe(false);
    service.tiles.refresh(new Set([0, 1]));
    for (const { answer } of service.asked.splice(0)) answer(new Error('503'));
    await new Promise(setImmediate);
    expect(service.tiles.free(0, hour, LEVEL)).toMatchObject({ free: 10 });
  });

  it('draws what there is of other levels where a level is not there yet, and tells from it', async () => {
    const service = new Service();
    service.tiles.want(places(0));
    await service.answerAll(() => 10);
    const { start } = tileWindow(LEVEL, FIRST);
    const hour = { start: start + HOUR, end: start + 2 * HOUR };
    expect(service.tiles.over(0, hour, LEVEL - 1).map(({ level }) => level)).toEqual([LEVEL]);
    expect(service.tiles.free(0, hour, LEVEL - 1)).toMatchObject({ free: 10 });
  });

  it('keeps a bounded number of tiles', async () => {
    const service = new Service();
    for (let round = 0; round < 60; round += 1) {
      service.tiles.want(places(...Array.from({ length: 5 }, (_, index) => 5 * round + index)));
      await service.answerAll(() => 10);
    }
    service.tiles.want(places(0));
    expect(service.asked).toHaveLength(2);
  });
});
