import { describe, expect, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import type { Reservation } from '../../../src/contract/reservation.ts';
import {
  asRequest,
  type ChangeItem,
  type ReservationRequest,
} from '../../../src/contract/reservation-request.ts';
import { EXPERIMENT_TOKEN_HEADER } from '../../../src/contract/routes.ts';
import type { Fetch } from '../../../src/contract/sending.ts';
import { createReferenceServer } from '../../../src/reference-server.ts';
import { Profiles } from '../../../src/session/profiles/profiles.ts';
import type { LedgerDatabase } from '../../../src/session/reservations/ledger.ts';
import { Session } from '../../../src/session/session.ts';
import { SqliteDatabase } from '../../../src/store/sqlite/database.ts';
import { LEDGER_FORMAT } from '../../../src/store/sqlite/format.ts';
import { tokenOf } from '../../fixtures/command-world.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { create, remove } from '../../fixtures/single-changes.ts';
import { LATER, NOW } from '../../fixtures/tokens.ts';

const HOUR = 3_600_000;
const KEY = { idempotencyKey: 'my-key' };

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
const fewer = answering(refusing(429, 'x'));
const expired = answering(refusing(401, 'token_expired'));

/** The extensions that a service has. */
interface Abilities {
  list: boolean;
  key: boolean;
}
const ALL: Abilities = { list: true, key: true };
const LIST_ONLY: Abilities = { list: true, key: false };
const NONE: Abilities = { list: false, key: false };

/** A person's machine and a real service, with a faulty network between them. */
async function scene({ list, key }: Abilities = ALL) {
  let clock = NOW;
  const now = (): number => clock;
  const server = await createReferenceServer({ now });
  /** The fates of the next requests of a method, or for the description of the service. Later ones are delivered. */
  const fates: Partial<Record<string, Fate[]>> = {};
  const methods: string[] = [];
  const notices: string[] = [];
  const own = `${server.addresses.connectivity}/apis/v1alpha1/connectivity`;

  const fetch: Fetch = async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === '/api-spec') {
      const fate = fates['description']?.shift();
      if (fate) return fate(() => server.fetch(request));
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
    /** The number of requests of a method, for reservations. */
    sent: (method: string) => methods.filter((sent) => sent === method).length,
    /** Deletes a reservation from another machine. */
    async deletedElsewhere(id: string) {
      const headers = await credentials();
      await server.fetch(new Request(`${own}/${id}`, { method: 'DELETE', headers }));
    },
    /** The reservations at the service, also without the list extension. */
    async onServer() {
      const headers = await credentials();
      const reply = await server.fetch(new Request(own, { headers }));
      return ((await reply.json()) as { items: Reservation[] }).items;
    },
    /** The ledger, in short. */
    outcomes: async () =>
      (await ledger.entries()).map(({ key: name, asked, outcome, id }) =>
        [name, asked, outcome, id === undefined ? 'no id' : 'id'].join(' '),
      ),
    /** Moves every clock. */
    wait: (milliseconds: number) => {
      clock += milliseconds;
    },
    /** The same machine with an empty memory, as in another command. */
    again: () => newSession().reservations,
  };
}

type Scene = Awaited<ReturnType<typeof scene>>;

/** The id of the only reservation at the service. */
async function onlyId({ onServer }: Scene): Promise<string> {
  const booked = await onServer();
  expect(booked).toHaveLength(1);
  return booked[0]?.id ?? '';
}

/** Creates a reservation without faults. */
async function bookedAt(here: Scene): Promise<Reservation> {
  return (await create(here.reservations, LATER)).reservation;
}

/** One kind of change at a scene: what is asked for, and what is at the service before and after. */
interface Change {
  items: readonly ChangeItem[];
  method: string;
  before: string[];
  after: string[];
}

const CHANGES = {
  create: async () => ({
    items: [{ action: 'create', request: LATER }],
    ...{ method: 'POST', before: [], after: ['- 1000'] },
  }),
  update: async (here) => {
    const current = await bookedAt(here);
    const request = { ...asRequest(current), bandwidth: 5 };
    return {
      items: [{ action: 'update', id: current.id, request }],
      ...{ method: 'PUT', before: ['- 1000'], after: ['- 5'] },
    };
  },
  deletion: async (here) => ({
    items: [{ action: 'delete', id: (await bookedAt(here)).id }],
    ...{ method: 'DELETE', before: ['- 1000'], after: [] },
  }),
  batch: async (here) => {
    const [current, other] = [await bookedAt(here), await bookedAt(here)];
    const request = { ...asRequest(current), bandwidth: 7 };
    return {
      items: [
        { action: 'create', request: { ...LATER, name: 'one' } },
        { action: 'update', id: current.id, request },
        { action: 'delete', id: other.id },
      ],
      ...{ method: 'POST', before: ['- 1000', '- 1000'], after: ['- 7', 'one 1000'] },
    };
  },
} as const satisfies Record<string, (here: Scene) => Promise<Change>>;

/** The reservations at the service, in short. */
async function stateOf(here: Scene): Promise<string[]> {
  return (await here.onServer()).map(({ name = '-', bandwidth }) => `${name} ${bandwidth}`).toSorted();
}

describe('an answer that is lost', () => {
  const redirect = (): Response => new Response(null, { status: 307, headers: { location: '/login' } });
  const half = (): Response =>
    new Response('{"id":"con_', { headers: { 'content-type': 'application/json' } });

  type Kind = keyof typeof CHANGES;
  /** Whether the outcome is found, or stays unknown though the changes were made or not; and how many were sent. */
  type Found = 'made' | 'unknown, made' | 'unknown, not made';
  test.each<[Kind, string, Abilities, Fate[], Found, number]>([
    ['create', 'not delivered', ALL, [vanished], 'made', 2],
    ['create', 'its reply lost', ALL, [replyLost], 'made', 2],
    ['create', 'its reply lost twice', ALL, [replyLost, replyLost], 'made', 3],
    ['create', 'not delivered, then its reply lost', ALL, [vanished, replyLost], 'made', 3],
    ['create', 'answered by a proxy, 503', ALL, [answering(page(503))], 'made', 2],
    ['create', 'done, and answered by a proxy, 502', ALL, [replaced(page(502))], 'made', 2],
    ['create', 'done, and answered with 500', ALL, [replaced(page(500))], 'made', 2],
    ['create', 'done, then asked for fewer', ALL, [replyLost, fewer], 'made', 3],
    ['create', 'row 43: done, and nobody knows', ALL, [replaced(nobodyKnows)], 'made', 2],
    ['create', 'row 43: not done, and nobody knows', ALL, [answering(nobodyKnows)], 'made', 2],
    ['create', 'row 43: done, then not', ALL, [replaced(nobodyKnows), answering(nothingDone)], 'made', 3],
    ['create', 'done, and answered by a page', ALL, [replaced(page(200))], 'made', 1],
    ['create', 'lost each time', ALL, [replyLost, replyLost, replyLost], 'unknown, made', 3],
    ['create', 'lost, then the token expired', ALL, [replyLost, expired], 'unknown, made', 2],
    ['create', 'lost, then a proxy, 404', ALL, [replyLost, answering(page(404))], 'unknown, made', 2],
    ['create', 'its reply lost', LIST_ONLY, [replyLost], 'made', 1],
    ['create', 'an empty 200', LIST_ONLY, [replaced(() => new Response(''))], 'made', 1],
    ['create', 'a redirect', LIST_ONLY, [replaced(redirect)], 'made', 1],
    ['create', 'not delivered', LIST_ONLY, [vanished], 'unknown, not made', 1],
    ['create', 'not delivered', NONE, [vanished], 'unknown, not made', 1],
    ['create', 'its reply lost', NONE, [replyLost], 'unknown, made', 1],
    ['create', 'half an object', NONE, [replaced(half)], 'unknown, made', 1],
    ['create', 'row 43: nobody knows', NONE, [replaced(nobodyKnows)], 'unknown, made', 1],
    ['update', 'its reply lost', ALL, [replyLost], 'made', 1],
    ['update', 'its reply lost', NONE, [replyLost], 'made', 1],
    ['update', 'row 43: done, and nobody knows', ALL, [replaced(nobodyKnows)], 'made', 1],
    ['update', 'not delivered', ALL, [vanished], 'unknown, not made', 1],
    ['update', 'row 43: not done, and nobody knows', ALL, [answering(nobodyKnows)], 'unknown, not made', 1],
    ['deletion', 'not delivered', ALL, [vanished], 'made', 2],
    ['deletion', 'its reply lost', ALL, [replyLost], 'made', 2],
    ['deletion', 'its reply lost, then not delivered', NONE, [replyLost, vanished], 'made', 2],
    ['deletion', 'its reply lost, then the token expired', NONE, [replyLost, expired], 'made', 2],
    ['deletion', 'row 43: not done, and nobody knows', ALL, [answering(nobodyKnows)], 'made', 2],
    ['deletion', 'row 43: done, then not', ALL, [replaced(nobodyKnows), answering(nothingDone)], 'made', 2],
    ['deletion', 'never delivered', ALL, [vanished, vanished], 'unknown, not made', 2],
    ['deletion', 'done, and answered by a page', ALL, [replaced(page(200))], 'unknown, made', 1],
    ['batch', 'not delivered', ALL, [vanished], 'made', 2],
    ['batch', 'its reply lost twice', ALL, [replyLost, replyLost], 'made', 3],
    ['batch', 'row 43: not done, and nobody knows', ALL, [answering(nobodyKnows)], 'made', 2],
    ['batch', 'row 43: done, then not', ALL, [replaced(nobodyKnows), answering(nothingDone)], 'made', 3],
    ['batch', 'lost each time: found by its name', ALL, [replyLost, replyLost, replyLost], 'made', 3],
    ['batch', 'done, and answered by a page', ALL, [replaced(page(200))], 'made', 1],
    ['batch', 'never delivered', ALL, [vanished, vanished, vanished], 'unknown, not made', 3],
  ])('%s, %s, service %j', async (kind, _, abilities, fates, expected, count) => {
    const here = await scene(abilities);
    const { items, method, before, after } = await CHANGES[kind](here);
    const sent = here.sent(method);
    here.fates[method] = [...fates];
    const work = here.reservations.change(items);
    if (expected === 'made') {
      for (const [index, proven] of (await work).entries()) {
        const isGone = items[index]?.action === 'delete';
        expect(proven).toEqual(isGone ? null : expect.objectContaining({ verified: true }));
      }
    } else {
      expect((await failureOf(() => work)).facts).toMatchObject({ maybeDone: true, retryable: false });
    }
    expect(here.sent(method) - sent).toBe(count);
    const lines = await here.outcomes();
    expect(lines.filter((line) => line.includes('unknown'))).toHaveLength(
      expected === 'made' ? 0 : items.length,
    );
    expect(await stateOf(here)).toEqual(expected === 'unknown, not made' ? before : after);
    const isKeyed = (kind === 'create' && abilities.key) || kind === 'batch';
    if (count > 1 && isKeyed) expect(here.notices.join('\n')).toMatch(/lost.*same idempotency key/i);
    // Whatever is listed later, and by whom, is what the service has.
    here.wait(HOUR / 2);
    const { items: listed, hasList } = await here.again().list();
    if (!hasList) return;
    expect(listed.filter(({ source }) => source === 'service').length).toBe((await stateOf(here)).length);
    expect((await here.outcomes()).filter((line) => line.includes('unknown'))).toEqual([]);
  });

  test('the reservation can’t be read either: an update and a deletion are unknown, with the id', async () => {
    for (const kind of ['update', 'deletion'] as const) {
      const here = await scene(NONE);
      const { items, method } = await CHANGES[kind](here);
      here.fates = Object.assign(here.fates, { [method]: [replyLost, vanished], GET: [vanished] });
      const { facts } = await failureOf(() => here.reservations.change(items));
      const [item] = items;
      const id = item?.id ?? '';
      expect(facts).toMatchObject({ maybeDone: true, reservation: id, fix: `slices-conn show ${id}` });
      // Without a list each is asked for; the one that can't be read stays unknown.
      here.fates['GET'] = [vanished, vanished, vanished];
      const { items: listed, unasked } = await here.reservations.list();
      expect(listed).toMatchObject([{ id, state: 'unknown' }]);
      expect([...unasked.keys()]).toEqual([id]);
      here.fates['GET'] = [];
      const settled = (await here.reservations.list()).items;
      expect(settled).toMatchObject([
        kind === 'update' ? { id, source: 'service' } : { id, state: 'deleted' },
      ]);
      expect((await here.outcomes())[0]).toMatch(/update booked|delete deleted/);
    }
  });

  test('of a create: the list shows the request for ten minutes; then it was never made', async () => {
    const here = await scene(LIST_ONLY);
    here.fates['POST'] = [vanished];
    const { code, facts } = await failureOf(() => create(here.reservations, LATER));
    expect(code).toBe('network');
    expect(facts).toMatchObject({
      fix: 'slices-conn list',
      why: expect.stringMatching(/may have taken effect/),
    });
    expect((await here.reservations.list()).items).toMatchObject([
      { id: null, reservation: null, state: 'unknown', source: 'ledger', requested: { bandwidth: 1000 } },
    ]);
    here.wait(10 * 60_000 + 1);
    expect((await here.again().list()).items).toEqual([]);
    expect(await here.outcomes()).toEqual(['made-1 reserve refused no id']);
  });
});

describe('a change that was refused', () => {
  test.each<[keyof typeof CHANGES, string, Fate]>([
    ['create', 'a refusal', answering(refusing(422, 'bandwidth_unavailable'))],
    ['update', 'row 43: the service says that it did nothing', answering(nothingDone)],
    ['update', 'a refusal', answering(refusing(422, 'bandwidth_unavailable'))],
    ['deletion', 'a refusal', answering(refusing(403, 'role_not_allowed'))],
    ['batch', 'row 43: the service says that it did nothing', answering(nothingDone)],
    ['batch', 'a refusal', answering(refusing(422, 'bandwidth_unavailable'))],
  ])('%s, %s: everything is as before', async (kind, _, fate) => {
    const here = await scene();
    const { items, method, before } = await CHANGES[kind](here);
    const count = here.sent(method);
    here.fates[method] = [fate];
    const { facts } = await failureOf(() => here.reservations.change(items));
    expect(facts.maybeDone).toBeUndefined();
    expect(here.sent(method)).toBe(count + 1);
    expect(await stateOf(here)).toEqual(before);
    expect((await here.outcomes()).filter((line) => !/booked id|refused no id/.test(line))).toEqual([]);
  });

  test('a deletion of what is gone: not_found, and its entry is deleted; so it stays', async () => {
    const here = await scene(NONE);
    const { id } = await bookedAt(here);
    await remove(here.reservations, id);
    expect((await failureOf(() => remove(here.reservations, id))).code).toBe('not_found');
    here.fates['DELETE'] = [unreachable];
    await failureOf(() => remove(here.reservations, id));
    expect(await here.outcomes()).toEqual(['made-1 delete deleted id']);
  });
});

describe('a search whose answer is lost', () => {
  const WINDOW = { site1: 'be-gent1', site2: 'pl-poznan1', start: NOW + HOUR, end: NOW + 10 * HOUR };
  const SEARCHES: [string, ReservationRequest, object][] = [
    [
      'earliest',
      { ...WINDOW, bandwidth: 60_000, duration: 2 * HOUR },
      { bandwidth: 60_000, duration: 2 * HOUR },
    ],
    ['volume', { ...WINDOW, volume: 5_000_000_000 }, { volume: 5_000_000_000 }],
  ];
  /** Somebody else has most of the link in the meantime, so that a second booking would be elsewhere. */
  const taken: ReservationRequest = { ...LATER, bandwidth: 50_000 };

  test.each(
    SEARCHES.flatMap(([kind, search, asked]) => [
      [kind, 'sent again under its key', ALL, [replyLost, vanished], 4, search, asked] as const,
      [kind, 'found in the list', LIST_ONLY, [replyLost], 2, search, asked] as const,
    ]),
  )('%s: %s, it is booked once', async (_, __, abilities, fates, count, search, asked) => {
    const here = await scene(abilities);
    await create(here.reservations, taken);
    here.fates['POST'] = [...fates];
    const { reservation } = await create(here.reservations, search);
    const booked = await here.onServer();
    expect(booked.map(({ id }) => id)).toContain(reservation.id);
    expect([booked.length, here.sent('POST')]).toEqual([2, count]);
    const entry = await here.ledger.about(reservation.id);
    expect(entry).toMatchObject({ outcome: 'booked', reservation, requested: asked });
  });

  test.each(SEARCHES)('%s: what lies outside of it in the list is not taken for it', async (_, search) => {
    const here = await scene(LIST_ONLY);
    // Another machine of the same person has booked in between.
    await create(here.reservations, { ...taken, end: NOW + 11 * HOUR, bandwidth: 300 });
    await here.ledger.deleted(await onlyId(here));
    here.fates['POST'] = [vanished];
    const { facts } = await failureOf(() => create(here.reservations, search));
    expect(facts.maybeDone).toBe(true);
    expect(await here.outcomes()).toContain('made-2 reserve unknown no id');
  });

  test.each(SEARCHES)(
    '%s: the same command again, hours later, is the same reservation',
    async (_, search) => {
      const here = await scene();
      here.fates['POST'] = [replyLost, replyLost, replyLost];
      await failureOf(() => create(here.reservations, search, KEY));
      expect(await here.outcomes()).toEqual(['my-key reserve unknown no id']);
      here.wait(2 * HOUR);
      const { reservation } = await create(here.again(), search, KEY);
      const again = await create(here.again(), search, KEY);
      expect(again.reservation).toEqual(reservation);
      expect((await here.again().list()).items).toMatchObject([{ id: reservation.id }]);
      expect(here.sent('POST')).toBe(4);
    },
  );

  test('a service that lacks it is asked for nothing, and nothing stays unknown', async () => {
    const here = await scene(NONE);
    const failure = await failureOf(() => create(here.reservations, { ...WINDOW, volume: 5 }));
    expect(failure.code).toBe('not_supported');
    expect(here.sent('POST')).toBe(0);
    expect(await here.outcomes()).toEqual(['made-1 reserve refused no id']);
  });
});

describe('a person’s own idempotency key', () => {
  test.each([ALL, LIST_ONLY, { list: false, key: true }, NONE])(
    'run twice: the same reservation, at a service with %j',
    async (abilities) => {
      const here = await scene(abilities);
      const first = await create(here.reservations, LATER, KEY);
      here.wait(1000);
      const second = await create(here.again(), LATER, KEY);
      expect(second).toMatchObject({ verified: true, reservation: first.reservation });
      expect(first.reservation.id).toBe(await onlyId(here));
      expect(here.sent('POST')).toBe(1);
      expect(await here.outcomes()).toEqual(['my-key reserve booked id']);
    },
  );

  test('for another request: idempotency_key_reused, and nothing is sent', async () => {
    const here = await scene();
    await create(here.reservations, LATER, KEY);
    const failure = await failureOf(() => create(here.again(), { ...LATER, bandwidth: 5 }, KEY));
    expect(failure.code).toBe('idempotency_key_reused');
    expect(failure.message).toContain('my-key');
    expect(here.sent('POST')).toBe(1);
    await onlyId(here);
  });

  test('with the times in the same words, hours later: the same reservation', async () => {
    const here = await scene();
    const typed = { ...KEY, typedTimes: '+1h for 2h' };
    const first = await create(here.reservations, LATER, typed);
    here.wait(5 * HOUR);
    const later = { ...LATER, start: NOW + 6 * HOUR, end: NOW + 8 * HOUR };
    expect((await create(here.again(), later, typed)).reservation).toEqual(first.reservation);
    const otherwise = { ...KEY, typedTimes: '+1h until +3h' };
    const failure = await failureOf(() => create(here.again(), later, otherwise));
    expect(failure.code).toBe('idempotency_key_reused');
    expect(here.sent('POST')).toBe(1);
  });

  test('after somebody else deleted it: the service is asked, and nothing is booked', async () => {
    const here = await scene();
    const { reservation } = await create(here.reservations, LATER, KEY);
    await here.deletedElsewhere(reservation.id);
    for (const _ of ['first', 'again']) {
      const failure = await failureOf(() => create(here.again(), LATER, KEY));
      expect(failure.code).toBe('idempotency_key_reused');
      expect(failure.message).toMatch(/my-key was deleted/);
      expect(await here.onServer()).toEqual([]);
      expect(await here.outcomes()).toEqual(['my-key reserve deleted id']);
    }
    // Who may have forgotten the key, however often it was asked, and who knows no keys, is not asked to book.
    const far = { ...LATER, start: NOW + 40 * HOUR, end: NOW + 41 * HOUR };
    const NIGHTLY = { ...KEY, idempotencyKey: 'nightly' };
    const nightly = await create(here.again(), far, NIGHTLY);
    await here.deletedElsewhere(nightly.reservation.id);
    for (const _ of ['6 h', '12 h', '18 h', '24 h', '30 h']) {
      here.wait(6 * HOUR);
      await failureOf(() => create(here.again(), far, NIGHTLY));
    }
    expect(here.sent('POST')).toBe(3 + 1 + 3);
    const keyless = await scene(LIST_ONLY);
    const other = await create(keyless.reservations, LATER, KEY);
    await keyless.deletedElsewhere(other.reservation.id);
    const failure = await failureOf(() => create(keyless.again(), LATER, KEY));
    expect(failure.code).toBe('idempotency_key_reused');
    expect(keyless.sent('POST')).toBe(1);
  });

  test('--start-now --for 2h, its answers lost, typed again an hour later: the same reservation', async () => {
    const here = await scene();
    here.fates['POST'] = [replyLost, replyLost, replyLost];
    await failureOf(() => create(here.reservations, { ...LATER, start: 'now', end: NOW + 2 * HOUR }, KEY));
    here.wait(60_000);
    const later: ReservationRequest = { ...LATER, start: 'now', end: NOW + 60_000 + 2 * HOUR };
    const { reservation } = await create(here.again(), later, KEY);
    expect(reservation).toMatchObject({ id: await onlyId(here), start_date: new Date(NOW).toISOString() });
    expect(await here.outcomes()).toEqual(['my-key reserve booked id']);
  });

  const LOST = { POST: [replyLost, vanished, vanished] };
  const EARLIER = { why: 'An earlier request under the key my-key may have taken effect.', retryable: true };
  test.each<
    [string, Abilities, Scene['fates'], Scene['fates'], 'booked' | { why: string; [fact: string]: unknown }]
  >([
    ['the first not delivered', ALL, { POST: [vanished, vanished, vanished] }, {}, 'booked'],
    ['the first delivered', ALL, LOST, {}, 'booked'],
    [
      'with a list only, which fails for now',
      LIST_ONLY,
      { POST: [replyLost], GET: [vanished] },
      {},
      'booked',
    ],
    // `list` could not tell either, and would lead back here.
    ['without extensions', NONE, { POST: [replyLost] }, {}, { why: 'Ask its operators', fix: undefined }],
    [
      'with a list that does not show it yet',
      LIST_ONLY,
      { POST: [vanished] },
      {},
      { why: '10 min after it was sent', fix: 'slices-conn list' },
    ],
    ['and nobody is there', ALL, LOST, { POST: [unreachable] }, EARLIER],
    ['and nobody is there at all', ALL, LOST, { description: [unreachable] }, EARLIER],
    ['and the token has expired', ALL, LOST, { POST: [expired] }, { ...EARLIER, retryable: false }],
    ['and the service asks for fewer requests', ALL, LOST, { POST: [fewer] }, EARLIER],
    ['and the service says that it did nothing', ALL, LOST, { POST: [answering(nothingDone)] }, EARLIER],
  ])('row 43: run again after its answers were lost, %s', async (_, abilities, fates, later, ending) => {
    const here = await scene(abilities);
    for (const [method, ones] of Object.entries(fates)) here.fates[method] = [...(ones ?? [])];
    await failureOf(() => create(here.reservations, LATER, KEY));
    expect(await here.outcomes()).toEqual(['my-key reserve unknown no id']);
    Object.assign(here.fates, later);
    if (ending !== 'booked') {
      const { facts } = await failureOf(() => create(here.again(), LATER, KEY));
      const due = { retryable: false, ...ending, maybeDone: true, why: expect.stringContaining(ending.why) };
      expect({ retryable: false, fix: undefined, ...facts }).toMatchObject(due);
      expect(await here.outcomes()).toEqual(['my-key reserve unknown no id']);
    }
    if (ending === 'booked' || abilities.key) {
      expect((await create(here.again(), LATER, KEY)).reservation.id).toBe(await onlyId(here));
      expect(await here.outcomes()).toEqual(['my-key reserve booked id']);
    }
    if (!abilities.key) expect(here.sent('POST')).toBe(1);
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

  test.each([ALL, NONE])('names the reservation, and the ledger keeps it: %j', async (abilities) => {
    const here = await scene(abilities);
    here.fates['POST'] = [forged];
    const failure: Failure = await failureOf(() => create(here.reservations, LATER));
    const id = await onlyId(here);
    expect(failure).toMatchObject({ code: 'unverified', facts: { reservation: id, maybeDone: true } });
    expect(failure.facts.fix).toContain(id);
    expect(here.sent('POST')).toBe(1);
    expect(await here.outcomes()).toEqual(['made-1 reserve unknown id']);
    expect((await here.reservations.list()).items).toMatchObject([{ id }]);
    expect((await here.again().show(id)).verified).toBe(true);
    expect(await here.outcomes()).toEqual(['made-1 reserve booked id']);
  });
});

describe('changes that are made together', () => {
  test('each is in the ledger before they leave, and its outcome after', async () => {
    const here = await scene();
    const { items, after } = await CHANGES.batch(here);
    let during: string[] = [];
    here.fates['POST'] = [
      async (forward) => {
        during = await here.outcomes();
        return forward();
      },
    ];
    const results = await here.reservations.change(items);
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
    expect(await stateOf(here)).toEqual(after);
  });

  test('killed before the answer: the list settles the ledger, also where the service moved the creates', async () => {
    const here = await scene();
    const busy = { action: 'create', request: { ...LATER, bandwidth: 100_000 } } as const;
    await here.reservations.change([busy]);
    const items: ChangeItem[] = [{ action: 'create', request: { ...LATER, name: 'one' } }];
    await new Promise<void>((killed) => {
      here.fates['POST'] = [
        async (forward) => {
          await forward();
          killed();
          return new Promise<never>(() => undefined);
        },
      ];
      void here.reservations.change(items, { earliest: true });
    });
    expect(await here.outcomes()).toContain('made-2 reserve unknown no id');
    await here.again().list();
    expect(await here.outcomes()).toContain('made-2 reserve booked id');
    expect((await failureOf(() => here.again().change(items))).code).toBe('name_taken');
    expect(await here.onServer()).toHaveLength(2);
  });

  test('an answer that does not verify: each id is in the ledger, in doubt', async () => {
    const here = await scene();
    const { items } = await CHANGES.batch(here);
    here.fates['POST'] = [
      async (forward) => {
        const body = (await (await forward()).json()) as { items: { token: string | null }[] };
        for (const item of body.items) if (item.token !== null) item.token = `${item.token}x`;
        return Response.json(body);
      },
    ];
    const failure = await failureOf(() => here.reservations.change(items));
    expect(failure).toMatchObject({ code: 'unverified', facts: { maybeDone: true } });
    expect(await here.outcomes()).toEqual([
      'made-1 update unknown id',
      'made-2 delete unknown id',
      'made-3/1 reserve unknown id',
    ]);
  });
});
