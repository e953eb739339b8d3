import { describe, expect, test } from 'vitest';
import { adviceOnTime } from '../../src/words/time-advice.ts';
import { parsePastTime, parseTime, type TimeReading } from '../../src/words/typed-time.ts';
import { failureOf } from '../fixtures/failures.ts';
import { NOW } from '../fixtures/tokens.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Reads a time at {@link NOW}, 2026-11-01T12:00:00Z. */
const at = (text: string, zone = 'UTC', now = NOW, reading?: TimeReading) =>
  parseTime(text, { now, zone }, reading);
const iso = (text: string, zone?: string, now?: number) => new Date(at(text, zone, now)).toISOString();

describe('RFC 3339 with an offset', () => {
  test.each([
    '2026-12-01T10:00:00Z',
    '2026-12-01T10:00:00.000Z',
    '2026-12-01T10:00:00.0Z',
    '2026-12-01t10:00:00z',
    '2026-12-01T10:00:00+00:00',
    '2026-12-01T11:00:00+01:00',
    '2026-12-01T04:30:00-05:30',
    '2026-12-02T00:00:00+14:00',
    '2026-12-01 10:00:00Z',
    ' 2026-12-01T10:00:00Z ',
    '2026-12-01T10:00Z',
    '2026-12-01T11:00+01:00',
    '2026-12-01T11:00:00+0100',
    '2026-12-01T11:00:00.000+01',
    '2026-12-01 09:00:00-01',
    '2026-12-01T09:00-0100',
  ])('%s is 10:00 UTC in every zone', (text) => {
    expect(iso(text)).toBe('2026-12-01T10:00:00.000Z');
    expect(iso(text, 'Asia/Tokyo')).toBe('2026-12-01T10:00:00.000Z');
  });

  test('milliseconds are kept', async () => {
    expect(iso('2026-12-01T10:00:00.123Z')).toBe('2026-12-01T10:00:00.123Z');
  });
});

describe('relative to now', () => {
  test.each<[string, number]>([
    ['now', 0],
    ['NOW', 0],
    [' now ', 0],
    ['+2h', 2 * HOUR],
    ['+2h30m', 2.5 * HOUR],
    ['+90m', 90 * MINUTE],
    ['+3d', 3 * DAY],
    ['+1w', 7 * DAY],
    ['+P3D', 3 * DAY],
  ])('%s', async (text, distance) => {
    expect(at(text)).toBe(NOW + distance);
  });
});

describe('a time without an offset, in a zone', () => {
  test.each([
    ['2026-12-01T10:00', 'UTC', '2026-12-01T10:00:00.000Z'],
    ['2026-12-01T10:00', 'Europe/Brussels', '2026-12-01T09:00:00.000Z'],
    ['2026-12-01 10:00', 'Europe/Brussels', '2026-12-01T09:00:00.000Z'],
    ['2026-12-01 9:30', 'Europe/Brussels', '2026-12-01T08:30:00.000Z'],
    ['2026-12-01T10:00:30', 'Europe/Brussels', '2026-12-01T09:00:30.000Z'],
    ['2027-07-01T10:00', 'Europe/Brussels', '2027-07-01T08:00:00.000Z'],
    ['2026-12-01T10:00', 'America/New_York', '2026-12-01T15:00:00.000Z'],
    ['2026-12-01T10:00', 'Asia/Kolkata', '2026-12-01T04:30:00.000Z'],
    ['2026-12-01T10:00', 'Pacific/Kiritimati', '2026-11-30T20:00:00.000Z'],
    ['2026-12-01T10:00', '+0530', '2026-12-01T04:30:00.000Z'],
    ['2026-12-01T10:00', '-03', '2026-12-01T13:00:00.000Z'],
    ['2026-12-01', 'Europe/Brussels', '2026-11-30T23:00:00.000Z'],
    ['today 18:00', 'Europe/Brussels', '2026-11-01T17:00:00.000Z'],
    ['Today 18:00', 'Europe/Brussels', '2026-11-01T17:00:00.000Z'],
    ['tomorrow 09:00', 'Europe/Brussels', '2026-11-02T08:00:00.000Z'],
    ['TOMORROW 09:00', 'Europe/Brussels', '2026-11-02T08:00:00.000Z'],
    ['tomorrow', 'Europe/Brussels', '2026-11-01T23:00:00.000Z'],
  ])('%s in %s is %s', (text, zone, instant) => {
    expect(iso(text, zone)).toBe(instant);
  });

  test.each([
    ['in the zone it is the 2nd already', 'Asia/Tokyo', '2026-11-03T00:00:00.000Z'],
    ['in the zone it is still the 1st', 'America/New_York', '2026-11-02T14:00:00.000Z'],
  ])('today and tomorrow are the zone’s own days: %s', (_, zone, instant) => {
    expect(iso('tomorrow 09:00', zone, Date.UTC(2026, 10, 1, 23))).toBe(instant);
  });

  test('tomorrow at nine is at nine when the clocks change in between', async () => {
    expect(iso('tomorrow 09:00', 'Europe/Brussels', Date.UTC(2027, 2, 27, 12))).toBe(
      '2027-03-28T07:00:00.000Z',
    );
  });

  test.each([
    ['the hour that is skipped', '2027-03-28T02:30', 'Europe/Brussels'],
    ['its first minute', '2027-03-28T02:00', 'Europe/Brussels'],
    ['its last second', '2027-03-28T02:59:59', 'Europe/Brussels'],
    ['the hour that comes twice', '2026-10-25T02:30', 'Europe/Brussels'],
    ['its first minute', '2026-10-25T02:00', 'Europe/Brussels'],
    ['its last second', '2026-10-25T02:59:59', 'Europe/Brussels'],
    ['a midnight that is skipped', '2018-11-04', 'America/Sao_Paulo'],
    ['a day that is skipped', '2011-12-30T12:00', 'Pacific/Apia'],
    ['30 February', '2027-02-30T10:00', 'UTC'],
    ['month 13', '2026-13-01T10:00', 'UTC'],
    ['hour 24', '2026-12-01T24:00', 'UTC'],
    ['minute 60', '2026-12-01T10:60', 'UTC'],
  ])('%s is refused: %s in %s', async (_, text, zone) => {
    const failure = await failureOf(() => at(text, zone));
    expect(failure.code).toBe('usage');
    expect(failure.message).toMatch(/^There is no day or time |does not exist, or exists twice, in /);
    expect(failure.facts.fix).toBe('slices-conn help times');
  });

  test.each([
    ['2026-10-25T02:30', 'Give an offset: 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00.'],
    ['2027-03-28T02:30', 'Give an offset: 2027-03-28T01:30:00+01:00 or 2027-03-28T03:30:00+02:00.'],
  ])('the refusal of %s names the instants that can be meant', async (text, advice) => {
    const { facts } = await failureOf(() => at(text, 'Europe/Brussels'));
    expect(facts.why).toContain(advice);
    for (const instant of advice.match(/\d{4}-\S+\d/g) ?? []) expect(at(instant)).toBeGreaterThan(0);
  });

  test.each([
    ['2027-03-28T01:59:59', '2027-03-28T00:59:59.000Z'],
    ['2027-03-28T03:00', '2027-03-28T01:00:00.000Z'],
    ['2026-10-25T01:59:59', '2026-10-24T23:59:59.000Z'],
    ['2026-10-25T03:00', '2026-10-25T02:00:00.000Z'],
  ])('a time beside such an hour is accepted: %s', async (text, instant) => {
    expect(iso(text, 'Europe/Brussels')).toBe(instant);
  });
});

describe('a time of day or a weekday without a date', () => {
  // NOW is a Sunday: 12:00 UTC, 13:00 in Brussels.
  test.each([
    ['14:00', 'UTC', '2026-11-01T14:00'],
    ['14:00', 'Europe/Brussels', '2026-11-01T13:00'],
    ['13:30', 'Europe/Brussels', '2026-11-01T12:30'],
    ['13:00', 'Europe/Brussels', '2026-11-02T12:00'],
    ['9:00', 'Europe/Brussels', '2026-11-02T08:00'],
    ['12:00:01', 'UTC', '2026-11-01T12:00:01'],
    ['monday 14:00', 'Europe/Brussels', '2026-11-02T13:00'],
    ['Mon 14:00', 'Europe/Brussels', '2026-11-02T13:00'],
    ['saturday  9:00', 'Europe/Brussels', '2026-11-07T08:00'],
    ['sunday 14:00', 'Europe/Brussels', '2026-11-01T13:00'],
    ['sunday 11:00', 'Europe/Brussels', '2026-11-08T10:00'],
    ['wednesday', 'Europe/Brussels', '2026-11-03T23:00'],
    ['2026-12-01 10:00Z', 'Europe/Brussels', '2026-12-01T10:00'],
  ])('%s in %s is %s', (text, zone, instant) => {
    expect(at(text, zone)).toBe(Date.parse(`${instant}Z`));
  });

  test('the next 02:30 is tomorrow’s where today has none', async () => {
    expect(iso('02:30', 'Europe/Brussels', Date.UTC(2027, 2, 28, 10))).toBe('2027-03-29T00:30:00.000Z');
  });

  test('where it is looked for in the past, it is the last one', async () => {
    const past = (text: string) => parsePastTime(text, { now: NOW, zone: 'UTC' });
    expect(await past('14:00')).toBe(NOW - 22 * HOUR);
    expect(await past('monday 12:00')).toBe(NOW - 6 * DAY);
    expect(await past('11:00')).toBe(NOW - HOUR);
  });
});

describe('text that is not a time', () => {
  test.each([
    '',
    ' ',
    'soon',
    'yesterday 10:00',
    '25:00:00:00',
    'someday 10:00',
    '2026-12-1T10:00:00Z',
    '2026-02-30T10:00:00Z',
    '2026-12-01T24:00:00Z',
    '01/12/2026',
    '1 December 26',
    'friday monday',
    'friday 4',
    '4 dec 5',
    'next 14:00',
    'next week',
    '9',
    '9:00 10:00',
    'tomorrow 09:00 Brussels',
    'tomorrow at 9',
    // Three zones, one of which the platform knows.
    'tomorrow 09:00 BST',
    'tomorrow 09:00 +530',
    '2026-12-01T10:00:00Z[UTC]',
    '20261201T100000Z',
    '1796119200',
    '10000-01-01T00:00:00Z',
    '1969-12-31T23:59:59Z',
    '-2h',
    '2h',
    '+',
    '+0m',
    '+2',
    'now+2h',
  ])('%j is refused as usage', async (text) => {
    expect((await failureOf(() => at(text, 'UTC'))).code).toBe('usage');
  });

  test('the advice says how times are written, and books nothing', async () => {
    expect((await failureOf(() => at('soon'))).facts.fix).toBe('slices-conn help times');
  });

  test.each(['+99999999d', '+3000000d'])(
    '%s is refused: its year has more than four digits',
    async (text) => {
      expect((await failureOf(() => at(text))).code).toBe('usage');
    },
  );
});

describe('what could mean two things is refused with what was probably meant', () => {
  test.each([
    ['14:00-16:00', 'two times: --start 14:00 --end 16:00.'],
    ['14:00 -16:00', 'two times: --start 14:00 --end 16:00.'],
    ['2pm – 4pm', 'two times: --start 2pm --end 4pm.'],
    ['14:00 to 16', 'two times: --start 14:00 --end 16.'],
    ['2026-12-01T14:00-16:00', "--start '2026-12-01 14:00' --end '2026-12-01 16:00'."],
    ['09:00-11:00', "--start 09:00 --end 11:00. Where -11:00 is an offset, write '09:00 UTC-11:00'."],
    ['2026-12-01-09:00', "Write '2026-12-01 09:00'."],
    ['2026-12-01 +09:00', "Write '2026-12-01 09:00'."],
    ['friday midnight', "write 'friday 00:00' or 'saturday 00:00'"],
    [
      '2027-07-04 09:00 CET',
      "CET is not a zone that is read. Write its offset, as '2027-07-04 09:00 +01:00'",
    ],
    ['09:00 EST', "EST is not a zone that is read. Write its offset, as '09:00 +01:00', or its IANA name"],
    ['9am PST', 'PST is not'],
    ['09:00CEST', 'CEST is not'],
    ['09:00 GMT+1', 'GMT+1 is not'],
    ['tomorrow 09:00 Brussels', "as 'tomorrow 09:00 Europe/Brussels'"],
    ['2026-12-01T14:00:00-16:00', 'Write it as'],
    ['14:00 +14:30', 'Write it as'],
  ])('%s: %s', async (text, advice) => {
    const context = { now: NOW, zone: 'Europe/Brussels', advice: adviceOnTime };
    const { code, facts } = await failureOf(() => parseTime(text, context));
    expect([code, facts.why]).toEqual(['usage', expect.stringContaining(advice)]);
  });

  test('the letters of the own zone are read as it: so they are printed', () => {
    expect(iso('2027-07-04 09:00 CET', 'CET')).toBe('2027-07-04T07:00:00.000Z');
  });

  test('a reader may name the two in its own words', () => {
    expect(adviceOnTime('14:00-16:00', ['start:', 'end:'])).toContain('start: 14:00 end: 16:00');
  });
});

describe('a day as people write it', () => {
  // NOW is a Sunday: 12:00 UTC, 13:00 in Brussels.
  test.each([
    ['Fri 4 Dec 09:00', '2026-12-04T08:00'],
    ['4 dec 09:00', '2026-12-04T08:00'],
    ['december 4th, 2026 at 9am', '2026-12-04T08:00'],
    ['4 Dec 2027 09:00', '2027-12-04T08:00'],
    ['9am fri 4 dec', '2026-12-04T08:00'],
    ['Fri 2026-12-04 09:00', '2026-12-04T08:00'],
    ['1 nov 09:00', '2026-11-01T08:00'],
    ['31 oct 09:00', '2027-10-31T08:00'],
    ['29 feb 09:00', '2028-02-29T08:00'],
    ['next friday 9:00', '2026-11-06T08:00'],
    ['next sunday 18:00', '2026-11-08T17:00'],
    ['friday next week', '2026-11-05T23:00'],
    ['next week friday 12:00', '2026-11-06T11:00'],
    ['sunday of next week 12:00', '2026-11-08T11:00'],
    ['monday next week 12:00', '2026-11-02T11:00'],
    ['noon', '2026-11-02T11:00'],
    ['midnight', '2026-11-01T23:00'],
    ['midnight UTC', '2026-11-02T00:00'],
    ['tomorrow noon', '2026-11-02T11:00'],
    ['9am', '2026-11-02T08:00'],
    ['9:30 pm', '2026-11-01T20:30'],
    ['tomorrow 12am', '2026-11-01T23:00'],
    ['12pm friday', '2026-11-06T11:00'],
    ['in 2 h', '2026-11-01T14:00'],
    ['in 1 d 1 h', '2026-11-02T13:00'],
    ['3 d ago', '2026-10-29T12:00'],
  ])('%s is %s UTC, in Brussels', (text, instant) => {
    expect(at(text, 'Europe/Brussels')).toBe(Date.parse(`${instant}Z`));
  });

  test.each([
    ['Sun 1 Nov 14:00 Europe/Brussels (in 2 h)', '2026-11-01T13:00'],
    ['Sun 1 Nov 14:00:30 europe/brussels', '2026-11-01T13:00:30'],
    ['tomorrow 09:00 UTC', '2026-11-02T09:00'],
    ['tomorrow 09:00 GMT', '2026-11-02T09:00'],
    ['tomorrow 09:00 z', '2026-11-02T09:00'],
    ['2026-12-01T10:00:00 UTC', '2026-12-01T10:00'],
    ['2026-12-01 10:00 +05:30', '2026-12-01T04:30'],
    ['2026-12-01 10:00 +0530', '2026-12-01T04:30'],
    ['2026-12-01 10:00 -03', '2026-12-01T13:00'],
    ['tomorrow 09:00 UTC-0330', '2026-11-02T12:30'],
    ['Sun 25 Oct 2026 02:30 (UTC+2)', '2026-10-25T00:30'],
    ['Sun 25 Oct 2026 02:30 (UTC+1)', '2026-10-25T01:30'],
    ['14:00 -03:30', '2026-11-01T17:30'],
  ])('the zone that is written beside it decides: %s', (text, instant) => {
    expect(at(text, 'Asia/Tokyo')).toBe(Date.parse(`${instant}Z`));
  });

  test.each([
    ['Fri 5 Dec 09:00', '5 Dec 2026 is a Saturday, not a Friday.'],
    ['Mon 31 Oct', '31 Oct 2027 is a Sunday, not a Monday.'],
    ['monday 2026-12-04', '4 Dec 2026 is a Friday, not a Monday.'],
  ])('a weekday that is not the date’s is refused: %s', async (text, message) => {
    expect(await failureOf(() => at(text))).toMatchObject({
      code: 'usage',
      message,
    });
  });

  test.each([
    ['friday', '2026-11-07'],
    ['sunday', '2026-11-02'],
    ['next sunday', '2026-11-09'],
    ['next friday', '2026-11-07'],
    ['today', '2026-11-02'],
    ['2026-12-04', '2026-12-05'],
    ['4 dec', '2026-12-05'],
    ['friday next week', '2026-11-07'],
    ['friday 00:00', '2026-11-06'],
  ])('as an end, a day without a time is through that day: %s', (text, midnight) => {
    expect(at(text, 'UTC', NOW, { isEnd: true })).toBe(Date.parse(`${midnight}T00:00Z`));
  });

  test.each([
    ['2018-11-03', 'America/Sao_Paulo', '2018-11-04T03:00'],
    ['2026-10-31', 'America/Havana', '2026-11-01T04:00'],
  ])('also where clocks change at its end: %s in %s', (text, zone, instant) => {
    expect(at(text, zone, NOW, { isEnd: true })).toBe(Date.parse(`${instant}Z`));
  });

  test('a time of day may be on a given day', () => {
    const on = Date.UTC(2026, 11, 4, 9);
    expect(at('10:00', 'UTC', NOW, { on })).toBe(on + HOUR);
    expect(at('tomorrow 10:00', 'UTC', NOW, { on })).toBe(NOW + 22 * HOUR);
  });
});

describe('a past time', () => {
  const past = (text: string) => parsePastTime(text, { now: NOW, zone: 'UTC' });

  test.each([
    ['2d', NOW - 2 * 86_400_000],
    ['1h30m', NOW - 5_400_000],
    ['99999w', 0],
    ['now', NOW],
    ['+1h', NOW + 3_600_000],
    ['2026-10-01T00:00Z', Date.UTC(2026, 9, 1)],
  ])('%s', (text, instant) => {
    expect(past(text)).toBe(instant);
  });
});
