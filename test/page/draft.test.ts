import { describe, expect, test } from 'vitest';
import type { Alternative } from '../../src/contract/problems.ts';
import {
  type Draft,
  draftOf,
  EMPTY_DRAFT,
  picked,
  readDraft,
  readKept,
  startedAt,
  withAlternative,
} from '../../src/page/draft.ts';

const NOW = Date.parse('2026-11-22T10:00:00.250Z');
const HOUR = 3_600_000;
const LINKS = [
  { site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 100_000 },
  { site1: 'be-gent1', site2: 'fr-lille', bandwidth: 10_000 },
];
const TERMS = { now: NOW, zone: 'Europe/Brussels', links: LINKS, expiry: NOW + 1000 * HOUR };
const WHOLE: Draft = { ...EMPTY_DRAFT, site1: 'pl-poznan1', site2: 'be-gent1', bandwidth: '2.5G' };
const START = Date.parse('2026-11-23T09:00:00Z');

/** A whole draft, and the request that it becomes. */
function sent(draft: Draft, terms = TERMS) {
  const { wish, problems } = readDraft(draft, terms);
  if (!wish) throw new Error(JSON.stringify([...problems]));
  return wish;
}

/** The problems of a draft. */
const wrong = (draft: Draft) => Object.fromEntries(readDraft(draft, TERMS).problems);

describe('what a draft asks for', () => {
  test.each([
    ['50T', '10G', 40_000],
    ['1.5 TB', '2.5G', 4800],
    ['1GB', '3M', 2667],
    ['2h', '1G', 7200],
    ['90m', '1G', 5400],
  ])('%s at %s lasts %i s', (text, bandwidth, seconds) => {
    const { period } = sent({ ...WHOLE, bandwidth, start: START, ending: text });
    expect(period).toEqual({ start: START, end: START + seconds * 1000 });
  });

  test('a volume says nothing without a bandwidth, and is read as on the command line', () => {
    const ending = '50T';
    expect(Object.keys(wrong({ ...WHOLE, bandwidth: 'x', ending }))).toEqual(['bandwidth']);
    expect(wrong({ ...WHOLE, ending: '50t' })['ending']).toContain('is not a volume');
  });

  test('a start now lasts as long as was asked, although the request arrives later', () => {
    const { request, bandwidth } = sent(WHOLE);
    expect(request).toEqual({
      ...{ site1: 'pl-poznan1', site2: 'be-gent1', bandwidth: 2500 },
      ...{ start: 'now', end: Date.parse('2026-11-22T12:00:06Z') },
    });
    expect(bandwidth).toBe(2500);
  });

  test('where the experiment ends, a start now ends no later for it', () => {
    const expiry = NOW + 2 * HOUR + 1000;
    expect(sent(WHOLE, { ...TERMS, expiry }).request.end).toBe(expiry);
  });

  test('a time keeps its milliseconds, and a duration is counted from it', () => {
    const { request } = sent({ ...WHOLE, start: START + 7, ending: '1h30m', name: 'night-run' });
    expect(request).toMatchObject({ start: START + 7, end: START + 1.5 * HOUR + 7, name: 'night-run' });
  });

  test('a change names no name, and its reservation beside the request', () => {
    const own = { site1: 'be-gent1', site2: 'fr-lille', bandwidth: 1000, name: 'mine' };
    const draft = draftOf({ ...own, id: 'con_x', start: NOW - HOUR, end: START });
    expect(draft).toMatchObject({ bandwidth: '1G', start: NOW - HOUR, ending: START });
    const { id, request } = sent({ ...draft, ending: START + HOUR });
    expect([id, 'name' in request, request.end]).toEqual(['con_x', false, START + HOUR]);
  });

  test.each([
    ['fri 4 dec 2026 09:00 (in 10 d)', '2026-12-04T08:00:00Z'],
    ['2026-12-04 09:00', '2026-12-04T08:00:00Z'],
    ['+2h', '2026-11-22T12:00:00.250Z'],
  ])('a start is typed as on the command line: %s', (start, instant) => {
    expect(sent({ ...WHOLE, start }).period.start).toBe(Date.parse(instant));
  });

  test('an end is after the start, and a day is through that day; of a change a time is on its day', () => {
    const end = (at: string, more = {}) =>
      new Date(sent({ ...WHOLE, start: START, ending: at }, { ...TERMS, ...more }).period.end).toISOString();
    expect(end('16:00')).toBe('2026-11-23T15:00:00.000Z');
    expect(end('sat 5 dec 2026')).toBe('2026-12-05T23:00:00.000Z');
    const own = { start: START, end: START + 48 * HOUR };
    expect(end('16:00', { own })).toBe('2026-11-25T15:00:00.000Z');
  });

  test('of what is not whole, the period is known all the same', () => {
    const { wish, period } = readDraft({ ...WHOLE, bandwidth: 'much', start: START }, TERMS);
    expect({ wish, period }).toEqual({
      period: { start: START, end: START + 2 * HOUR },
    });
  });
});

describe('what is wrong', () => {
  test.each<[string, Partial<Draft>, Record<string, string>]>([
    ['nothing is said of what is empty', { site2: '', bandwidth: ' ' }, { site2: '', bandwidth: '' }],
    [
      'no route',
      { site1: 'fr-lille', site2: 'gr-uth' },
      { site2: 'No route leads from fr-lille to gr-uth.' },
    ],
    [
      'a bandwidth',
      { bandwidth: '1X' },
      { bandwidth: '"1X" is not a bandwidth. Write it as 100 (Mbps), 100M, 1G or 2.5G.' },
    ],
    [
      'a duration',
      { ending: '1 month' },
      { ending: '"1 month" is not a duration. Write it as 90m, 2h, 2h30m, 3d, 1w or P3D.' },
    ],
    ['an end', { start: START, ending: START }, { ending: 'It would end before it starts.' }],
    ['a far end', { ending: '9999999d' }, { ending: 'That is after the year 9999.' }],
    ['no times', { start: '', ending: ' ' }, { start: '', ending: '' }],
    [
      'a time',
      { start: 'soon' },
      { start: `"soon" is not a time. Write it as 'friday 09:00', '2026-12-04 09:00', 14:00, +2h or now.` },
    ],
    ['a name', { name: 'Night run' }, { name: 'A name is 1 to 64 of a to z, 0 to 9 and -, a letter first.' }],
  ])('%s', (_, change, problems) => {
    expect(wrong({ ...WHOLE, ...change })).toEqual(problems);
  });
});

describe('a click fills the form', () => {
  test('a free time of a link: what else was typed stays', () => {
    const [first, second] = LINKS as [(typeof LINKS)[0], (typeof LINKS)[0]];
    const period = { start: START, end: START + HOUR };
    const filled = { start: START, ending: START + HOUR };
    const typed = { ...WHOLE, name: 'x' };
    expect(picked(typed, first, period)).toEqual({ ...typed, ...filled });
    expect(picked(typed, second)).toEqual({ ...typed, site1: 'be-gent1', site2: 'fr-lille' });
    // A change of a reservation is left for it.
    expect(picked({ ...typed, id: 'con_x', isDragged: true }, first)).toEqual({
      ...WHOLE,
      site1: 'be-gent1',
      site2: 'pl-poznan1',
    });
  });

  test.each<[string, Partial<Draft>, Draft['ending']]>([
    ['a duration', { ending: '2h' }, '2h'],
    ['a volume', { ending: '50T' }, '50T'],
    ['a time', { start: START, ending: START + 3 * HOUR }, START + 8 * HOUR],
    ['a time as typed', { start: 'now', ending: '14:00' }, START + 8 * HOUR - 250],
    ['what can’t be read', { ending: 'soon' }, 'soon'],
  ])('a start alone: it lasts as long as before, %s', (_, typed, ending) => {
    const [link] = LINKS as [(typeof LINKS)[0]];
    const draft = { ...WHOLE, ...typed };
    const { period } = readDraft(draft, TERMS);
    const at = START + 5 * HOUR;
    expect(startedAt(draft, link, at, period)).toEqual({ ...draft, start: at, ending });
  });

  test('an alternative changes what differs', () => {
    const alternative = {
      start_now: false,
      start_date: '2026-11-23T09:00:00.007Z',
      end_date: '2026-11-23T11:00:00.007Z',
    };
    const draft = { ...WHOLE, bandwidth: '9G', start: START };
    const as = (offer: Alternative) => withAlternative(draft, offer, { start: START, end: START + 2 * HOUR });
    const same = { start_date: '2026-11-23T09:00:00.000Z', end_date: '2026-11-23T11:00:00.000Z' };
    const most = { ...alternative, ...same, kind: 'most_bandwidth', bandwidth: 2500 } as const;
    expect(as(most)).toEqual({ ...draft, bandwidth: '2.5G' });
    const via = ['fr-lille'];
    expect(as({ ...most, kind: 'other_route', via })).toEqual({ ...draft, bandwidth: '2.5G', via });
    const earliest = { ...alternative, kind: 'earliest', bandwidth: 9000 } as const;
    expect(as(earliest)).toEqual({ ...draft, start: START + 7 });
    const longest = { ...earliest, kind: 'longest', start_now: true, start_date: null } as const;
    expect(as(longest)).toEqual({
      ...draft,
      start: 'now',
      ending: START + 2 * HOUR + 7,
    });
  });
});

test('a draft that was kept is read again; anything else is none', () => {
  for (const draft of [WHOLE, { ...WHOLE, id: 'con_x', start: 'friday', ending: START }]) {
    expect(readKept(JSON.stringify(draft))).toEqual(draft);
  }
  const odd = [
    '{',
    'null',
    '{}',
    JSON.stringify({ ...WHOLE, name: 1 }),
    JSON.stringify({ ...WHOLE, start: null }),
  ];
  for (const text of odd) expect(readKept(text)).toBeUndefined();
});
