import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Profile } from '../../src/allocator/profile.ts';
import { PlaceTags } from '../../src/allocator/tags.ts';

const LAST = 24;
const TAGS = [3, 4, 5];
const instants = Array.from({ length: 3 * LAST }, (_, at) => at);
const rows = fc.array(
  fc
    .record({
      start: fc.nat(LAST),
      length: fc.integer({ min: 1, max: 6 }),
      bandwidth: fc.integer({ min: 0, max: 4 }),
      tag: fc.integer({ min: 2, max: 6 }),
    })
    .map(({ length, tag, ...row }) => ({
      ...row,
      end: row.start + length,
      tags: { site1_s_tag: tag, site1_c_tag: 0, site2_s_tag: 0, site2_c_tag: 0 },
    })),
  { maxLength: 14, size: 'max' },
);
const asked = fc.record({
  start: fc.nat(LAST),
  length: fc.integer({ min: 1, max: 10 }),
  limit: fc.record({ bandwidth: fc.nat(6), live: fc.constantFrom(0, 1, 2, Number.POSITIVE_INFINITY) }),
});

test('a profile tells what its reservations take at each instant, however it was made', () => {
  const property = fc.property(rows, rows, rows, asked, (first, added, gone, { start, length, limit }) => {
    const profile = new Profile([...first, ...gone]);
    for (const row of added) profile.add(row);
    for (const row of gone) profile.add(row, -1);
    const loads = instants.map((at) => {
      const live = [...first, ...added].filter((row) => row.start <= at && at < row.end);
      return { bandwidth: live.reduce((sum, { bandwidth }) => sum + bandwidth, 0), live: live.length };
    });
    const period = { start, end: start + length };
    const part = loads.slice(start, period.end);
    const isAbove = (at: number) => {
      const { bandwidth = 0, live = 0 } = loads[at] ?? {};
      return bandwidth > limit.bandwidth || live > limit.live;
    };
    const within = instants.slice(start, period.end);
    const of = (pick: (...numbers: number[]) => number) => ({
      bandwidth: pick(...part.map(({ bandwidth }) => bandwidth)),
      live: pick(...part.map(({ live }) => live)),
    });
    const steps = [...profile.steps(period)];
    expect(steps.flatMap(({ start, end, ...load }) => instants.slice(start, end).map(() => load))).toEqual(
      part,
    );
    expect(profile.extremes(period)).toEqual({ most: of(Math.max), least: of(Math.min) });
    expect(profile.firstAbove(period, limit)).toBe(within.find(isAbove) ?? period.end);
    expect(profile.firstWithin(period, limit)).toBe(within.find((at) => !isAbove(at)) ?? period.end);
    const isFree = (at: number) => !instants.slice(at, at + length).some(isAbove);
    expect(profile.earliest(start, length, limit)).toBe(instants.find((at) => at >= start && isFree(at)));
  });
  fc.assert(property, { numRuns: 1000 });
});

test('the tags of a place are free where no reservation holds them', () => {
  const property = fc.property(
    rows,
    asked,
    fc.integer({ min: 2, max: 6 }),
    (drawn, { start, length }, kept) => {
      // No two hold the same tag at the same time.
      const held = drawn.filter(
        (row, index) =>
          !drawn
            .slice(0, index)
            .some(
              (other) =>
                other.tags.site1_s_tag === row.tags.site1_s_tag &&
                other.start < row.end &&
                row.start < other.end,
            ),
      );
      const tags = new PlaceTags('site1_s_tag', [3, 5], () => held);
      const free = (from: number, until: number): number[] =>
        TAGS.filter(
          (tag) => !held.some((row) => row.tags.site1_s_tag === tag && row.start < until && from < row.end),
        );
      const end = start + length;
      const [lowest] = free(start, end);
      expect(tags.lowestFree({ start, end })).toBe(lowest);
      expect(tags.lowestFree({ start, end }, kept)).toBe(free(start, end).includes(kept) ? kept : lowest);
      expect(tags.earliest(start, length)).toBe(
        instants.find((at) => at >= start && free(at, at + length).length > 0),
      );
      // Nothing is held at the end of all instants, nor before 0.
      const until = instants.findLast((at) => at >= start && (at === start || free(start, at).length > 0));
      expect(Math.min(tags.freeUntil(start), instants.length - 1)).toBe(until);
      const since = instants.find((at) => at <= start && (at === start || free(at, start).length > 0));
      expect(Math.max(tags.freeSince(start), 0)).toBe(since);
      held.length = 0;
      tags.changed();
      expect([tags.earliest(start, length), tags.freeUntil(start)]).toEqual([
        start,
        Number.POSITIVE_INFINITY,
      ]);
    },
  );
  fc.assert(property, { numRuns: 1000 });
});
