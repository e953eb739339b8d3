import * as v from 'valibot';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { StoreUnavailableError } from '../../src/allocator/store.ts';
import { EVENT_PAUSE } from '../../src/contract/events.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import { createEventStreams } from '../../src/server/connectivity/events.ts';
import { userClaims } from '../../src/server/identity/user-token.ts';
import { addressesBelow, createIssuers } from '../../src/server/keys/service-issuer.ts';
import { noLog } from '../../src/server/log.ts';
import { ownTrust } from '../../src/server/trust.ts';
import { openStores } from '../../src/store/stores.ts';
import { idIn, send, signedBy } from '../fixtures/asked-server.ts';
import { openEvents, type ReadStream } from '../fixtures/events.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import {
  addressOf,
  booked,
  booking,
  type Caller,
  CONNECTIVITY,
  HOUR,
  hours,
  MINUTE,
  NOW,
  openWithLead,
} from '../fixtures/service.ts';

const { service, lead } = await openWithLead();
const opened: ReadStream[] = [];

/** A caller in an experiment of its own. */
let experiments = 0;
async function alone(): Promise<Caller & { experiment: string }> {
  experiments += 1;
  const experiment = await service.newExperiment(`alone-${experiments}`);
  return { ...(await service.as('lead', experiment)), experiment };
}

afterEach(async () => {
  vi.useRealTimers();
  for (const stream of opened.splice(0)) await stream.close();
  service.moveTo(0);
});

async function open(query = '', headers = lead.headers): Promise<ReadStream> {
  const stream = await openEvents((request) => service.fetch(request), service.base, headers, query);
  opened.push(stream);
  return stream;
}

/** Books many in one batch. @returns their ids */
async function bookMany(count: number): Promise<string[]> {
  const { tokens, ...body } = booking({ description: 'x'.repeat(200), bandwidth: '1' });
  const items = Array.from({ length: count }, () => ({ action: 'create', ...body }));
  const reply = await lead.send('POST', addressOf('batchReservations'), { body: { items, tokens } });
  const Booked = v.object({ items: v.array(v.object({ connectivity: v.object({ id: v.string() }) })) });
  return v.parse(Booked, reply.body).items.map(({ connectivity }) => connectivity.id);
}

/** A stream that has begun, so that what comes next is told. */
async function begun(query = '', headers = lead.headers): Promise<ReadStream> {
  const stream = await open(query, headers);
  expect(stream.status).toBe(200);
  await stream.cursor();
  return stream;
}

describe('a stream of events', () => {
  test('row 129: tells creations, updates and deletions of the experiment alone', async () => {
    const other = await service.newExperiment('elsewhere');
    const stranger = await service.as('lead', other);
    const stream = await begun();
    expect(stream.headers.get('content-type')).toBe('text/event-stream');
    await booked(stranger);
    const { id } = await booked(lead);
    expect(await stream.next()).toEqual([{ event: 'reservation', type: 'created', id, bandwidth: 100 }]);
    await lead.update(id, booking({ bandwidth: '200' }));
    expect(await stream.next()).toMatchObject([{ type: 'updated', id, bandwidth: 200 }]);
    await lead.delete(id);
    expect(await stream.next()).toMatchObject([{ type: 'deleted', id, bandwidth: 200 }]);
  });

  test('tells a batch whole, under one cursor', async () => {
    const stream = await begun();
    const before = await stream.cursor();
    const ids = new Set(await bookMany(3));
    expect(new Set((await stream.next(3)).map(({ id }) => id))).toEqual(ids);
    const again = await begun(`?since=${before}`);
    expect(new Set((await again.next(3)).map(({ id }) => id))).toEqual(ids);
  });

  test('goes on at its cursor, after a restart too: each reservation once, as it is now', async () => {
    const stream = await begun();
    const cursor = await stream.cursor();
    await stream.close();
    service.moveTo(MINUTE);
    const [kept, gone] = [await booked(lead), await booked(lead)];
    await lead.update(kept.id, booking({ bandwidth: '300' }));
    await lead.delete(gone.id);
    await service.restart();
    for (const headers of [lead.headers, { ...lead.headers, 'last-event-id': cursor }]) {
      const query = 'last-event-id' in headers ? '' : `?since=${cursor}`;
      const told = await (await begun(query, headers)).next(2);
      expect(told.toSorted((one, two) => Number(two.bandwidth) - Number(one.bandwidth))).toEqual([
        { event: 'reservation', type: 'created', id: kept.id, bandwidth: 300 },
        { event: 'reservation', type: 'deleted', id: gone.id, bandwidth: 100 },
      ]);
    }
  });

  test.each([
    ['is no cursor', 'abc'],
    ['is of another history', Buffer.from('["AAAAAAAAAAA",0,1]').toString('base64url')],
    ['is very long', 'A'.repeat(8000)],
  ])('row 128: 410 for a text that %s', async (_what, cursor) => {
    const stream = await open(`?since=${cursor}`);
    expect(stream.status).toBe(410);
    expect(JSON.parse(await stream.text())).toMatchObject({ code: 'cursor_too_old' });
  });

  test('row 128: 410 where the rows of deletions are gone', async () => {
    const cursor = await (await begun()).cursor();
    const { id } = await booked(lead);
    await lead.delete(id);
    const later = await (await begun()).cursor();
    service.moveTo(MINUTE);
    await service.forget(service.now());
    expect((await open(`?since=${cursor}`)).status).toBe(410);
    expect((await open(`?since=${later}`)).status).toBe(200);
  });

  test('starts, last ten minutes and ends are told when they come', async () => {
    const lead = await alone();
    const stream = await begun('', lead.headers);
    const { id } = await booked(lead, hours(1, 2));
    await stream.next();
    for (const [after, type] of [
      [HOUR, 'started'],
      [2 * HOUR - 10 * MINUTE, 'ending_soon'],
      [2 * HOUR, 'ended'],
    ] as const) {
      service.moveTo(after);
      expect(await stream.next()).toMatchObject([{ type, id }]);
    }
  });

  test('a clock that is set back and forth: starts are told once while the stream lasts, and none is lost', async () => {
    const lead = await alone();
    const stream = await begun('', lead.headers);
    const first = await booked(lead, hours(1, 2));
    service.moveTo(HOUR);
    expect((await stream.next(2)).map(({ type }) => type)).toEqual(['created', 'started']);
    service.moveTo(0);
    const second = await booked(lead, hours(0.5, 3));
    expect(await stream.next()).toMatchObject([{ type: 'created', id: second.id }]);
    service.moveTo(HOUR);
    expect(await stream.next()).toMatchObject([{ type: 'started', id: second.id }]);
    service.moveTo(2 * HOUR);
    expect(await stream.next()).toMatchObject([{ type: 'ended', id: first.id }]);
  });

  test('what started and ended while a client was away is told when it comes back', async () => {
    const lead = await alone();
    const stream = await begun('', lead.headers);
    const { id } = await booked(lead, hours(1, 2));
    await stream.next();
    const cursor = await stream.cursor();
    service.moveTo(3 * HOUR);
    const { headers } = await service.as('lead', lead.experiment);
    expect(
      (await (await begun(`?since=${cursor}`, headers)).next(2)).map((each) => [each.type, each.id]),
    ).toEqual([
      ['started', id],
      ['ended', id],
    ]);
  });

  test('with the user token alone, and with ?links=true, links are told by their versions', async () => {
    const { authorization = '' } = lead.headers;
    const links = await begun('', { authorization });
    const both = await begun('?links=true');
    const { id } = await booked(lead);
    const [link] = await links.next();
    expect(link).toEqual({ event: 'link', version: expect.any(Number) });
    expect(await both.next(2)).toMatchObject([link ?? {}, { event: 'reservation', id }]);
    await lead.delete(id);
    expect(await links.next()).toEqual([{ event: 'link', version: Number(link?.version) + 1 }]);
  });

  test('row 125: a user has 20 streams at most, and may open another when one is closed', async () => {
    // HEAD opens none.
    for (let count = 0; count < 30; count += 1) {
      await service.send('HEAD', addressOf('events'), { headers: lead.headers });
    }
    for (let count = 0; count < 20; count += 1) await begun();
    const refused = await open();
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await open('', (await service.as('admin')).headers)).status).toBe(200);
    await opened[0]?.close();
    expect((await open()).status).toBe(200);
  });

  test('row 125: of 1,100 streams at once a server opens 1,000, and tells all of them', async () => {
    const { identity } = await service.issuers();
    const users = Array.from({ length: 55 }, (_, index) => ({
      id: `user_offline.localhost_01jd3x0m2sf0vrv9mhb1wk00${String(index).padStart(2, '0')}`,
      name: `reader-${index}`,
    }));
    const asked = users.map(async (user) => {
      const claims = userClaims(user, { audience: service.base, login: service.now() });
      const headers = { authorization: `Bearer ${await identity.issue(claims)}` };
      return Promise.all(Array.from({ length: 20 }, () => open('', headers)));
    });
    const streams = (await Promise.all(asked)).flat();
    const live = streams.filter(({ status }) => status === 200);
    const refused = streams.filter(({ status }) => status === 429);
    expect([live.length, refused.length]).toEqual([1000, 100]);
    await booked(lead);
    const told = await Promise.all(live.map((stream) => stream.next()));
    expect(told.filter(([each]) => each?.event === 'link')).toHaveLength(1000);
  });

  test('row 126: a stream ends when its tokens have expired', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const stream = await begun();
    vi.advanceTimersByTime(EVENT_PAUSE);
    service.moveTo(HOUR);
    vi.advanceTimersByTime(EVENT_PAUSE);
    expect(await stream.ended()).toBe('ended');
  });

  test('row 126: at the instant at which the first of its tokens expires; and it needs valid ones', async () => {
    const { identity } = await service.issuers();
    const user = { id: `user_offline.localhost_01jd3x0m2sf0vrv9mhb1wk6x4q`, name: 'passer-by' };
    const claims = userClaims(user, { audience: service.base, login: service.now(), ttl: 1 });
    const began = performance.now();
    const stream = await begun('', { authorization: `Bearer ${await identity.issue(claims)}` });
    expect(await stream.ended()).toBe('ended');
    expect(performance.now() - began).toBeLessThan(EVENT_PAUSE);
    expect((await open('', { ...lead.headers, authorization: 'Bearer nothing' })).status).toBe(403);
  });

  test('row 127: a slow reader is dropped, and gets all when it comes back', async () => {
    const cursor = await (await begun()).cursor();
    const url = `${service.base}${addressOf('events')}`;
    const response = await service.fetch(new Request(url, { headers: lead.headers }));
    const ids: string[] = [];
    for (let round = 0; round < 12; round += 1) ids.push(...(await bookMany(64)));
    await (await begun()).cursor();
    const late = await response.text();
    expect(ids.some((id) => late.includes(id))).toBe(true);
    expect(ids.every((id) => late.includes(id))).toBe(false);
    const told = await (await begun(`?since=${cursor}`)).next(ids.length);
    expect(new Set(told.map(({ id }) => id))).toEqual(new Set(ids));
  });
});

test('row 126: a stream stays while the database can not say whether its login stands', async () => {
  const stores = await openStores(':memory:');
  const addresses = addressesBelow('http://one.localhost');
  const now = () => NOW;
  const { identity, ...others } = await createIssuers(addresses, { store: stores.keys, now, log: noLog });
  let isAway = false;
  const isLive = async () => {
    if (isAway) throw new StoreUnavailableError('away');
    return true;
  };
  const streams = createEventStreams({
    ...{ reservations: stores.reservations, links: [], now, log: noLog },
    trust: { ...ownTrust({ identity, ...others }, addresses.connectivity, now), isLive },
  });
  const user = { id: 'user_one.localhost_01jd3x0m2sf0vrv9mhb1wk6x4q', name: 'reader' };
  const claims = userClaims(user, { audience: addresses.connectivity, login: NOW });
  const token = await identity.issue({ ...claims, sid: 'a login' });
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const open = () => openEvents(streams.open, addresses.connectivity, { authorization: `Bearer ${token}` });
    const stream = await open();
    await stream.cursor();
    isAway = true;
    await vi.advanceTimersByTimeAsync(3 * EVENT_PAUSE);
    await expect(open()).rejects.toThrow('away');
    // A stopping server opens none, also where it was asked before it stopped.
    isAway = false;
    const late = open();
    streams.close();
    await expect(late).rejects.toThrow('stopping');
    expect(await stream.ended()).toBe('ended');
  } finally {
    vi.useRealTimers();
    await stores.close();
  }
});

const postgres = usePostgres();

test.each([
  ['SQLite', async () => service.file, () => service.now()],
  ['PostgreSQL', () => postgres.database(), () => NOW],
] as const)('two servers on %s: what one commits, the other tells', async (_engine, database, now) => {
  const place = await database();
  const servers: ReferenceServer[] = [];
  for (let count = 0; count < 2; count += 1)
    servers.push(await createReferenceServer({ database: place, now }));
  const [one, other] = servers as [ReferenceServer, ReferenceServer];
  try {
    const headers = await signedBy(one);
    const { connectivity } = other.addresses;
    const stream = await openEvents((request) => other.fetch(request), connectivity, headers);
    const cursor = await stream.cursor();
    const reply = await send(one, 'POST', CONNECTIVITY, { headers, body: booking() });
    const id = idIn(reply.text);
    expect(await stream.next()).toMatchObject([{ type: 'created', id }]);
    // The cursor of one is the other's too.
    const same = await openEvents((request) => one.fetch(request), connectivity, headers, `?since=${cursor}`);
    expect(await same.next()).toMatchObject([{ type: 'created', id }]);
    // A stopping server ends its streams at once, whole.
    other.drain();
    expect(await stream.ended()).toBe('ended');
    const url = `${connectivity}${addressOf('events')}`;
    expect((await other.fetch(new Request(url, { headers }))).status).toBe(503);
    await same.close();
  } finally {
    for (const server of servers) await server.close();
  }
});
