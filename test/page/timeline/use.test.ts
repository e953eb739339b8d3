import { describe, expect, it } from 'vitest';
import type { Column, Ends, Service } from '../../../src/page/service.ts';
import { createUse, type Looked, questionFor } from '../../../src/page/timeline/use.ts';
import { createClock } from '../../../src/words/civil-time.ts';

const [HOUR, DAY] = [3_600_000, 86_400_000];
const NOW = Date.UTC(2026, 10, 22, 10, 30);
const clock = createClock('Europe/Brussels');
const WEEK = { start: NOW - HOUR, end: NOW + 7 * DAY };
const link = (site1: string) => ({ site1, site2: 'z', bandwidth: 100 });
const LINKS = ['a', 'b', 'c'].map(link);
const PAIR = { site1: 'a', site2: 'b', bandwidth: 100 };

describe('the question', () => {
  it.each(
    [HOUR, DAY, 7 * DAY, 30 * DAY, 366 * DAY, 732 * DAY].flatMap((length) =>
      [90, 375, 800, 3000].map((width) => [length, width] as const),
    ),
  )('for a window of %i ms in %i pixels is one that the service answers', (length, width) => {
    for (const start of [NOW - HOUR, NOW - 20 * DAY, NOW + 9 * DAY]) {
      const window = { start, end: start + length };
      const question = questionFor({ window, width, clock }, NOW);
      if (!question) {
        expect(window.end).toBeLessThan(NOW);
        continue;
      }
      expect(question.start).toBeGreaterThan(NOW - DAY);
      expect(question.end).toBeGreaterThanOrEqual(window.end + length / 2);
      expect(question.points).toBeLessThanOrEqual(2000);
      expect(question.end - question.start).toBeLessThanOrEqual(5 * 366 * DAY);
    }
  });

  it('stays the same until the window has moved by more than half of its length', () => {
    const asked = (by: number, before?: ReturnType<typeof questionFor>) =>
      questionFor({ window: { start: WEEK.start + by, end: WEEK.end + by }, width: 800, clock }, NOW, before);
    const first = asked(0);
    expect(asked(3 * DAY, first)).toBe(first);
    expect(asked(4 * DAY, first)).not.toBe(first);
    // What is over is not asked for.
    expect(asked(-30 * DAY, first)).toBeUndefined();
  });
});

/** A service whose answers wait until they are let go. */
class Asked {
  readonly requests: { sites: string[]; signal: AbortSignal; answer(free: number | Error): void }[] = [];
  readonly use = createUse({
    login: { visit: new AbortController().signal },
    store: { state: { now: NOW } },
    service: {
      use: (window, points, signal, links = []) =>
        this.#ask(links, signal, (free) =>
          links.map((ends) => ({ ...ends, columns: columns(window.start, window.end, points, free) })),
        ),
      columns: ({ site1, site2 }, window, points, signal) =>
        this.#ask([{ site1, site2 }], signal, (free) => columns(window.start, window.end, points, free)),
    } satisfies Pick<Service, 'use' | 'columns'>,
  });

  #ask<Answer>(links: readonly Ends[], signal: AbortSignal | undefined, answerOf: (free: number) => Answer) {
    return new Promise<Answer>((resolve, reject) => {
      if (!signal) return;
      signal.addEventListener('abort', () => reject(signal.reason));
      const answer = (free: number | Error): void =>
        free instanceof Error ? reject(free) : resolve(answerOf(free));
      this.requests.push({ sites: links.map(({ site1 }) => site1), signal, answer });
    });
  }

  look(links: readonly (typeof PAIR)[], more: Partial<Looked> = {}): void {
    this.use.look({ links, pair: undefined, window: WEEK, width: 800, clock, ...more });
  }

  /** Answers all that wait. @returns the first sites of the links of each request */
  async answerAll(free: number | Error): Promise<string[][]> {
    const some = this.requests.splice(0);
    for (const { answer } of some) answer(free);
    await new Promise(setImmediate);
    return some.map(({ sites }) => sites);
  }

  free(of: typeof PAIR): number | undefined {
    return this.use.known.value.columns.get(of)?.[0]?.free;
  }
}

function columns(start: number, end: number, points: number, free: number): Column[] {
  const length = (end - start) / points;
  const part = (at: number) => ({ start: start + at * length, end: start + (at + 1) * length });
  return Array.from({ length: points }, (_, at) => ({ ...part(at), free, freeMax: free, vlans: 7 }));
}

describe('the use of links', () => {
  it('is asked for in one request for all links, and for two sites without a link in one more; 40 links at most', async () => {
    const asked = new Asked();
    asked.look(LINKS, { pair: PAIR });
    asked.look(LINKS, { pair: PAIR });
    expect(asked.use.known.value.isLoading).toBe(true);
    expect(await asked.answerAll(10)).toEqual([['a', 'b', 'c'], ['a']]);
    expect(asked.use.known.value).toMatchObject({ isLoading: false, hasFailed: false });
    // What does not change is one column.
    expect(asked.use.known.value.columns.get(PAIR)).toHaveLength(1);
    asked.look([...LINKS, ...Array.from({ length: 90 }, (_, at) => link(`s${at}`))]);
    expect((await asked.answerAll(10)).map(({ length }) => length)).toEqual([40, 40, 10]);
  });

  it('is asked for again where a link has changed, also while it was asked for', async () => {
    const asked = new Asked();
    asked.look(LINKS, { pair: PAIR });
    const [b = PAIR] = LINKS.slice(1);
    asked.use.refresh([{ site1: 'z', site2: 'b' }]);
    await asked.answerAll(10);
    expect(await asked.answerAll(20)).toEqual([['b'], ['a']]);
    expect([asked.free(b), asked.free(PAIR)]).toEqual([20, 20]);
    asked.use.refresh([]);
    expect(asked.requests).toEqual([]);
  });

  it('of links that are out of view is asked for when they are back', async () => {
    const asked = new Asked();
    const [a = PAIR, b = PAIR] = LINKS;
    asked.look([a]);
    await asked.answerAll(10);
    asked.look([b]);
    await asked.answerAll(10);
    asked.use.refresh([a]);
    expect(asked.requests).toEqual([]);
    expect(asked.free(a)).toBe(10);
    asked.look([a]);
    await asked.answerAll(20);
    expect(asked.free(a)).toBe(20);
  });

  it('that could not be loaded is tried again at the next news, and what there was is shown', async () => {
    const asked = new Asked();
    asked.look(LINKS);
    await asked.answerAll(new Error('503'));
    expect(asked.use.known.value.hasFailed).toBe(true);
    asked.use.refresh([]);
    await asked.answerAll(10);
    expect(asked.use.known.value.hasFailed).toBe(false);
    asked.use.refresh(LINKS);
    await asked.answerAll(new Error('503'));
    expect(asked.free(link('a'))).toBeUndefined();
    expect(LINKS.map((one) => asked.free(one))).toEqual([10, 10, 10]);
  });

  it('is given up as the window moves on, and forgotten as the login ends', async () => {
    const asked = new Asked();
    asked.look(LINKS);
    const [first] = asked.requests;
    asked.look(LINKS, { window: { start: WEEK.end, end: WEEK.end + 7 * DAY } });
    expect(first?.signal.aborted).toBe(true);
    await asked.answerAll(10);
    expect(asked.use.known.value.hasFailed).toBe(false);
    asked.use.forget();
    expect(asked.use.known.value.columns.size).toBe(0);
    asked.look(LINKS);
    expect(asked.requests).toHaveLength(1);
  });
});
