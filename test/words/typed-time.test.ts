import { describe, expect, test } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/contract/durations.ts';
import { adviceOnTime, parsePastTime, parseTime, type TimeReading } from '../../src/words/typed-time.ts';
import { failureOf } from '../fixtures/failures.ts';
import { NOW } from '../fixtures/tokens.ts';

// NOW is Sunday, 2026-11-01T12:00:00Z, 13:00 in Brussels.
const [BRUSSELS, TOKYO, NEW_YORK] = ['Europe/Brussels', 'Asia/Tokyo', 'America/New_York'];
const at = (text: string, zone = 'UTC', now = NOW, reading?: TimeReading) =>
  parseTime(text, { now, zone }, reading);
const utc = (text: string): number => Date.parse(`${text}Z`);

test.each([
  ...['2026-12-01T10:00:00Z', '2026-12-01T10:00:00.000Z', '2026-12-01t10:00:00z', '2026-12-01 10:00:00Z'],
  ...['2026-12-01T11:00:00+01:00', '2026-12-01T04:30:00-05:30', '2026-12-02T00:00:00+14:00'],
  ...[' 2026-12-01T10:00:00Z ', '2026-12-01T10:00Z', '2026-12-01T11:00+01:00', '2026-12-01T11:00:00+0100'],
  ...['2026-12-01T11:00:00.000+01', '2026-12-01 09:00:00-01', '2026-12-01T09:00-0100'],
])('%s is 10:00 UTC in every zone', (text) => {
  for (const zone of ['UTC', TOKYO]) expect(at(text, zone)).toBe(utc('2026-12-01T10:00'));
});

test.each<[number, ...string[]]>([
  [0, 'now', 'NOW', ' now '],
  [2 * HOUR, '+2h', 'in 2 h'],
  [150 * MINUTE, '+2h30m'],
  [25 * HOUR, 'in 1 d 1 h'],
  [3 * DAY, '+3d', '+P3D'],
  [-3 * DAY, '3 d ago'],
])('%i ms from now: %s', (distance, ...texts) => {
  for (const text of texts) expect(at(text, BRUSSELS)).toBe(NOW + distance);
});

test.each<[zone: string, text: string, instant: string]>([
  // Milliseconds are kept.
  ['UTC', '2026-12-01T10:00:00.123Z', '2026-12-01T10:00:00.123'],
  // A time without an offset.
  [BRUSSELS, '2026-12-01T10:00', '2026-12-01T09:00'],
  [BRUSSELS, '2026-12-01 9:30', '2026-12-01T08:30'],
  [BRUSSELS, '2026-12-01T10:00:30', '2026-12-01T09:00:30'],
  [BRUSSELS, '2027-07-01T10:00', '2027-07-01T08:00'],
  [NEW_YORK, '2026-12-01T10:00', '2026-12-01T15:00'],
  ['Asia/Kolkata', '2026-12-01T10:00', '2026-12-01T04:30'],
  ['Pacific/Kiritimati', '2026-12-01T10:00', '2026-11-30T20:00'],
  ['+0530', '2026-12-01T10:00', '2026-12-01T04:30'],
  ['-03', '2026-12-01T10:00', '2026-12-01T13:00'],
  [BRUSSELS, '2026-12-01', '2026-11-30T23:00'],
  [BRUSSELS, 'Today 18:00', '2026-11-01T17:00'],
  [BRUSSELS, 'tomorrow 09:00', '2026-11-02T08:00'],
  [BRUSSELS, 'TOMORROW', '2026-11-01T23:00'],
  // Beside an hour that is skipped or comes twice.
  [BRUSSELS, '2027-03-28T01:59:59', '2027-03-28T00:59:59'],
  [BRUSSELS, '2027-03-28T03:00', '2027-03-28T01:00'],
  [BRUSSELS, '2026-10-25T01:59:59', '2026-10-24T23:59:59'],
  [BRUSSELS, '2026-10-25T03:00', '2026-10-25T02:00'],
  // A time of day or a weekday without a date.
  ['UTC', '14:00', '2026-11-01T14:00'],
  ['UTC', '12:00:01', '2026-11-01T12:00:01'],
  [BRUSSELS, '13:30', '2026-11-01T12:30'],
  [BRUSSELS, '13:00', '2026-11-02T12:00'],
  [BRUSSELS, 'Mon 14:00', '2026-11-02T13:00'],
  [BRUSSELS, 'saturday  9:00', '2026-11-07T08:00'],
  [BRUSSELS, 'sunday 14:00', '2026-11-01T13:00'],
  [BRUSSELS, 'sunday 11:00', '2026-11-08T10:00'],
  [BRUSSELS, 'wednesday', '2026-11-03T23:00'],
  // A day as people write it.
  [BRUSSELS, 'Fri 4 Dec 09:00', '2026-12-04T08:00'],
  [BRUSSELS, 'december 4th, 2026 at 9am', '2026-12-04T08:00'],
  [BRUSSELS, '4 Dec 2027 09:00', '2027-12-04T08:00'],
  [BRUSSELS, '9am fri 4 dec', '2026-12-04T08:00'],
  [BRUSSELS, 'Fri 2026-12-04 09:00', '2026-12-04T08:00'],
  [BRUSSELS, '1 nov 09:00', '2026-11-01T08:00'],
  [BRUSSELS, '31 oct 09:00', '2027-10-31T08:00'],
  [BRUSSELS, '29 feb 09:00', '2028-02-29T08:00'],
  [BRUSSELS, 'next friday 9:00', '2026-11-06T08:00'],
  [BRUSSELS, 'next sunday 18:00', '2026-11-08T17:00'],
  [BRUSSELS, 'friday next week', '2026-11-05T23:00'],
  [BRUSSELS, 'next week friday 12:00', '2026-11-06T11:00'],
  [BRUSSELS, 'sunday of next week 12:00', '2026-11-08T11:00'],
  [BRUSSELS, 'monday next week 12:00', '2026-11-02T11:00'],
  [BRUSSELS, 'noon', '2026-11-02T11:00'],
  [BRUSSELS, 'midnight', '2026-11-01T23:00'],
  [BRUSSELS, 'midnight UTC', '2026-11-02T00:00'],
  [BRUSSELS, 'tomorrow noon', '2026-11-02T11:00'],
  [BRUSSELS, '9am', '2026-11-02T08:00'],
  [BRUSSELS, '9:30 pm', '2026-11-01T20:30'],
  [BRUSSELS, 'tomorrow 12am', '2026-11-01T23:00'],
  [BRUSSELS, '12pm friday', '2026-11-06T11:00'],
  // The zone that is written beside it decides, and its own letters are read as it: so they are printed.
  [TOKYO, 'Sun 1 Nov 14:00 Europe/Brussels (in 2 h)', '2026-11-01T13:00'],
  [TOKYO, 'Sun 1 Nov 14:00:30 europe/brussels', '2026-11-01T13:00:30'],
  [TOKYO, 'tomorrow 09:00 UTC', '2026-11-02T09:00'],
  [TOKYO, 'tomorrow 09:00 GMT', '2026-11-02T09:00'],
  [TOKYO, 'tomorrow 09:00 z', '2026-11-02T09:00'],
  [TOKYO, '2026-12-01T10:00:00 UTC', '2026-12-01T10:00'],
  [TOKYO, '2026-12-01 10:00 +05:30', '2026-12-01T04:30'],
  [TOKYO, '2026-12-01 10:00 -03', '2026-12-01T13:00'],
  [TOKYO, 'tomorrow 09:00 UTC-0330', '2026-11-02T12:30'],
  [TOKYO, 'Sun 25 Oct 2026 02:30 (UTC+2)', '2026-10-25T00:30'],
  [TOKYO, 'Sun 25 Oct 2026 02:30 (UTC+1)', '2026-10-25T01:30'],
  [TOKYO, '14:00 -03:30', '2026-11-01T17:30'],
  ['CET', '2027-07-04 09:00 CET', '2027-07-04T07:00'],
])('in %s, %s is %s UTC', (zone, text, instant) => {
  expect(at(text, zone)).toBe(utc(instant));
});

test.each([
  ['tomorrow 09:00', TOKYO, '2026-11-01T23:00', '2026-11-03T00:00'],
  ['tomorrow 09:00', NEW_YORK, '2026-11-01T23:00', '2026-11-02T14:00'],
  ['tomorrow 09:00', BRUSSELS, '2027-03-27T12:00', '2027-03-28T07:00'],
  // Today has none.
  ['02:30', BRUSSELS, '2027-03-28T10:00', '2027-03-29T00:30'],
])('%s in %s is by the zone’s own days and clock, at %s: %s', (text, zone, now, instant) => {
  expect(at(text, zone, utc(now))).toBe(utc(instant));
});

describe('where clocks change', () => {
  test.each([
    ['an hour that is skipped', BRUSSELS, '2027-03-28T02:30', '2027-03-28T02:00', '2027-03-28T02:59:59'],
    ['an hour that comes twice', BRUSSELS, '2026-10-25T02:30', '2026-10-25T02:00', '2026-10-25T02:59:59'],
    ['a midnight that is skipped', 'America/Sao_Paulo', '2018-11-04'],
    ['a day that is skipped', 'Pacific/Apia', '2011-12-30T12:00'],
    ['no such day', 'UTC', '2027-02-30T10:00', '2026-13-01T10:00'],
    ['no such time', 'UTC', '2026-12-01T24:00', '2026-12-01T10:60'],
  ])('%s is refused in %s', async (_, zone, ...texts) => {
    for (const text of texts) {
      const { code, message, facts } = await failureOf(() => at(text, zone));
      expect([code, facts.fix]).toEqual(['usage', 'slices-conn help times']);
      expect(message).toMatch(/^There is no day or time |(?:does not exist|exists twice) in /);
    }
  });

  test.each([
    ['2026-10-25T02:30', 'Give an offset: 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00.'],
    ['2027-03-28T02:30', 'Give an offset: 2027-03-28T01:30:00+01:00 or 2027-03-28T03:30:00+02:00.'],
  ])('the refusal of %s names the instants that can be meant', async (text, advice) => {
    const { facts } = await failureOf(() => at(text, BRUSSELS));
    expect(facts.why).toContain(advice);
    for (const instant of advice.match(/\d{4}-\S+\d/g) ?? []) expect(at(instant)).toBeGreaterThan(0);
  });
});

test.each([
  ...['', ' ', 'soon', 'yesterday 10:00', '25:00:00:00', '2026-12-1T10:00:00Z', '2026-02-30T10:00:00Z'],
  ...[
    '01/12/2026',
    '0099-12-04 09:00',
    '1 December 26',
    'friday monday',
    'friday 4',
    '4 dec 5',
    'next 14:00',
    'next week',
    '9',
  ],
  ...['9:00 10:00', 'tomorrow at 9', 'tomorrow 09:00 +530', '2026-12-01T10:00:00Z[UTC]', '20261201T100000Z'],
  // Three zones, one of which the platform knows; then years that have not four digits.
  ...['tomorrow 09:00 BST', '10000-01-01T00:00:00Z', '+99999999d', '+3000000d', '1969-12-31T23:59:59Z'],
  ...['1796119200', '-2h', '2h', '+', '+0m', '+2', 'now+2h'],
])('%j is refused as usage, with where times are explained', async (text) => {
  const { code, facts } = await failureOf(() => at(text));
  expect(code).toBe('usage');
  expect([undefined, 'slices-conn help times']).toContain(facts.fix);
});

describe('what could mean two things is refused with what was probably meant', () => {
  const notRead = (zone: string, rest: string) =>
    `${zone} is not a zone that is read. Write its offset, as '${rest} +01:00', or its IANA name`;
  test.each([
    ['14:00-16:00', 'two times: --start 14:00 --end 16:00. Offsets go from -12:00 to +14:00.'],
    ['14:00 -16:00', 'two times: --start 14:00 --end 16:00.'],
    ['2pm – 4pm', 'two times: --start 2pm --end 4pm.'],
    ['14:00 to 16', 'two times: --start 14:00 --end 16.'],
    ['2026-12-01T14:00-16:00', "--start '2026-12-01 14:00' --end '2026-12-01 16:00'."],
    ['09:00-11:00', "--start 09:00 --end 11:00. Where -11:00 is an offset, write '09:00 UTC-11:00'."],
    ['2026-12-01-09:00', "Write '2026-12-01 09:00'."],
    ['2026-12-01 +09:00', "Write '2026-12-01 09:00'."],
    ['friday midnight', "write 'friday 00:00' or 'saturday 00:00'"],
    ['2027-07-04 09:00 CET', notRead('CET', '2027-07-04 09:00')],
    ['09:00CEST', notRead('CEST', '09:00')],
    ['09:00 GMT+1', notRead('GMT+1', '09:00')],
    ['tomorrow 09:00 Brussels', "as 'tomorrow 09:00 Europe/Brussels'"],
    ['2026-12-01T14:00:00-16:00', 'Offsets go from -12:00 to +14:00.'],
    ['14:00 +14:30', 'Offsets go from -12:00 to +14:00.'],
    ['+15:00', 'Write +15h for so long after now, or 15:00 for the time of day.'],
    ['+02:30', 'Write +2h30 for so long after now, or 02:30 for the time of day.'],
    ['+0900', 'Write +9h for so long after now, or 09:00 for the time of day.'],
  ])('%s: %s', async (text, advice) => {
    const context = { now: NOW, zone: BRUSSELS, advice: adviceOnTime };
    const { code, facts } = await failureOf(() => parseTime(text, context));
    expect([code, facts.why]).toEqual(['usage', expect.stringContaining(advice)]);
  });

  test('a reader may name the two in its own words', () => {
    expect(adviceOnTime('14:00-16:00', ['start:', 'end:'])).toContain('start: 14:00 end: 16:00');
  });

  test.each([
    ['Fri 5 Dec 09:00', '5 Dec 2026 is a Saturday, not a Friday.'],
    ['Mon 31 Oct', '31 Oct 2027 is a Sunday, not a Monday.'],
    ['monday 2026-12-04', '4 Dec 2026 is a Friday, not a Monday.'],
  ])('a weekday that is not the date’s: %s', async (text, message) => {
    expect(await failureOf(() => at(text))).toMatchObject({ code: 'usage', message });
  });
});

test.each([
  ['UTC', 'friday', '2026-11-07T00:00'],
  ['UTC', 'sunday', '2026-11-02T00:00'],
  ['UTC', 'next sunday', '2026-11-09T00:00'],
  ['UTC', 'today', '2026-11-02T00:00'],
  ['UTC', '4 dec', '2026-12-05T00:00'],
  ['UTC', 'friday next week', '2026-11-07T00:00'],
  ['UTC', 'friday 00:00', '2026-11-06T00:00'],
  // Clocks change at its end.
  ['America/Sao_Paulo', '2018-11-03', '2018-11-04T03:00'],
  ['America/Havana', '2026-10-31', '2026-11-01T04:00'],
])('as an end, in %s, a day without a time is through that day: %s', (zone, text, instant) => {
  expect(at(text, zone, NOW, { isEnd: true })).toBe(utc(instant));
});

test('a time of day may be on a given day', () => {
  const on = Date.UTC(2026, 11, 4, 9);
  expect(at('10:00', 'UTC', NOW, { on })).toBe(on + HOUR);
  expect(at('tomorrow 10:00', 'UTC', NOW, { on })).toBe(NOW + 22 * HOUR);
});

test.each([
  ['2d', NOW - 2 * DAY],
  ['99999w', 0],
  ['now', NOW],
  ['+1h', NOW + HOUR],
  ['2026-10-01T00:00Z', Date.UTC(2026, 9, 1)],
  ['14:00', NOW - 22 * HOUR],
  ['monday 12:00', NOW - 6 * DAY],
  ['11:00', NOW - HOUR],
])('in the past, %s is the last one', (text, instant) => {
  expect(parsePastTime(text, { now: NOW, zone: 'UTC' })).toBe(instant);
});
