import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { changesBetween, type Look, type SeenChange } from '../../../src/cli/reservation/looks.ts';
import { formatInstant, nextTurn as nextOf, SOON } from '../../../src/contract/instants.ts';
import type { Reservation } from '../../../src/contract/reservation.ts';
import { periodOf } from '../../../src/contract/reservation-request.ts';
import { NOW, RESERVATION } from '../../fixtures/tokens.ts';

const MINUTE = 60_000;

const nextTurn = ({ at, reservations }: Look) => nextOf(at, reservations.map(periodOf));

/** A reservation from one minute to another, counted from now. */
const reservation = (from: number, until: number, changes: Partial<Reservation> = {}): Reservation => ({
  ...RESERVATION,
  start_date: formatInstant(NOW + from * MINUTE),
  end_date: formatInstant(NOW + until * MINUTE),
  ...changes,
});

const look = (minute: number, ...reservations: Reservation[]): Look => ({
  at: NOW + minute * MINUTE,
  reservations,
});
const events = (changes: readonly SeenChange[]): string[] => changes.map(({ event }) => event);

const WHOLE = reservation(10, 60);

describe('what happened between two looks', () => {
  test.each<[string, Look | undefined, Look, string[]]>([
    ['first seen scheduled', undefined, look(0, WHOLE), []],
    ['first seen at its start', undefined, look(10, WHOLE), ['started']],
    ['first seen active', undefined, look(30, WHOLE), ['started']],
    ['first seen 10 min before its end', undefined, look(50, WHOLE), ['started', 'ending_soon']],
    ['first seen ended', undefined, look(60, WHOLE), ['ended']],
    ['first seen beside another', look(5), look(30, WHOLE), ['started']],
    ['nothing', look(11, WHOLE), look(49, WHOLE), []],
    ['a start', look(9, WHOLE), look(10, WHOLE), ['started']],
    ['the last 10 min', look(49, WHOLE), look(50, WHOLE), ['ending_soon']],
    ['still the last 10 min', look(50, WHOLE), look(59, WHOLE), []],
    ['an end', look(59, WHOLE), look(60, WHOLE), ['ended']],
    ['a whole life', look(0, WHOLE), look(90, WHOLE), ['started', 'ended']],
    ['a start and the last 10 min', look(0, WHOLE), look(55, WHOLE), ['started', 'ending_soon']],
    ['an end that was soon', look(40, WHOLE), look(60, WHOLE), ['ended']],
    ['a deletion before the start', look(0, WHOLE), look(5), ['deleted']],
    ['a deletion', look(30, WHOLE), look(31), ['deleted']],
    ['an ended one that the service forgets', look(60, WHOLE), look(61), []],
    ['another bandwidth', look(0, WHOLE), look(1, reservation(10, 60, { bandwidth: 2000 })), ['updated']],
    ['another tag', look(0, WHOLE), look(1, reservation(10, 60, { site2_c_tag: 7 })), ['updated']],
    ['a start that is put off', look(0, WHOLE), look(15, reservation(20, 60)), ['updated']],
    ['a start that is put forward', look(0, WHOLE), look(6, reservation(5, 60)), ['updated', 'started']],
    ['an extension in the last 10 min', look(55, WHOLE), look(56, reservation(10, 90)), ['updated']],
    [
      'the last 10 min of the extension',
      look(56, reservation(10, 90)),
      look(80, reservation(10, 90)),
      ['ending_soon'],
    ],
    ['an extension within the last 10 min', look(55, WHOLE), look(56, reservation(10, 62)), ['updated']],
    ['an end that is soon now', look(20, WHOLE), look(21, reservation(10, 30)), ['updated', 'ending_soon']],
    ['an end at once', look(20, WHOLE), look(21, reservation(10, 21)), ['updated', 'ended']],
    ['a short one', undefined, look(2, reservation(2, 5)), ['started', 'ending_soon']],
    [
      'a member that no update changes',
      look(0, WHOLE),
      look(1, { ...WHOLE, created_at: formatInstant(1) }),
      [],
    ],
  ])('%s', (_, previous, next, expected) => {
    expect(events(changesBetween(previous, next))).toEqual(expected);
  });

  test('each has the time of the look, the reservation as it is, and an update what it was before', () => {
    const now = reservation(5, 60);
    expect(changesBetween(look(0, WHOLE), look(6, now))).toEqual([
      { event: 'updated', at: NOW + 6 * MINUTE, reservation: now, before: WHOLE },
      { event: 'started', at: NOW + 6 * MINUTE, reservation: now },
    ]);
    expect(changesBetween(look(0, WHOLE), look(6))).toEqual([
      { event: 'deleted', at: NOW + 6 * MINUTE, reservation: WHOLE },
    ]);
  });

  test('several are told in the order of their starts', () => {
    const [late, early] = [reservation(20, 60, { id: 'con_x_a' }), reservation(10, 60, { id: 'con_x_b' })];
    const gone = reservation(15, 60, { id: 'con_x_c' });
    const told = changesBetween(look(0, late, gone, early), look(30, late, early));
    expect(told.map(({ event, reservation: { id } }) => `${event} ${id}`)).toEqual([
      'started con_x_b',
      'deleted con_x_c',
      'started con_x_a',
    ]);
  });
});

test('the next turn is the first start, last 10 min, or end that lies ahead', () => {
  expect(nextTurn(look(0))).toBeUndefined();
  expect(nextTurn(look(60, WHOLE))).toBeUndefined();
  const turns = [
    [0, 10],
    [10, 50],
    [50, 60],
  ] as const;
  for (const [at, turn] of turns) expect(nextTurn(look(at, WHOLE))).toBe(NOW + turn * MINUTE);
  // Its last ten minutes begin with it.
  expect(nextTurn(look(0, reservation(2, 5), WHOLE))).toBe(NOW + 2 * MINUTE);
});

/** The life of one reservation: what a service says of it at each minute; undefined where it does not exist. */
type Life = (Reservation | undefined)[];

/**
 * A reservation that is created, updated now and then, and perhaps deleted before its end. An update never moves a start
 * that has passed.
 */
const life: fc.Arbitrary<Life> = fc
  .record({
    created: fc.integer({ min: 0, max: 30 }),
    start: fc.integer({ min: 0, max: 60 }),
    lasts: fc.integer({ min: 1, max: 60 }),
    deleted: fc.option(fc.integer({ min: 0, max: 120 }), { nil: undefined }),
    updates: fc.array(
      fc.record({
        at: fc.integer({ min: 1, max: 119 }),
        start: fc.nat(60),
        lasts: fc.integer({ min: 1, max: 60 }),
      }),
      { maxLength: 4 },
    ),
  })
  .map(({ created, start: first, lasts, deleted: early = 200, updates }) => {
    const deleted = Math.max(early, created + 1);
    let start = Math.max(created, first);
    let end = start + lasts;
    return Array.from({ length: 121 }, (_, minute) => {
      const isGone = minute >= deleted && deleted < end;
      if (minute < created || isGone) return undefined;
      for (const update of updates) {
        if (update.at !== minute || minute >= end || minute >= deleted) continue;
        if (minute < start) start = minute + update.start;
        end = Math.max(minute, start + update.lasts);
        if (end <= start) end = start + 1;
      }
      return reservation(start, end);
    });
  });

/** All changes of a life that is looked at in these minutes. */
function toldOf(seen: Life, minutes: readonly number[]): SeenChange[] {
  let previous: Look | undefined;
  return minutes.flatMap((minute) => {
    const one = seen[minute];
    const next = look(minute, ...(one ? [one] : []));
    const told = changesBetween(previous, next);
    previous = next;
    return told;
  });
}

const minutes = fc
  .uniqueArray(fc.integer({ min: 0, max: 120 }), { minLength: 1, maxLength: 40 })
  .map((chosen) => chosen.toSorted((one, other) => one - other));
const everyMinute = Array.from({ length: 121 }, (_, minute) => minute);

describe('of any life, looked at in any minutes', () => {
  test('a start is told before an end, nothing after an end or a deletion, and it ends as what is told says', () => {
    fc.assert(
      fc.property(life, minutes, (seen, chosen) => {
        const told = events(toldOf(seen, chosen));
        const over = told.findIndex((event) => event === 'ended' || event === 'deleted');
        if (over !== -1) expect(over).toBe(told.length - 1);
        if (told.includes('ending_soon')) {
          expect(told).toContain('started');
          expect(told.indexOf('started')).toBeLessThan(told.indexOf('ending_soon'));
        }
        expect(told.filter((event) => event === 'started').length).toBeLessThanOrEqual(1);
        const at = chosen.at(-1) ?? 0;
        const now = seen[at];
        const last = told.at(-1);
        if (!now) {
          expect(last).toBe(chosen.some((minute) => seen[minute]) ? 'deleted' : undefined);
          return;
        }
        const [isStarted, isEnded] = [now.start_date, now.end_date].map(
          (date) => Date.parse(date) <= NOW + at * MINUTE,
        );
        expect(last === 'ended').toBe(isEnded);
        if (!isEnded) expect(told.includes('started')).toBe(isStarted);
      }),
    );
  });

  test('fewer looks tell no event that more looks do not tell, except that an update may hide another', () => {
    fc.assert(
      fc.property(life, minutes, (seen, chosen) => {
        const all = new Set(events(toldOf(seen, everyMinute)));
        for (const event of events(toldOf(seen, chosen))) expect(all).toContain(event);
      }),
    );
  });

  test('looks at each turn tell every start, last ten minutes and end in its own minute', () => {
    fc.assert(
      fc.property(life, (seen) => {
        for (const { event, at, reservation: one } of toldOf(seen, everyMinute)) {
          const minute = (at - NOW) / MINUTE;
          const before = seen[minute - 1];
          const isSame = before?.start_date === one.start_date && before.end_date === one.end_date;
          if (!isSame) continue;
          const [start, end] = [Date.parse(one.start_date), Date.parse(one.end_date)];
          if (event === 'started') expect(at).toBe(start);
          if (event === 'ended') expect(at).toBe(end);
          if (event === 'ending_soon') expect(at).toBe(Math.max(start, end - SOON));
        }
      }),
    );
  });
});
