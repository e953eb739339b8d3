import { http, type RequestHandler } from 'msw';
import { describe, expect, test } from 'vitest';
import { differenceFrom, startNowBetween } from '../../src/client/proof.ts';
import type { Reservation } from '../../src/contract/reservation.ts';
import type { ReservationRequest } from '../../src/contract/reservation-request.ts';
import { failureOf } from '../fixtures/failures.ts';
import { create } from '../fixtures/single-changes.ts';
import { IDS, NOW, RESERVATION } from '../fixtures/tokens.ts';
import { type Answer, BASE, clientOf, described, PATH, signed } from './answers.ts';
import { html, json, jwt, text } from './replies.ts';

const LINK = `${BASE}/apis/v1alpha1/links/be-gent1/pl-poznan1`;
const HOUR = 3_600_000;
const at = (offset: number): string => new Date(NOW + offset).toISOString();

const SITES = { site1: 'be-gent1', site2: 'pl-poznan1' } as const;
/** Two hours of 1000 Mbps within the next ten hours. */
const EARLIEST = { ...SITES, bandwidth: 1000, start: NOW + HOUR, end: NOW + 10 * HOUR, duration: 2 * HOUR };
const PERIOD = { ...SITES, bandwidth: 1000, start: NOW + 3 * HOUR, end: NOW + 5 * HOUR };
/** What 1000 Mbps carry in two hours, with at most 2000 Mbps. */
const VOLUME = {
  ...SITES,
  bandwidth: 2000,
  start: NOW + HOUR,
  end: NOW + 10 * HOUR,
  volume: 900_000_000_000,
};
const THROUGH = { ...PERIOD, via: ['fr-lille', 'fr-nantes'] };
const AROUND = { ...PERIOD, avoid: ['fr-nantes', 'fr-slices'] };
const DIRECT = { ...PERIOD, direct: true };

/** Descriptions of services that lack the extensions, and none at all. */
const LACKING: [string, Answer][] = [
  [
    'a description of what the specification has',
    () => json({ openapi: '3.1.0', paths: { '/apis/v1alpha1/connectivity': { post: {} } } }),
  ],
  ['a page', () => html()],
  ['no description', () => json({}, 404)],
  ['a description for those who are logged in only', () => json({}, 401)],
  ['a description that is away', () => text('', 'text/plain', 503)],
];

const service = (spec: Answer, handlers: readonly RequestHandler[] = []) =>
  clientOf([http.get(`${BASE}/api-spec`, spec), ...handlers]);

/** A signed answer. Without changes, what {@link EARLIEST} and {@link VOLUME} ask for. */
const found = (changes: Partial<Reservation> = {}) =>
  signed({ start_date: at(3 * HOUR), end_date: at(5 * HOUR), ...changes });

describe('a service without the extensions', () => {
  const SEARCHES: [string, ReservationRequest, RegExp][] = [
    ['earliest', EARLIEST, /can't look for the earliest start/],
    ['volume', VOLUME, /can't book for a volume/],
    ['via', { ...PERIOD, via: ['se-kth'] }, /can't be asked for a route/],
    ['avoid', { ...PERIOD, avoid: ['se-kth'] }, /can't be asked for a route/],
    ['direct', { ...PERIOD, direct: true }, /can't be asked for a route/],
  ];
  const asked = SEARCHES.flatMap((search) => LACKING.map((spec) => [...search, ...spec] as const));

  test.each(asked)(
    '%s, and %4$s: not_supported, and nothing is sent',
    async (_, request, lacks, __, spec) => {
      for (const dryRun of [false, true]) {
        const { client, sent } = service(spec);
        const failure = await failureOf(() => create(client, request, { dryRun }));
        expect(failure.code).toBe('not_supported');
        expect(failure.message).toMatch(dryRun ? /./ : lacks);
        expect(failure.facts.why).toMatch(/^Its API description does not mention .*Nothing was booked\.$/);
        expect(sent.map((request) => request.url)).toEqual([`${BASE}/api-spec`]);
      }
    },
  );

  test('a route in a batch: not_supported, and nothing is sent', async () => {
    const spec = json({ info: { 'x-slices-extensions': ['batch'] } });
    const { client, sent } = service(() => spec);
    const items = [{ ...PERIOD, direct: true }, PERIOD].map(
      (request) => ({ action: 'create', request }) as const,
    );
    const failure = await failureOf(() => client.change(items));
    expect(failure).toMatchObject({ code: 'not_supported', message: /can't be asked for a route/ });
    expect(failure.facts.fix).toStrictEqual({ via: undefined, avoid: undefined, direct: undefined });
    expect(sent).toHaveLength(1);
  });

  test('questions about a route: not_supported, and nothing is asked', async () => {
    const { client, sent } = service(() =>
      json({ info: { 'x-slices-extensions': ['availability', 'slots'] } }),
    );
    const [asked, lacks] = [{ ...SITES, avoid: ['se-kth'] }, /can't be asked for a route/];
    await expect(client.availability(asked)).rejects.toThrow(lacks);
    await expect(client.slots({ ...asked, bandwidth: 1, duration: HOUR })).rejects.toThrow(lacks);
    await expect(client.routes(asked)).rejects.toThrow(lacks);
    expect(sent).toHaveLength(1);
  });

  test('a description that can’t be fetched: the network’s failure, and nothing is sent', async () => {
    const away: Answer = () => {
      throw new TypeError('fetch failed');
    };
    const { client, sent } = service(away);
    const failure = await failureOf(() => create(client, EARLIEST));
    expect(failure).toMatchObject({ code: 'network', facts: { retryable: true } });
    expect(failure.facts.maybeDone).toBeUndefined();
    expect(sent).toHaveLength(1);
  });

  test('a request that the specification has needs no description', async () => {
    const { start_date, end_date } = RESERVATION;
    const request = { ...SITES, bandwidth: 1000, start: Date.parse(start_date), end: Date.parse(end_date) };
    const { client, sent } = service(
      () => html(500),
      [http.post(PATH, () => jwt(found({ start_date, end_date }), 201))],
    );
    expect(await create(client, request)).toMatchObject({ verified: true });
    expect(sent).toHaveLength(1);
  });

  test.each<[string, Answer, Answer]>([
    ['has no such address', () => json({}, 404), () => json({}, 404)],
    ['answers it with a page', () => html(), LACKING[0]?.[1] ?? described],
    ['answers it with something else', () => json({ data: [] }), LACKING[0]?.[1] ?? described],
  ])('availability and slots, where it %s: not_supported', async (_, answer, spec) => {
    const { client } = service(spec, [http.get(`${LINK}/:what`, answer)]);
    const use = await failureOf(() => client.availability(SITES));
    expect(use).toMatchObject({ code: 'not_supported', message: /use over time/ });
    const slots = await failureOf(() => client.slots({ ...SITES, bandwidth: 1, duration: HOUR }));
    expect(slots).toMatchObject({ code: 'not_supported', message: /can start/ });
    expect(slots.facts.fix).toStrictEqual({ bandwidth: undefined, duration: undefined });
  });

  test('a service that describes them and fails: its own failure', async () => {
    const { client } = service(described, [http.get(`${LINK}/:what`, () => html())]);
    expect((await failureOf(() => client.availability(SITES))).code).toBe('reply_invalid');
    const refusing = service(described, [http.get(`${LINK}/:what`, () => json({ code: 'x' }, 403))]);
    expect((await failureOf(() => refusing.client.availability(SITES))).code).toBe('forbidden');
  });
});

describe('the proof is that the reservation lies within what was asked for', () => {
  const CASES: [string, ReservationRequest, Partial<Reservation>, string | undefined][] = [
    ['the period', PERIOD, {}, undefined],
    ['another bandwidth', PERIOD, { bandwidth: 999 }, 'It is for 999 Mbps, not 1000.'],
    ['another start', PERIOD, { start_date: at(3 * HOUR + 1) }, 'It starts at '],
    ['an earlier end', PERIOD, { end_date: at(5 * HOUR - 1) }, 'It ends at '],
    ['a later end', PERIOD, { end_date: at(5 * HOUR + 1) }, 'It ends at '],
    ['the sites the other way round', PERIOD, { site1: 'pl-poznan1', site2: 'be-gent1' }, 'It is for '],
    ['any period of the duration', EARLIEST, {}, undefined],
    ['the first one', EARLIEST, { start_date: at(HOUR), end_date: at(3 * HOUR) }, undefined],
    ['the last one', EARLIEST, { start_date: at(8 * HOUR), end_date: at(10 * HOUR) }, undefined],
    ['one too early', EARLIEST, { start_date: at(HOUR - 1), end_date: at(3 * HOUR - 1) }, 'It starts at '],
    ['one too late', EARLIEST, { start_date: at(8 * HOUR + 1), end_date: at(10 * HOUR + 1) }, 'It ends at '],
    ['a longer one', EARLIEST, { end_date: at(5 * HOUR + 1) }, 'It lasts for PT2H0.001S, not for PT2H.'],
    ['a shorter one', EARLIEST, { end_date: at(4 * HOUR) }, 'It lasts for PT1H, not for PT2H.'],
    ['the whole window', EARLIEST, { start_date: at(HOUR), end_date: at(10 * HOUR) }, 'It lasts for PT9H'],
    ['less bandwidth', EARLIEST, { bandwidth: 999 }, 'It is for 999 Mbps, not 1000.'],
    ['more bandwidth', EARLIEST, { bandwidth: 1001 }, 'It is for 1001 Mbps, not 1000.'],
    ['other sites', EARLIEST, { site2: 'gr-uth' }, 'It is for be-gent1 – gr-uth'],
    ['another experiment', EARLIEST, { experiment_id: `${IDS.experiment}x` }, 'It belongs to '],
    [
      'from now on: a start before now',
      { ...EARLIEST, start: 'now' },
      { start_date: at(-HOUR - 1), end_date: at(HOUR - 1) },
      'It starts at 2026-11-01T10:59:59.999Z, before now.',
    ],
    [
      'from now on: a clock that is behind',
      { ...EARLIEST, start: 'now' },
      { start_date: at(-HOUR), end_date: at(HOUR) },
      undefined,
    ],
    [
      'from now on, for a period that was named: another start',
      { ...SITES, bandwidth: 1000, start: 'now', end: NOW + 5 * HOUR },
      {},
      'It starts at 2026-11-01T15:00:00.000Z, not now.',
    ],
    [
      'a period that was named: another start',
      { ...SITES, bandwidth: 1000, start: NOW, end: NOW + 5 * HOUR },
      {},
      'It starts at 2026-11-01T15:00:00.000Z, not at 2026-11-01T12:00:00.000Z.',
    ],
    ['a rate that carries the volume', VOLUME, {}, undefined],
    ['the largest rate', VOLUME, { bandwidth: 2000, end_date: at(4 * HOUR) }, undefined],
    ['a larger rate', VOLUME, { bandwidth: 2001 }, 'It is for 2001 Mbps, not at most 2000.'],
    ['a rate that is too small', VOLUME, { bandwidth: 999 }, 'which does not carry 900000000000 bytes.'],
    ['a period that is too short', VOLUME, { end_date: at(5 * HOUR - 1) }, 'which does not carry '],
    ['one after the deadline', VOLUME, { end_date: at(10 * HOUR + 1) }, 'It ends at '],
    ['one before the start', VOLUME, { start_date: at(0) }, 'It starts at '],
  ];
  const ROUTES: typeof CASES = [
    [
      'a route through the sites that were named',
      THROUGH,
      { via: ['fr-lille', 'fr-slices', 'fr-nantes'] },
      undefined,
    ],
    ['one in another order', THROUGH, { via: ['fr-nantes', 'fr-lille'] }, 'It does not pass fr-nantes'],
    ['one past one of them', THROUGH, { via: ['fr-lille', 'fr-slices'] }, 'It does not pass fr-nantes'],
    ['one through none of them', THROUGH, {}, 'It does not pass fr-lille'],
    ['one through another site than was to be avoided', AROUND, { via: ['fr-lille'] }, undefined],
    ['one through a site that was', AROUND, { via: ['fr-lille', 'fr-slices'] }, 'It passes fr-slices'],
    ['a link where a direct one was asked for', DIRECT, {}, undefined],
    ['a route there', DIRECT, { via: ['se-kth'] }, 'It has several hops'],
  ];

  const differs = (_: string, request: ReservationRequest, changes: Partial<Reservation>, why?: string) => {
    const reservation = { ...RESERVATION, start_date: at(3 * HOUR), end_date: at(5 * HOUR), ...changes };
    const due = { request, now: startNowBetween(NOW, NOW), experiment: IDS.experiment };
    const said = differenceFrom(reservation, due);
    if (why === undefined) expect(said).toBeUndefined();
    else expect(said).toContain(why);
  };
  test.each(CASES)('%s', differs);
  test.each(ROUTES)('row 130: %s', differs);

  test('the answer to a repeated request may start when the first one was sent', async () => {
    const answer = found({ start_date: at(-5 * HOUR), end_date: at(-3 * HOUR) });
    const { client } = service(described, [http.post(PATH, () => jwt(answer, 201))]);
    const request = { ...EARLIEST, start: 'now' } as const;
    expect((await failureOf(() => create(client, request))).code).toBe('unverified');
    const again = create(client, request, { idempotencyKey: 'k', firstSentAt: NOW - 5 * HOUR });
    expect(await again).toMatchObject({ verified: true });
  });
});

describe('questions about a link', () => {
  const part = (start: number, end: number) => ({
    start_date: at(start).replace('.000Z', 'Z'),
    end_date: at(end).replace('Z', '+00:00'),
    bandwidth: 5,
    bandwidth_max: 6,
    vlans: 7,
  });
  const whole = { ...SITES, bandwidth: 10, start_date: at(0), end_date: at(3 * HOUR), exact: true };

  test('all pages of availability are one answer, with the user token alone', async () => {
    const pages: Record<string, object> = {
      '': { ...whole, items: [part(0, HOUR), part(HOUR, 2 * HOUR)], nextCursor: 'a b' },
      'a b': { ...whole, items: [part(2 * HOUR, 3 * HOUR)] },
    };
    const { client, sent } = service(described, [
      http.get(`${LINK}/availability`, ({ request }) =>
        json(pages[new URL(request.url).searchParams.get('cursor') ?? '']),
      ),
    ]);
    const found = await client.availability({ ...SITES, start: NOW, end: NOW + 3 * HOUR });
    expect(found).toMatchObject({ bandwidth: 10, start_date: at(0), exact: true, nextCursor: null });
    expect(found.items.map(({ start_date }) => start_date)).toEqual([at(0), at(HOUR), at(2 * HOUR)]);
    expect(found.items[0]?.end_date).toBe(at(HOUR));
    expect(sent.map(({ url }) => new URL(url).search)).toEqual([
      '?start=2026-11-01T12%3A00%3A00.000Z&end=2026-11-01T15%3A00%3A00.000Z',
      '?start=2026-11-01T12%3A00%3A00.000Z&end=2026-11-01T15%3A00%3A00.000Z&cursor=a%20b',
    ]);
    expect(sent[0]?.headers.has('slices-experiment-token')).toBe(false);
    await client.availability({ ...SITES, points: 24 });
    expect(sent.at(-2)?.url).toBe(`${LINK}/availability?points=24`);
    await client.availability(SITES);
    expect(new URL(sent.at(-1)?.url ?? '').search).toBe('?cursor=a%20b');
  });

  test('slots carry the experiment token, where there is one', async () => {
    const slot = { first_start_date: at(0), last_start_date: at(HOUR) };
    const { client, sent } = service(described, [
      http.get(`${LINK}/slots`, () => json({ items: [slot], nextCursor: null })),
    ]);
    const question = { ...SITES, bandwidth: 5, duration: 90_000, end: NOW + HOUR };
    expect(await client.slots(question)).toEqual([slot]);
    expect(sent[0]?.url).toBe(`${LINK}/slots?end=2026-11-01T13%3A00%3A00.000Z&bandwidth=5&duration=PT1M30S`);
    expect(sent[0]?.headers.get('slices-experiment-token')).toMatch(/^ey/);
    const { client: without, sent: others } = clientOf(
      [http.get(`${LINK}/slots`, () => json({ items: [] }))],
      { experimentToken: () => Promise.reject(new RangeError('no experiment')) },
    );
    expect(await without.slots(question)).toEqual([]);
    expect(others[0]?.headers.has('slices-experiment-token')).toBe(false);
  });
});

describe('the facts of a refusal', () => {
  const detail = [{ loc: ['Bandwidth'], msg: 'no', type: 'NotValid' }];
  const refusalOf = (facts: object) =>
    failureOf(() =>
      create(service(described, [http.post(PATH, () => json({ detail, ...facts }, 422))]).client, EARLIEST),
    );
  const period = { start_date: at(HOUR), end_date: at(2 * HOUR) };

  test('alternatives, limits and what is free', async () => {
    const facts = {
      alternatives: [
        { kind: 'most_bandwidth', start_now: true, start_date: null, end_date: at(HOUR), bandwidth: 5 },
        { kind: 'earliest', start_now: false, ...period, bandwidth: 1000 },
      ],
      limits: [{ limit: 'tags', site: 'be-gent1', layer: 'S', capacity: 3, free: 0, ...period }],
      free: [{ ...period, bandwidth: 0 }],
    };
    expect((await refusalOf(facts)).facts).toMatchObject(facts);
  });

  const earliest = { kind: 'earliest', start_now: false, bandwidth: 1, ...period };
  test.each<[string, unknown]>([
    ['of a kind that is not known here', { ...earliest, kind: 'cheapest' }],
    ['without a bandwidth', { ...earliest, bandwidth: undefined }],
    ['with another text for a time', { ...earliest, start_date: '$(touch pwned)' }],
    ['that is null', null],
  ])('an alternative %s is left out', async (_, alternative) => {
    const { facts } = await refusalOf({ alternatives: [alternative, earliest] });
    expect(facts.alternatives).toEqual([earliest]);
  });

  test.each([
    { limits: 'many', free: 3 },
    { limits: [null, {}], free: [[], 'x'] },
  ])('members of these names for something else are left out: %j', async (facts) => {
    expect((await refusalOf(facts)).facts).toMatchObject({ limits: [], free: [], alternatives: [] });
  });
});
