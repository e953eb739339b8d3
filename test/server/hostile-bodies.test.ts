import { describe, expect, test } from 'vitest';
import { MAX_NESTING } from '../../src/contract/json.ts';
import { MAX_TOKENS } from '../../src/contract/reservation.ts';
import { EXPERIMENT_TOKEN_HEADER, ROUTES, type Route, type RouteName } from '../../src/contract/routes.ts';
import { MAX_BODY, MAX_FORM } from '../../src/server/request-reading.ts';
import { FORM_TYPE, PAGE, send, sendRaw, startIdentity } from '../fixtures/identity.ts';
import {
  addressOf,
  at,
  booking,
  DAY,
  EXPERIMENTS,
  HOUR,
  openWithLead,
  outcome,
  problemIn,
  type Reply,
  reservationIn,
} from '../fixtures/service.ts';

const { service, lead } = await openWithLead();
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

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const deepArray = nested(100_000);
/** As deep as is read, in a member of the body. */
const deepest = nested(MAX_NESTING - 1);
/** A good body's text with one member's value put in as JSON text. */
function withRaw(member: string, json: string): string {
  return JSON.stringify({ ...booking(), [member]: '@@' }).replace('"@@"', json);
}
const good = JSON.stringify(booking());
const tooMuch = JSON.stringify(booking({ bandwidth: '0' }));

const UNREADABLE = '400 body_unreadable';
const TOO_LARGE = '413 body_too_large';
const UNSUPPORTED = '415 media_type_unsupported';
/** Bodies as a whole. 400 is for what can't be read as an object, 413 for size, 415 for other media types. */
const WHOLE: [title: string, body: string | Uint8Array, expected: string, contentType?: string][] = [
  ['nothing', '', UNREADABLE],
  ['null', 'null', UNREADABLE],
  ['an array', `[${good}]`, UNREADABLE],
  ['cut off', good.slice(0, -1), UNREADABLE],
  ['a stray byte', latin1(good.replace('gent1', 'g\u00ffnt1')), UNREADABLE],
  ['a member twice, once escaped', `${good.slice(0, -1)},"site\\u0031":"x"}`, UNREADABLE],
  ['deep arrays', deepArray, UNREADABLE],
  ['an empty object', '{}', '422 site_invalid Site+Bandwidth+Date'],
  ['three megabytes in a member', withRaw('note', `"${'x'.repeat(3_000_000)}"`), TOO_LARGE],
  ['a byte more than is read', tooMuch.padEnd(MAX_BODY + 1), TOO_LARGE],
  ['as much as is read', tooMuch.padEnd(MAX_BODY), '422 bandwidth_invalid Bandwidth'],
  ['no content type', good, UNSUPPORTED, ''],
  ['plain text', good, UNSUPPORTED, 'text/plain'],
  ['a JSON patch', good, UNSUPPORTED, 'application/json-patch+json'],
  ['two content types', good, UNSUPPORTED, 'application/json, text/plain'],
  ['JSON in capitals', tooMuch, '422 bandwidth_invalid Bandwidth', 'Application/JSON; charset=utf-8'],
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

const MEMBERS = {
  site1: SITE,
  site2: SITE,
  bandwidth: BANDWIDTH,
  start_date: DATE,
  end_date: DATE,
  tokens: TOKENS,
};

type Case = [title: string, changes: Record<string, unknown>, expected: string, query?: string];

/** Of each member's forms contract/ tests all; here is what becomes of one that it refuses. */
const FORMS: Case[] = [
  ...Object.entries(MEMBERS).map(
    ([member, expected]): Case => [`${member}: an object`, { [member]: { length: 1, 0: 'x' } }, expected],
  ),
  ...['', '\ud800', "'; DROP TABLE x; --", '__proto__'].flatMap((site): Case[] => [
    [`site1: ${JSON.stringify(site)}`, { site1: site }, UNKNOWN],
    [`site2: ${JSON.stringify(site)}`, { site2: site }, UNKNOWN],
  ]),
  ['bandwidth: 0', { bandwidth: '0' }, BANDWIDTH],
  ['bandwidth: 100,000 digits', { bandwidth: '9'.repeat(100_000) }, BANDWIDTH],
  ['start_date: no zone', { start_date: '2026-12-01T10:00:00' }, DATE],
  ['end_date: 100,000 digits', { end_date: '0'.repeat(100_000) }, DATE],
  [`tokens: ${MAX_TOKENS + 1} texts`, { tokens: Array(MAX_TOKENS + 1).fill('x') }, TOKENS],
  ['tokens: text that is no token', { tokens: ['x'] }, '403 token_invalid'],
];

const NOW = 'start_now=true';
const AFTER_EXPIRY = at(90 * DAY + 1);
const RULES: Case[] = [
  ['two unknown sites', { site1: 'atlantis', site2: 'atlantis' }, UNKNOWN],
  ['equal sites', { site1: 'be-gent1', site2: 'be-gent1' }, '422 sites_equal Site'],
  ['more than the link has', { bandwidth: '100001' }, '422 bandwidth_unavailable Bandwidth'],
  ['end at the start', { start_date: at(HOUR), end_date: at(HOUR) }, '422 period_empty Date'],
  ['end before the start', { start_date: at(2 * HOUR), end_date: at(HOUR) }, '422 period_empty Date'],
  ['start a millisecond ago', { start_date: at(-1) }, '422 date_past Date'],
  ['all in the past', { start_date: at(-2 * HOUR), end_date: at(-HOUR) }, '422 date_past Date'],
  ['end a millisecond past the expiry', { end_date: AFTER_EXPIRY }, '422 experiment_ends_first Date'],
  ['end in 9999', { end_date: '9999-12-31T23:59:59.999Z' }, '422 experiment_ends_first Date'],
  ['start_now=true with a start_date', { start_date: at(HOUR) }, DATE, NOW],
  ['start_now=false with null', { start_date: null }, DATE, 'start_now=false'],
  ['start_now=banana', { start_date: null }, DATE, 'start_now=banana'],
  ['start_now=true, end now', { start_date: null, end_date: at(0) }, '422 period_empty Date', NOW],
  ['start_now twice', { start_date: null }, '400 request_invalid', `${NOW}&${NOW}`],
  ['dry_run=banana', {}, '400 request_invalid', 'dry_run=banana'],
];

describe('row 36: a member of the body', () => {
  test.each([...FORMS, ...RULES])('POST %s: %3$s', async (_, changes, expected, query) => {
    expect(await leavesNothing(() => lead.book(booking(changes), query))).toBe(expected);
  });

  test.each([...FORMS, ...RULES])('PUT %s: as POST', async (_, changes, expected, query) => {
    // Of sites an update only asks whether they are the ones that it has.
    const due = /site_unknown|sites_/.test(expected) ? '422 sites_fixed Site' : expected;
    expect(await leavesNothing(() => lead.update(booked.id, { tokens: [], ...changes }, query))).toBe(due);
  });
});

/** One object for each error (contract/README.md, "Validation error body"): what can be read is judged though the rest can't. */
describe('every error of a body is told at once', () => {
  const beyond = { start_date: at(-HOUR), end_date: at(100 * DAY) };
  const found = (reply: Reply): string[] => problemIn(reply).detail.map(({ loc }) => loc.join());

  test.each<[string, Readonly<Record<string, unknown>>, string, string[]]>([
    ['bandwidth and dates', { bandwidth: 'x', ...beyond }, '', ['Bandwidth', 'Date', 'Date']],
    ['a start that is none', { start_date: 5, end_date: at(100 * DAY) }, '', ['Date', 'Date']],
    ['an end that is none', { end_date: 'x', start_date: at(-HOUR) }, '', ['Date', 'Date']],
    ['no tokens, an empty period', { tokens: 5, end_date: at(HOUR) }, '', ['', 'Date']],
    [
      'start_now, bandwidth and end',
      { bandwidth: 1, start_date: null, end_date: at(100 * DAY) },
      NOW,
      ['Bandwidth', 'Date'],
    ],
    ['more than the link has', { bandwidth: '999999999', ...beyond }, '', ['Date', 'Date', 'Bandwidth']],
  ])('POST and PUT: %s', async (_, changes, query, locations) => {
    for (const reply of [
      await lead.book(booking(changes), query),
      await lead.update(booked.id, booking(changes), query),
    ]) {
      expect([reply.status, found(reply)]).toEqual([422, locations]);
      expect(new Set(problemIn(reply).detail.map(({ loc, msg }) => `${loc} ${msg}`)).size).toBe(
        locations.length,
      );
    }
  });

  test('an unknown site, or another one; absent members of an update keep their values without an error', async () => {
    const reply = await lead.book(booking({ site1: 'atlantis', bandwidth: 'x', ...beyond }));
    expect(found(reply)).toEqual(['Site', 'Bandwidth', 'Date', 'Date']);
    const other = await lead.update(booked.id, { site1: 'fr-lille', end_date: at(100 * DAY) });
    expect(found(other)).toEqual(['Site', 'Date']);
    expect(found(await lead.update(booked.id, { bandwidth: 'x', tokens: [] }))).toEqual(['Bandwidth']);
  });
});

test.each(Object.entries(MEMBERS))(
  'row 36: deep nesting is as wrong as one array: %s: %s',
  async (member, expected) => {
    expect(await leavesNothing(() => lead.update(booked.id, `{"${member}":${deepest}}`))).toBe(expected);
    for (const json of [deepest, nested(MAX_NESTING), deepArray]) {
      expect(await leavesNothing(() => lead.book(withRaw(member, json)))).toBe(expected);
    }
  },
);

const { headers: own } = lead;
const { authorization = '', [EXPERIMENT_TOKEN_HEADER]: experiment = '' } = own;
/** The same token with another signature. */
const forged = (token: string): string => token.replace(/[^.]{8}$/, 'AAAAAAAA');

/** A body that counts its reads. */
function countedBody() {
  const count = { pulled: 0 };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(stream) {
        count.pulled += 1;
        stream.enqueue(Buffer.from(JSON.stringify(booking())));
        stream.close();
      },
    },
    { highWaterMark: 0 },
  );
  return { body, count };
}

const ID = 'con_offline.localhost_01jd3x0m2sf0vrv9mhb1wk6x4q';
const WITH_BODY: [method: string, address: string][] = [
  ['POST', addressOf('createReservation')],
  ['PUT', addressOf('updateReservation', ID)],
  ['POST', EXPERIMENTS],
];
const CREDENTIALS: [title: string, headers: Record<string, string>, expected: string][] = [
  ['no token', {}, '403 token_missing'],
  ['Basic', { authorization: 'Basic YTpi' }, '403 token_invalid'],
  ['what is no token', { authorization: 'Bearer a.b.c' }, '403 token_invalid'],
  ['a forged user token', { ...own, authorization: forged(authorization) }, '403 token_invalid'],
  ['a forged experiment token', { authorization: `Bearer ${forged(experiment)}` }, '403 token_invalid'],
];

describe.each(WITH_BODY)('row 47: %s %s', (method, address) => {
  test.each(CREDENTIALS)(
    '%s: the request is refused, and the body is not read',
    async (_, headers, expected) => {
      const { body, count } = countedBody();
      expect(outcome(await service.send(method, address, { headers, body }))).toBe(expected);
      expect(count.pulled).toBe(0);
    },
  );

  test('with a valid token the body is read', async () => {
    const { body, count } = countedBody();
    const { status } = await service.send(method, address, { headers: own, body });
    expect(status).not.toBe(403);
    expect(count.pulled).toBe(1);
  });
});

test('row 47: a forged token in the experiment token’s header is refused without reading the body', async () => {
  const { body, count } = countedBody();
  const headers = { ...own, [EXPERIMENT_TOKEN_HEADER]: forged(experiment) };
  const reply = await service.send('POST', addressOf('createReservation'), { headers, body });
  expect(outcome(reply)).toBe('403 token_invalid');
  expect(count.pulled).toBe(0);
});

const server = await startIdentity();
const token = await server.server.signIn('lead');
const listed = await send(server, 'GET', EXPERIMENTS, { headers: { authorization: `Bearer ${token}` } });
/** One that the caller leads: who does not is told so before a body is read. */
const ledThere = String(JSON.parse(listed.text).experiments[0].id);
/** Every address that reads a body, its media type and its limit in bytes. */
const LIMITED: [method: string, address: string, type: string, limit: number][] = [
  ...(Object.entries(ROUTES) as [RouteName, Route][])
    .filter(([, { request }]) => request !== undefined)
    .map(([name, { method }]): [string, string, string, number] => [
      method,
      addressOf(name, name === 'addCiRule' ? ledThere : ID),
      'application/json',
      MAX_BODY,
    ]),
  ...['/auth/token', '/auth/device/auth', '/auth/token/revocation', PAGE].map(
    (address): [string, string, string, number] => ['POST', address, FORM_TYPE, MAX_FORM],
  ),
];
/** Addresses that read no body, and get one. */
const OTHERS: [method: string, address: string][] = [
  ['DELETE', addressOf('deleteReservation', ID)],
  ['POST', '/nowhere'],
  ['PUT', '/auth/token'],
];

const head = (method: string, address: string, ...headers: string[]): string =>
  [
    `${method} ${address} HTTP/1.1`,
    `Host: ${new URL(server.base).host}`,
    `Authorization: Bearer ${token}`,
    ...headers,
    '',
    '',
  ].join('\r\n');
const statusOf = (reply: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(reply)?.[1]);

describe('row 41: a body that is too large', () => {
  test('nine endpoints read a body', () => {
    expect(LIMITED).toHaveLength(9);
  });

  // The server reads on for a while before it closes a connection: the tests wait for that together.
  test.concurrent.each(LIMITED)(
    '%s %s: 413 with and without Content-Length, and the connection ends',
    async (method, address, type, limit) => {
      const own = `Content-Type: ${type}`;
      const told = head(method, address, own, 'Content-Length: 1000000000');
      expect(statusOf(await sendRaw(server, told, 'a'.repeat(limit + 1)))).toBe(413);
      const chunked = head(method, address, own, 'Transfer-Encoding: chunked');
      const size = limit + 1;
      expect(
        statusOf(await sendRaw(server, chunked, `${size.toString(16)}\r\n${'a'.repeat(size)}\r\n`)),
      ).toBe(413);
    },
  );

  test.concurrent.each(OTHERS)(
    '%s %s reads no body: the answer does not wait for it',
    async (method, address) => {
      const reply = await sendRaw(
        server,
        head(method, address, 'Content-Length: 1000000000'),
        'a'.repeat(MAX_BODY),
      );
      expect(statusOf(reply)).toBeGreaterThanOrEqual(200);
    },
  );
});
