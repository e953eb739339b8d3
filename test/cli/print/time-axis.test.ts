import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { timeTicks } from '../../../src/cli/print/time-axis.ts';

const [HOUR, DAY] = [3_600_000, 86_400_000];
const BRUSSELS = 'Europe/Brussels';

/** The labels of an axis of so many columns, each at its column, and the instants of its ticks. */
function axis(start: string | number, length: number, width: number, zone = BRUSSELS, now = start) {
  const window = { start: new Date(start).getTime(), end: new Date(start).getTime() + length };
  const place = (instant: number): number => Math.floor(((instant - window.start) / length) * width);
  const ticks = timeTicks(
    window,
    { now: new Date(now).getTime(), zone },
    { width, place, measure: (label) => label.length, gap: 3 },
  );
  const text = ticks.reduce((line, { at, label }) => line.padEnd(place(at)) + label, '');
  return { text, ticks, place, window };
}

describe('the closest ticks that fit, named by day, month and year where they change', () => {
  test.each<[string, string, number, number, string]>([
    ['a day', '2026-11-22T23:00Z', DAY, 70, 'Mon 23 Nov 06:00 12:00 18:00'],
    ['a day that begins at noon', '2026-11-22T11:00Z', DAY, 70, '12:00 18:00 Mon 23 Nov 06:00'],
    ['six hours without a midnight', '2026-11-22T13:37Z', 6 * HOUR, 70, 'Sun 22 Nov 16:00 18:00 20:00'],
    ['a week', '2026-11-22T13:37Z', 7 * DAY, 70, '23 Nov Tue 24 Wed 25 Thu 26 Fri 27 Sat 28 Sun 29'],
    ['a week, narrow', '2026-11-22T13:37Z', 7 * DAY, 50, 'Mon 23 Nov Wed 25 Fri 27'],
    ['weeks', '2026-11-22T13:37Z', 30 * DAY, 70, '23 Nov 30 Nov 7 Dec 14 Dec'],
    ['a new month and year', '2026-12-30T13:37Z', 3 * DAY, 70, '31 Dec 12:00 Fri 1 Jan 12:00 Sat 2'],
    ['a year', '2026-11-22T13:37Z', 365 * DAY, 70, 'Jan 2027 Mar May Jul Sep Nov'],
    ['five years', '2026-11-22T13:37Z', 5 * 365 * DAY, 70, '2027 2028 2029 2030 2031'],
    ['ten seconds', '2026-11-22T13:37:10Z', 10_000, 70, 'Sun 22 Nov 14:37'],
  ])('%s', (_, start, length, width, labels) => {
    expect(axis(start, length, width).text.trim().replace(/ +/g, ' ')).toBe(labels);
  });
});

test('another year than this one is named', () => {
  expect(axis('2027-02-01T00:00Z', 7 * DAY, 100, 'UTC', Date.UTC(2026, 10, 22)).text).toMatch(/^1 Feb 2027/);
});

describe('where clocks change', () => {
  const times = (start: string, length: number, width: number, zone = BRUSSELS): string[] =>
    axis(start, length, width, zone).ticks.map(({ at }) => new Date(at).toISOString().slice(5, 16));

  test('a day of 25 hours: midnight, 06:00 and so on by the clock', () => {
    expect(times('2026-10-24T22:00Z', 25 * HOUR, 70)).toEqual([
      '10-24T22:00',
      '10-25T05:00',
      '10-25T11:00',
      '10-25T17:00',
    ]);
  });

  test('an hour that comes twice is there twice', () => {
    expect(
      axis('2026-10-24T22:00Z', 6 * HOUR, 70)
        .text.trim()
        .split(/ {2,}/),
    ).toEqual([...['25 Oct', '01:00', '02:00', '02:00', '03:00', '04:00']]);
  });

  test('an hour that is skipped is left out', () => {
    const labels = axis('2026-03-28T23:00Z', 5 * HOUR, 70)
      .text.trim()
      .split(/ {2,}/);
    expect(labels).toEqual(['Sun 29 Mar', '01:00', '03:00', '04:00', '05:00']);
  });

  test('a day begins at 01:00 where midnight is skipped', () => {
    expect(times('2026-04-23T12:00Z', 2 * DAY, 40, 'Africa/Cairo')).toContain('04-23T22:00');
  });
});

test('labels never overlap or leave the axis, ticks lie in the window in order, and there is at least one', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2060, 0) }),
      fc.oneof(
        fc.integer({ min: 1, max: DAY }),
        fc.integer({ min: DAY, max: 5 * 366 * DAY }),
        fc.integer({ min: 5 * 366 * DAY, max: 5000 * 366 * DAY }),
      ),
      fc.integer({ min: 20, max: 190 }),
      fc.constantFrom(BRUSSELS, 'UTC', 'America/New_York', 'Asia/Kathmandu', 'Pacific/Apia', 'Africa/Cairo'),
      (start, length, width, zone) => {
        const { ticks, place, window } = axis(start, length, width, zone);
        expect(ticks.length).toBeGreaterThan(0);
        let before = -4;
        for (const { at, label } of ticks) {
          expect(at >= window.start && at < window.end).toBe(true);
          expect(place(at)).toBeGreaterThan(before);
          if (label !== '') before = place(at) + label.length;
          expect(before).toBeLessThanOrEqual(width);
        }
      },
    ),
    { numRuns: 50 },
  );
});
