import { describe, expect, test } from 'vitest';
import {
  chooseZone,
  formatDistance,
  parsePastTime,
  parseTime,
  shortEnd,
  shortTime,
  timeTeller,
} from '../../src/cli/times.ts';
import { failureOf } from '../fixtures/failures.ts';
import { NOW } from '../fixtures/tokens.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Reads a time at {@link NOW}, 2026-11-01T12:00:00Z. */
const at = (text: string, zone = 'UTC', now = NOW) => parseTime(text, { now, zone });
const iso = async (text: string, zone?: string, now?: number) =>
  new Date(await at(text, zone, now)).toISOString();

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
  ])('%s is 10:00 UTC in every zone', async (text) => {
    expect(await iso(text)).toBe('2026-12-01T10:00:00.000Z');
    expect(await iso(text, 'Asia/Tokyo')).toBe('2026-12-01T10:00:00.000Z');
  });

  test('milliseconds are kept', async () => {
    expect(await iso('2026-12-01T10:00:00.123Z')).toBe('2026-12-01T10:00:00.123Z');
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
    expect(await at(text)).toBe(NOW + distance);
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
    ['2026-12-01', 'Europe/Brussels', '2026-11-30T23:00:00.000Z'],
    ['today 18:00', 'Europe/Brussels', '2026-11-01T17:00:00.000Z'],
    ['Today 18:00', 'Europe/Brussels', '2026-11-01T17:00:00.000Z'],
    ['tomorrow 09:00', 'Europe/Brussels', '2026-11-02T08:00:00.000Z'],
    ['TOMORROW 09:00', 'Europe/Brussels', '2026-11-02T08:00:00.000Z'],
    ['tomorrow', 'Europe/Brussels', '2026-11-01T23:00:00.000Z'],
  ])('%s in %s is %s', async (text, zone, instant) => {
    expect(await iso(text, zone)).toBe(instant);
  });

  test.each([
    ['in the zone it is the 2nd already', 'Asia/Tokyo', '2026-11-03T00:00:00.000Z'],
    ['in the zone it is still the 1st', 'America/New_York', '2026-11-02T14:00:00.000Z'],
  ])('today and tomorrow are the zone’s own days: %s', async (_, zone, instant) => {
    expect(await iso('tomorrow 09:00', zone, Date.UTC(2026, 10, 1, 23))).toBe(instant);
  });

  test('tomorrow at nine is at nine when the clocks change in between', async () => {
    expect(await iso('tomorrow 09:00', 'Europe/Brussels', Date.UTC(2027, 2, 27, 12))).toBe(
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
    for (const instant of advice.match(/\d{4}-\S+\d/g) ?? []) expect(await at(instant)).toBeGreaterThan(0);
  });

  test.each([
    ['2027-03-28T01:59:59', '2027-03-28T00:59:59.000Z'],
    ['2027-03-28T03:00', '2027-03-28T01:00:00.000Z'],
    ['2026-10-25T01:59:59', '2026-10-24T23:59:59.000Z'],
    ['2026-10-25T03:00', '2026-10-25T02:00:00.000Z'],
  ])('a time beside such an hour is accepted: %s', async (text, instant) => {
    expect(await iso(text, 'Europe/Brussels')).toBe(instant);
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
  ])('%s in %s is %s', async (text, zone, instant) => {
    expect(await at(text, zone)).toBe(Date.parse(`${instant}Z`));
  });

  test('the next 02:30 is tomorrow’s where today has none', async () => {
    expect(await iso('02:30', 'Europe/Brussels', Date.UTC(2027, 2, 28, 10))).toBe('2027-03-29T00:30:00.000Z');
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
    '1 December 2026',
    'tomorrow at 9',
    'tomorrow 09:00 UTC',
    '2026-12-01T10:00:00 UTC',
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

describe('a time for people', () => {
  const context = { now: NOW, zone: 'Europe/Brussels' };

  test.each<[string, string, string]>([
    ['2026-11-22T13:00:59.999Z', 'Europe/Brussels', 'Sun 22 Nov 14:00'],
    ['2026-11-22T13:00:00Z', 'UTC', 'Sun 22 Nov 13:00'],
    ['2026-11-22T23:30:00Z', 'Asia/Tokyo', 'Mon 23 Nov 08:30'],
    ['2026-09-01T22:00:00Z', 'Europe/Brussels', 'Wed 2 Sep 00:00'],
    ['2026-12-31T23:30:00Z', 'Europe/Brussels', 'Fri 1 Jan 2027 00:30'],
  ])('%s in %s is %s', (instant, zone, text) => {
    expect(shortTime(Date.parse(instant), { now: NOW, zone })).toBe(text);
  });

  test('UTC, which needs no formatter, reads as the zone Etc/GMT, which has one', () => {
    for (const instant of [0, NOW, NOW + 61 * DAY + 5 * MINUTE, Date.parse('2028-02-29T23:59:59Z')]) {
      const inUtc = shortTime(instant, { now: NOW, zone: 'UTC' });
      expect(inUtc).toBe(shortTime(instant, { now: NOW, zone: 'Etc/GMT' }));
    }
  });

  test.each<[number, string]>([
    [0, 'now'],
    [-999, 'now'],
    [SECOND, 'in 1 s'],
    [9_000_000, 'in 2 h 30 min'],
    [-3 * DAY, '3 d ago'],
  ])('%i ms from now is %s', (distance, text) => {
    expect(formatDistance(NOW + distance, NOW)).toBe(text);
  });

  test('the zone stands beside the first one only', () => {
    const tell = timeTeller(context);
    expect(tell(NOW + 2 * HOUR)).toBe('Sun 1 Nov 15:00 Europe/Brussels (in 2 h)');
    expect(tell(NOW + 4 * HOUR)).toBe('Sun 1 Nov 17:00 (in 4 h)');
    expect(tell(NOW + 4 * HOUR, 'for 2 h')).toBe('Sun 1 Nov 17:00 (for 2 h)');
  });

  test.each<[number, string]>([
    [NOW + 2 * HOUR, '15:00'],
    [NOW + DAY, 'Mon 2 Nov 13:00'],
    // In UTC it is the same day.
    [NOW + 11 * HOUR, 'Mon 2 Nov 00:00'],
  ])('an end on the day of its start is a time of day: %i is %s', (end, text) => {
    expect(shortEnd(NOW, end, context)).toBe(text);
  });
});

describe('the time zone', () => {
  const system = () => 'Europe/Athens';
  test.each<[string | undefined, string | undefined, string]>([
    ['Asia/Tokyo', 'Europe/Brussels', 'Asia/Tokyo'],
    ['asia/tokyo', undefined, 'Asia/Tokyo'],
    ['CET', undefined, 'CET'],
    ['+02:00', undefined, '+02:00'],
    ['Etc/UTC', undefined, 'UTC'],
    [undefined, 'Europe/Brussels', 'Europe/Brussels'],
    [undefined, ':Europe/Brussels', 'Europe/Brussels'],
    [undefined, '/usr/share/zoneinfo/Europe/Brussels', 'Europe/Brussels'],
    [undefined, ':/etc/localtime', 'Europe/Athens'],
    [undefined, 'UTC0', 'UTC'],
    [undefined, '', 'Europe/Athens'],
    [undefined, undefined, 'Europe/Athens'],
  ])('chosen %j, TZ=%j: %s', (chosen, variable, zone) => {
    expect(chooseZone({ chosen, variable, system })).toEqual({ zone });
  });

  test.each(['Nowhere/City', 'Europe', 'CEST+', '/etc/passwd', 'CET-1CEST'])(
    'TZ=%j is no zone: times are in UTC, and a time without an offset is refused',
    async (variable) => {
      const zone = chooseZone({ chosen: undefined, variable, system });
      expect(zone).toEqual({ zone: 'UTC', faultyZone: variable });
      const failure = await failureOf(() => parseTime('14:00', { now: NOW, ...zone }));
      expect(failure).toMatchObject({
        code: 'usage',
        message: `TZ is ${JSON.stringify(variable)}, which is not a time zone.`,
      });
      expect(await parseTime('+2h', { now: NOW, ...zone })).toBe(NOW + 2 * HOUR);
    },
  );
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
  ])('%s', async (text, instant) => {
    expect(await past(text)).toBe(instant);
  });
});
