import { describe, expect, test } from 'vitest';
import { HOUR } from '../../src/contract/durations.ts';
import type { FailureDetail } from '../../src/contract/failure.ts';
import { type Limit, type Problem, problemBody } from '../../src/contract/problems.ts';
import { type Times, UTC_TIMES } from '../../src/contract/said.ts';
import {
  type Asked,
  alternativeText,
  limitNote,
  limitText,
  type Offered,
  problem,
  problemTexts,
  readProblem,
} from '../../src/words/problems.ts';

const AT = Date.parse('2026-12-01T12:00:00Z');
const LAST = Date.parse('2026-12-01T10:00:00Z');
const WANTED = { member: 'end_date', at: AT };
const ROUTE = { route: ['a', 'b', 'c', 'd'] };
const CAPACITY = { bandwidth: 20_000, capacity: 10_000 };

/** A clock in which every instant is its hour in UTC. */
const HOURS: Times = {
  instant: (at) => `${new Date(at).getUTCHours()} h`,
  ends: (start, end) => [`${new Date(start).getUTCHours()}`, `${new Date(end).getUTCHours()} h`],
};

const detail = (one: Partial<FailureDetail>): FailureDetail => ({ loc: [], msg: 'No.', type: '', ...one });
const said = (body: unknown, limits: readonly Limit[] = [], times = HOURS): string[] =>
  problemTexts(readProblem(JSON.parse(JSON.stringify(body))).details, limits, times);

const SHORTEST = 'The shortest route is a – b – c – d.';

test.each<[Problem, string]>([
  [problem('site_unknown', { site: 'x' }), 'There is no site "x".'],
  [problem('site_unknown', { site: 'x', sites: ['a', 'b'] }), 'There is no site "x". The sites are: a, b.'],
  [problem('no_route', { ...ROUTE, hops: 1 }), `No link connects a and d. ${SHORTEST}`],
  [
    problem('no_route', { ...ROUTE, hops: 8, via: ['b'] }),
    `No route of at most 8 hops between a and d passes b. ${SHORTEST}`,
  ],
  [
    problem('no_route', { ...ROUTE, hops: 4, via: ['e', 'f'], avoid: ['b', 'c'] }),
    `No route of at most 4 hops between a and d passes e, then f and avoids b and c. ${SHORTEST}`,
  ],
  [problem('date_past', { member: 'start_date', at: AT }), 'The start, 12 h, has passed.'],
  [problem('date_past', { member: 'expires_at', at: AT }), 'The expiry, 12 h, has passed.'],
  [
    problem('period_empty', { start_date: AT, end_date: LAST }),
    'The end, 10 h, is not after the start, 12 h.',
  ],
  [problem('reservation_ended', { at: AT }), 'The reservation ended at 12 h.'],
  [
    problem('reservation_started', { at: AT }),
    "The reservation began at 12 h: its end and bandwidth can change, its start can't.",
  ],
  [
    problem('experiment_ends_first', { ...WANTED, expires_at: LAST }),
    "The end, 12 h, is after the experiment's expiry, 10 h.",
  ],
  [problem('experiment_expired', { expires_at: LAST }), 'The experiment expired at 10 h.'],
  [
    problem('project_ends_first', { ...WANTED, project: 'demo', expires_at: LAST }),
    'The end, 12 h, is after the expiry of project demo, 10 h.',
  ],
  [problem('project_expired', { project: 'demo', expires_at: LAST }), 'The project demo expired at 10 h.'],
  [problem('bandwidth_unavailable', CAPACITY), 'The link has 10 Gbps; 20 Gbps were asked for.'],
  [
    problem('bandwidth_unavailable', { ...CAPACITY, hop: ['b', 'c'] }),
    'b – c has 10 Gbps; 20 Gbps were asked for.',
  ],
  [
    problem('bandwidth_too_low', { volume: 50e12, end_date: AT, needed: 4630, bandwidth: 100 }),
    '50 TB by 12 h needs 4.63 Gbps; at most 100 Mbps may be used.',
  ],
  [problem('token_expired', { token: 'user', expires_at: LAST }), 'The user token expired at 10 h.'],
  [
    problem('token_invalid', { token: 'project', reason: 'Its signature is wrong.' }),
    'The project token is not accepted. Its signature is wrong.',
  ],
  [
    problem('name_taken', { name: 'run', holder: 'con_lab.example_01jd3x0m2sf0vrv9mhb1wk6x4q' }),
    'Another reservation has the name run until it ends or is deleted.',
  ],
])('%j is said in the times of the one who reads it', (one, text) => {
  const body = problemBody([one]);
  expect(said(body)).toEqual([text]);
  expect(said(body, [], UTC_TIMES)).toEqual([one.msg]);
});

test('the message has the advice for clients of the API, the sentence has not', () => {
  const one = problem('date_past', { member: 'start_date', at: AT }, 'Give start_now=true.');
  expect(one).toEqual({
    code: 'date_past',
    msg: 'The start, 2026-12-01T12:00:00.000Z, has passed. Give start_now=true.',
    facts: { member: 'start_date', at: '2026-12-01T12:00:00.000Z' },
  });
  expect(said(problemBody([one]))).toEqual(['The start, 12 h, has passed.']);
});

describe("a service's own words", () => {
  test.each([
    ['without facts', { code: 'date_past' }],
    ['with facts that miss one', { code: 'date_past', facts: { member: 'end_date' } }],
    ['with facts of other types', { code: 'date_past', facts: { member: 7, at: 'noon' } }],
    ['with a code that is not known here', { code: 'no_route', facts: { at: '2026-12-01T12:00:00Z' } }],
    ['with the name of a member of every object', { code: 'constructor', facts: {} }],
  ])('%s are said as they are', (_, one) => {
    const msg = 'end_date 2026-12-01T12:00:00Z has passed.';
    expect(said({ detail: [{ loc: ['Date'], msg, type: 'NotValid', ...one }] })).toEqual([msg]);
  });

  test.each([
    [['Site'], 'No.'],
    [['body', 'site1'], 'body.site1: No.'],
  ])('have the path of their member in front where it is not one of the spec: %j', (loc, text) => {
    expect(said({ detail: [{ loc, msg: 'No.' }] })).toEqual([text]);
  });

  test.each([
    ['no object', [], []],
    ['no detail', {}, []],
    ['a text', { detail: 'No.' }, ['No.']],
    ['no errors', { detail: [7, null, { msg: 7 }, {}] }, []],
    ['a type that is none', { detail: [{ loc: ['Site'], msg: 'No.', type: null }] }, ['No.']],
    ['the same twice', { detail: [{ msg: 'No.' }, { msg: 'No.' }] }, ['No.']],
  ])('from a body with %s', (_, body, texts) => {
    expect(said(body)).toEqual(texts);
  });
});

test('what a link refuses is said by its limits, once; what the link never has by itself', () => {
  const limit: Limit = {
    ...{ limit: 'bandwidth', site: null, layer: null, capacity: 10_000, free: 6000 },
    ...{ start_date: '2026-12-01T10:00:00.000Z', end_date: '2026-12-01T12:00:00.000Z' },
  };
  const byLink = (code: string, facts: object) => detail({ code, facts: { ...facts } });
  const details = [
    byLink('bandwidth_unavailable', { bandwidth: 9000 }),
    byLink('share_exceeded', { bandwidth: 9000 }),
    byLink('bandwidth_unavailable', { bandwidth: 20_000, capacity: 10_000 }),
    detail({ code: 'site_invalid' }),
  ];
  expect(problemTexts(details, [limit, { ...limit, limit: 'share', capacity: 7000 }], HOURS)).toEqual([
    '6 of the 9 Gbps asked for are free from 10 to 12 h.',
    'One project may have 7 Gbps of this link, and yours has 6 Gbps left from 10 to 12 h; 9 Gbps were asked for.',
    'The link has 10 Gbps; 20 Gbps were asked for.',
    'No.',
  ]);
  expect(problemTexts(details.slice(0, 1), [], HOURS)).toEqual(['No.']);
});

test('times are written in the order of the text: a zone that is named once stands beside the first', () => {
  for (const one of [
    problem('experiment_ends_first', { ...WANTED, expires_at: LAST }),
    problem('project_ends_first', { ...WANTED, project: 'demo', expires_at: LAST }),
    problem('period_empty', { start_date: AT, end_date: LAST }),
  ]) {
    const read: number[] = [];
    const times = { ...HOURS, instant: (at: number) => `time ${read.push(at)}` };
    expect(
      said(problemBody([one]), [], times)
        .join()
        .match(/time \d/g),
    ).toEqual(['time 1', 'time 2']);
  }
});

const PERIOD = { start_date: '2026-12-01T11:00:00.000Z', end_date: '2026-12-01T14:00:00.000Z' };
const FROM_TO = 'from 2026-12-01T11:00:00.000Z to 2026-12-01T14:00:00.000Z';
const NOTED = '2026-12-01T11:00:00.000Z–2026-12-01T14:00:00.000Z';
const LINK: Limit = { limit: 'bandwidth', site: null, layer: null, capacity: 10_000, free: 6000, ...PERIOD };
const TAGS: Limit = { ...LINK, limit: 'tags', site: 'be-gent1', layer: 'S', capacity: 1000, free: 0 };
const HOP: [string, string] = ['hu-sztaki', 'gr-uth'];
const SHARE: Limit = { ...LINK, limit: 'share', capacity: 500, free: 100 };

test.each([
  [LINK, 9000, `6 of the 9 Gbps asked for are free ${FROM_TO}.`],
  [{ ...LINK, free: 1000 }, 9000, `1 of the 9 Gbps asked for is free ${FROM_TO}.`],
  [{ ...LINK, free: 500 }, 9000, `500 Mbps of the 9 Gbps asked for are free ${FROM_TO}.`],
  [{ ...LINK, free: 0 }, 9000, `None of the 9 Gbps asked for are free ${FROM_TO}.`],
  [LINK, undefined, `6 Gbps are free ${FROM_TO}.`],
  [LINK, 20_000, 'The link has 10 Gbps; 20 Gbps were asked for.'],
  [TAGS, 9000, `None of the 1000 S-tags at be-gent1 is free all the time ${FROM_TO}.`],
  [{ ...LINK, hop: HOP }, 9000, `gr-uth – hu-sztaki has 6 of the 9 Gbps ${FROM_TO}.`],
  [{ ...LINK, hop: HOP, free: 0 }, 9000, `gr-uth – hu-sztaki has none of the 9 Gbps ${FROM_TO}.`],
  [{ ...LINK, hop: HOP }, undefined, `gr-uth – hu-sztaki has 6 Gbps free ${FROM_TO}.`],
  [{ ...LINK, hop: HOP }, 20_000, 'gr-uth – hu-sztaki has 10 Gbps; 20 Gbps were asked for.'],
  [
    { ...TAGS, hop: HOP },
    9000,
    `None of the 1000 S-tags at be-gent1 is free on gr-uth – hu-sztaki all the time ${FROM_TO}.`,
  ],
  [
    { ...SHARE, hop: HOP },
    200,
    `One project may have 500 Mbps of gr-uth – hu-sztaki, and yours has 100 Mbps left ${FROM_TO}; 200 Mbps were asked for.`,
  ],
  [
    SHARE,
    200,
    `One project may have 500 Mbps of this link, and yours has 100 Mbps left ${FROM_TO}; 200 Mbps were asked for.`,
  ],
  [
    { ...SHARE, tenant: 'experiment', site: 'be-gent1', layer: 'C' } as Limit,
    200,
    `One experiment may have 500 of the C-tags at be-gent1, and yours has 100 left ${FROM_TO}.`,
  ],
  [
    { ...SHARE, capacity: 5, free: 0, start_date: null, end_date: null },
    200,
    'One project may have 5 reservations that have not ended, and yours has 5. Delete one, or wait until one has ended.',
  ],
] as const)('%j with %s Mbps asked for', (limit, asked, text) => {
  expect(limitText(limit, asked, UTC_TIMES)).toBe(text);
});

test.each([
  [LINK, `6 Gbps free ${NOTED}`],
  [{ ...LINK, hop: HOP }, `6 Gbps free on gr-uth – hu-sztaki ${NOTED}`],
  [TAGS, `no S-tag free at be-gent1 ${NOTED}`],
  [SHARE, `100 Mbps left of the project's share ${NOTED}`],
  [
    { ...SHARE, site: 'be-gent1', layer: 'S' } as Limit,
    `100 of 500 S-tags left of the project's share ${NOTED}`,
  ],
  [{ ...SHARE, start_date: null, end_date: null }, undefined],
] as const)('%j in a few words', (limit, text) => {
  expect(limitNote(limit, UTC_TIMES)).toBe(text);
});

const NOW = Date.parse('2026-12-01T09:00:00Z');
const START = NOW + 2 * HOUR;
const ASKED: Asked = { start: START, end: START + 8 * HOUR };
const text = (offered: Partial<Offered>, asked: Asked | undefined) =>
  alternativeText({ bandwidth: 9000, start: START, end: ASKED.end, ...offered }, asked, NOW, UTC_TIMES);
const AT_ONCE: Asked = { start: 'now', end: NOW + 8 * HOUR };
const LONGER = '9 Gbps, same period, via fr-slices, se-kth: leaves others less on 3 links';

test.each<[Asked | undefined, Partial<Offered>, string]>([
  [ASKED, { bandwidth: 6000 }, '6 Gbps, same period'],
  [ASKED, { via: ['fr-slices', 'se-kth'] }, LONGER],
  [ASKED, { end: START + 2 * HOUR }, '9 Gbps for 2 h'],
  [ASKED, { start: START + HOUR, end: START + 9 * HOUR }, '9 Gbps from 2026-12-01T12:00:00.000Z'],
  [ASKED, { start: START + HOUR }, '9 Gbps from 2026-12-01T12:00:00.000Z for 7 h'],
  [ASKED, { start: 'now', end: NOW + 8 * HOUR }, '9 Gbps from now'],
  // Of a request that starts at once, a few seconds are no difference.
  [AT_ONCE, { start: 'now', end: NOW + 8 * HOUR - 5000 }, '9 Gbps, same period'],
  // Of a search its own result is told.
  [{ ...ASKED, duration: 8 * HOUR }, {}, '9 Gbps from 2026-12-01T11:00:00.000Z'],
  [{ ...ASKED, volume: 1e12 }, {}, 'done by 2026-12-01T19:00:00.000Z'],
  [undefined, {}, '9 Gbps from 2026-12-01T11:00:00.000Z to 2026-12-01T19:00:00.000Z'],
])('where %j was asked for, %j is said by what differs: %s', (asked, offered, said) => {
  expect(text(offered, asked)).toBe(said);
});
