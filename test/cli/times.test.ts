import { describe, expect, test } from 'vitest';
import { formatTime, parsePastTime, parseTime } from '../../src/cli/times.ts';
import { failureOf } from '../fixtures/failures.ts';
import { NOW } from '../fixtures/tokens.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Reads a time at {@link NOW}, 2026-11-01T12:00:00Z. */
const at = (text: string, zone?: string, now = NOW) => parseTime(text, { now, zone });
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
    expect(failure.message).toContain('does not exist, or exists twice');
    expect(failure.message).toContain(zone);
    expect(failure.facts.fix).toMatch(/offset/);
  });

  test.each([
    ['2027-03-28T01:59:59', '2027-03-28T00:59:59.000Z'],
    ['2027-03-28T03:00', '2027-03-28T01:00:00.000Z'],
    ['2026-10-25T01:59:59', '2026-10-24T23:59:59.000Z'],
    ['2026-10-25T03:00', '2026-10-25T02:00:00.000Z'],
  ])('a time beside such an hour is accepted: %s', async (text, instant) => {
    expect(await iso(text, 'Europe/Brussels')).toBe(instant);
  });

  test.each(['Nowhere/City', 'Europe', '', ':/etc/localtime', 'CEST+'])(
    'the zone %j is refused',
    async (zone) => {
      const failure = await failureOf(() => at('2026-12-01T10:00', zone));
      expect(failure.code).toBe('usage');
      expect(failure.message).toBe(`${JSON.stringify(zone)} is not a time zone.`);
    },
  );

  test.each(['2026-12-01T10:00', '2026-12-01T10:00:00', '2026-12-01 10:00', '2026-12-01', 'tomorrow 09:00'])(
    'without a zone %s is refused, and the message names --tz',
    async (text) => {
      const failure = await failureOf(() => at(text));
      expect(failure.code).toBe('usage');
      expect(failure.facts.why).toContain('--tz');
      expect(failure.facts.fix).toBe('--tz Europe/Brussels');
    },
  );
});

describe('text that is not a time', () => {
  test.each([
    '',
    ' ',
    'soon',
    'yesterday 10:00',
    '10:00',
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

  test('the advised time is accepted', async () => {
    const { facts } = await failureOf(() => at('soon'));
    const [flag, text = ''] = (facts.fix ?? '').split(' ');
    expect(flag).toBe('--start');
    expect(await at(text)).toBe(NOW + HOUR);
  });

  test.each(['+99999999d', '+3000000d'])(
    '%s is refused: its year has more than four digits',
    async (text) => {
      expect((await failureOf(() => at(text))).code).toBe('usage');
    },
  );
});

describe('formatTime', () => {
  test.each<[number, string]>([
    [0, '2026-11-01T12:00:00.000Z (now)'],
    [999, '2026-11-01T12:00:00.999Z (now)'],
    [-999, '2026-11-01T11:59:59.001Z (now)'],
    [SECOND, '2026-11-01T12:00:01.000Z (in 1 s)'],
    [2 * HOUR, '2026-11-01T14:00:00.000Z (in 2 h)'],
    [9_000_000, '2026-11-01T14:30:00.000Z (in 2 h 30 min)'],
    [-3 * DAY, '2026-10-29T12:00:00.000Z (3 d ago)'],
  ])('%i ms from now', (distance, text) => {
    expect(formatTime(NOW + distance, NOW)).toBe(text);
  });
});

describe('a time printed in the reader’s zone', () => {
  const TEN = Date.UTC(2026, 11, 1, 10);
  test.each<[string | undefined, number, string]>([
    [undefined, TEN, '2026-12-01T10:00:00.000Z (in 2 h)'],
    ['UTC', TEN, '2026-12-01T10:00:00.000Z (in 2 h)'],
    ['Etc/UTC', TEN, '2026-12-01T10:00:00.000Z (in 2 h)'],
    ['Europe/Brussels', TEN, '2026-12-01T10:00:00.000Z (11:00 Europe/Brussels, in 2 h)'],
    [
      'Pacific/Auckland',
      TEN + 7_200_000,
      '2026-12-01T12:00:00.000Z (2026-12-02 01:00 Pacific/Auckland, in 4 h)',
    ],
    ['America/New_York', TEN - 7_200_000, '2026-12-01T08:00:00.000Z (03:00 America/New_York, now)'],
    [':/etc/localtime', TEN, '2026-12-01T10:00:00.000Z (in 2 h)'],
  ])('%s', (zone, instant, told) => {
    expect(formatTime(instant, TEN - 7_200_000, zone)).toBe(told);
  });
});

describe('a past time', () => {
  const past = (text: string) => parsePastTime(text, { now: NOW, zone: undefined }, '--since');

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

  test('the refusal names its own flag, and the advised time is accepted', async () => {
    const { facts } = await failureOf(() => past('yesterday'));
    expect(facts.fix).toBe('--since 2d');
    expect(await past('2d')).toBeLessThan(NOW);
  });
});
