import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { timeWord } from '../../src/cli/reservation/alternatives.ts';
import { formatDistance, shortTime, shortTimes, timesIn, timeTeller } from '../../src/cli/times.ts';
import {
  bandwidthWord,
  formatBandwidth,
  formatVolume,
  MAX_BANDWIDTH,
  parseBandwidth,
  parseDuration,
  parseVolume,
} from '../../src/contract/amounts.ts';
import {
  DAY,
  durationWord,
  formatDuration,
  HOUR,
  isoDuration,
  MINUTE,
  SECOND,
} from '../../src/contract/durations.ts';
import { formatInstant } from '../../src/contract/instants.ts';
import { timesIn as pageTimes } from '../../src/page/timeline/words.ts';
import { wallText } from '../../src/page/words.ts';
import { clockOf } from '../../src/words/civil-time.ts';
import { parsePastTime, parseTime, type TimeContext } from '../../src/words/typed-time.ts';

/** With offsets of quarters, changes by half an hour, at midnight, on the other side of the year, and none. */
const ZONES = [
  ...['UTC', 'Europe/Brussels', 'America/New_York', 'America/St_Johns', 'America/Havana', 'Asia/Kathmandu'],
  ...['Australia/Lord_Howe', 'Pacific/Chatham', 'Pacific/Kiritimati', 'Africa/Casablanca'],
  ...['+05:30', '-03', '+0530'],
];
const [FROM, UNTIL] = [Date.UTC(2025, 0, 1), Date.UTC(2029, 0, 1)];

/** The instants at which a zone's clocks change. */
function changesOf(zone: string): number[] {
  const clock = clockOf(zone);
  const hours = Array.from({ length: (UNTIL - FROM) / HOUR }, (_, at) => FROM + at * HOUR);
  return hours.filter((at) => clock.offset(at - 1) !== clock.offset(at));
}

/** Instants of some years; every other one is within three hours of a change of the clock, where there is one. */
function instantsIn(zone: string): fc.Arbitrary<number> {
  const any = fc.integer({ min: FROM, max: UNTIL });
  const changes = changesOf(zone);
  if (changes.length === 0) return any;
  const near = fc
    .tuple(fc.constantFrom(...changes), fc.integer({ min: -3 * HOUR, max: 3 * HOUR }))
    .map(([change, by]) => change + by);
  return fc.oneof(any, near);
}

/** What is typed is read as a time to come or as a past one, as the instant is. */
const typed = (text: string, at: number, context: TimeContext): number =>
  at < context.now ? parsePastTime(text, context) : parseTime(text, context);

/** The printers of instants: to the minute, the second or the millisecond. */
const PRINTERS: readonly (readonly [
  name: string,
  to: number,
  print: (at: number, context: TimeContext) => string,
])[] = [
  ['shortTime', MINUTE, (at, context) => shortTime(at, context)],
  ['shortTime without weekday', MINUTE, (at, context) => shortTime(at, context, true)],
  ['timeTeller', MINUTE, (at, context) => timeTeller(context)(at)],
  ['timesIn', SECOND, (at, context) => timesIn(context).instant(at)],
  // Two days: a day of 25 hours has an end that is a day later.
  ['an end', SECOND, (at, context) => timesIn(context).ends(at - 2 * DAY, at)[1]],
  ['the page', MINUTE, (at, { zone, now }) => pageTimes({ clock: clockOf(zone), now }).instant(at)],
  ['formatInstant', 1, formatInstant],
  ['a command', 1, timeWord],
];

describe.each(ZONES)('in %s what is printed can be typed', (zone) => {
  const instants = instantsIn(zone);

  test.each(PRINTERS)('%s', (_, to, print) => {
    fc.assert(
      fc.property(instants, instants, (at, now) => {
        const context = { now, zone };
        const text = print(at, context);
        expect([text, typed(text, at, context)]).toEqual([text, Math.floor(at / to) * to]);
      }),
    );
  });

  test('the end of a period beside its start', () => {
    fc.assert(
      fc.property(instants, instants, fc.integer({ min: MINUTE, max: 3 * DAY }), (now, from, length) => {
        const [start, end] = [
          Math.floor(from / MINUTE) * MINUTE,
          Math.floor((from + length) / MINUTE) * MINUTE,
        ];
        fc.pre(start >= now);
        for (const times of [shortTimes({ now, zone }), pageTimes({ now, clock: clockOf(zone) })]) {
          const [, text] = times.ends(start, end);
          expect([text, parseTime(text, { now, zone }, { after: start })]).toEqual([text, end]);
        }
      }),
    );
  });

  test('the fields of the page', () => {
    fc.assert(
      fc.property(instants, instants, (at, now) => {
        const clock = clockOf(zone);
        const minute = Math.floor(at / MINUTE) * MINUTE;
        fc.pre(!clock.isTwice(minute));
        expect(parseTime(wallText(at, clock), { now, zone })).toBe(minute);
      }),
    );
  });
});

describe('what is printed can be typed', () => {
  const now = Date.UTC(2026, 10, 23, 15);
  const durations = fc.integer({ min: SECOND, max: 1000 * DAY });

  test('a distance', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1000 * DAY, max: 1000 * DAY }), (by) => {
        const text = formatDistance(now + by, now);
        expect(formatDistance(parseTime(text, { now, zone: 'UTC' }), now)).toBe(text);
      }),
    );
  });

  test('a duration', () => {
    fc.assert(
      fc.property(durations, (length) => {
        const text = formatDuration(length);
        expect(formatDuration(parseDuration(text))).toBe(text);
        expect(parseDuration(isoDuration(length))).toBe(length);
        const seconds = Math.floor(length / SECOND) * SECOND;
        const word = durationWord(seconds);
        expect([word, word === undefined ? seconds : parseDuration(word)]).toEqual([word, seconds]);
      }),
    );
  });

  test('a rate and a volume', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.integer({ min: 1, max: 400_000 }), fc.integer({ min: 1, max: MAX_BANDWIDTH })),
        (mbps) => {
          expect([formatBandwidth(mbps), bandwidthWord(mbps)].map(parseBandwidth)).toEqual([mbps, mbps]);
          const text = formatVolume(mbps);
          expect(formatVolume(parseVolume(text))).toBe(text);
        },
      ),
    );
  });
});
