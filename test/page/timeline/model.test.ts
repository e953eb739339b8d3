import { describe, expect, it } from 'vitest';
import { change } from '../../../src/page/change.ts';
import type { Own } from '../../../src/page/service.ts';
import { openState } from '../../../src/page/state.ts';
import { barHeight, isLane, LANE, layoutFor, rowAt } from '../../../src/page/timeline/layout.ts';
import { tableLines, tableSegments } from '../../../src/page/timeline/lines.ts';
import { changeTimeline, openTimeline, type TimelineAction } from '../../../src/page/timeline/model.ts';
import { OwnBars } from '../../../src/page/timeline/own-bars.ts';
import {
  bookable,
  draggedPeriod,
  edgeAt,
  lengthenedPeriod,
  movedPeriod,
  resizedPeriod,
} from '../../../src/page/timeline/pick.ts';
import {
  clampWindow,
  instantAt,
  LONGEST,
  panWindow,
  placeOf,
  SHORTEST,
  snapStep,
  turnedPage,
  unitWindow,
  zoomWindow,
} from '../../../src/page/timeline/windows.ts';
import { createClock, type Step } from '../../../src/words/civil-time.ts';

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
const clock = createClock('Europe/Brussels');
const at = (...parts: [number, number, number, number?, number?]): number =>
  clock.instant(Date.UTC(...parts));
/** A Sunday, 11:30. */
const NOW = at(2026, 10, 22, 11, 30);
const WEEK = { start: at(2026, 10, 23), end: at(2026, 10, 30) };

describe('the timeline', () => {
  const after = (now: number, ...actions: readonly TimelineAction[]) =>
    actions.reduce(
      (state, action) =>
        changeTimeline(state, action, { clock, now, links: 3, selectedRows: [], mayPick: true }),
      openTimeline(NOW, clock),
    );

  it('goes on with the days while it begins today, and stays where somebody has moved it', () => {
    const monday = NOW + DAY;
    expect(after(monday, { type: 'dawned' }).window).toEqual(WEEK);
    const moved = { type: 'moved', window: { start: NOW - 7 * DAY, end: NOW } } as const;
    expect(after(monday, moved, { type: 'dawned' }).window).toEqual(moved.window);
  });

  it('begins a year that now is not in with the month that is shown, so that it is not over for the most part', () => {
    const tomorrow = { type: 'moved', window: { start: at(2026, 10, 23), end: at(2026, 10, 30) } } as const;
    const year = after(NOW, tomorrow, { type: 'unit', unit: 'year' });
    expect(year.window).toEqual({ start: at(2026, 10, 1), end: at(2027, 10, 1) });
  });

  it('shows the same days in another zone, and the same time where it shows no whole days', () => {
    const { window } = change(
      { ...openState(NOW, 'Europe/Brussels') },
      { type: 'zoned', zone: 'UTC' },
    ).timeline;
    expect(window).toEqual({ start: Date.UTC(2026, 10, 22), end: Date.UTC(2026, 10, 29) });
    const moved = { start: NOW, end: NOW + HOUR };
    const zoomed = after(
      NOW,
      { type: 'moved', window: moved },
      { type: 'rezoned', before: createClock('UTC') },
    );
    expect(zoomed.window).toEqual(moved);
  });

  it('lets the keyboard go to the rows that a filter leaves', () => {
    const down: TimelineAction = { type: 'key', key: 'ArrowDown', isShift: false };
    const filtered: TimelineAction = { type: 'filtered', rows: [1, 2] };
    expect(after(NOW, filtered, { type: 'focused' }).cursor?.row).toBe(1);
    expect(after(NOW, filtered, { type: 'focused' }, down, down).cursor?.row).toBe(2);
    expect(after(NOW, { type: 'focused' }, down).cursor?.row).toBe(1);
  });

  it('begins with the row of two sites without a link, which comes first', () => {
    const pair = { site1: 'be-gent1', site2: 'gr-uth', bandwidth: 1000 };
    const terms = { clock, now: NOW, links: 3, pair, selectedRows: [3, 0, 2], mayPick: true };
    const focused = changeTimeline(openTimeline(NOW, clock), { type: 'focused' }, terms);
    const down = changeTimeline(focused, { type: 'key', key: 'ArrowDown', isShift: false }, terms);
    expect([focused, down].map(({ cursor }) => cursor?.row)).toEqual([3, 0]);
  });
});

describe('a window', () => {
  it('places instants and finds them again', () => {
    expect(placeOf(at(2026, 10, 26, 12), WEEK, 700)).toBe(350);
    expect(instantAt(350, WEEK, 700)).toBe(at(2026, 10, 26, 12));
  });

  it('is zoomed around what stays in place, within bounds', () => {
    const fixed = WEEK.start + 2 * DAY;
    const zoomed = zoomWindow(WEEK, 0.5, fixed);
    expect(zoomed.end - zoomed.start).toBe(3.5 * DAY);
    expect(placeOf(fixed, zoomed, 700)).toBe(200);
    const [closest, widest] = [zoomWindow(WEEK, 1e-9, fixed), zoomWindow(WEEK, 1e9, fixed)];
    expect(closest.end - closest.start).toBeCloseTo(SHORTEST);
    expect(widest.end - widest.start).toBeCloseTo(LONGEST);
  });

  it('is corrected where it is too long, too short or too far away', () => {
    expect(clampWindow(WEEK, NOW)).toEqual(WEEK);
    const { start, end } = clampWindow({ start: NOW, end: NOW }, NOW);
    expect([start, end]).toEqual([NOW - SHORTEST / 2, NOW + SHORTEST / 2]);
    expect(clampWindow({ start: 0, end: DAY }, NOW).start).toBe(NOW - 366 * DAY);
    expect(clampWindow(panWindow(WEEK, 1000), NOW).end).toBe(NOW + 5 * 366 * DAY);
  });

  it('of a unit begins today while now is shown, else with the unit; the next page with the next', () => {
    expect(unitWindow('day', NOW, clock, true)).toEqual({ start: at(2026, 10, 22), end: at(2026, 10, 23) });
    expect(unitWindow('week', NOW, clock, true)).toEqual({ start: at(2026, 10, 22), end: at(2026, 10, 29) });
    expect(unitWindow('year', NOW, clock, true)).toEqual({ start: at(2026, 10, 1), end: at(2027, 10, 1) });
    expect(unitWindow('week', NOW + 10 * DAY, clock, false).start).toBe(at(2026, 10, 30));
    const month = unitWindow('month', NOW + 30 * DAY, clock, false);
    expect(month).toEqual({ start: at(2026, 11, 1), end: at(2027, 0, 1) });
    expect(turnedPage(month, 1, clock, 'month')).toEqual({ start: at(2027, 0, 1), end: at(2027, 1, 1) });
    // The clocks are put forward within the second week.
    const march = { start: at(2027, 2, 15), end: at(2027, 2, 22) };
    expect(turnedPage(turnedPage(march, 1, clock), 1, clock).start).toBe(at(2027, 2, 29));
  });
});

describe('the drawing', () => {
  it('has rows below the axis and none elsewhere', () => {
    const layout = layoutFor(375, true);
    const rows = [0, layout.axis - 1, layout.axis, layout.axis + layout.row, layout.axis + 12 * layout.row];
    expect(rows.map((y) => rowAt(y, layout, 12))).toEqual([undefined, undefined, 0, 1, undefined]);
  });

  it.each([
    [375, true],
    [800, false],
  ])(
    '%i pixels wide: my reservations have a lane below the plot, and a pointer 24 pixels of it',
    (width, isNarrow) => {
      const layout = layoutFor(width, isNarrow);
      expect(layout.lane).toBeGreaterThan(layout.top + layout.plot);
      expect(layout.lane + LANE).toBeLessThan(layout.row);
      const isLaneAt = (y: number): boolean => isLane(layout.axis + 3 * layout.row + y, layout);
      const tall = Array.from({ length: layout.row }, (_, y) => y).filter(isLaneAt);
      expect([tall.length, tall.at(-1)]).toEqual([24, layout.row - 1]);
      expect([isLaneAt(layout.lane), isLaneAt(layout.top)]).toEqual([true, false]);
      // As much is left to pick a time.
      expect(layout.row - tall.length).toBeGreaterThanOrEqual(24);
    },
  );

  it('finds my reservations where they are: the shorter ones lie upon the longer ones', () => {
    const own = (name: string, start: number, end: number): Own => ({
      ...{ id: name, name, site1: 'a', site2: 'b', bandwidth: 10, start, end },
    });
    const link = { site1: 'b', site2: 'a', bandwidth: 1000 };
    const bars = new OwnBars(
      [own('short', 20, 30), own('long', 0, 100), own('late', 102, 110)],
      [link],
      undefined,
    );
    const at = (instant: number): (string | undefined)[] => bars.at(0, instant, 3).map(({ name }) => name);
    expect(bars.in(0).map(({ name }) => name)).toEqual(['long', 'short', 'late']);
    expect(at(25)).toEqual(['short', 'long']);
    // Beside a bar the one that is there comes first.
    expect(at(18)).toEqual(['long', 'short']);
    expect(at(101.5)).toEqual(['late', 'long']);
    expect(at(120)).toEqual([]);
    expect(bars.at(1, 25, 3)).toEqual([]);
  });

  it('lets nothing look free that is not, and draws a little as something', () => {
    expect([0, 1, 999, 1000, 5999, 10_000].map((mbps) => barHeight(mbps, 10_000, 30))).toEqual([
      ...[0, 1, 2, 3, 17],
      30,
    ]);
  });
});

describe('picking', () => {
  const step: Step = { unit: 'minute', count: 60 };
  const context = { clock, now: NOW, step };
  it.each([
    [HOUR, { click: 15, drag: 5 }],
    [DAY, { click: 15, drag: 5 }],
    [7 * DAY, { click: 60, drag: 30 }],
    [31 * DAY, { click: 360, drag: 360 }],
  ])('in a window of %i ms it snaps to steps of minutes: %j', (length, { click, drag }) => {
    const window = { start: NOW, end: NOW + length };
    expect(snapStep(window, 'click')).toEqual({ unit: 'minute', count: click });
    expect(snapStep(window, 'drag')).toEqual({ unit: 'minute', count: drag });
    expect(snapStep({ start: 0, end: LONGEST }, 'drag')).toEqual({ unit: 'day', count: 1 });
  });

  it('takes what is dragged to the nearest steps, in either direction, and leaves out what is over', () => {
    const [one, other] = [at(2026, 10, 23, 9, 20), at(2026, 10, 23, 16, 40)];
    const expected = { start: at(2026, 10, 23, 9), end: at(2026, 10, 23, 17) };
    expect(draggedPeriod(one, other, context)).toEqual(expected);
    expect(draggedPeriod(other, one, context)).toEqual(expected);
    expect(draggedPeriod(one, one, context)).toEqual({ ...expected, end: at(2026, 10, 23, 10) });
    expect(draggedPeriod(NOW - 5 * HOUR, NOW + 20 * MINUTE, context)).toEqual({
      start: NOW,
      end: at(2026, 10, 22, 12),
    });
    expect(draggedPeriod(NOW - 9 * HOUR, NOW - 8 * HOUR, context)).toBeUndefined();
    expect(bookable({ start: NOW + 1, end: NOW + HOUR }, NOW + 2)).toEqual({
      start: NOW + MINUTE,
      end: NOW + HOUR,
    });
  });

  it('moves and lengthens the period of the keyboard by steps, over a change of the clocks too', () => {
    const period = { start: at(2026, 10, 23, 9), end: at(2026, 10, 23, 17) };
    expect(movedPeriod(period, 1, context)).toEqual({ start: period.start + HOUR, end: period.end + HOUR });
    expect(movedPeriod(period, -1, context).start).toBe(period.start - HOUR);
    expect(lengthenedPeriod(period, 1, context)).toEqual({ ...period, end: period.end + HOUR });
    const short = { start: period.start, end: period.start + HOUR };
    expect(lengthenedPeriod(short, -1, context)).toEqual(short);
    const days = { ...context, step: { unit: 'day', count: 1 } as const };
    const saturday = { start: at(2027, 2, 27), end: at(2027, 2, 28) };
    const sunday = movedPeriod(saturday, 1, days);
    expect(sunday.start).toBe(at(2027, 2, 28));
    expect(movedPeriod(sunday, 1, days).start).toBe(at(2027, 2, 29));
    expect(movedPeriod({ start: at(2027, 2, 29), end: at(2027, 2, 30) }, -1, days).start).toBe(
      at(2027, 2, 28),
    );
    const october = { start: at(2026, 9, 25), end: at(2026, 9, 26) };
    expect(movedPeriod(october, 1, days).start).toBe(at(2026, 9, 26));
  });
});

describe('the table', () => {
  it('asks for whole days, a segment for each length of day, and for nothing that is over', () => {
    // Six hours each, of which the clocks take one.
    const march = tableSegments({ start: at(2027, 2, 22), end: at(2027, 3, 5) }, clock, NOW);
    expect(march.map(({ points }) => points)).toEqual([24, 1, 31]);
    const month = tableSegments({ start: at(2027, 2, 15), end: at(2027, 3, 15) }, clock, NOW);
    expect(month.map(({ start, end, points }) => [(end - start) / points / HOUR, points])).toEqual([
      ...[[24, 13]],
      ...[[23, 1]],
      [24, 17],
    ]);
    expect(tableSegments({ start: NOW - 30 * DAY, end: NOW - 9 * DAY }, clock, NOW)).toEqual([]);
    const [first] = tableSegments({ start: NOW - 30 * DAY, end: NOW + 30 * DAY }, clock, NOW);
    expect(first?.start).toBeGreaterThan(NOW - DAY);
  });

  it('makes one line of neighbours with the same facts, unless a reservation of mine begins there', () => {
    const part = (index: number, free: number) => ({
      ...{ start: index * HOUR, end: (index + 1) * HOUR, free, freeMax: free, vlans: 5 },
    });
    const columns = [part(0, 10), part(1, 10), part(2, 20), part(3, 20), part(4, 20)];
    const mine = { id: 'con_1', site1: 'a', site2: 'b', bandwidth: 1 };
    const lines = tableLines(columns, [{ ...mine, start: 3 * HOUR, end: 4 * HOUR }]);
    expect(lines.map(({ start, end, own }) => [start / HOUR, end / HOUR, own.length])).toEqual([
      ...[[0, 2, 0]],
      ...[[2, 3, 0]],
      ...[[3, 4, 1]],
      [4, 5, 0],
    ]);
  });
});

describe('an edge of my reservation’s bar', () => {
  const HOURS = 3_600_000;
  const now = Date.parse('2026-11-22T10:00:00Z');
  const step = { unit: 'minute', count: 60 } as const;
  const context = { clock: createClock('UTC'), now, step };
  const later = { start: now + 2 * HOURS, end: now + 4 * HOURS };
  const active = { start: now - HOURS, end: now + HOURS };
  const x = (instant: number): number => (instant - now) / 60_000;

  it('is where it can still be moved, and leaves half of a narrow bar', () => {
    expect([115, 120, 127, 239, 246, 247].map((at) => edgeAt(later, at, x, now))).toEqual([
      ...['start', 'start', undefined, 'end', 'end', undefined],
    ]);
    expect(edgeAt(active, x(active.start), x, now)).toBeUndefined();
    expect(edgeAt(active, 60, x, now)).toBe('end');
    expect(edgeAt({ ...active, end: now }, 0, x, now)).toBeUndefined();
    const narrow = { start: later.start, end: later.start + 8 * 60_000 };
    expect([122, 124].map((at) => edgeAt(narrow, at, x, now))).toEqual(['start', undefined]);
  });

  it('goes to the nearest step; something is left of it, and of the time to come', () => {
    const end = (instant: number) => (resizedPeriod(later, 'end', instant, context).end - now) / HOURS;
    expect([5.4, 5.6, 1, -9].map((hours) => end(now + hours * HOURS))).toEqual([5, 6, 3, 3]);
    const start = (instant: number) => (resizedPeriod(later, 'start', instant, context).start - now) / HOURS;
    expect([2.4, 1.4, -9, 9].map((hours) => start(now + hours * HOURS))).toEqual([2, 1, 0, 3]);
    expect(resizedPeriod(active, 'end', now - 5 * HOURS, context)).toEqual({ ...active, end: now + HOURS });
  });
});
