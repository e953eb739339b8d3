import { describe, expect, it } from 'vitest';
import { change } from '../../../src/page/change.ts';
import { EMPTY_DRAFT, picked, readDraft, startedAt } from '../../../src/page/draft.ts';
import type { Own } from '../../../src/page/service.ts';
import { openState } from '../../../src/page/state.ts';
import { blocksOf, ownByRow } from '../../../src/page/timeline/blocks.ts';
import { barHeight, LANE, layoutFor } from '../../../src/page/timeline/layout.ts';
import {
  changeTimeline,
  openTimeline,
  rowsOf,
  type TimelineAction,
  type TimelineTerms,
} from '../../../src/page/timeline/model.ts';
import {
  bookable,
  draggedPeriod,
  gripAt,
  grippedPeriod,
  lengthenedPeriod,
  movedPeriod,
} from '../../../src/page/timeline/pick.ts';
import { aimAt, clickedStart, draggedMark } from '../../../src/page/timeline/view.ts';
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
  windowFromNow,
  zoomWindow,
} from '../../../src/page/timeline/windows.ts';
import { createClock, lengthOfStep, type Step } from '../../../src/words/civil-time.ts';

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
const clock = createClock('Europe/Brussels');
const at = (...parts: [number, number, number, number?, number?]): number =>
  clock.instant(Date.UTC(...parts));
/** A Sunday, 11:30. */
const NOW = at(2026, 10, 22, 11, 30);
const WEEK = { start: at(2026, 10, 23), end: at(2026, 10, 30) };

const LINKS = ['a', 'b', 'c'].map((site1) => ({ site1, site2: 'z', bandwidth: 1000 }));
const TERMS: TimelineTerms = { clock, now: NOW, links: LINKS, selectedRows: [], mayPick: true };

describe('the timeline', () => {
  const after = (terms: Partial<TimelineTerms>, ...actions: readonly TimelineAction[]) =>
    actions.reduce(
      (state, action) => changeTimeline(state, action, { ...TERMS, ...terms }),
      openTimeline(NOW, clock),
    );

  it('begins an hour before now and goes on with the time, until somebody has moved it', () => {
    expect(after({}).window).toEqual({ start: NOW - HOUR, end: NOW + 7 * DAY - HOUR });
    const later = { now: NOW + HOUR };
    expect(after(later, { type: 'elapsed' }).window.start).toBe(NOW);
    const moved = { type: 'moved', window: { start: NOW - 7 * DAY, end: NOW } } as const;
    expect(after(later, moved, { type: 'elapsed' }).window).toEqual(moved.window);
  });

  it('begins a year that now is not in with the month that is shown, so that it is not over for the most part', () => {
    const tomorrow = { type: 'moved', window: { start: at(2026, 10, 23), end: at(2026, 10, 30) } } as const;
    const year = after({}, tomorrow, { type: 'unit', unit: 'year' });
    expect(year.window).toEqual({ start: at(2026, 10, 1), end: at(2027, 10, 1) });
  });

  it('follows the draft: what is out of view comes into view, and nothing moves for what is in view', () => {
    const form = (start: number | string) => ({
      ...{ ...EMPTY_DRAFT, site1: 'a', site2: 'z', start },
    });
    const opened = {
      ...openState(NOW, 'Europe/Brussels'),
      network: { name: null, base_url: '', login: true, sites: [], links: LINKS },
      chosen: {
        ...{ id: 'exp', name: 'exp', role: 'lead', expires_at: '2099-01-01T00:00:00Z' },
        project: { id: 'p', name: 'p' },
      },
    };
    const near = change(opened, { type: 'drafted', draft: form(NOW + DAY) });
    expect(near.timeline.window).toEqual(opened.timeline.window);
    const far = change(near, { type: 'drafted', draft: form('2026-12-24 09:00') });
    const { start, end } = far.timeline.window;
    expect(start).toBeLessThan(at(2026, 11, 24, 9));
    expect(end).toBeGreaterThan(at(2026, 11, 24, 11));
    expect(end - start).toBe(7 * DAY);
    // What is typed elsewhere in the form moves nothing.
    const away = { type: 'timeline', action: { type: 'now' } } as const;
    const named = change(change(far, away), { type: 'drafted', draft: { ...far.draft, name: 'x' } });
    expect(named.timeline.window).toEqual(opened.timeline.window);
  });

  it('has the rows of the route that was chosen first, on a phone alone, and those that a filter leaves', () => {
    const state = { ...openTimeline(NOW, clock), first: [2] };
    expect(rowsOf(state, TERMS)).toEqual([2, 0, 1]);
    const pair = { site1: 'a', site2: 'b', bandwidth: 1000 };
    expect(rowsOf(state, { ...TERMS, pair })).toEqual([3, 2, 0, 1]);
    expect(rowsOf({ ...state, filter: ' B' }, TERMS)).toEqual([2, 1]);
    const phone = { ...state, isNarrow: true };
    expect(rowsOf(phone, { ...TERMS, selectedRows: [1] })).toEqual([1]);
    expect(rowsOf({ ...phone, isAll: true }, { ...TERMS, selectedRows: [1] })).toEqual([2, 0, 1]);
  });

  it('lets the keyboard go to the rows that a filter leaves, and begin with two sites without a link', () => {
    const down: TimelineAction = { type: 'key', key: 'ArrowDown', isShift: false };
    const filtered: TimelineAction = { type: 'set', parts: { filter: 'b' } };
    expect(after({}, filtered, { type: 'focused' }, down).cursor?.row).toBe(1);
    expect(after({}, { type: 'focused' }, down, down).cursor?.row).toBe(2);
    const pair = { site1: 'a', site2: 'b', bandwidth: 1000 };
    const terms = { pair, selectedRows: [3, 0, 2] };
    expect(after(terms, { type: 'focused' }).cursor?.row).toBe(3);
    expect(after(terms, { type: 'focused' }, down).cursor?.row).toBe(0);
  });
});

describe('a window', () => {
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

  it('of a unit begins an hour before now, else with the unit; the next page with the next', () => {
    const start = NOW + 7 * MINUTE;
    expect(windowFromNow('day', start, clock)).toEqual({ start: NOW - HOUR, end: NOW + 23 * HOUR });
    expect(windowFromNow('month', NOW, clock).end).toBe(at(2026, 11, 22, 10, 30));
    expect(unitWindow('week', NOW + 10 * DAY, clock).start).toBe(at(2026, 10, 30));
    const month = unitWindow('month', NOW + 30 * DAY, clock);
    expect(month).toEqual({ start: at(2026, 11, 1), end: at(2027, 0, 1) });
    expect(turnedPage(month, 1, clock, 'month')).toEqual({ start: at(2027, 0, 1), end: at(2027, 1, 1) });
    // The clocks are put forward within the second week.
    const march = { start: at(2027, 2, 15), end: at(2027, 2, 22) };
    expect(turnedPage(turnedPage(march, 1, clock), 1, clock).start).toBe(at(2027, 2, 29));
  });
});

describe('the drawing', () => {
  const own = (name: string, start: number, end: number): Own => ({
    ...{ id: name, name, site1: 'a', site2: 'z', bandwidth: 10, start, end },
  });
  const names = (start: number, end: number, pixel = 0) => {
    const some = [own('long', 0, 100), own('other', 20, 30), own('third', 22, 40), own('last', 24, 200)];
    const [row = []] = ownByRow([...some, own('short', 150, 151)].toReversed(), LINKS, undefined);
    const blocks = blocksOf(row, { start, end }, pixel);
    return blocks.map((block) => [...block.own.map(({ name }) => name), block.lane]);
  };

  it('has my reservations in two lanes, and the number of the others', () => {
    expect(names(0, 300, 0.1)).toEqual([
      ...[
        ['long', 0],
        ['other', 1],
        ['third', 'last', 2],
      ],
      ['short', 0],
    ]);
    // They keep their lanes while the window moves.
    expect(names(145, 300)).toEqual([
      ['last', 2],
      ['short', 0],
    ]);
    // In a wide window a block is three pixels wide at least.
    expect(names(0, 300, 20)[1]).toEqual(['other', 1]);
  });

  it.each([true, false])('is met at its rows, lanes and ends; narrow: %j', (isNarrow) => {
    const layout = layoutFor(isNarrow);
    const [start, end] = [NOW + 2 * HOUR, NOW + 6 * HOUR];
    const sight = {
      ...{ clock, now: NOW, layout, width: 1000, rows: [1, 0, 2], own: [[own('mine', start, end)]] },
      state: { window: { start: NOW, end: NOW + 10 * HOUR } },
    };
    const aim = (x: number, row: number, y: number) => {
      const { row: found, block, grip } = aimAt(sight, { x, y: row * layout.row + y }) ?? {};
      return [found, block?.own[0].name, grip];
    };
    expect(aim(400, 1, layout.top + 1)).toEqual([0, 'mine', 'all']);
    expect(aim(600, 1, layout.top + LANE - 1)).toEqual([0, 'mine', 'end']);
    expect(aim(400, 1, layout.top + LANE)).toEqual([0, undefined, undefined]);
    expect(aim(400, 0, layout.top + 1)).toEqual([1, undefined, undefined]);
    expect([aim(400, -1, 5), aim(400, 3, 5)]).toEqual([
      [undefined, undefined, undefined],
      [undefined, undefined, undefined],
    ]);
    const y = layout.row + layout.top + 1;
    const moved = draggedMark(sight, { x: 400, y }, { x: 500, y }, true);
    expect(moved).toMatchObject({ own: { id: 'mine' }, start: start + HOUR, end: end + HOUR });
    expect(draggedMark(sight, { x: 400, y }, { x: 500, y }, false)).toEqual({
      ...{ row: 0, start: NOW + 4 * HOUR, end: NOW + 5 * HOUR },
    });
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

describe('what is picked', () => {
  const cases = [HOUR, DAY, 7 * DAY, 31 * DAY, 366 * DAY].flatMap((length) =>
    [300, 560, 1333].flatMap((width) =>
      ['Europe/Brussels', 'Asia/Kathmandu', 'UTC'].map((zone) => [length, width, zone] as const),
    ),
  );
  it.each(cases)(
    'in a window of %i ms, %i pixels wide, in %s is what the form shows and sends',
    (length, width, zone) => {
      const zoned = createClock(zone);
      const window = { start: NOW - length / 10, end: NOW + 0.9 * length };
      const sight = {
        ...{ clock: zoned, now: NOW, width, layout: layoutFor(false), rows: [0], own: [], state: { window } },
      };
      const sent = (draft: typeof EMPTY_DRAFT) => {
        const read = readDraft(draft, { now: NOW, links: LINKS, expiry: NOW + 9999 * DAY, zone });
        return read.wish?.request ?? expect.fail(JSON.stringify([...read.problems]));
      };
      const [link = expect.fail()] = LINKS;
      const pixel = length / width;
      for (const x of [0.55, 0.73, 0.98].map((share) => Math.round(share * width))) {
        const instant = instantAt(x, window, width);
        const start = clickedStart(instant, sight);
        // A click keeps the length, a volume, and the distance of an end that was typed as a time.
        for (const [ending, lasting] of [
          ['90m', 90 * MINUTE],
          ['50T', 400_000 * 1000],
          [NOW + 3 * HOUR, 3 * HOUR],
        ] as const) {
          const typed = { ...EMPTY_DRAFT, start: NOW, ending };
          const draft = startedAt(typed, link, start, { start: NOW, end: NOW + lasting });
          expect(sent(draft)).toMatchObject({ start, end: start + lasting });
          if (typeof ending === 'string') expect(draft.ending).toEqual(ending);
        }
        expect(start % MINUTE).toBe(0);
        expect(Math.abs(start - instant)).toBeLessThanOrEqual(
          Math.max(lengthOfStep(snapStep(window, 'click')), pixel) * 0.75,
        );
        const mark = draggedMark(sight, { x: x - width / 4, y: 20 }, { x, y: 3 }, true) ?? expect.fail();
        expect(sent(picked(EMPTY_DRAFT, link, mark))).toMatchObject({ start: mark.start, end: mark.end });
        expect([mark.start % MINUTE, mark.end % MINUTE]).toEqual([0, 0]);
        expect(Math.abs(mark.end - instant)).toBeLessThanOrEqual(lengthOfStep(snapStep(window, 'drag')));
      }
      expect(clickedStart(NOW - 20 * MINUTE, sight)).toBe(NOW);
    },
  );
});

describe('a grip of my reservation’s block', () => {
  const HOURS = 3_600_000;
  const now = Date.parse('2026-11-22T10:00:00Z');
  const step = { unit: 'minute', count: 60 } as const;
  const context = { clock: createClock('UTC'), now, step };
  const later = { start: now + 2 * HOURS, end: now + 4 * HOURS };
  const active = { start: now - HOURS, end: now + HOURS };
  const x = (instant: number): number => (instant - now) / 60_000;

  it('is where it can still be moved, and leaves half of a narrow block', () => {
    expect([115, 120, 127, 239, 246, 247].map((at) => gripAt(later, at, x, now))).toEqual([
      ...['start', 'start', 'all', 'end', 'end', 'all'],
    ]);
    expect(gripAt(active, x(active.start), x, now)).toBeUndefined();
    expect(gripAt(active, 60, x, now)).toBe('end');
    expect(gripAt({ ...active, end: now }, 0, x, now)).toBeUndefined();
    const narrow = { start: later.start, end: later.start + 8 * 60_000 };
    expect([122, 124].map((at) => gripAt(narrow, at, x, now))).toEqual(['start', 'all']);
  });

  it('goes to the nearest step; something is left of it, and of the time to come', () => {
    const end = (instant: number) => (grippedPeriod(later, 'end', [0, instant], context).end - now) / HOURS;
    expect([5.4, 5.6, 1, -9].map((hours) => end(now + hours * HOURS))).toEqual([5, 6, 3, 3]);
    const start = (instant: number) =>
      (grippedPeriod(later, 'start', [0, instant], context).start - now) / HOURS;
    expect([2.4, 1.4, -9, 9].map((hours) => start(now + hours * HOURS))).toEqual([2, 1, 0, 3]);
    const all = (hours: number) => grippedPeriod(later, 'all', [now, now + hours * HOURS], context);
    expect([1.4, -9].map((hours) => (all(hours).start - now) / HOURS)).toEqual([3, 0]);
    expect(all(5).end - all(5).start).toBe(later.end - later.start);
    expect(grippedPeriod(active, 'end', [0, now - 5 * HOURS], context)).toEqual({
      ...active,
      end: now + HOURS,
    });
  });
});
