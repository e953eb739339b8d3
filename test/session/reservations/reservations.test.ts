import { describe, expect, test } from 'vitest';
import type { BatchItem } from '../../../src/client/batch.ts';
import { Failure } from '../../../src/contract/failure.ts';
import type { Reservation } from '../../../src/contract/reservation.ts';
import type { ReservationRequest } from '../../../src/contract/reservation-request.ts';
import { EXPERIMENT_TOKEN_HEADER } from '../../../src/contract/routes.ts';
import type { Fetch } from '../../../src/contract/sending.ts';
import { createReferenceServer } from '../../../src/reference-server.ts';
import { Profiles } from '../../../src/session/profiles/profiles.ts';
import type { Ledger, LedgerDatabase } from '../../../src/session/reservations/ledger.ts';
import type { Reservations } from '../../../src/session/reservations/reservations.ts';
import { Session } from '../../../src/session/session.ts';
import { SqliteDatabase } from '../../../src/store/sqlite/database.ts';
import { LEDGER_FORMAT } from '../../../src/store/sqlite/migrations.ts';
import { tokenOf } from '../../fixtures/command-world.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { NOW } from '../../fixtures/tokens.ts';

const HOUR = 3_600_000;
const KEY = { idempotencyKey: 'my-key' };
const LATER: ReservationRequest = {
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 1000,
  start: NOW + HOUR,
  end: NOW + 3 * HOUR,
};

/** What the network does with a request: `forward` delivers it. */
type Fate = (forward: () => Promise<Response>) => Promise<Response>;

const delivered: Fate = (forward) => forward();
const cut = (code: string): never => {
  throw Object.assign(new TypeError('fetch failed'), { code });
};
/** The request is lost before the service gets it, and the client can't know that. */
const vanished: Fate = async () => cut('ECONNRESET');
/** The service handled the request, and its answer is lost. */
const replyLost: Fate = async (forward) => {
  await forward();
  return cut('ECONNRESET');
};
/** The request was certainly not sent. */
const unreachable: Fate = async () => {
  throw new Failure('network', 'Nobody is there.', { retryable: true });
};
const answering =
  (make: () => Response): Fate =>
  async () =>
    make();
/** The service handled the request, and this comes in place of its answer. */
const replaced =
  (make: () => Response): Fate =>
  async (forward) => {
    await forward();
    return make();
  };
const page = (status: number) => (): Response =>
  new Response('<p>Please wait.</p>', { status, headers: { 'content-type': 'text/html' } });
const refusing = (status: number, code: string) => (): Response =>
  Response.json({ code, detail: [] }, { status });
/** The answer of our own service when its database is lost at the commit. */
const nobodyKnows = refusing(503, 'outcome_unknown');
const nothingDone = refusing(503, 'unavailable');

/** The extensions that a service has. */
interface Abilities {
  list: boolean;
  key: boolean;
}
const ALL: Abilities = { list: true, key: true };

/** A person's machine and a real service, with a faulty network between them. */
interface Scene {
  reservations: Reservations;
  ledger: Ledger;
  /** The fates of the next requests of a method. Later ones are delivered. */
  fates: Partial<Record<string, Fate[]>>;
  /** The number of requests of a method, for reservations. */
  sent(method: string): number;
  /** Deletes a reservation from another machine. */
  deletedElsewhere(id: string): Promise<void>;
  /** The reservations at the service, also without the list extension. */
  onServer(): Promise<Reservation[]>;
  /** The ledger, in short. */
  outcomes(): Promise<string[]>;
  notices: string[];
  /** Moves every clock. */
  wait(milliseconds: number): void;
  /** The same machine with an empty memory, as in another command. */
  again(): Reservations;
}

async function scene({ list, key }: Abilities = ALL): Promise<Scene> {
  let clock = NOW;
  const now = (): number => clock;
  const server = await createReferenceServer({ now });
  const fates: Scene['fates'] = {};
  const methods: string[] = [];
  const notices: string[] = [];
  const own = `${server.addresses.connectivity}/apis/v1alpha1/connectivity`;

  const fetch: Fetch = async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === '/api-spec') {
      const reply = await server.fetch(request);
      if (!list && !key) return new Response(null, { status: 404 });
      const spec = await reply.text();
      return new Response(key ? spec : spec.replace(/"(?:idempotencyKey|batch)",/g, ''), reply);
    }
    if (!request.url.startsWith(own)) return server.fetch(request);
    methods.push(request.method);
    if (request.method === 'GET' && pathname === new URL(own).pathname && !list) {
      return new Response(null, { status: 405 });
    }
    if (!key) request.headers.delete('idempotency-key');
    const fate = fates[request.method]?.shift() ?? delivered;
    return fate(() => server.fetch(request));
  };

  const database: LedgerDatabase = await SqliteDatabase.open(':memory:', LEDGER_FORMAT);
  const profile = await new Profiles('/dev/null/config', {}).resolve('offline');
  let keys = 0;
  const newSession = (): Session =>
    new Session({
      profile,
      connection: {
        fetch,
        userToken: tokenOf(() => server.signIn('lead')),
        close: async () => undefined,
      },
      openLedger: async () => database,
      now,
      newKey: () => {
        keys += 1;
        return `made-${keys}`;
      },
      sleep: async () => undefined,
      notice: (text) => notices.push(text),
    });
  const session = newSession();
  const { reservations } = session;
  const ledger = await session.ledger();

  const credentials = async () => ({
    authorization: `Bearer ${await server.signIn('lead')}`,
    [EXPERIMENT_TOKEN_HEADER]: (await session.access()).token.reveal(),
  });

  return {
    reservations,
    ledger,
    fates,
    notices,
    sent: (method) => methods.filter((sent) => sent === method).length,
    async deletedElsewhere(id) {
      const headers = await credentials();
      await server.fetch(new Request(`${own}/${id}`, { method: 'DELETE', headers }));
    },
    async onServer() {
      const headers = await credentials();
      const reply = await server.fetch(new Request(own, { headers }));
      return ((await reply.json()) as { items: Reservation[] }).items;
    },
    outcomes: async () =>
      (await ledger.all()).map(({ key: name, asked, outcome, id }) =>
        [name, asked, outcome, id === undefined ? 'no id' : 'id'].join(' '),
      ),
    wait: (milliseconds) => {
      clock += milliseconds;
    },
    again: () => newSession().reservations,
  };
}

/** The id of the only reservation at the service. */
async function onlyId({ onServer }: Scene): Promise<string> {
  const booked = await onServer();
  expect(booked).toHaveLength(1);
  return booked[0]?.id ?? '';
}

/** Creates a reservation without faults. */
async function bookedAt(here: Scene): Promise<Reservation> {
  return (await here.reservations.create(LATER)).reservation;
}

describe('a create request whose answer is lost', () => {
  const LOSSES: [string, Fate[]][] = [
    ['was not delivered', [vanished]],
    ['was delivered, its reply lost', [replyLost]],
    ['was delivered, its reply lost twice', [replyLost, replyLost]],
    ['was not delivered, then its reply lost', [vanished, replyLost]],
    ['was delivered, its reply lost, then not delivered', [replyLost, vanished]],
    ['was answered by a proxy, 503', [answering(page(503))]],
    ['was answered by a proxy, 502, though it was done', [replaced(page(502))]],
    ['was answered with 500 without a code, though it was done', [replaced(page(500))]],
    ['was delivered, then the service asked for fewer requests', [replyLost, answering(refusing(429, 'x'))]],
    ['row 43: was done, and the service does not know it', [replaced(nobodyKnows)]],
    ['row 43: was not done, and the service does not know it', [answering(nobodyKnows)]],
    [
      'row 43: was done without the service knowing, then it did nothing',
      [replaced(nobodyKnows), answering(nothingDone)],
    ],
  ];

  test.each(LOSSES)('%s: with keys one reservation is made and verified', async (_, fates) => {
    const here = await scene();
    here.fates['POST'] = [...fates];
    const proven = await here.reservations.create(LATER);
    const id = await onlyId(here);
    expect(proven).toMatchObject({ verified: true, reservation: { id, bandwidth: 1000 } });
    expect(await here.outcomes()).toEqual(['made-1 reserve booked id']);
    expect(
      await here.ledger.find({ experiment: proven.reservation.experiment_id, key: 'made-1' }),
    ).toMatchObject({
      reservation: proven.reservation,
      token: proven.token,
    });
    expect(here.sent('POST')).toBe(fates.length + 1);
    expect(here.notices.join('\n')).toMatch(/lost.*same idempotency key/i);
  });

  test.each<[string, Fate]>([
    ['its reply lost', replyLost],
    ['a proxy answered 502', replaced(page(502))],
    ['a page answered 200', replaced(page(200))],
    ['an empty 200', replaced(() => new Response(''))],
    ['a redirect', replaced(() => new Response(null, { status: 307, headers: { location: '/login' } }))],
  ])('was delivered, %s: with a list only it is found there, after one request', async (_, fate) => {
    const here = await scene({ list: true, key: false });
    here.fates['POST'] = [fate];
    const proven = await here.reservations.create(LATER);
    expect(proven).toMatchObject({ verified: true, reservation: { id: await onlyId(here) } });
    expect(here.sent('POST')).toBe(1);
    expect(await here.outcomes()).toEqual(['made-1 reserve booked id']);
  });

  test('a page in place of the answer: the reservation is found in the list, without a second request', async () => {
    const here = await scene();
    here.fates['POST'] = [replaced(page(200))];
    expect(await here.reservations.create(LATER)).toMatchObject({ verified: true });
    expect(here.sent('POST')).toBe(1);
    expect(await here.outcomes()).toEqual(['made-1 reserve booked id']);
  });

  test.each([
    ['a list only', { list: true, key: false }],
    ['neither', { list: false, key: false }],
  ])('was not delivered, with %s: it is unknown after one request', async (_, abilities) => {
    const here = await scene(abilities);
    here.fates['POST'] = [vanished];
    const { code, facts } = await failureOf(() => here.reservations.create(LATER));
    expect(code).toBe('network');
    expect(facts).toMatchObject({ maybeDone: true, retryable: false, fix: 'slices-conn list' });
    expect(facts.why).toMatch(/may have taken effect/);
    expect(here.sent('POST')).toBe(1);
    expect(await here.onServer()).toEqual([]);
    expect(await here.outcomes()).toEqual(['made-1 reserve unknown no id']);
    expect((await here.reservations.list()).items).toMatchObject([
      { id: null, reservation: null, state: 'unknown', source: 'ledger', requested: { bandwidth: 1000 } },
    ]);
  });

  test.each<[string, Fate]>([
    ['its reply lost', replyLost],
    ['a proxy answered 502', replaced(page(502))],
    ['a proxy answered 503', replaced(page(503))],
    ['row 43: the service does not know it', replaced(nobodyKnows)],
    ['row 43: the service fails after it', replaced(refusing(500, 'internal'))],
    ['a proxy answered 408', replaced(page(408))],
    ['a page answered 200', replaced(page(200))],
    ['an empty 200', replaced(() => new Response(''))],
    [
      'half an object',
      replaced(() => new Response('{"id":"con_', { headers: { 'content-type': 'application/json' } })),
    ],
    ['another object', replaced(() => Response.json({ ok: true }))],
    ['a redirect', replaced(() => new Response(null, { status: 307, headers: { location: '/login' } }))],
  ])('was delivered, %s: without extensions it is unknown after one request', async (_, fate) => {
    const here = await scene({ list: false, key: false });
    here.fates['POST'] = [fate];
    const { facts } = await failureOf(() => here.reservations.create(LATER));
    expect(facts).toMatchObject({ maybeDone: true, retryable: false });
    expect(here.sent('POST')).toBe(1);
    await onlyId(here);
    expect(await here.outcomes()).toEqual(['made-1 reserve unknown no id']);
  });

  test('is lost at every retry: it is unknown, and a later list finds it', async () => {
    const here = await scene();
    here.fates['POST'] = [replyLost, replyLost, replyLost];
    expect((await failureOf(() => here.reservations.create(LATER))).facts).toMatchObject({ maybeDone: true });
    expect(await here.outcomes()).toEqual(['made-1 reserve unknown no id']);
    const id = await onlyId(here);
    const { items, hasList } = await here.again().list();
    expect(hasList).toBe(true);
    expect(items).toMatchObject([
      { id, state: 'scheduled', source: 'service', requested: { bandwidth: 1000 } },
    ]);
    expect(await here.outcomes()).toEqual(['made-1 reserve booked id']);
  });

  test('was not delivered: after ten minutes the list shows that it was never made', async () => {
    const here = await scene({ list: true, key: false });
    here.fates['POST'] = [vanished];
    await failureOf(() => here.reservations.create(LATER));
    here.wait(10 * 60_000 + 1);
    expect((await here.again().list()).items).toEqual([]);
    expect(await here.outcomes()).toEqual(['made-1 reserve refused no id']);
  });

  test('a service without a description has no extensions: one request is sent', async () => {
    const here = await scene({ list: false, key: false });
    here.fates['POST'] = [replyLost];
    expect((await failureOf(() => here.reservations.create(LATER))).facts.maybeDone).toBe(true);
    expect([here.sent('POST'), here.sent('GET')]).toEqual([1, 0]);
  });

  test.each<[string, Fate]>([
    ['a token that has expired meanwhile', answering(refusing(401, 'token_expired'))],
    ['a proxy that lets nobody in, 403', answering(page(403))],
    ['a proxy that has lost the service, 404', answering(page(404))],
  ])('is lost, and the retry meets %s: it is unknown', async (_, fate) => {
    const here = await scene();
    here.fates['POST'] = [replyLost, fate];
    const { facts } = await failureOf(() => here.reservations.create(LATER));
    await onlyId(here);
    expect(await here.outcomes()).toEqual(['made-1 reserve unknown no id']);
    expect(facts.maybeDone).toBe(true);
  });
});

describe('a search whose answer is lost', () => {
  const WINDOW = { site1: 'be-gent1', site2: 'pl-poznan1', start: NOW + HOUR, end: NOW + 10 * HOUR };
  const SEARCHES: [string, ReservationRequest, object][] = [
    [
      'earliest',
      { ...WINDOW, bandwidth: 60_000, duration: 2 * HOUR },
      { bandwidth: 60_000, duration: 'PT2H' },
    ],
    ['earliest from now on', { ...WINDOW, start: 'now', bandwidth: 60_000, duration: 2 * HOUR }, {}],
    ['volume', { ...WINDOW, volume: 5_000_000_000 }, { bandwidth: null, volume: 5_000_000_000 }],
    ['volume at a rate', { ...WINDOW, bandwidth: 300, volume: 5_000_000_000 }, { bandwidth: 300 }],
  ];
  /** Somebody else has most of the link in the meantime, so that a second booking would be elsewhere. */
  const taken: ReservationRequest = { ...LATER, bandwidth: 50_000 };

  test.each(SEARCHES)('%s: sent again under its key, it is booked once', async (_, search, asked) => {
    const here = await scene();
    await here.reservations.create(taken);
    here.fates['POST'] = [replyLost, vanished];
    const { reservation } = await here.reservations.create(search);
    const booked = await here.onServer();
    expect(booked.map(({ id }) => id)).toContain(reservation.id);
    expect(booked).toHaveLength(2);
    const entry = await here.ledger.about(reservation.id);
    expect(entry).toMatchObject({ outcome: 'booked', reservation, requested: asked });
  });

  test.each(SEARCHES)('%s: with a list only, it is found there', async (_, search) => {
    const here = await scene({ list: true, key: false });
    await here.reservations.create(taken);
    here.fates['POST'] = [replyLost];
    const { reservation } = await here.reservations.create(search);
    expect((await here.onServer()).map(({ id }) => id)).toContain(reservation.id);
    expect(here.sent('POST')).toBe(2);
    expect(await here.outcomes()).toEqual(['made-1 reserve booked id', 'made-2 reserve booked id']);
  });

  test.each(SEARCHES)('%s: what lies outside of it in the list is not taken for it', async (_, search) => {
    const here = await scene({ list: true, key: false });
    // Another machine of the same person has booked in between.
    await here.reservations.create({ ...taken, end: NOW + 11 * HOUR, bandwidth: 300 });
    await here.ledger.deleted(await onlyId(here));
    here.fates['POST'] = [vanished];
    const { facts } = await failureOf(() => here.reservations.create(search));
    expect(facts.maybeDone).toBe(true);
    expect(await here.outcomes()).toContain('made-2 reserve unknown no id');
  });

  test.each(SEARCHES)(
    '%s: the same command again, hours later, is the same reservation',
    async (_, search) => {
      const here = await scene();
      here.fates['POST'] = [replyLost, replyLost, replyLost];
      await failureOf(() => here.reservations.create(search, KEY));
      expect(await here.outcomes()).toEqual(['my-key reserve unknown no id']);
      here.wait(2 * HOUR);
      const { reservation } = await here.again().create(search, KEY);
      const again = await here.again().create(search, KEY);
      expect(again.reservation).toEqual(reservation);
      expect((await here.again().list()).items).toMatchObject([{ id: reservation.id }]);
      expect(here.sent('POST')).toBe(4);
    },
  );

  test.each<[string, ReservationRequest]>([
    ['another duration', { ...WINDOW, bandwidth: 60_000, duration: HOUR }],
    ['the whole window', { ...WINDOW, bandwidth: 60_000 }],
    ['a volume', { ...WINDOW, bandwidth: 60_000, volume: 5 }],
  ])('under its key, %s is another request', async (_, other) => {
    const here = await scene();
    await here.reservations.create({ ...WINDOW, bandwidth: 60_000, duration: 2 * HOUR }, KEY);
    const failure = await failureOf(() => here.again().create(other, KEY));
    expect(failure.code).toBe('idempotency_key_reused');
    expect(here.sent('POST')).toBe(1);
  });

  test('a service that lacks it is asked for nothing, and nothing stays unknown', async () => {
    const here = await scene({ list: false, key: false });
    const failure = await failureOf(() => here.reservations.create({ ...WINDOW, volume: 5 }));
    expect(failure.code).toBe('not_supported');
    expect(here.sent('POST')).toBe(0);
    expect(await here.outcomes()).toEqual(['made-1 reserve refused no id']);
  });
});

describe('a refused create request', () => {
  test.each(['site_invalid', 'bandwidth'])(
    '%s: no request is repeated, and the entry is marked as refused',
    async (what) => {
      const here = await scene();
      const wrong =
        what === 'bandwidth' ? { ...LATER, bandwidth: 10_000_000 } : { ...LATER, site2: 'nowhere' };
      const { facts } = await failureOf(() => here.reservations.create(wrong));
      expect(facts.maybeDone).toBeUndefined();
      expect(here.sent('POST')).toBe(1);
      expect(await here.outcomes()).toEqual(['made-1 reserve refused no id']);
      expect((await here.reservations.list()).items).toEqual([]);
    },
  );

  test.each<[string, Fate]>([
    ['nobody is there', unreachable],
    ['the service says that it did nothing', answering(nothingDone)],
    ['the service asks for fewer requests', answering(refusing(429, 'x'))],
  ])('%s: it can be sent again under its key', async (_, fate) => {
    const here = await scene();
    here.fates['POST'] = [fate];
    const { facts } = await failureOf(() => here.reservations.create(LATER, KEY));
    expect(facts).toMatchObject({ retryable: true });
    expect(facts.maybeDone).toBeUndefined();
    expect(await here.outcomes()).toEqual(['my-key reserve refused no id']);
    expect((await here.again().create(LATER, KEY)).verified).toBe(true);
    expect(await here.outcomes()).toEqual(['my-key reserve booked id']);
    expect(here.sent('POST')).toBe(2);
  });
});

describe('a person’s own idempotency key', () => {
  test.each([ALL, { list: true, key: false }, { list: false, key: true }, { list: false, key: false }])(
    'run twice: the same reservation, at a service with %j',
    async (abilities) => {
      const here = await scene(abilities);
      const first = await here.reservations.create(LATER, KEY);
      here.wait(1000);
      const second = await here.again().create(LATER, KEY);
      expect(second).toMatchObject({ verified: true, reservation: first.reservation });
      expect(first.reservation.id).toBe(await onlyId(here));
      expect(here.sent('POST')).toBe(1);
      expect(await here.outcomes()).toEqual(['my-key reserve booked id']);
    },
  );

  test('another key makes another reservation', async () => {
    const here = await scene();
    await here.reservations.create(LATER, KEY);
    await here.reservations.create(LATER, { idempotencyKey: 'another' });
    expect(await here.onServer()).toHaveLength(2);
  });

  test.each<[string, Partial<ReservationRequest>]>([
    ['bandwidth', { bandwidth: 5 }],
    ['site', { site2: 'fr-lille' }],
    ['start', { start: NOW + HOUR + 1000 }],
    ['end', { end: NOW + 4 * HOUR }],
    ['start: now', { start: 'now' }],
  ])('for another %s: idempotency_key_reused, and nothing is sent', async (_, changes) => {
    const here = await scene();
    await here.reservations.create(LATER, KEY);
    const failure = await failureOf(() => here.again().create({ ...LATER, ...changes }, KEY));
    expect(failure.code).toBe('idempotency_key_reused');
    expect(failure.message).toContain('my-key');
    expect(here.sent('POST')).toBe(1);
    await onlyId(here);
  });

  test('with the times in the same words, hours later: the same reservation', async () => {
    const here = await scene();
    const typed = { ...KEY, typedTimes: '+1h for 2h' };
    const first = await here.reservations.create(LATER, typed);
    here.wait(5 * HOUR);
    const later = { ...LATER, start: NOW + 6 * HOUR, end: NOW + 8 * HOUR };
    expect((await here.again().create(later, typed)).reservation).toEqual(first.reservation);
    const otherwise = { ...KEY, typedTimes: '+1h until +3h' };
    const failure = await failureOf(() => here.again().create(later, otherwise));
    expect(failure.code).toBe('idempotency_key_reused');
    expect(here.sent('POST')).toBe(1);
  });

  test('with the times in the same words, after the answer was lost: sent as it was meant at first', async () => {
    const here = await scene();
    const typed = { ...KEY, typedTimes: '+1h for 2h' };
    here.fates['POST'] = [replyLost, vanished, vanished];
    await failureOf(() => here.reservations.create(LATER, typed));
    here.wait(HOUR);
    const later = { ...LATER, start: NOW + 2 * HOUR, end: NOW + 4 * HOUR };
    const { reservation } = await here.again().create(later, typed);
    expect(Date.parse(reservation.start_date)).toBe(LATER.start);
    expect(reservation.id).toBe(await onlyId(here));
  });

  test('after somebody else deleted it: the service is asked, and nothing is booked', async () => {
    const here = await scene();
    const { reservation } = await here.reservations.create(LATER, KEY);
    await here.deletedElsewhere(reservation.id);
    for (const _ of ['first', 'again']) {
      const failure = await failureOf(() => here.again().create(LATER, KEY));
      expect(failure.code).toBe('idempotency_key_reused');
      expect(failure.message).toMatch(/my-key was deleted/);
      expect(await here.onServer()).toEqual([]);
      expect(await here.outcomes()).toEqual(['my-key reserve deleted id']);
    }
    // Who may have forgotten the key, and who knows no keys, is not asked to book.
    here.wait(23 * HOUR);
    await failureOf(() => here.again().create(LATER, KEY));
    expect(here.sent('POST')).toBe(3);
    const keyless = await scene({ list: true, key: false });
    const other = await keyless.reservations.create(LATER, KEY);
    await keyless.deletedElsewhere(other.reservation.id);
    const failure = await failureOf(() => keyless.again().create(LATER, KEY));
    expect(failure.code).toBe('idempotency_key_reused');
    expect(keyless.sent('POST')).toBe(1);
  });

  test('after the deletion: idempotency_key_reused, and nothing is booked', async () => {
    const here = await scene();
    const { reservation } = await here.reservations.create(LATER, KEY);
    await here.reservations.delete(reservation.id);
    const failure = await failureOf(() => here.again().create(LATER, KEY));
    expect(failure.code).toBe('idempotency_key_reused');
    expect(failure.message).toMatch(/deleted/);
    expect(await here.onServer()).toEqual([]);
  });

  test.each([ALL, { list: false, key: false }])(
    '--start-now --for 2h, typed again a minute later: the same reservation; %j',
    async (abilities) => {
      const here = await scene(abilities);
      const first = await here.reservations.create({ ...LATER, start: 'now', end: NOW + 2 * HOUR }, KEY);
      here.wait(60_000);
      const later: ReservationRequest = { ...LATER, start: 'now', end: NOW + 60_000 + 2 * HOUR };
      expect((await here.again().create(later, KEY)).reservation).toEqual(first.reservation);
      await onlyId(here);
    },
  );

  test('--start-now --for 2h, its answers lost, typed again an hour later: the same reservation', async () => {
    const here = await scene();
    here.fates['POST'] = [replyLost, replyLost, replyLost];
    await failureOf(() => here.reservations.create({ ...LATER, start: 'now', end: NOW + 2 * HOUR }, KEY));
    here.wait(60_000);
    const later: ReservationRequest = { ...LATER, start: 'now', end: NOW + 60_000 + 2 * HOUR };
    const { reservation } = await here.again().create(later, KEY);
    expect(reservation).toMatchObject({ id: await onlyId(here), start_date: new Date(NOW).toISOString() });
    expect(await here.outcomes()).toEqual(['my-key reserve booked id']);
  });

  test.each<[string, Fate]>([
    ['not delivered', vanished],
    ['delivered', replyLost],
  ])('run again after its answers were lost, the first %s: one reservation is made', async (_, first) => {
    const here = await scene();
    here.fates['POST'] = [first, vanished, vanished];
    await failureOf(() => here.reservations.create(LATER, KEY));
    const { reservation } = await here.again().create(LATER, KEY);
    expect(reservation.id).toBe(await onlyId(here));
    expect(await here.outcomes()).toEqual(['my-key reserve booked id']);
  });

  test('run again at a service with a list only: found there, without another create request', async () => {
    const here = await scene({ list: true, key: false });
    here.fates['POST'] = [replyLost];
    // The list fails too, for now.
    here.fates['GET'] = [vanished];
    await failureOf(() => here.reservations.create(LATER, KEY));
    expect(await here.outcomes()).toEqual(['my-key reserve unknown no id']);
    const { reservation } = await here.again().create(LATER, KEY);
    expect(reservation.id).toBe(await onlyId(here));
    expect(here.sent('POST')).toBe(1);
  });

  test('run again at a service without extensions: still unknown, without another create request', async () => {
    const here = await scene({ list: false, key: false });
    here.fates['POST'] = [replyLost];
    await failureOf(() => here.reservations.create(LATER, KEY));
    const { code, facts } = await failureOf(() => here.again().create(LATER, KEY));
    expect([code, facts.maybeDone]).toEqual(['network', true]);
    expect(here.sent('POST')).toBe(1);
    expect(await here.outcomes()).toEqual(['my-key reserve unknown no id']);
  });

  test.each<[string, Fate]>([
    ['nobody is there', unreachable],
    ['the token has expired', answering(refusing(401, 'token_expired'))],
    ['the service asks for fewer requests', answering(refusing(429, 'x'))],
    ['the service says that it did nothing', answering(nothingDone)],
  ])('row 43: run again after its answers were lost, and %s: still unknown', async (_, fate) => {
    const here = await scene();
    here.fates['POST'] = [replyLost, vanished, vanished, fate];
    await failureOf(() => here.reservations.create(LATER, KEY));
    expect(await here.outcomes()).toEqual(['my-key reserve unknown no id']);
    const { facts } = await failureOf(() => here.again().create(LATER, KEY));
    expect(facts).toMatchObject({ maybeDone: true, retryable: false });
    expect(facts.why).toContain('An earlier request under the key my-key may have taken effect.');
    await onlyId(here);
    expect(await here.outcomes()).toEqual(['my-key reserve unknown no id']);
    expect((await here.again().create(LATER, KEY)).reservation.id).toBe(await onlyId(here));
  });

  test('after an update: the same command gives the updated reservation', async () => {
    const here = await scene();
    const { reservation } = await here.reservations.create(LATER, KEY);
    await here.reservations.update(reservation, { bandwidth: 5 });
    const again = await here.again().create(LATER, KEY);
    expect(again.reservation).toMatchObject({ id: reservation.id, bandwidth: 5 });
  });
});

describe('an update whose answer is lost', () => {
  test.each<[string, Fate]>([
    ['its reply lost', replyLost],
    ['a proxy answered 502', replaced(page(502))],
    ['row 43: the service does not know it', replaced(nobodyKnows)],
  ])('was made, %s: the reservation shows it', async (_, fate) => {
    const here = await scene();
    const reservation = await bookedAt(here);
    here.fates['PUT'] = [fate];
    const proven = await here.reservations.update(reservation, { bandwidth: 5 });
    expect(proven).toMatchObject({ verified: true, reservation: { id: reservation.id, bandwidth: 5 } });
    expect(here.sent('PUT')).toBe(1);
    expect(await here.outcomes()).toEqual(['made-1 update booked id']);
    expect((await here.ledger.all())[0]?.reservation).toMatchObject({ bandwidth: 5 });
  });

  test.each<[string, Fate]>([
    ['its request lost', vanished],
    ['row 43: the service does not know it', answering(nobodyKnows)],
  ])('was not made, %s: it is unknown, and the list settles it', async (_, fate) => {
    const here = await scene();
    const reservation = await bookedAt(here);
    here.fates['PUT'] = [fate];
    const { facts } = await failureOf(() => here.reservations.update(reservation, { bandwidth: 5 }));
    expect(facts).toMatchObject({ maybeDone: true, retryable: false, reservation: reservation.id });
    expect(facts.fix).toBe(`slices-conn show ${reservation.id}`);
    expect(await here.outcomes()).toEqual(['made-1 update unknown id']);
    expect((await here.again().list()).items).toMatchObject([
      { reservation: { bandwidth: 1000 }, state: 'scheduled', source: 'service' },
    ]);
    expect(await here.outcomes()).toEqual(['made-1 update booked id']);
  });

  test('was not made: the reservation is unchanged', async () => {
    const here = await scene();
    const reservation = await bookedAt(here);
    here.fates['PUT'] = [vanished];
    await failureOf(() => here.reservations.update(reservation, { bandwidth: 5 }));
    await here.again().list();
    expect((await here.again().list()).items).toMatchObject([{ requested: { bandwidth: 1000 } }]);
  });

  test('is unknown, with its id, when the reservation can’t be read either', async () => {
    const here = await scene({ list: false, key: false });
    const reservation = await bookedAt(here);
    here.fates['PUT'] = [replyLost];
    here.fates['GET'] = [vanished];
    const { facts } = await failureOf(() => here.reservations.update(reservation, { bandwidth: 5 }));
    expect(facts).toMatchObject({ maybeDone: true, reservation: reservation.id });
    // Without a list `show` settles the entry in the ledger. The network sees the request for the list first.
    const { items } = await here.reservations.list();
    expect(items).toMatchObject([{ id: reservation.id, state: 'unknown', source: 'ledger' }]);
    expect((await here.reservations.show(reservation.id)).reservation.bandwidth).toBe(5);
    expect(await here.outcomes()).toEqual(['made-1 update booked id']);
  });

  test('row 43: was not made, and the service says so: the reservation is unchanged', async () => {
    const here = await scene();
    const reservation = await bookedAt(here);
    here.fates['PUT'] = [answering(nothingDone)];
    const { facts } = await failureOf(() => here.reservations.update(reservation, { bandwidth: 5 }));
    expect(facts).toMatchObject({ retryable: true });
    expect(facts.maybeDone).toBeUndefined();
    expect(await here.outcomes()).toEqual(['made-1 update booked id']);
  });

  test('a refused update leaves the reservation unchanged', async () => {
    const here = await scene();
    const reservation = await bookedAt(here);
    const failure = await failureOf(() => here.reservations.update(reservation, { bandwidth: 10_000_000 }));
    expect(failure.facts.maybeDone).toBeUndefined();
    expect(await here.ledger.all()).toMatchObject([
      { outcome: 'booked', requested: { bandwidth: 1000 }, reservation: { bandwidth: 1000 } },
    ]);
  });
});

describe('a delete request whose answer is lost', () => {
  test.each<[string, Fate[]]>([
    ['was not delivered', [vanished]],
    ['was done', [replyLost]],
    ['was done, and a proxy answered 502', [replaced(page(502))]],
    ['row 43: was done, and the service does not know it', [replaced(nobodyKnows)]],
    ['row 43: was not done, and the service does not know it', [answering(nobodyKnows)]],
  ])('%s: the reservation is deleted', async (_, fates) => {
    const here = await scene();
    const { id } = await bookedAt(here);
    here.fates['DELETE'] = fates;
    await here.reservations.delete(id);
    expect(await here.onServer()).toEqual([]);
    expect(here.sent('DELETE')).toBe(2);
    expect(await here.outcomes()).toEqual(['made-1 delete deleted id']);
    expect((await here.reservations.list()).items).toMatchObject([
      { id, state: 'deleted', source: 'ledger' },
    ]);
  });

  test.each<[string, Fate[]]>([
    ['and again', [replyLost, vanished]],
    [
      'row 43: the service does not know it, and then does nothing',
      [replaced(nobodyKnows), answering(nothingDone)],
    ],
    ['a page came in its place', [replaced(page(200))]],
  ])('%s: the outcome is unknown until the next `show` or `list`', async (_, fates) => {
    const here = await scene();
    const { id } = await bookedAt(here);
    here.fates['DELETE'] = fates;
    const { facts } = await failureOf(() => here.reservations.delete(id));
    expect(facts).toMatchObject({ maybeDone: true, retryable: false, reservation: id });
    expect(await here.outcomes()).toEqual(['made-1 delete unknown id']);
    expect((await here.again().list()).items).toMatchObject([{ id, state: 'deleted', source: 'ledger' }]);
    expect(await here.outcomes()).toEqual(['made-1 delete deleted id']);
  });

  test.each<[string, Fate]>([
    ['nobody is there', unreachable],
    ['the token has expired', answering(refusing(401, 'token_expired'))],
  ])('was made, and the retry meets %s: the outcome is unknown', async (_, fate) => {
    const here = await scene({ list: false, key: false });
    const { id } = await bookedAt(here);
    here.fates['DELETE'] = [replyLost, fate];
    const { facts } = await failureOf(() => here.reservations.delete(id));
    expect(await here.onServer()).toEqual([]);
    expect(await here.outcomes()).toEqual(['made-1 delete unknown id']);
    expect(facts.maybeDone).toBe(true);
  });

  test('of a missing reservation is not_found, and its entry is deleted', async () => {
    const here = await scene();
    const { id } = await bookedAt(here);
    await here.reservations.delete(id);
    expect((await failureOf(() => here.reservations.delete(id))).code).toBe('not_found');
    expect(await here.outcomes()).toEqual(['made-1 delete deleted id']);
  });

  test('of a deleted reservation at an unreachable service: it stays deleted', async () => {
    const here = await scene({ list: false, key: false });
    const { id } = await bookedAt(here);
    await here.reservations.delete(id);
    here.fates['DELETE'] = [unreachable];
    await failureOf(() => here.reservations.delete(id));
    expect(await here.outcomes()).toEqual(['made-1 delete deleted id']);
  });
});

describe('an answer that does not verify', () => {
  const forged: Fate = async (forward) => {
    const token = await (await forward()).text();
    // A character of the signature, except the last ones, which have unused bits.
    const other = token.at(-9) === 'A' ? 'B' : 'A';
    return new Response(token.slice(0, -9) + other + token.slice(-8), {
      status: 201,
      headers: { 'content-type': 'application/jwt' },
    });
  };

  test.each([ALL, { list: false, key: false }])(
    'names the reservation, and the ledger keeps it: %j',
    async (abilities) => {
      const here = await scene(abilities);
      here.fates['POST'] = [forged];
      const failure: Failure = await failureOf(() => here.reservations.create(LATER));
      const id = await onlyId(here);
      expect(failure).toMatchObject({ code: 'unverified', facts: { reservation: id, maybeDone: true } });
      expect(failure.facts.fix).toContain(id);
      expect(here.sent('POST')).toBe(1);
      expect(await here.outcomes()).toEqual(['made-1 reserve unknown id']);
      expect((await here.reservations.list()).items).toMatchObject([{ id }]);
      expect((await here.again().show(id)).verified).toBe(true);
      expect(await here.outcomes()).toEqual(['made-1 reserve booked id']);
    },
  );

  test('to an update names the reservation too, and the outcome is unknown', async () => {
    const here = await scene();
    const reservation = await bookedAt(here);
    here.fates['PUT'] = [forged];
    const failure = await failureOf(() => here.reservations.update(reservation, { bandwidth: 5 }));
    expect(failure).toMatchObject({ code: 'unverified', facts: { reservation: reservation.id } });
    expect(await here.outcomes()).toEqual(['made-1 update unknown id']);
  });

  test('before a delete request that is not sent: the reservation stays in the ledger', {}, async () => {
    const here = await scene({ list: false, key: false });
    here.fates['POST'] = [forged];
    await failureOf(() => here.reservations.create(LATER));
    const id = await onlyId(here);
    here.fates['DELETE'] = [unreachable];
    await failureOf(() => here.reservations.delete(id));
    expect((await here.reservations.list()).items).toMatchObject([{ id }]);
  });
});

describe('changes that are made together', () => {
  const NAMED: ReservationRequest = { ...LATER, name: 'one' };
  /** A create with a name, an update, and a deletion. */
  async function changesAt(here: Scene): Promise<{ items: BatchItem[]; changed: string; gone: string }> {
    const [current, other] = [await bookedAt(here), await bookedAt(here)];
    const items: BatchItem[] = [
      { action: 'create', reservation: NAMED },
      { action: 'update', current, change: { bandwidth: 7 } },
      { action: 'delete', id: other.id },
    ];
    return { items, changed: current.id, gone: other.id };
  }

  async function stateAt(here: Scene): Promise<string[]> {
    return (await here.onServer()).map(({ name = '-', bandwidth }) => `${name} ${bandwidth}`).toSorted();
  }
  const AFTER = ['- 7', 'one 1000'];
  const BEFORE = ['- 1000', '- 1000'];

  test('each is in the ledger before they leave, and its outcome after', async () => {
    const here = await scene();
    const { items } = await changesAt(here);
    let during: string[] = [];
    here.fates['POST'] = [
      async (forward) => {
        during = await here.outcomes();
        return forward();
      },
    ];
    const results = await here.reservations.apply(items);
    expect(results).toMatchObject([
      { verified: true, reservation: { name: 'one' } },
      { verified: true },
      null,
    ]);
    expect(during).toEqual([
      'made-1 update unknown id',
      'made-2 delete unknown id',
      'made-3/1 reserve unknown no id',
    ]);
    expect(await here.outcomes()).toEqual([
      'made-1 update booked id',
      'made-2 delete deleted id',
      'made-3/1 reserve booked id',
    ]);
    expect(await stateAt(here)).toEqual(AFTER);
  });

  test.each<[string, Fate[]]>([
    ['was not delivered', [vanished]],
    ['was delivered, its reply lost', [replyLost]],
    ['was delivered, its reply lost twice', [replyLost, replyLost]],
    ['was answered by a proxy, 502, though it was done', [replaced(page(502))]],
    ['row 43: was done, and the service does not know it', [replaced(nobodyKnows)]],
    ['row 43: was not done, and the service does not know it', [answering(nobodyKnows)]],
    [
      'was done without the service knowing, then it did nothing',
      [replaced(nobodyKnows), answering(nothingDone)],
    ],
  ])('%s: made once, and verified', async (_, fates) => {
    const here = await scene();
    const { items } = await changesAt(here);
    here.fates['POST'] = [...fates];
    expect(await here.reservations.apply(items)).toMatchObject([
      { verified: true },
      { verified: true },
      null,
    ]);
    expect(await stateAt(here)).toEqual(AFTER);
    expect((await here.outcomes()).filter((line) => line.includes('unknown'))).toEqual([]);
    expect(here.notices.join('\n')).toMatch(/same idempotency key/);
  });

  test.each<[string, Fate]>([
    ['the reply of each try is lost', replyLost],
    ['each is answered by a page', replaced(page(200))],
  ])('%s: found by names in the list', async (_, fate) => {
    const here = await scene();
    const { items } = await changesAt(here);
    here.fates['POST'] = [fate, fate, fate];
    expect(await here.reservations.apply(items)).toMatchObject([
      { verified: true },
      { verified: true },
      null,
    ]);
    expect(await stateAt(here)).toEqual(AFTER);
    expect((await here.outcomes()).filter((line) => line.includes('unknown'))).toEqual([]);
  });

  test('never delivered: in doubt; the ledger says so, and the next list settles it', async () => {
    const here = await scene();
    const { items } = await changesAt(here);
    here.fates['POST'] = [vanished, vanished, vanished];
    const failure = await failureOf(() => here.reservations.apply(items));
    expect(failure).toMatchObject({ code: 'network', facts: { maybeDone: true, retryable: false } });
    expect(await stateAt(here)).toEqual(BEFORE);
    // The changes may still arrive, as a whole: that the first two stand as before settles nothing.
    expect(await here.outcomes()).toEqual([
      'made-1 update unknown id',
      'made-2 delete unknown id',
      'made-3/1 reserve unknown no id',
    ]);
    here.wait(HOUR / 2);
    await here.again().list();
    expect(await here.outcomes()).toEqual([
      'made-1 update booked id',
      'made-2 delete booked id',
      'made-3/1 reserve refused no id',
    ]);
    expect(await here.again().apply(items)).toMatchObject([{ verified: true }, { verified: true }, null]);
    expect(await stateAt(here)).toEqual(AFTER);
  });

  test('a refusal leaves the ledger as it was', async () => {
    const here = await scene();
    const { items } = await changesAt(here);
    const tooMuch: BatchItem = { action: 'create', reservation: { ...LATER, bandwidth: 1_000_000 } };
    const failure = await failureOf(() => here.reservations.apply([...items, tooMuch]));
    expect(failure.facts.details?.map(({ item }) => item)).toEqual([3]);
    expect(failure.facts.maybeDone).toBeUndefined();
    expect(await stateAt(here)).toEqual(BEFORE);
    expect((await here.outcomes()).toSorted()).toEqual(
      [
        'made-1 reserve booked id',
        'made-2 reserve booked id',
        'made-3/1 reserve refused no id',
        'made-3/4 reserve refused no id',
      ].map((line) =>
        line.replace(/made-1 reserve/, 'made-1 update').replace(/made-2 reserve/, 'made-2 delete'),
      ),
    );
  });

  test('killed before the answer: the list settles the ledger, also where the service moved the creates', async () => {
    const here = await scene();
    const busy = { action: 'create', reservation: { ...LATER, bandwidth: 100_000 } } as const;
    await here.reservations.apply([busy]);
    const items: BatchItem[] = [{ action: 'create', reservation: NAMED }];
    await new Promise<void>((killed) => {
      here.fates['POST'] = [
        async (forward) => {
          await forward();
          killed();
          return new Promise<never>(() => undefined);
        },
      ];
      void here.reservations.apply(items, { earliest: true });
    });
    expect(await here.outcomes()).toContain('made-2/1 reserve unknown no id');
    await here.again().list();
    expect(await here.outcomes()).toContain('made-2/1 reserve booked id');
    expect((await failureOf(() => here.again().apply(items))).code).toBe('name_taken');
    expect(await here.onServer()).toHaveLength(2);
  });

  test('an answer that does not verify: each id is in the ledger, in doubt', async () => {
    const here = await scene();
    const { items } = await changesAt(here);
    here.fates['POST'] = [
      async (forward) => {
        const body = (await (await forward()).json()) as { items: { token: string | null }[] };
        for (const item of body.items) if (item.token !== null) item.token = `${item.token}x`;
        return Response.json(body);
      },
    ];
    const failure = await failureOf(() => here.reservations.apply(items));
    expect(failure).toMatchObject({ code: 'unverified', facts: { maybeDone: true } });
    expect(await here.outcomes()).toEqual([
      'made-1 update unknown id',
      'made-2 delete unknown id',
      'made-3/1 reserve unknown id',
    ]);
  });

  test('a service without batches: not_supported, and the ledger has nothing', async () => {
    const here = await scene({ list: true, key: false });
    const items: BatchItem[] = [{ action: 'create', reservation: NAMED }];
    expect((await failureOf(() => here.reservations.apply(items))).code).toBe('not_supported');
    expect([here.sent('POST'), await here.outcomes()]).toEqual([0, []]);
  });
});
