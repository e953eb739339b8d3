import { describe, expect, test } from 'vitest';
import {
  checkPeriodChange,
  type PeriodChangeFlags,
  type PeriodFlags,
  periodToSend,
  readPeriod,
  readPeriodChange,
  readSearch,
  readWindow,
  shortfall,
} from '../../src/cli/period.ts';
import { timesIn } from '../../src/cli/times.ts';
import { LAST_INSTANT } from '../../src/contract/instants.ts';
import { inTimes } from '../../src/contract/said.ts';
import { failureOf } from '../fixtures/failures.ts';
import { NOW } from '../fixtures/tokens.ts';

const HOUR = 3_600_000;
const START = Date.UTC(2026, 11, 1, 10);
const END = START + 8 * HOUR;
const context = { now: NOW, zone: 'UTC' };
const start = '2026-12-01T10:00:00Z';
const end = '2026-12-01T18:00:00Z';

/** The period that the flags give, or the message that refuses them. */
async function outcome(work: () => unknown): Promise<unknown> {
  try {
    return await work();
  } catch {
    const failure = await failureOf(work);
    return `${failure.code}: ${failure.message}`;
  }
}

describe('a new period: every combination of its flags', () => {
  const twoHours = { start: START, end: START + 2 * HOUR };
  const whole = { start: START, end: END };
  const fromNow = { start: 'now', end: NOW + 2 * HOUR, lasting: 2 * HOUR };

  test.each<[PeriodFlags, unknown]>([
    [{ start, end }, whole],
    [{ start, for: '2h' }, twoHours],
    [{ start, end, for: '2h' }, "usage: --end and --for can't be given together."],
    [
      { start: 'now', end },
      { ...whole, start: 'now' },
    ],
    [{ start: 'now', for: '2h' }, fromNow],
    [
      { startNow: true, end },
      { ...whole, start: 'now' },
    ],
    [{ startNow: true, for: '2h' }, fromNow],
    [
      { startNow: true, end: '14:00' },
      { start: 'now', end: NOW + 2 * HOUR },
    ],
    [
      { start: '+1h', end: '+3h' },
      { start: NOW + HOUR, end: NOW + 3 * HOUR },
    ],
    [
      { start: '+1h', for: '3h' },
      { start: NOW + HOUR, end: NOW + 4 * HOUR },
    ],
  ])('%j', async (flags, expected) => {
    expect(await outcome(() => readPeriod(flags, context))).toEqual(expected);
  });

  test.each<[string, PeriodFlags]>([
    ['before its start', { start, end: '2026-12-01T09:59:59.999Z' }],
    ['at its start', { start, end: start }],
    ['at its start, written with another offset', { start, end: '2026-12-01T11:00:00+01:00' }],
    ['now, where it starts now', { startNow: true, end: 'now' }],
    ['in the past, where it starts now', { startNow: true, end: '2026-11-01T11:59:59Z' }],
  ])('a period that would end %s is refused, and the message names both instants', async (_, flags) => {
    const failure = await failureOf(() => readPeriod(flags, context));
    expect(failure.code).toBe('usage');
    expect(failure.message).toBe('It would end before it starts.');
    const why = failure.facts.why ?? '';
    expect(String(why)).toMatch(/^From \S+Z until \S+Z\.$/);
    expect(inTimes(why, timesIn(context))).toMatch(
      /^From \w{3} \d+ \w{3} \d\d:\d\d UTC until (\w{3} \d+ \w{3} )?\d\d:\d\d(:\d\d)?\.$/,
    );
  });
});

describe('an end without a date is the first one after the start', () => {
  test.each<[PeriodFlags, string, string]>([
    [{ start: 'tomorrow 14:00', end: '16:00' }, '2026-11-02T14:00', '2026-11-02T16:00'],
    [{ start: 'tomorrow 14:00', end: '13:00' }, '2026-11-02T14:00', '2026-11-03T13:00'],
    [{ start: '23:00', end: '01:00' }, '2026-11-01T23:00', '2026-11-02T01:00'],
    // It is a Sunday, 12:00.
    [{ start: 'sunday 11:00', end: 'sunday 13:00' }, '2026-11-08T11:00', '2026-11-08T13:00'],
    // Through these days.
    [{ start: '14:00', end: 'sunday' }, '2026-11-01T14:00', '2026-11-02T00:00'],
    [{ start: 'friday', end: 'friday' }, '2026-11-06T00:00', '2026-11-07T00:00'],
    [{ start: '2026-12-04', end: '2026-12-06' }, '2026-12-04T00:00', '2026-12-07T00:00'],
  ])('%j', async (flags, from, until) => {
    const [start, end] = [Date.parse(`${from}Z`), Date.parse(`${until}Z`)];
    expect(await readPeriod(flags, context)).toEqual({ start, end });
  });
});

describe('a period that starts with its request', () => {
  const asked = { start: 'now', end: NOW + 2 * HOUR, lasting: 2 * HOUR } as const;
  const endSent = (now: number, expiry?: number): number => periodToSend(asked, { now }, expiry).end;

  test.each<[string, number, number | undefined, number]>([
    ['5 s later than asked', NOW, undefined, NOW + 2 * HOUR + 5000],
    ['rounded up to a second', NOW + 1, undefined, NOW + 2 * HOUR + 6000],
    ['before the experiment expires', NOW, NOW + 3 * HOUR, NOW + 2 * HOUR + 5000],
    ['not after the expiry', NOW, NOW + 2 * HOUR + 100, NOW + 2 * HOUR + 100],
    ['as asked where the experiment expires before: the service refuses it', NOW, NOW + HOUR, NOW + 2 * HOUR],
  ])('ends %s', (_, now, expiry, end) => {
    expect(endSent(now, expiry)).toBe(end);
  });

  test('with an end, and one that starts later, are sent as they are', () => {
    const period = { start: START, end: END };
    expect(periodToSend(period, { now: NOW }, END - 1)).toEqual(period);
  });

  test('a warning says by how much it is too short', () => {
    expect(shortfall({ start: NOW, end: NOW + 2 * HOUR }, 2 * HOUR)).toBeUndefined();
    expect(shortfall({ start: NOW, end: NOW + HOUR }, undefined)).toBeUndefined();
    expect(shortfall({ start: NOW + 10_000, end: NOW + 2 * HOUR }, 2 * HOUR)).toBe(
      'Warning: the reservation is 10 s shorter than the 2 h that were asked for.',
    );
  });
});

describe('an update of a period: every combination of its flags', () => {
  const current = { start: START, end: END };
  const newStart = '2026-12-01T12:00:00Z';
  const newEnd = '2026-12-01T20:00:00Z';
  const NEW_START = START + 2 * HOUR;
  const NEW_END = END + 2 * HOUR;

  const ends: [Omit<PeriodChangeFlags, 'start'>, (from: number) => object][] = [
    [{}, () => ({})],
    [{ end: newEnd }, () => ({ end: NEW_END })],
    [{ for: '3h' }, (from) => ({ end: from + 3 * HOUR, ...(from === NOW ? { lasting: 3 * HOUR } : {}) })],
    [{ extend: '3h' }, () => ({ end: END + 3 * HOUR })],
  ];
  const starts: [Pick<PeriodChangeFlags, 'start'>, object, number][] = [
    [{}, {}, START],
    [{ start: newStart }, { start: NEW_START }, NEW_START],
    [{ start: 'now' }, { start: 'now' }, NOW],
  ];
  const rows = starts.flatMap(([startFlags, startChange, from]) =>
    ends.map(([endFlags, endChange]): [PeriodChangeFlags, unknown] => [
      { ...startFlags, ...endFlags },
      { ...startChange, ...endChange(from) },
    ]),
  );

  test.each(rows)('%j', async (flags, expected) => {
    const read = () => {
      checkPeriodChange(flags, context);
      return readPeriodChange(flags, current, context);
    };
    expect(await outcome(read)).toEqual(expected);
  });

  test.each<[string, PeriodChangeFlags]>([
    ['before its start', { end: '2026-12-01T09:00:00Z' }],
    ['at its start', { end: start }],
    ['before its new start', { start: newEnd, end: newStart }],
    ['before its start, on its own day', { end: '09:00' }],
    ['before its new start, on its own day', { start: '11:00', end: '10:30' }],
    ['before its new start, which is past its end', { start: '22:00' }],
    ['before its new start, though longer than now', { start: '2026-12-02T10:00:00Z', extend: '1h' }],
  ])('an update that would make it end %s is refused', async (_, flags) => {
    const failure = await failureOf(() => readPeriodChange(flags, current, context));
    expect(failure).toMatchObject({ code: 'usage', message: 'It would end before it starts.' });
  });

  // It is 12:00 on 1 November, a Sunday.
  test.each<
    [string, PeriodChangeFlags, [start: string, end: string], Partial<Record<'start' | 'end', string>>]
  >([
    ['a later start', { start: '11:00' }, ['12-04T10:00', '12-04T18:00'], { start: '12-04T11:00' }],
    ['an earlier start', { start: '9am' }, ['12-04T10:00', '12-04T18:00'], { start: '12-04T09:00' }],
    ['a later end', { end: '20:00' }, ['12-04T10:00', '12-04T18:00'], { end: '12-04T20:00' }],
    ['an end over midnight', { end: '03:00' }, ['12-04T22:00', '12-05T02:00'], { end: '12-05T03:00' }],
    ['an end before midnight', { end: '23:00' }, ['12-04T22:00', '12-05T02:00'], { end: '12-04T23:00' }],
    ['the end of days', { end: '16:00' }, ['12-04T10:00', '12-07T18:00'], { end: '12-07T16:00' }],
    ['an end that was midnight', { end: '16:00' }, ['12-04T00:00', '12-06T00:00'], { end: '12-05T16:00' }],
    [
      'both',
      { start: '11:00', end: '13:00' },
      ['12-04T10:00', '12-07T18:00'],
      { start: '12-04T11:00', end: '12-04T13:00' },
    ],
    ['an active one', { end: '18:00' }, ['10-31T12:00', '11-01T13:00'], { end: '11-01T18:00' }],
    ['one since yesterday', { end: '21:00' }, ['10-31T20:00', '11-01T13:00'], { end: '11-01T21:00' }],
    ['what is over today', { end: '11:00' }, ['11-01T09:00', '11-01T15:00'], { end: '11-01T11:00' }],
    ['another day', { end: 'monday' }, ['12-04T10:00', '12-04T18:00'], { end: '12-08T00:00' }],
  ])('a time of day alone is on the reservation’s own day: %s', (_, flags, [from, until], expected) => {
    const at = (text: string) => Date.parse(`2026-${text}Z`);
    const change = Object.entries(expected).map(([name, text]) => [name, at(text)]);
    const current = { start: at(from), end: at(until) };
    expect(readPeriodChange(flags, current, context)).toEqual(Object.fromEntries(change));
  });
});

describe('a search: not before --start, not after --end', () => {
  const open = { start: 'now', end: LAST_INSTANT };

  test.each<[PeriodFlags, unknown]>([
    [{}, open],
    [{ startNow: true }, open],
    [{ start: 'now' }, open],
    [
      { start, end },
      { start: START, end: END },
    ],
    // It looks ahead.
    [
      { start: '2026-01-01T00:00:00Z', end },
      { start: 'now', end: END },
    ],
    [{ start: end, end: start }, 'usage: It would end before it starts.'],
    [{ end: 'friday' }, { start: 'now', end: Date.UTC(2026, 10, 7) }],
    [{ start, end: '2026-12-01T11:59:59Z' }, 'usage: 2 h do not fit.'],
    [{ end: '+1h' }, 'usage: 2 h do not fit.'],
  ])('%j', async (flags, expected) => {
    expect(await outcome(() => readSearch(flags, context, 2 * HOUR))).toEqual(expected);
  });
});

describe('a time that is looked at', () => {
  const WEEK = 7 * 24 * HOUR;

  test.each<[PeriodFlags, unknown]>([
    [{}, { start: NOW, end: NOW + WEEK }],
    [{ start }, { start: START, end: START + WEEK }],
    [{ end }, { start: NOW, end: END }],
    [
      { start, end },
      { start: START, end: END },
    ],
    [{ for: '2h' }, { start: NOW, end: NOW + 2 * HOUR }],
    [{ end: 'friday' }, { start: NOW, end: Date.UTC(2026, 10, 7) }],
    [{ start: end, end: start }, 'usage: It would end before it starts.'],
  ])('%j', async (flags, expected) => {
    expect(await outcome(() => readWindow(flags, context))).toEqual(expected);
  });
});
