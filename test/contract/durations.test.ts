import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseDuration } from '../../src/contract/amounts.ts';
import { DAY, formatDuration, HOUR, MINUTE, SECOND, secondsIn } from '../../src/contract/durations.ts';
import { failureOf } from '../fixtures/failures.ts';

const EACH = 9 * DAY + 3 * HOUR + 4 * MINUTE + 5 * SECOND;

test.each<[number, ...string[]]>([
  [SECOND, '1s'],
  [1500, 'PT1.5S'],
  [30 * MINUTE, '0h30m'],
  [90 * MINUTE, '90m', 'PT90M', 'pt90m', '90 min', '90 MIN', '90 Minutes', '1.5h', '1h30', '1H30'],
  [2 * HOUR, '2h', '2H', ' 2h ', '2 hours'],
  [150 * MINUTE, '2h30m', '2,5 hours'],
  [HOUR + 90 * SECOND, '1h 1.5 min'],
  [11 * HOUR + 6 * MINUTE, '11 h 6 min'],
  [DAY + 2 * HOUR, 'P1DT2H', '1 d  2 h'],
  [3 * DAY, '3d', 'P3D', 'p3d'],
  [7 * DAY, '1w', 'P1W'],
  [EACH, '1w2d3h4m5s', '1 Week 2 Days 3 hrs 4 mins 5 secs'],
])('%i ms is read from %s', (milliseconds, ...texts) => {
  for (const text of texts) expect([text, parseDuration(text)]).toEqual([text, milliseconds]);
});

const BOTH = 'write 1500 s or 1.500 s.';
const FORM = 'Write it as 90m, 2h, 2h30m, 3d, 1w or P3D.';
test.each<[what: string, why: string, ...texts: string[]]>([
  ['a number or a unit that is missing', FORM, '', '2', 'h', '1.h', 'P', 'PT', 'P2H'],
  ['a fraction before another unit, or of another unit', FORM, '1.5h 30m', 'PT1.5H'],
  ['a sign', FORM, '-2h', '+2h'],
  ['two readings', `A comma before three digits may part thousands or a fraction: ${BOTH}`, '1,500 s'],
  ['another form', FORM, '02:00', 'two hours', '٢h', '30m2h', '2h2h', '1y', 'P1Y'],
  ['more than a number can say exactly', FORM, '99999999999999999w'],
  ['what may be months', '1m is a minute; write 30d for a month.', '1M', '30 M', '1h30M', 'P1M', '1mo'],
  ['less than 1 s', 'It must be at least 1 s.', '0m', 'PT0S', 'PT0.9S'],
])('%s is refused as usage: %s', async (_, why, ...texts) => {
  for (const text of texts) {
    const { code, message, facts } = await failureOf(() => parseDuration(text));
    expect([code, message]).toEqual(['usage', expect.stringContaining(JSON.stringify(text))]);
    expect(facts).toEqual({ why, fix: 'slices-conn help times' });
  }
});

test.each<[number, string]>([
  [-5000, '0 s'],
  [499, '0 s'],
  [SECOND, '1 s'],
  [59_499, '59 s'],
  [59_500, '1 min'],
  [9_000_000, '2 h 30 min'],
  [2 * HOUR + 59 * SECOND, '2 h'],
  [DAY + HOUR + MINUTE, '1 d 1 h'],
  [DAY + MINUTE, '1 d'],
  [400 * DAY, '400 d'],
])('%i ms are written as %s', (milliseconds, text) => {
  expect(formatDuration(milliseconds)).toBe(text);
});

test('what is written can be typed, and differs by less than one of the unit below its largest', () => {
  const below: Readonly<Record<string, number>> = { d: HOUR, h: MINUTE, min: SECOND, s: SECOND };
  fc.assert(
    fc.property(fc.integer({ min: SECOND, max: 1000 * DAY }), (milliseconds) => {
      const text = formatDuration(milliseconds);
      const [, largest = ''] = text.split(' ');
      expect(Math.abs(milliseconds - parseDuration(text))).toBeLessThan((below[largest] ?? 0) + 500);
    }),
  );
});

test('seconds are a number or a duration, and nothing else', () => {
  const read = ['90', '0', '0.5', '.5', '5m', '1h30m', 'PT5M'].map(secondsIn);
  expect(read).toEqual([90, 0, 0.5, 0.5, 300, 5400, 300]);
  for (const text of ['', '-5', '1e3', 'soon']) expect(secondsIn(text)).toBeNaN();
});
