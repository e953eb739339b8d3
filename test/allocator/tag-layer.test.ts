import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TagLayer } from '../../src/allocator/tag-layer.ts';
import { bestFit, type Hold } from './best-fit.ts';

describe('TagLayer', () => {
  test('counts its range with both ends', () => {
    expect(new Layer([10, 12]).size).toBe(3);
    expect(new Layer([4094, 4094]).size).toBe(1);
  });

  test.each([
    { rule: 'touching before', start: 40, end: 50, free: true },
    { rule: 'touching after', start: 60, end: 70, free: true },
    { rule: 'a millisecond over the start', start: 40, end: 51, free: false },
    { rule: 'a millisecond over the end', start: 59, end: 70, free: false },
    { rule: 'inside', start: 54, end: 55, free: false },
    { rule: 'around', start: 40, end: 70, free: false },
    { rule: 'the same', start: 50, end: 60, free: false },
  ])(
    'a tag that is held from 50 to 60 is free from $start to $end ($rule): $free',
    ({ start, end, free }) => {
      const layer = new Layer([7, 7]);
      layer.hold(7, 50, 60);
      expect(layer.isFree(7, start, end)).toBe(free);
      expect(layer.isFreeAtEdge(start, end)).toBe(free);
      if (free) layer.hold(7, start, end);
      else expect(() => layer.hold(7, start, end)).toThrow(RangeError);
    },
  );

  test('a tag outside the range is never free and never held', () => {
    const layer = new Layer([10, 12]);
    for (const tag of [9, 13]) {
      expect(layer.isFree(tag, 0, 1)).toBe(false);
      expect(() => layer.hold(tag, 0, 1)).toThrow(RangeError);
      expect(() => layer.release(tag, 0, 1)).toThrow(RangeError);
    }
  });

  test.each([
    { start: 50, end: 59 },
    { start: 51, end: 60 },
    { start: 40, end: 50 },
    { start: 60, end: 70 },
    { start: 0, end: 1 },
  ])('releasing $start to $end throws when 50 to 60 is held', ({ start, end }) => {
    const layer = new Layer([1, 1]);
    layer.hold(1, 50, 60);
    expect(() => layer.release(1, start, end)).toThrow(RangeError);
    expect(layer.isFree(1, 50, 60)).toBe(false);
    layer.release(1, 50, 60);
    expect(layer.isFree(1, 50, 60)).toBe(true);
    expect(() => layer.release(1, 50, 60)).toThrow(RangeError);
  });

  test('agrees with a grid of tags and milliseconds on random histories', () => {
    const period = { start: fc.nat(28), length: fc.integer({ min: 1, max: 8 }) };
    const step = fc.record({
      tag: fc.integer({ min: 5, max: 7 }),
      ...period,
      release: fc.option(fc.nat(20), { nil: undefined }),
      asked: fc.record(period),
      now: fc.nat(30),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25, size: 'max' }), (steps) => {
        const layer = new Layer([5, 7]);
        const grid = new Grid([5, 6, 7]);
        for (const { tag, start, length, release, asked, now } of steps) {
          if (release === undefined) {
            const end = start + length;
            const free = grid.isFree(tag, start, end);
            expect(layer.isFree(tag, start, end)).toBe(free);
            if (free) {
              grid.hold(tag, start, end);
              layer.hold(tag, start, end);
            } else expect(() => layer.hold(tag, start, end)).toThrow(RangeError);
          } else {
            const released = grid.release(release);
            if (released) layer.release(...released);
          }
          const end = asked.start + asked.length;
          expect(layer.bestAtEdge(asked.start, end, now)).toEqual(grid.bestAtEdge(asked.start, end, now));
        }
      }),
      { numRuns: 500 },
    );
  });
});

/** A layer of tags, told periods in place of slots. */
class Layer {
  readonly #periods: { tag: number; start: number; end: number }[] = [];
  readonly #layer: TagLayer;
  readonly isFree: TagLayer['isFree'];
  readonly isFreeAtEdge: TagLayer['isFreeAtEdge'];
  readonly bestAtEdge: TagLayer['bestAtEdge'];

  constructor(range: [number, number]) {
    const periodOf = (slot: number) => this.#periods[slot] ?? { tag: 0, start: 0, end: 0 };
    this.#layer = new TagLayer(range, {
      startOf: (slot) => periodOf(slot).start,
      endOf: (slot) => periodOf(slot).end,
    });
    this.isFree = this.#layer.isFree.bind(this.#layer);
    this.isFreeAtEdge = this.#layer.isFreeAtEdge.bind(this.#layer);
    this.bestAtEdge = this.#layer.bestAtEdge.bind(this.#layer);
  }

  get size(): number {
    return this.#layer.size;
  }

  hold(...[tag, start, end]: Hold): void {
    const slot = this.#periods.push({ tag, start, end }) - 1;
    try {
      this.#layer.hold(tag, slot);
    } catch (error) {
      this.#periods.pop();
      throw error;
    }
  }

  release(...[tag, start, end]: Hold): void {
    // The last one: the same period may have been held before.
    const held = this.#periods.findLastIndex(
      (period) => period.tag === tag && period.start === start && period.end === end,
    );
    this.#layer.release(tag, held);
  }
}

/** A list of holds, checked in every millisecond. */
class Grid {
  readonly #tags: readonly number[];
  readonly #holds: Hold[] = [];

  constructor(tags: readonly number[]) {
    this.#tags = tags;
  }

  hold(...hold: Hold): void {
    this.#holds.push(hold);
  }

  release(pick: number): Hold | undefined {
    return this.#holds.splice(pick % Math.max(1, this.#holds.length), 1)[0];
  }

  isFree(tag: number, start: number, end: number): boolean {
    for (let at = start; at < end; at += 1) if (this.#isHeld(tag, at)) return false;
    return true;
  }

  /** Of tags that are held only after a period, only before it, or not at all. */
  bestAtEdge(start: number, end: number, now: number): { tag: number; gap: number } | undefined {
    const atEdge = this.#tags.filter((tag) => {
      const holds = this.#holds.filter(([held]) => held === tag);
      return holds.every((hold) => hold[1] >= end) || holds.every((hold) => hold[2] <= start);
    });
    return bestFit(this.#holds, atEdge, { start, end }, now);
  }

  #isHeld(tag: number, at: number): boolean {
    return this.#holds.some(([held, start, end]) => held === tag && start <= at && at < end);
  }
}
