import { http, type RequestHandler } from 'msw';
import { describe, expect, test } from 'vitest';
import type { ConnectivityClient } from '../../src/client/connectivity.ts';
import type { ProofOptions } from '../../src/client/proof.ts';
import type { ConnectivityClientOptions } from '../../src/client/service-requests.ts';
import type { Reservation } from '../../src/contract/reservation.ts';
import type { ReservationRequest } from '../../src/contract/reservation-request.ts';
import { Secret } from '../../src/contract/secret.ts';
import { failureOf } from '../fixtures/failures.ts';
import { create, rehearse, remove, update } from '../fixtures/single-changes.ts';
import { claimsOf, IDS, makeKey, makeToken, NOW, RESERVATION, SECONDS } from '../fixtures/tokens.ts';
import { type Answer, BASE, clientOf, described, inTurn, key, PATH, signed } from './answers.ts';
import { cut, html, json, jwt, text } from './replies.ts';

const DESCRIBED = http.get(`${BASE}/api-spec`, described);
const USER_TOKEN = makeToken(key, claimsOf('user'));
const EXPERIMENT_TOKEN = makeToken(key, claimsOf('experiment'));
const TOKENS = { userToken: USER_TOKEN, experimentToken: EXPERIMENT_TOKEN };
const OTHER_ID = 'con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4r';

/** The request that {@link RESERVATION} answers. */
const REQUEST: ReservationRequest = {
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 1000,
  start: Date.parse(RESERVATION.start_date),
  end: Date.parse(RESERVATION.end_date),
};

/** A client of a service that gives these answers to every request. */
const service = (...answers: (Response | Answer)[]) => clientOf(inTurn(...answers), TOKENS);
const serviceWith = (options: Partial<ConnectivityClientOptions>, ...handlers: RequestHandler[]) =>
  clientOf(handlers, { ...TOKENS, ...options });

/** The service's answer about all reservations, and about one. */
const post = (answer: Answer) => http.post(PATH, answer);
const getOne = (answer: Answer) => http.get(`${PATH}/:id`, answer);
const putOne = (answer: Answer) => http.put(`${PATH}/:id`, answer);
const deleteOne = (answer: Answer) => http.delete(`${PATH}/:id`, answer);

/** A reservation in JSON. A member that is undefined is left out. */
type Wire = Readonly<Partial<Record<keyof Reservation, unknown>>>;

const wire = (changes: Wire = {}): object => ({ ...RESERVATION, ...changes });

/** The three methods that verify their answer, each for {@link RESERVATION}. */
const PROVING: [string, (client: ConnectivityClient, proof?: ProofOptions) => Promise<unknown>][] = [
  ['reserve', (client, proof) => create(client, REQUEST, proof)],
  ['show', (client, proof) => client.show(IDS.reservation, proof)],
  ['update', (client, proof) => update(client, { ...RESERVATION, bandwidth: 1 }, { bandwidth: 1000 }, proof)],
];

const methodsAndAddresses = (sent: readonly { method: string; url: string }[]) =>
  sent.map(({ method, url }) => `${method} ${url.replace(PATH, '')}`);

describe('requests', () => {
  test('reserve sends the whole body, and asks for a signed answer', async () => {
    const { client, sent } = serviceWith(
      {},
      post(() => jwt(signed(), 201)),
    );
    await create(client, REQUEST);
    expect(methodsAndAddresses(sent)).toEqual(['POST ']);
    expect(sent[0]?.headers.get('accept')).toBe('application/jwt, application/json;q=0.5');
    expect(sent[0]?.headers.get('content-type')).toBe('application/json');
    expect(JSON.parse(sent[0]?.body ?? '')).toEqual({
      site1: 'be-gent1',
      site2: 'pl-poznan1',
      bandwidth: '1000',
      start_date: RESERVATION.start_date,
      end_date: RESERVATION.end_date,
      tokens: [USER_TOKEN],
    });
  });

  test.each<[string, (client: ConnectivityClient) => Promise<unknown>, Response]>([
    ['reserve', (client) => create(client, REQUEST), jwt(signed(), 201)],
    ['show', (client) => client.show(IDS.reservation), jwt(signed())],
    ['update', (client) => update(client, RESERVATION, {}), jwt(signed())],
    ['delete', (client) => remove(client, IDS.reservation), new Response(null, { status: 204 })],
    ['list', (client) => client.list(), json({ items: [] })],
  ])('%s: the two tokens go where the profile says', async (_, call, reply) => {
    const placements = [
      [{}, USER_TOKEN, 'Slices-Experiment-Token', EXPERIMENT_TOKEN],
      [{ tokenPlacement: 'user' }, USER_TOKEN, 'Slices-Experiment-Token', EXPERIMENT_TOKEN],
      [{ experimentTokenHeader: 'X-Experiment' }, USER_TOKEN, 'X-Experiment', EXPERIMENT_TOKEN],
      [{ tokenPlacement: 'experiment' }, EXPERIMENT_TOKEN, 'Slices-Experiment-Token', null],
    ] as const;
    for (const [options, authorization, header, value] of placements) {
      const { client, sent } = serviceWith(options, ...inTurn(reply.clone()));
      await call(client);
      expect(sent[0]?.headers.get('authorization')).toBe(`Bearer ${authorization}`);
      expect(sent[0]?.headers.get(header)).toBe(value);
      const carriesBody = sent[0]?.method === 'POST' || sent[0]?.method === 'PUT';
      if (carriesBody) expect(JSON.parse(sent[0]?.body ?? '')).toMatchObject({ tokens: [USER_TOKEN] });
      expect(sent[0]?.url).not.toContain('eyJ');
    }
  });
});

describe.each(PROVING)('the answer to %s', (method, call) => {
  test('is the verified content of the token', async () => {
    const token = signed();
    expect(await call(service(jwt(token)).client)).toEqual({
      reservation: RESERVATION,
      verified: true,
      token,
      claims: claimsOf('connectivity'),
    });
  });

  test.each<[string, (token: string) => Response]>([
    ['of any 2xx', (token) => jwt(token, 203)],
    ['with a line end', (token) => jwt(`${token}\n`)],
    ['of another media type', (token) => text(token, 'text/plain')],
    ['as a JSON string', (token) => json(token)],
    ['as a JSON string that calls itself a token', (token) => jwt(JSON.stringify(token))],
    [
      'of the media type in capitals, with a parameter',
      (token) => text(token, 'Application/JWT; charset=utf-8'),
    ],
  ])('can be a token %s', async (_, reply) => {
    const token = signed();
    expect(await call(service(reply(token)).client)).toMatchObject({ verified: true, token });
  });

  test.each<[string, Wire]>([
    [
      'timestamps without a zone, which mean UTC',
      { start_date: '2026-12-01T10:00:00.000', created_at: '2026-11-01T12:00:00' },
    ],
    ['timestamps without zeros', { start_date: '2026-12-01T10:00:00Z', end_date: '2026-12-02T10:00:00.0Z' }],
    ['timestamps with another offset', { start_date: '2026-12-01T11:00:00+01:00' }],
    ['bandwidth as digits', { bandwidth: '1000' }],
  ])('can have %s, and the result is the same', async (_, changes) => {
    expect(await call(service(jwt(signed(changes))).client)).toMatchObject({
      verified: true,
      reservation: RESERVATION,
    });
  });

  test('can have members that the spec does not name, which are left out', async () => {
    const token = signed({}, { connectivity: { ...RESERVATION, price: 5 }, extra: true });
    expect(await call(service(jwt(token)).client)).toMatchObject({ reservation: RESERVATION });
  });

  test.each<[string, () => string]>([
    ['signed by somebody else', () => signed({}, {}, makeKey('ES256', {}, 'stranger'))],
    ['with a byte changed', () => signed().replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))],
  ])('row 24: is refused when it is a token %s, and the failure names the reservation', async (_, token) => {
    const failure = await failureOf(() => call(service(jwt(token())).client));
    expect(failure).toMatchObject({ code: 'unverified', facts: { reservation: IDS.reservation } });
    expect(failure.facts.why).toMatch(/\S/);
    expect(`${failure.message} ${JSON.stringify(failure.facts)}`).not.toContain('eyJ');
  });

  test('in plain JSON makes the client GET the token', async () => {
    const token = signed();
    const { client, sent } = service(json(wire()), jwt(token));
    expect(await call(client)).toMatchObject({ verified: true, token });
    expect(sent).toHaveLength(2);
    expect(sent[1]).toMatchObject({ method: 'GET', url: `${PATH}/${IDS.reservation}` });
    expect(sent[1]?.headers.get('accept')).toBe('application/jwt');
  });

  test('without a signature is exit 9 with the id, unless --allow-unsigned is given', async () => {
    const answers = () => [json(wire()), json(wire({ bandwidth: '1000' }))];
    const failure = await failureOf(() => call(service(...answers()).client));
    expect(failure).toMatchObject({ code: 'unsigned', facts: { reservation: IDS.reservation } });
    expect(failure.facts.fix).toContain('--allow-unsigned');
    expect(await call(service(...answers()).client, { allowUnsigned: true })).toEqual({
      reservation: RESERVATION,
      verified: false,
      token: null,
      claims: null,
    });
  });

  // Frameworks choose the form of an answer after the handler ran: a change that is sent again would be made twice.
  test('406 to a change: it is not sent again, and may have been made; 406 to a GET: JSON is asked for', async () => {
    const { client, sent } = service(html(406), json(wire()), html(406), json(wire()));
    const called = call(client, { allowUnsigned: true });
    if (method === 'show') {
      expect(await called).toMatchObject({ verified: false, reservation: RESERVATION });
      expect(sent.slice(0, 2).map(({ headers }) => headers.get('accept'))).toEqual([
        'application/jwt',
        'application/json',
      ]);
    } else {
      expect(await failureOf(() => called)).toMatchObject({
        code: 'outcome_unknown',
        facts: { maybeDone: true },
      });
      expect(sent).toHaveLength(1);
    }
  });

  test('a list of errors under a status of success is a refusal', async () => {
    const detail = [{ loc: ['Bandwidth'], msg: 'no available vlans', type: 'NotValid' }];
    const failure = await failureOf(() => call(service(json({ detail })).client));
    expect(failure).toMatchObject({
      code: 'bandwidth_unavailable',
      facts: { details: detail },
    });
  });

  test('is refused even with --allow-unsigned when another issuer signed it', async () => {
    const token = signed({}, {}, makeKey('ES256', {}, 'stranger'));
    const failure = await failureOf(() => call(service(jwt(token)).client, { allowUnsigned: true }));
    expect(failure.code).toBe('unverified');
  });
});

describe.each(PROVING.filter(([method]) => method !== 'show'))(
  'the answer to %s, compared with the request',
  (_method, call) => {
    // What differs: test/client/searches.test.ts.
    test('row 23: is refused where it differs, signed, in plain JSON, or unsigned', async () => {
      const changes = { bandwidth: 999 };
      for (const answers of [[jwt(signed(changes))], [json(wire(changes)), jwt(signed(changes))]]) {
        const failure = await failureOf(() => call(service(...answers).client));
        expect(failure).toMatchObject({ code: 'unverified', facts: { reservation: IDS.reservation } });
      }
      const unsigned = service(json(wire(changes)), json(wire(changes)));
      const failure = await failureOf(() => call(unsigned.client, { allowUnsigned: true }));
      expect(failure).toMatchObject({ code: 'unverified', facts: { reservation: IDS.reservation } });
    });

    test.each<[string, () => Response | Answer]>([
      ['answered with 503', () => html(503)],
      ['answered with 404', () => json({}, 404)],
      ['answered with a page', () => html()],
      ['answered with nothing', () => new Response('')],
      ['cut', () => cut('{"id":')],
      ['answered with another reservation', () => json(wire({ id: OTHER_ID }))],
      [
        'not answered',
        () => () => {
          throw new TypeError('fetch failed');
        },
      ],
    ])(
      'in plain JSON, while the GET for the token is %s: the failure names the reservation',
      async (_, answer) => {
        const failure = await failureOf(() => call(service(json(wire()), answer()).client));
        // It can also name the reservation of the answer, but an id is always there.
        expect(failure.facts.reservation).toMatch(/^con_conn\.example\.org_/);
      },
    );
  },
);

describe('the answer to reserve and update', () => {
  test.each<[string, () => Response]>([
    ['200 with the reservation', () => json(wire())],
    ['200 with another object', () => json({ ok: true })],
    ['200 with nothing', () => new Response('')],
    ['202', () => new Response(null, { status: 202 })],
    ['204', () => new Response(null, { status: 204 })],
  ])('to a PUT: %s makes the client GET the reservation, and that answer counts', async (_, reply) => {
    const { client, sent } = serviceWith(
      {},
      putOne(reply),
      getOne(() => jwt(signed())),
    );
    expect(await update(client, RESERVATION, {})).toMatchObject({ verified: true });
    expect(methodsAndAddresses(sent)).toEqual([`PUT /${IDS.reservation}`, `GET /${IDS.reservation}`]);
    const failure = await failureOf(() => update(client, RESERVATION, { bandwidth: 5 }));
    expect(failure).toMatchObject({ code: 'unverified', facts: { reservation: IDS.reservation } });
  });

  test.each([
    ['a day later', '2026-11-02T12:00:00.000Z'],
    ['a day before', '2026-10-31T12:00:00.000Z'],
  ])('to start now is refused with a start %s', async (_, start_date) => {
    const token = signed({ start_date });
    const failure = await failureOf(() => create(service(jwt(token)).client, { ...REQUEST, start: 'now' }));
    expect(failure).toMatchObject({ code: 'unverified', facts: { reservation: IDS.reservation } });
  });

  test('to start now can have a start a little before or after this machine’s now', async () => {
    for (const offset of [-2000, 2000]) {
      const token = signed({ start_date: new Date(NOW + offset).toISOString() });
      const proven = await create(service(jwt(token)).client, { ...REQUEST, start: 'now' });
      expect(proven.verified).toBe(true);
    }
  });
});

describe('show', () => {
  test('row 23: a well signed token about another reservation is refused', async () => {
    for (const answer of [jwt(signed({ id: OTHER_ID })), json(wire({ id: OTHER_ID }))]) {
      const { client } = service(answer, jwt(signed({ id: OTHER_ID })));
      const failure = await failureOf(() => client.show(IDS.reservation));
      expect(failure.code).toBe('unverified');
      expect(failure.facts.reservation).toMatch(/^con_/);
    }
  });
});

describe('a dry run', () => {
  test('asks for JSON and books nothing', async () => {
    const { client, sent } = serviceWith(
      {},
      DESCRIBED,
      ...inTurn(json(wire()), json(wire({ start_date: new Date(NOW).toISOString() }))),
    );
    expect(await rehearse(client, REQUEST)).toEqual(RESERVATION);
    expect(methodsAndAddresses(sent)).toEqual([`GET ${BASE}/api-spec`, 'POST ?dry_run=true']);
    await rehearse(client, { ...REQUEST, start: 'now' });
    // The description was read for the first.
    expect(methodsAndAddresses(sent)[2]).toBe('POST ?start_now=true&dry_run=true');
  });

  test('has created a reservation when the service ignores dry_run, and the failure names it', async () => {
    const { client } = serviceWith(
      {},
      DESCRIBED,
      post(() => json(wire(), 201)),
    );
    const failure = await failureOf(() => rehearse(client, REQUEST));
    expect(failure).toMatchObject({ code: 'reply_invalid', facts: { reservation: IDS.reservation } });
  });
});

describe('delete', () => {
  test.each<[string, () => Response]>([
    ['204', () => new Response(null, { status: 204 })],
    ['202', () => new Response(null, { status: 202 })],
    ['200 with nothing', () => new Response('')],
    ['200 with the reservation', () => json(wire())],
    ['200 with another object', () => json({ deleted: true })],
  ])('%s means that it was deleted', async (_, reply) => {
    await remove(serviceWith({}, deleteOne(reply)).client, IDS.reservation);
  });
});

describe('list', () => {
  test('reads every page', async () => {
    const second = { ...RESERVATION, id: OTHER_ID };
    const first = wire({ bandwidth: '1000', start_date: '2026-12-01T10:00:00Z' });
    const pages: Record<string, object> = {
      '': { items: [first], nextCursor: 'a b&c' },
      'a b&c': { items: [], nextCursor: 'd' },
      d: { items: [second], nextCursor: null },
    };
    const page = ({ request: { url } }: { request: Request }) =>
      json(pages[new URL(url).searchParams.get('cursor') ?? '']);
    const { client, sent } = serviceWith({}, http.get(PATH, page));
    expect(await client.list()).toEqual([RESERVATION, second]);
    expect(sent.map(({ url }) => new URL(url).searchParams.get('cursor'))).toEqual([null, 'a b&c', 'd']);
    expect(new Set(sent.map(({ method }) => method))).toEqual(new Set(['GET']));
  });

  test.each<[string, (page: number) => object, number]>([
    ['names the same page again', () => ({ items: [wire()], nextCursor: 'again' }), 2],
    ['goes round in a circle', (page) => ({ items: [wire()], nextCursor: `${page % 3}` }), 4],
    ['has always one more page, with nothing in it', (page) => ({ items: [], nextCursor: `${page}` }), 1000],
    [
      'is larger than 64 MiB',
      (page) => ({ items: [], nextCursor: `${page}`, padding: 'x'.repeat(1_000_000) }),
      68,
    ],
  ])('row 56: a list that %s ends in an error', async (_, answer, pages) => {
    let asked = 0;
    const fetch = async () => {
      asked += 1;
      return json(answer(asked));
    };
    const failure = await failureOf(() => serviceWith({ fetch }).client.list());
    expect(failure).toMatchObject({
      code: 'reply_invalid',
      message: expect.stringContaining('does not end'),
    });
    expect(asked).toBe(pages);
  });

  test.each([404, 405, 501])('is not supported by a service that answers %i', async (status) => {
    expect(await service(html(status)).client.list()).toBeUndefined();
    expect(await service(html(status)).client.links()).toBeUndefined();
  });

  test.each<[string, number]>([
    ['forbidden', 403],
    ['unavailable', 503],
    ['token_invalid', 401],
  ])('%s with %i is not taken for a missing list', async (code, status) => {
    const { client } = serviceWith(
      {},
      DESCRIBED,
      http.get(PATH, () => html(status)),
    );
    expect((await failureOf(() => client.list())).code).toBe(code);
    expect((await failureOf(() => service(html(status)).client.links())).code).toBe(code);
  });
});

describe('a service whose description has no list', () => {
  const undescribed = [
    ['no description', () => html(404)],
    ['another description', () => json({ openapi: '3.1.1', paths: {} })],
  ] as const;
  test.each(undescribed)('%s: whatever it answers is no list', async (_, description) => {
    for (const answer of [() => html(), () => json({ detail: 'No.' }, 400), () => html(403)]) {
      const asked = [http.get(`${BASE}/api-spec`, description), http.get(PATH, answer)];
      expect(await serviceWith({}, ...asked).client.list()).toBeUndefined();
    }
    for (const status of [401, 429, 503]) {
      const asked = [http.get(`${BASE}/api-spec`, description), http.get(PATH, () => html(status))];
      await expect(serviceWith({}, ...asked).client.list()).rejects.toThrow();
    }
  });
});

test('a cursor of the stream of events is sent back as it came, whatever characters it has', async () => {
  const cursor = 'h 1+2&links=true#%26';
  const frame = `id: ${cursor}\nevent: cursor\ndata: {}\n\n`;
  const stream = () => new Response(frame, { headers: { 'content-type': 'text/event-stream' } });
  const { client, sent } = service(stream, stream, stream);
  const news = client.news();
  await news.mark();
  expect(await news.wait(0, async () => undefined)).toEqual([]);
  await expect.poll(() => sent.length).toBeGreaterThan(1);
  news.close();
  const { searchParams } = new URL(sent[1]?.url ?? '');
  expect([...searchParams]).toEqual([['since', cursor]]);
});

describe('403 without a code', () => {
  test('means forbidden while our token is valid, and token_expired after it has expired', async () => {
    const valid = service(json({ detail: 'Forbidden.' }, 403));
    expect((await failureOf(() => valid.client.show(IDS.reservation))).code).toBe('forbidden');
    const expired = makeToken(key, claimsOf('user', { exp: SECONDS - 1 }));
    const old = serviceWith(
      { userToken: async () => new Secret(expired) },
      getOne(() => json({ detail: 'Forbidden.' }, 403)),
    );
    expect((await failureOf(() => old.client.show(IDS.reservation))).code).toBe('token_expired');
  });
});
