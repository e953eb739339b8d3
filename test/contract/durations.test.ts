import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DAY, formatDuration, HOUR, MINUTE, SECOND, secondsIn } from '../../src/contract/durations.ts';
import { parseDuration } from '../../src/contract/typed-duration.ts';
import { failureOf } from '../fixtures/failures.ts';

describe('parseDuration', () => {
  test.each<[string, number]>([
    ['1s', SECOND],
    ['90m', 90 * MINUTE],
    ['2h', 2 * HOUR],
    ['2H', 2 * HOUR],
    ['2h30m', 9_000_000],
    ['3d', 3 * DAY],
    ['1w', 7 * DAY],
    ['1w2d3h4m5s', 9 * DAY + 3 * HOUR + 4 * MINUTE + 5 * SECOND],
    ['0h30m', 30 * MINUTE],
    [' 2h ', 2 * HOUR],
    ['P3D', 3 * DAY],
    ['p3d', 3 * DAY],
    ['P1W', 7 * DAY],
    ['PT90M', 90 * MINUTE],
    ['PT30S', 30 * SECOND],
    ['PT1.5S', 1500],
    ['P1DT2H', DAY + 2 * HOUR],
    ['90 min', 90 * MINUTE],
    ['11 h 6 min', 11 * HOUR + 6 * MINUTE],
    ['1.5h', 90 * MINUTE],
    ['2,5 hours', 150 * MINUTE],
    ['1h 1.5 min', HOUR + 90 * SECOND],
    ['1h30', 90 * MINUTE],
    ['2 hours', 2 * HOUR],
    ['1 Week 2 Days 3 hrs 4 mins 5 secs', 9 * DAY + 3 * HOUR + 4 * MINUTE + 5 * SECOND],
    ['1 d  1 h', DAY + HOUR],
  ])('%s', (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds);
  });

  test.each([
    ['nothing', ''],
    ['no unit', '2'],
    ['no number', 'h'],
    ['a fraction before another unit', '1.5h 30m'],
    ['grouped digits', '1,500 s'],
    ['a point without digits', '1.h'],
    ['a sign', '-2h'],
    ['a plus', '+2h'],
    ['months, which have no fixed length', '1mo'],
    ['years', '1y'],
    ['ISO months', 'P1M'],
    ['ISO years', 'P1Y'],
    ['an ISO fraction', 'PT1.5H'],
    ['minutes before hours', '30m2h'],
    ['a unit twice', '2h2h'],
    ['an ISO time without T', 'P2H'],
    ['a time of day', '02:00'],
    ['a word', 'two hours'],
    ['nothing at all, with a unit', '0m'],
    ['ISO nothing', 'P'],
    ['ISO nothing with T', 'PT'],
    ['ISO zero', 'PT0S'],
    ['digits that are not ASCII', '٢h'],
    ['longer than a number can say exactly', '99999999999999999w'],
  ])('%s is refused as usage', async (_, text) => {
    const failure = await failureOf(() => parseDuration(text));
    expect(failure.code).toBe('usage');
    expect(failure.message).toContain(JSON.stringify(text));
    expect(failure.facts.fix).toBe('slices-conn help times');
  });

  test.each(['1M', '30 M', '1h30M', '2H30M', 'P1M', '1mo'])('%s may be months', async (text) => {
    const { facts } = await failureOf(() => parseDuration(text));
    expect(facts.why).toBe('1m is a minute; write 30d for a month.');
  });

  test.each(['90 MIN', '90 Minutes', 'PT90M', 'pt90m', '1H30'])('%s are 90 minutes', (text) => {
    expect(parseDuration(text)).toBe(90 * MINUTE);
  });

  test.each(['0m', 'PT0S', 'PT0.9S'])('%s is refused for being zero', async (text) => {
    expect((await failureOf(() => parseDuration(text))).facts.why).toBe('It must be at least 1 s.');
  });

  test('a duration that is too long is not refused for being zero', async () => {
    const { facts } = await failureOf(() => parseDuration('99999999w'));
    expect(facts.why).not.toContain('longer than nothing');
  });
});

describe('formatDuration', () => {
  test.each<[number, string]>([
    [0, '0 s'],
    [-5000, '0 s'],
    [499, '0 s'],
    [SECOND, '1 s'],
    [59_499, '59 s'],
    [59_500, '1 min'],
    [90 * SECOND, '1 min 30 s'],
    [9_000_000, '2 h 30 min'],
    [2 * HOUR + 59 * SECOND, '2 h'],
    [DAY, '1 d'],
    [DAY + HOUR + MINUTE, '1 d 1 h'],
    [DAY + MINUTE, '1 d'],
    [400 * DAY, '400 d'],
  ])('%i ms are written as %s', (milliseconds, text) => {
    expect(formatDuration(milliseconds)).toBe(text);
  });

  test('rounds by less than one of the unit below its largest', () => {
    const below: Readonly<Record<string, number>> = { d: HOUR, h: MINUTE, min: SECOND, s: SECOND };
    fc.assert(
      fc.property(fc.integer({ min: SECOND, max: 1000 * DAY }), (milliseconds) => {
        const text = formatDuration(milliseconds);
        const [, largest = ''] = text.split(' ');
        const shown = parseDuration(text);
        expect(Math.abs(milliseconds - shown)).toBeLessThan((below[largest] ?? 0) + 500);
      }),
    );
  });
});

test.each<[string, number]>([
  ['90', 90],
  ['0', 0],
  ['0.5', 0.5],
  ['.5', 0.5],
  ['5m', 300],
  ['1h30m', 5400],
  ['PT5M', 300],
  ['', Number.NaN],
  ['-5', Number.NaN],
  ['1e3', Number.NaN],
  ['soon', Number.NaN],
])('secondsIn(%j) is %d', (text, seconds) => {
  expect(secondsIn(text)).toBe(seconds);
});
