import { describe, expect, test } from 'vitest';
import {
  chooseZone,
  endAside,
  formatDistance,
  shortEnd,
  shortTime,
  timeTeller,
} from '../../src/cli/times.ts';
import { DAY, HOUR, SECOND } from '../../src/contract/durations.ts';
import { parseTime } from '../../src/words/typed-time.ts';
import { failureOf } from '../fixtures/failures.ts';
import { NOW } from '../fixtures/tokens.ts';

describe('a time for people', () => {
  const context = { now: NOW, zone: 'Europe/Brussels' };

  test.each<[string, string, string]>([
    ['2026-11-22T13:00:59.999Z', 'Europe/Brussels', 'Sun 22 Nov 14:00'],
    ['2026-11-22T23:30:00Z', 'Asia/Tokyo', 'Mon 23 Nov 08:30'],
    ['2026-09-01T22:00:00Z', 'Europe/Brussels', 'Wed 2 Sep 00:00'],
    ['2026-12-31T23:30:00Z', 'Europe/Brussels', 'Fri 1 Jan 2027 00:30'],
  ])('%s in %s is %s', (instant, zone, text) => {
    expect(shortTime(Date.parse(instant), { now: NOW, zone })).toBe(text);
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

  test.each<[string, string]>([
    ['2026-12-04T23:00:00Z', 'through Fri 4 Dec, for 3 d'],
    ['2026-12-04T23:00:00.001Z', 'for 3 d'],
    ['2026-12-04T22:59:59.999Z', 'for 3 d'],
  ])('an end as a day begins is through the day before: %s', (end, text) => {
    expect(endAside(Date.parse(end), 'for 3 d', context)).toBe(text);
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
    [undefined, 'europe/brussels', 'Europe/Brussels'],
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
