import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/contract/durations.ts';
import {
  ceilToStep,
  createClock,
  floorToStep,
  movedByStep,
  nextBeginning,
  type Step,
} from '../../src/words/civil-time.ts';
import { oneLineTicks, type TwoLineAxis, twoLineAxis } from '../../src/words/time-axis.ts';

const BRUSSELS = 'Europe/Brussels';
const brussels = createClock(BRUSSELS);
/** Brussels puts its clocks back on 25 Oct 2026 at 03:00, and forward on 28 Mar 2027 at 02:00. */
const [BACK, FORWARD] = [Date.UTC(2026, 9, 25, 1), Date.UTC(2027, 2, 28, 1)];
const NOW = Date.UTC(2026, 10, 22, 10, 30);
const minutes = (count: number): Step => ({ unit: 'minute', count });
const DAYS: Step = { unit: 'day', count: 1 };
const WEEKS: Step = { unit: 'week', count: 1 };

describe('a clock', () => {
  it('agrees with the zone before and after a change', () => {
    expect([BACK - 1, BACK].map((at) => brussels.civil(at) - at)).toEqual([2 * HOUR, HOUR]);
    const offsets = ['UTC', 'Asia/Kolkata', 'America/St_Johns'].map((zone) => createClock(zone).offset(BACK));
    expect(offsets).toEqual([0, 5.5 * HOUR, -2.5 * HOUR]);
  });

  it('takes the first of two instants, and the later time for one that is skipped', () => {
    expect(brussels.instant(Date.UTC(2026, 9, 25, 2, 30))).toBe(BACK - 30 * MINUTE);
    expect(brussels.instant(Date.UTC(2027, 2, 28, 2, 30))).toBe(FORWARD + 30 * MINUTE);
    expect([BACK - MINUTE, BACK, BACK + HOUR].map(brussels.isTwice)).toEqual([true, true, false]);
  });

  it('finds the first moment of a day that has no midnight', () => {
    const santiago = createClock('America/Santiago');
    const day = santiago.instant(Date.UTC(2026, 8, 6));
    expect(day).toBe(Date.UTC(2026, 8, 6, 4));
    expect(new Date(santiago.civil(day)).getUTCHours()).toBe(1);
    expect(floorToStep(day + 5 * HOUR, DAYS, santiago)).toBe(day);
  });

  it.each(['Europe/Brussels', 'Australia/Lord_Howe', 'America/Santiago', 'Asia/Kolkata', 'UTC'])(
    'floors and goes on without a gap or a circle in %s',
    (zone) => {
      const clock = createClock(zone);
      const steps = [minutes(15), minutes(60), minutes(360), DAYS, WEEKS];
      for (const step of [...steps, { unit: 'month', count: 3 } as const]) {
        let at = floorToStep(Date.UTC(2026, 8, 1), step, clock);
        for (let times = 0; times < 200; times += 1) {
          const next = nextBeginning(at, step, clock);
          expect(next).toBeGreaterThan(at);
          expect(floorToStep(next, step, clock)).toBe(next);
          expect(ceilToStep(next - 1, step, clock)).toBe(next);
          expect(floorToStep(next - 1, step, clock)).toBeGreaterThanOrEqual(at);
          at = next;
        }
      }
    },
  );

  it('begins weeks on Monday, and keeps the day of a month as far as there is one', () => {
    const monday = floorToStep(NOW, WEEKS, brussels);
    expect(monday).toBe(brussels.instant(Date.UTC(2026, 10, 16)));
    const civil = Date.UTC(2027, 0, 31, 8);
    expect(movedByStep(civil, { unit: 'month', count: 1 })).toBe(Date.UTC(2027, 1, 28, 8));
    expect(movedByStep(civil, { unit: 'month', count: 1 }, -2)).toBe(Date.UTC(2026, 10, 30, 8));
  });
});

/** The labels of an axis of so many columns, each at its column, and the instants of its ticks. */
function axis(start: string | number, length: number, width: number, zone = BRUSSELS, now = start) {
  const window = { start: new Date(start).getTime(), end: new Date(start).getTime() + length };
  const place = (instant: number): number => Math.floor(((instant - window.start) / length) * width);
  const ticks = oneLineTicks(
    window,
    { now: new Date(now).getTime(), clock: createClock(zone) },
    { width, place, measure: (label) => label.length, gap: 3 },
  );
  const text = ticks.reduce((line, { at, label }) => line.padEnd(place(at)) + label, '');
  return { text, ticks, place, window };
}

describe('the closest ticks that fit, named by day, month and year where they change', () => {
  test.each<[string, string, number, number, string]>([
    ['a day', '2026-11-22T23:00Z', DAY, 70, 'Mon 23 Nov 06:00 12:00 18:00'],
    ['a day that begins at noon', '2026-11-22T11:00Z', DAY, 70, '12:00 18:00 Mon 23 Nov 06:00'],
    ['a day that begins after midnight', '2026-11-22T23:20Z', DAY, 70, '23 Nov 06:00 12:00 18:00'],
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
  expect(axis('2027-02-01T00:00Z', 7 * DAY, 100, 'UTC', NOW).text).toMatch(/^1 Feb 2027/);
});

describe('where clocks change', () => {
  test.each([
    ['a day has 25 hours', '2026-10-24T22:00Z', 25 * HOUR, 'Sun 25 Oct  06:00  12:00  18:00'],
    ['an hour is there twice', '2026-10-24T22:00Z', 6 * HOUR, '25 Oct  01:00  02:00  02:00  03:00  04:00'],
    ['an hour is left out', '2026-03-28T23:00Z', 5 * HOUR, 'Sun 29 Mar  01:00  03:00  04:00  05:00'],
  ])('%s', (_, start, length, labels) => {
    expect(axis(start, length, 70).text.trim().replace(/ {2,}/g, '  ')).toBe(labels);
  });

  test('a day begins at 01:00 where midnight is skipped', () => {
    const { ticks } = axis('2026-04-23T12:00Z', 2 * DAY, 40, 'Africa/Cairo');
    expect(ticks.map(({ at }) => at)).toContain(Date.UTC(2026, 3, 23, 22));
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

describe('an axis with two lines', () => {
  /** Seven pixels a character. */
  const room = (width: number) => ({ width, measure: (label: string) => 7 * label.length, gap: 8 });
  const axisOf = (start: number, length: number, width: number): TwoLineAxis =>
    twoLineAxis({ start, end: start + length }, brussels, room(width));
  const day = brussels.instant(Date.UTC(2026, 10, 23));

  it.each([
    ['a day', day, DAY, 1000, 'Mon 23 Nov 2026', '00:00 02:00 04:00 06:00'],
    ['a week', day, 7 * DAY, 400, 'November 2026', 'Mon 23 Tue 24 Wed 25 Thu 26'],
    ['a month', day, 30 * DAY, 375, 'November 2026, December 2026', 'Mon 23 Mon 30 Mon 7 Mon 14'],
    ['a year', day, 365 * DAY, 1000, '2026, 2027', 'December January February March'],
    ['a year, narrow', day, 365 * DAY, 400, '2026, 2027', 'Dec Jan Feb Mar'],
    [
      'an hour that comes twice',
      BACK - 2 * HOUR,
      6 * HOUR,
      300,
      'Sun 25 Oct 2026',
      '01:00 02:00 02:00 03:00',
    ],
    ['an hour that is skipped', FORWARD - HOUR, 4 * HOUR, 240, 'Sun 28 Mar 2027', '01:00 03:00 04:00 05:00'],
  ])('of %s', (_, start, length, width, above, below) => {
    const { spans, ticks } = axisOf(start, length, width);
    expect(spans.flatMap(({ label }) => label || []).join(', ')).toBe(above);
    expect(
      ticks
        .slice(0, 4)
        .map(({ label }) => label)
        .join(' '),
    ).toBe(below);
  });

  it('has days of 23 and 25 hours', () => {
    const { spans } = axisOf(brussels.instant(Date.UTC(2026, 9, 24)), 73 * HOUR, 400);
    expect(spans.map(({ start, end }) => (end - start) / HOUR)).toEqual([24, 25, 24]);
  });

  it.each([375, 1280])('lets no label reach into another, at any zoom, %i wide', (width) => {
    for (let length = HOUR; length < 700 * DAY; length *= 1.7) {
      for (const share of [0.013, 0.37, 0.51, 0.77, 0.98]) {
        const start = NOW + share * 300 * DAY;
        const { spans, ticks } = axisOf(start, length, width);
        for (const line of [ticks, spans.map(({ start: at, label }) => ({ at, label }))]) {
          let free = 0;
          for (const { at, label } of line.filter((one) => one.label !== '')) {
            const from = Math.max(0, ((at - start) / length) * width);
            expect(from).toBeGreaterThanOrEqual(free);
            free = from + 7 * label.length;
          }
          expect(free).toBeLessThanOrEqual(width);
        }
        expect(spans.slice(1).map((span) => span.start)).toEqual(spans.slice(0, -1).map(({ end }) => end));
        expect(ticks.length).toBeLessThan(width / 7);
      }
    }
  });
});
