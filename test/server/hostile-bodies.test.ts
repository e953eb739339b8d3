import { describe, expect, test } from 'vitest';
import { MAX_NESTING } from '../../src/contract/json.ts';
import { MAX_TOKENS } from '../../src/contract/reservation.ts';
import { MAX_BODY } from '../../src/server/request-reading.ts';
import {
  at,
  booking,
  DAY,
  HOUR,
  openService,
  outcome,
  problemIn,
  type Reply,
  reservationIn,
} from '../fixtures/service.ts';

const service = await openService();
const lead = await service.as('lead');
const booked = reservationIn(await lead.book());

/** No row of any kind was added or lost, the reservation that was there is as it was, and the answer is short. */
async function leavesNothing(send: () => Promise<Reply>): Promise<string> {
  const before = service.rows();
  const reply = await send();
  expect(service.rows()).toEqual(before);
  expect(reservationIn(await lead.read(booked.id))).toEqual(booked);
  if (reply.status >= 400) {
    for (const { msg } of problemIn(reply).detail) expect(msg.length).toBeLessThan(600);
  }
  return outcome(reply);
}

const DEEP = 100_000;
const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const deepArray = nested(DEEP);
/** As deep as is read, in a member of the body. */
const deepest = nested(MAX_NESTING - 1);
const deepObject = `${'{"a":'.repeat(DEEP / 4)}1${'}'.repeat(DEEP / 4)}`;
/** A good body's text with one member's value put in as JSON text. */
function withRaw(member: string, json: string): string {
  return JSON.stringify({ ...booking(), [member]: '@@' }).replace('"@@"', json);
}
const good = JSON.stringify(booking());
const tooMuch = JSON.stringify(booking({ bandwidth: '0' }));

/** Bodies as a whole. 400 is for what can't be read as an object, 413 for size, 415 for other media types. */
const WHOLE: [title: string, body: string | Uint8Array, expected: string, contentType?: string][] = [
  ['nothing', '', '400 body_unreadable'],
  ['white space', ' \n', '400 body_unreadable'],
  ['null', 'null', '400 body_unreadable'],
  ['an array', `[${good}]`, '400 body_unreadable'],
  ['a string', JSON.stringify(good), '400 body_unreadable'],
  ['a number', '1', '400 body_unreadable'],
  ['a boolean', 'true', '400 body_unreadable'],
  ['cut off', good.slice(0, -1), '400 body_unreadable'],
  ['two objects', good + good, '400 body_unreadable'],
  ['a trailing comma', `${good.slice(0, -1)},}`, '400 body_unreadable'],
  ['single quotes', good.replaceAll('"', "'"), '400 body_unreadable'],
  ['a comment', `/* */${good}`, '400 body_unreadable'],
  ['NaN', withRaw('bandwidth', 'NaN'), '400 body_unreadable'],
  ['a raw control character', withRaw('site1', '"be\u0000gent1"'), '400 body_unreadable'],
  ['a byte order mark', `\uFEFF${good}`, '400 body_unreadable'],
  ['UTF-16', Buffer.from(good, 'utf16le'), '400 body_unreadable'],
  ['a stray byte', Buffer.from(good.replace('gent1', 'g\u00ffnt1'), 'latin1'), '400 body_unreadable'],
  ['an overlong encoding', latin1(withRaw('site1', '"\u00c0\u00af"')), '400 body_unreadable'],
  ['half a surrogate pair', latin1(withRaw('site1', '"\u00ed\u00a0\u0080"')), '400 body_unreadable'],
  ['a member twice', `${good.slice(0, -1)},"bandwidth":"1"}`, '400 body_unreadable'],
  ['a member twice, once escaped', `${good.slice(0, -1)},"site\\u0031":"x"}`, '400 body_unreadable'],
  ['a member twice in what is ignored', withRaw('note', '{"a":1,"a":2}'), '400 body_unreadable'],
  ['__proto__ twice', `${good.slice(0, -1)},"__proto__":1,"__proto__":2}`, '400 body_unreadable'],
  ['deep arrays', deepArray, '400 body_unreadable'],
  ['deep arrays left open', '['.repeat(DEEP), '400 body_unreadable'],
  ['deep objects', deepObject, '422 site_invalid Site+Bandwidth+Date'],
  ['deep objects left open', '{"a":'.repeat(DEEP / 4), '400 body_unreadable'],
  ['an empty object', '{}', '422 site_invalid Site+Bandwidth+Date'],
  ['three megabytes of white space', good + ' '.repeat(3_000_000), '413 body_too_large'],
  ['three megabytes in a member', withRaw('note', `"${'x'.repeat(3_000_000)}"`), '413 body_too_large'],
  ['three megabytes of nonsense', 'x'.repeat(3_000_000), '413 body_too_large'],
  ['three megabytes of brackets', '['.repeat(3_000_000), '413 body_too_large'],
  ['a byte more than is read', tooMuch.padEnd(MAX_BODY + 1), '413 body_too_large'],
  ['as much as is read', tooMuch.padEnd(MAX_BODY), '422 bandwidth_invalid Bandwidth'],
  ['no content type', good, '415 media_type_unsupported', ''],
  ['plain text', good, '415 media_type_unsupported', 'text/plain'],
  ['a form', 'site1=be-gent1', '415 media_type_unsupported', 'application/x-www-form-urlencoded'],
  ['a JSON patch', good, '415 media_type_unsupported', 'application/json-patch+json'],
  ['two content types', good, '415 media_type_unsupported', 'application/json, text/plain'],
  ['JSON with a charset', tooMuch, '422 bandwidth_invalid Bandwidth', 'application/json; charset=utf-8'],
  ['JSON in capitals', tooMuch, '422 bandwidth_invalid Bandwidth', 'Application/JSON'],
];

function latin1(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}

describe('row 36: a body as a whole', () => {
  test.each(WHOLE)('POST %s: %3$s', async (_, body, expected, contentType = 'application/json') => {
    const send = () => lead.book(body, '', { 'content-type': contentType });
    expect(await leavesNothing(send)).toBe(expected);
  });

  // An empty update is a good one: nothing is to change.
  const updates = WHOLE.filter(([, , expected]) => !expected.startsWith('422 site_invalid'));
  test.each(updates)('PUT %s: %3$s', async (_, body, expected, contentType = 'application/json') => {
    const send = () => lead.update(booked.id, body, '', { 'content-type': contentType });
    expect(await leavesNothing(send)).toBe(expected);
  });

  test('POST in chunks, without end: 413 after the limit', async () => {
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 65_536;
        controller.enqueue(new Uint8Array(65_536).fill(32));
      },
    });
    expect(await leavesNothing(() => lead.book(endless))).toBe('413 body_too_large');
    expect(sent).toBeLessThan(2 * MAX_BODY);
  });

  test.each([String(good.length), '0', '-1', '1e3', '9'.repeat(400), ''])(
    'POST of too much that declares a length of %j: 413, whatever it declares',
    async (length) => {
      const send = () => lead.book(tooMuch.padEnd(MAX_BODY + 1), '', { 'content-length': length });
      expect(await leavesNothing(send)).toBe('413 body_too_large');
    },
  );

  test('POST that ends too early: the sender has disconnected, which is not a bug of the service', async () => {
    const broken = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from(good.slice(0, 40))),
      pull: (controller) => controller.error(new Error('aborted')),
    });
    expect(await leavesNothing(() => lead.book(broken))).toBe('400 body_unreadable');
  });
});

const SITE = '422 site_invalid Site';
const UNKNOWN = '422 site_unknown Site';
const BANDWIDTH = '422 bandwidth_invalid Bandwidth';
const DATE = '422 date_invalid Date';
const TOKENS = '422 tokens_invalid';

/** One member of another type than is due; `null` has its own meaning for a start. */
const TYPES: [title: string, value: unknown][] = [
  ['null', null],
  ['true', true],
  ['a number', 100],
  ['a fraction', 0.5],
  ['an array', []],
  ['an array of what is due', ['1000']],
  ['an object', {}],
  ['an object that says what it is', { toString: 'be-gent1', valueOf: '1000', length: 1 }],
];
const MEMBERS = {
  site1: SITE,
  site2: SITE,
  bandwidth: BANDWIDTH,
  start_date: DATE,
  end_date: DATE,
  tokens: TOKENS,
};

type Case = [title: string, changes: Record<string, unknown>, expected: string, query?: string];

const WRONG_TYPES: Case[] = Object.entries(MEMBERS).flatMap(([member, expected]) =>
  TYPES.filter(([, value]) => !(member === 'tokens' && Array.isArray(value))).map(
    ([title, value]): Case => [`${member}: ${title}`, { [member]: value }, expected],
  ),
);

const SITES: Case[] = [
  '',
  'atlantis',
  'BE-GENT1',
  ' be-gent1',
  'be-gent1 ',
  'be-gent1\n',
  'be-gent1\u0000',
  'be-gent1\u200b',
  '\u001b[31mbe-gent1',
  '\u202ebe-gent1',
  '\ud800',
  'bе-gent1', // a Cyrillic е
  '../../etc/passwd',
  "be-gent1'; DROP TABLE reservation; --",
  'be-gent1~pl-poznan1',
  'be-gent1,pl-poznan1',
  '__proto__',
  'constructor',
  'x'.repeat(100_000),
].flatMap((site): Case[] => {
  const shown = JSON.stringify(site).slice(0, 50);
  return [
    [`site1: ${shown}`, { site1: site }, UNKNOWN],
    [`site2: ${shown}`, { site2: site }, UNKNOWN],
  ];
});

const PAIRS: Case[] = [
  ['two unknown sites', { site1: 'atlantis', site2: 'thule' }, UNKNOWN],
  ['one unknown site twice', { site1: 'atlantis', site2: 'atlantis' }, UNKNOWN],
  ['equal sites', { site1: 'be-gent1', site2: 'be-gent1' }, '422 sites_equal Site'],
];

const BANDWIDTHS: Case[] = [
  '',
  '0',
  '0000',
  '-1',
  '+1',
  '1e3',
  '1.0',
  '1,000',
  '1_000',
  ' 1',
  '1 ',
  '1\n',
  '1\u0000',
  '0x10',
  '1k',
  'NaN',
  'Infinity',
  '١٠٠',
  '１００',
  '1000000000000000',
  `1${'0'.repeat(30)}`,
  '9'.repeat(100_000),
].map(
  (bandwidth): Case => [`bandwidth: ${JSON.stringify(bandwidth).slice(0, 40)}`, { bandwidth }, BANDWIDTH],
);

const TOO_MUCH: Case[] = ['100001', '999999999999999'].map(
  (bandwidth): Case => [
    `bandwidth: ${bandwidth}, more than the link has`,
    { bandwidth },
    '422 bandwidth_unavailable Bandwidth',
  ],
);

const DATES: Case[] = [
  '',
  'tomorrow',
  '1796119200',
  '2026-12-01',
  '2026-12-01T10:00:00',
  '2026-12-01T10:00Z',
  '2026-12-01 10:00:00Z',
  '2026-12-01T10:00:00.Z',
  '2026-12-01T10:00:00.0000000000000Z',
  '2026-12-01T10:00:00+0100',
  '2026-12-01T10:00:00+24:00',
  '2026-12-01T10:00:00+01:60',
  '2026-12-01T10:00:00Z ',
  '2026-12-01T10:00:00Z\n',
  '2026-12-01T10:00:00Z\u0000',
  '٢٠٢٦-12-01T10:00:00Z',
  '2026-02-30T10:00:00Z',
  '2027-02-29T10:00:00Z',
  '2026-00-01T10:00:00Z',
  '2026-13-01T10:00:00Z',
  '2026-12-00T10:00:00Z',
  '2026-12-32T10:00:00Z',
  '2026-12-01T24:00:00Z',
  '2026-12-01T10:60:00Z',
  '2026-12-31T23:59:60Z',
  '2026-W49-2T10:00:00Z',
  '10000-01-01T00:00:00Z',
  '+010000-01-01T00:00:00Z',
  '-000001-01-01T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '1969-12-31T23:59:59Z',
  '9999-12-31T23:59:59-01:00',
  'Tue, 01 Dec 2026 10:00:00 GMT',
  '2026-12-01T10:00:00Z'.padEnd(100_000, '0'),
].flatMap((date): Case[] => {
  const shown = JSON.stringify(date).slice(0, 50);
  return [
    [`start_date: ${shown}`, { start_date: date }, DATE],
    [`end_date: ${shown}`, { end_date: date }, DATE],
  ];
});

const AFTER_EXPIRY = at(90 * DAY + 1);
const PERIODS: Case[] = [
  ['end at the start', { start_date: at(HOUR), end_date: at(HOUR) }, '422 period_empty Date'],
  ['end before the start', { start_date: at(2 * HOUR), end_date: at(HOUR) }, '422 period_empty Date'],
  ['start a millisecond ago', { start_date: at(-1) }, '422 date_past Date'],
  ['start in 1970', { start_date: '1970-01-01T00:00:00Z' }, '422 date_past Date'],
  ['all in the past', { start_date: at(-2 * HOUR), end_date: at(-HOUR) }, '422 date_past Date'],
  ['end a millisecond past the expiry', { end_date: AFTER_EXPIRY }, '422 experiment_ends_first Date'],
  [
    'all past the expiry',
    { start_date: AFTER_EXPIRY, end_date: at(91 * DAY) },
    '422 experiment_ends_first Date',
  ],
  ['end in 9999', { end_date: '9999-12-31T23:59:59.999Z' }, '422 experiment_ends_first Date'],
];

const NOW_OR_NOT: Case[] = [
  ['start_now=true with a start_date', { start_date: at(HOUR) }, DATE, 'start_now=true'],
  ['start_now=true with a bad start_date', { start_date: 'now' }, DATE, 'start_now=true'],
  ['start_now=false with null', { start_date: null }, DATE, 'start_now=false'],
  ['null without start_now', { start_date: null }, DATE],
  ['start_now=banana', { start_date: null }, DATE, 'start_now=banana'],
  ['start_now=', { start_date: null }, DATE, 'start_now='],
  [
    'start_now=true, end now',
    { start_date: null, end_date: at(0) },
    '422 period_empty Date',
    'start_now=true',
  ],
  ['start_now twice', { start_date: null }, '400 request_invalid', 'start_now=true&start_now=true'],
  ['dry_run=banana', {}, '400 request_invalid', 'dry_run=banana'],
  ['dry_run twice', {}, '400 request_invalid', 'dry_run=true&dry_run=false'],
];

const TOKEN_LISTS: Case[] = [
  ['tokens: text', { tokens: 'x' }, TOKENS],
  ['tokens: numbers', { tokens: [1, 2] }, TOKENS],
  ['tokens: null in it', { tokens: [null] }, TOKENS],
  ['tokens: a list in it', { tokens: [[]] }, TOKENS],
  ['tokens: like an array', { tokens: { length: 1, 0: 'x' } }, TOKENS],
  [`tokens: ${MAX_TOKENS + 1} numbers`, { tokens: Array(MAX_TOKENS + 1).fill(1) }, TOKENS],
  [`tokens: ${MAX_TOKENS + 1} texts`, { tokens: Array(MAX_TOKENS + 1).fill('x') }, TOKENS],
  ['tokens: text that is no token', { tokens: ['x'] }, '403 token_invalid'],
  ['tokens: a very long text', { tokens: ['x'.repeat(100_000)] }, '403 token_invalid'],
];

const SEVERAL: Case[] = [
  [
    'everything at once',
    { site1: 'atlantis', bandwidth: '0', start_date: 'x', end_date: 'y' },
    '422 site_unknown Site+Bandwidth+Date',
  ],
  ['dates and bandwidth', { bandwidth: 100, end_date: 5 }, '422 bandwidth_invalid Bandwidth+Date'],
];

const CASES: Case[] = [
  ...WRONG_TYPES,
  ...SITES,
  ...PAIRS,
  ...BANDWIDTHS,
  ...TOO_MUCH,
  ...DATES,
  ...PERIODS,
  ...NOW_OR_NOT,
  ...TOKEN_LISTS,
];

describe('row 36: a member of the body', () => {
  test.each([...CASES, ...SEVERAL])('POST %s: %3$s', async (_, changes, expected, query) => {
    expect(await leavesNothing(() => lead.book(booking(changes), query))).toBe(expected);
  });

  test.each(Object.entries(MEMBERS))('POST without %s: %s', async (member, expected) => {
    const { [member]: _, ...rest } = booking();
    expect(await leavesNothing(() => lead.book(rest))).toBe(expected);
  });

  test.each(CASES)('PUT %s: as POST', async (_, changes, expected, query) => {
    // Of sites an update only asks whether they are the ones that it has.
    const due = /site_unknown|sites_/.test(expected) ? '422 sites_fixed Site' : expected;
    expect(await leavesNothing(() => lead.update(booked.id, { tokens: [], ...changes }, query))).toBe(due);
  });
});

/** One object for each error (contract/README.md, "Validation error body"): what can be read is judged though the rest can't. */
describe('every error of a body is told at once', () => {
  const beyond = { start_date: at(-HOUR), end_date: at(100 * DAY) };
  const told = (reply: Reply): string[] => problemIn(reply).detail.map(({ loc, msg }) => `${loc} ${msg}`);

  test.each<[string, Readonly<Record<string, unknown>>, string, string[]]>([
    ['bandwidth and dates', { bandwidth: 'x', ...beyond }, '', ['Bandwidth', 'Date', 'Date']],
    ['bandwidth and one date', { bandwidth: '0', end_date: at(100 * DAY) }, '', ['Bandwidth', 'Date']],
    [
      'a start that is none, an end too late',
      { start_date: 5, end_date: at(100 * DAY) },
      '',
      ['Date', 'Date'],
    ],
    [
      'an end that is none, a start that has passed',
      { end_date: 'x', start_date: at(-HOUR) },
      '',
      ['Date', 'Date'],
    ],
    ['no tokens, an empty period', { tokens: 5, end_date: at(HOUR) }, '', ['', 'Date']],
    [
      'start_now, bandwidth and end',
      { bandwidth: 1, start_date: null, end_date: at(100 * DAY) },
      'start_now=true',
      ['Bandwidth', 'Date'],
    ],
    [
      'more than the link has, and dates',
      { bandwidth: '999999999', ...beyond },
      '',
      ['Date', 'Date', 'Bandwidth'],
    ],
  ])('POST and PUT: %s', async (_, changes, query, locations) => {
    for (const send of [
      () => lead.book(booking(changes), query),
      () => lead.update(booked.id, booking(changes), query),
    ]) {
      const reply = await send();
      expect(reply.status).toBe(422);
      expect(problemIn(reply).detail.map(({ loc }) => loc.join())).toEqual(locations);
      expect(new Set(told(reply)).size).toBe(locations.length);
    }
  });

  test('POST: an unknown site, bandwidth and dates', async () => {
    const reply = await lead.book(booking({ site1: 'atlantis', bandwidth: 'x', ...beyond }));
    expect(problemIn(reply).detail.map(({ loc }) => loc.join())).toEqual([
      'Site',
      'Bandwidth',
      'Date',
      'Date',
    ]);
  });

  test('PUT: another site and an end too late; absent members keep their values without an error', async () => {
    const reply = await lead.update(booked.id, { site1: 'fr-lille', end_date: at(100 * DAY) });
    expect(problemIn(reply).detail.map(({ loc }) => loc.join())).toEqual(['Site', 'Date']);
    const short = await lead.update(booked.id, { bandwidth: 'x', tokens: [] });
    expect(problemIn(short).detail.map(({ loc }) => loc.join())).toEqual(['Bandwidth']);
  });
});

describe('row 36: deep nesting is as wrong as one array', () => {
  test.each(Object.entries(MEMBERS))('%s: %s', async (member, expected) => {
    expect(await leavesNothing(() => lead.book(withRaw(member, deepest)))).toBe(expected);
    expect(await leavesNothing(() => lead.update(booked.id, `{"${member}":${deepest}}`))).toBe(expected);
  });

  test.each(Object.entries(MEMBERS))('%s: deeper than is parsed', async (member, expected) => {
    for (const json of [nested(MAX_NESTING), deepArray]) {
      expect(await leavesNothing(() => lead.book(withRaw(member, json)))).toBe(expected);
    }
  });
});

describe('members that the specification does not name are ignored', () => {
  test.each([
    ['a note', '{"text":"x"}'],
    ['__proto__', '{"bandwidth":"0","site1":"atlantis","isAdmin":true}'],
    ['constructor', '{"prototype":{"site1":"atlantis"}}'],
    ['toString', 'null'],
    ['id', '"con_offline.localhost_0"'],
    ['experiment_id', '"exp_offline.localhost_0"'],
    ['created_by', '"user_offline.localhost_0"'],
    ['site1_s_tag', '5000'],
    ['deep', deepest],
    ['deeper', deepArray],
  ])('%s', async (member, json) => {
    const body = `${good.slice(0, -1)},"${member}":${json}}`;
    const reply = await lead.book(body, 'dry_run=true');
    const { id: _, ...plain } = reservationIn(await lead.book(booking(), 'dry_run=true'));
    expect(reservationIn(reply)).toMatchObject(plain);
    expect(await leavesNothing(() => lead.book(body, 'dry_run=true'))).toBe('200');
  });

  test('members of __proto__ are not read as members of the body', async () => {
    const send = () => lead.book(`{"__proto__":${good}}`);
    expect(await leavesNothing(send)).toBe('422 site_invalid Site+Bandwidth+Date');
  });
});
