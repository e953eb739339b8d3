import { expect, test } from 'vitest';
import {
  groupAt,
  isEnding,
  lastChange,
  nextText,
  placed,
  whenText,
} from '../../src/page/reservation-rows.ts';
import { createClock } from '../../src/words/civil-time.ts';

const [MINUTE, HOUR] = [60_000, 3_600_000];
/** A Sunday, 11:00 in Brussels. */
const NOW = Date.parse('2026-11-22T10:00:00Z');
const CALENDAR = { clock: createClock('Europe/Brussels'), now: NOW };
const at = (start: number, end: number, id = `${start} ${end}`) => ({
  ...{ id, start: NOW + start * HOUR, end: NOW + end * HOUR },
});

test('rows stand in groups: active ones by their end, scheduled ones by their start, ended ones from the last on', () => {
  const [ended, over, long, active] = [at(-9, -8), at(-3, 0), at(-1, 9), at(0, 1)];
  const [next, evening, tomorrow] = [at(2, 3), at(12.9, 14), at(13, 14)];
  const rows = placed([ended, tomorrow, evening, over, long, next, active], CALENDAR);
  expect(rows.map(({ own, group }) => [group, own])).toEqual([
    ...[
      ['now', active],
      ['now', long],
      ['today', next],
      ['today', evening],
    ],
    ...[
      ['later', tomorrow],
      ['ended', over],
      ['ended', ended],
    ],
  ]);
  const twins = placed([at(0, 1, 'b'), at(0, 1, 'a')], CALENDAR);
  expect(twins.map(({ own }) => own.id)).toEqual(['a', 'b']);
  expect(groupAt(at(13, 14), { ...CALENDAR, clock: createClock('UTC') })).toBe('today');
});

test('rows are kept where they are: what is new stands behind what it would stand behind, what is gone leaves no gap', () => {
  const before = placed([at(1, 2, 'b'), at(3, 4, 'gone'), at(5, 6, 'a')], CALENDAR);
  const list = [at(-1, 3, 'a'), at(1, 2, 'b'), at(1.5, 2, 'c'), at(-1, 1, 'first')];
  const rows = placed(list, CALENDAR, before);
  // The one that has started meanwhile stays in its group.
  expect(rows.map(({ own, group }) => `${own.id} ${group}`)).toEqual([
    ...['first now', 'b today', 'c today', 'a today'],
  ]);
  expect(rows.at(-1)?.own).toBe(list[0]);
});

test('when it is, as people say it', () => {
  const texts = (
    [
      [9.15, 12.65],
      [0, 25],
      [-30, -2],
      [26, 28],
      [24 * 60, 24 * 62],
    ] as const
  ).map(([start, end]) => whenText(at(start, end), CALENDAR));
  expect(texts).toEqual([
    'today 20:09 – 23:39, 3 h 30',
    'today 11:00 – tomorrow 12:00, 1 d 1 h',
    'yesterday 05:00 – today 09:00, 1 d 4 h',
    'tomorrow 13:00 – 15:00, 2 h',
    'Thu 21 Jan 2027 11:00 – Sat 23 Jan 2027 11:00, 2 d',
  ]);
  const [start, end] = [NOW - HOUR, NOW + 0.5 * HOUR];
  expect([0.01, 0.99, 1].map((hours) => nextText(at(hours, 2), NOW))).toEqual([
    ...['starts in 1 min', 'starts in 59 min', ''],
  ]);
  expect(nextText({ start, end }, NOW)).toBe('ends in 30 min');
  expect([end, end - 4000, end - 7000].map((now) => nextText({ start, end }, now))).toEqual([
    ...['', '', 'ends in 1 min'],
  ]);
  expect([end - 4000, end - 7000, end].map((now) => isEnding({ start, end }, now))).toEqual([
    ...[true, false, false],
  ]);
});

test('what is said changes with each minute, and when one starts or ends', () => {
  const one = { start: NOW + 1500, end: NOW + 90_000 };
  const seconds = [1, 2, 59, 60, 83, 84, 89, 90, 119].map(
    (after) => lastChange([one], NOW + after * 1000) - NOW,
  );
  expect(seconds).toEqual([0, 1500, 1500, MINUTE, MINUTE, 84_000, 84_000, 90_000, 90_000]);
});
