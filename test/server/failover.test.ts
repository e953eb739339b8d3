import { execFileSync } from 'node:child_process';
import { renameSync, rmSync } from 'node:fs';
import { getListFromStatusListJWT } from '@sd-jwt/jwt-status-list';
import { decodeJwt } from 'jose';
import * as v from 'valibot';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { DATABASE_UNUSABLE, StoreUnavailableError } from '../../src/allocator/store.ts';
import { StatusClaim } from '../../src/contract/claims.ts';
import { KEY_SET_PATH } from '../../src/contract/routes.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import { rotateByHand } from '../../src/server/keys/key-ring.ts';
import { PostgresDatabase } from '../../src/store/postgres/database.ts';
import { signingKeyStore } from '../../src/store/signing-keys.ts';
import { send, signedBy } from '../fixtures/asked-server.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { ask, type RunningPostgres, startPostgres, startStandby } from '../fixtures/postgres-server.ts';
import { openProxy, type TcpProxy } from '../fixtures/proxy.ts';
import { booking, CONNECTIVITY, hours, NOW, SECOND, SIGNED, smallTopology } from '../fixtures/service.ts';
import { cutOff } from '../proof/failovers.ts';

/** A primary and a standby that follows it; `promoted` makes them change places, the dead one is replaced. */
let primary: RunningPostgres;
let standby: RunningPostgres;
/** The address that leads to the primary. */
let address: TcpProxy;
let clock = NOW;
const servers: ReferenceServer[] = [];
const events: string[] = [];

beforeAll(async () => {
  primary = await startPostgres();
  standby = await startStandby(primary);
  address = await openProxy(primary.url);
}, 120_000);
afterAll(async () => {
  await Promise.all(servers.map((server) => server.close()));
  address.close();
  await Promise.all([primary.close(), standby.close()]);
});

async function serve(): Promise<ReferenceServer> {
  const server = await createReferenceServer({
    database: address.url,
    topology: smallTopology(20),
    now: () => clock,
    log: (level, event) => void (level === 'error' && events.push(event)),
  });
  servers.push(server);
  return server;
}

async function promote(): Promise<void> {
  expect(await ask(standby.url, 'SELECT pg_promote() AS done')).toEqual([{ done: true }]);
  address.leadTo(standby.url);
}

async function book(server: ReferenceServer, body: Record<string, unknown>, headers = {}) {
  const reply = await send(server, 'POST', CONNECTIVITY, {
    headers: { ...(await signedBy(server)), ...headers },
    body: booking(body),
  });
  return { status: reply.status, text: reply.text };
}

/** What an error says for clients, and a word of its cause, which the log has. */
function unavailable(cause: string) {
  return { message: DATABASE_UNUSABLE, cause: { message: expect.stringContaining(cause) } };
}

async function kids(server: ReferenceServer): Promise<string[]> {
  const { text } = await send(server, 'GET', KEY_SET_PATH);
  return JSON.parse(text).keys.map(({ kid }: { kid: string }) => kid);
}

describe('two servers, and a promotion that lost commits', () => {
  let one: ReferenceServer;
  let other: ReferenceServer;
  /** The tokens of reservations that the standby lacks. */
  const lost: string[] = [];
  /** The kids of the keys that the standby has. */
  let lasting: string[];

  beforeAll(async () => {
    one = await serve();
    other = await serve();
    expect((await book(one, hours(1, 2))).status).toBe(201);
    // Nothing of this reaches the standby: what both have answered is ahead of it from then on, and so are the keys.
    await cutOff(standby, primary);
    for (const hour of [2, 3, 4]) {
      for (const server of [one, other]) {
        const { status, text } = await book(server, hours(hour, hour + 1), SIGNED);
        expect(status).toBe(201);
        lost.push(text);
      }
    }
    lasting = await kids(one);
    const database = await PostgresDatabase.open(address.url);
    await rotateByHand('connectivity', signingKeyStore(database), { retireNow: true, now: clock });
    await database.close();
    clock += 11 * SECOND;
    const newer = await kids(one);
    expect(newer).not.toEqual(lasting);
    expect(await kids(other)).toEqual(newer);
    primary.kill();
    await promote();
  }, 120_000);

  test('give no bandwidth twice, and no tag (THREATS.md 72)', async () => {
    // The link's version begins again where the standby was: the same numbers as in what they have answered.
    const first = await book(other, { ...hours(10, 11), bandwidth: '900' });
    const second = await book(one, { ...hours(10, 11), bandwidth: '900' });
    expect([first.status, second.status]).toEqual([201, 422]);
    for (const server of [one, other, one, other, one, other]) {
      expect((await book(server, hours(2, 3))).status).toBe(201);
    }
    expect(events).not.toContain('bug');
    expect(events.filter((event) => event === 'database_replaced')).toHaveLength(2);
  });

  test('what a promotion lost stays dead (THREATS.md 121)', async () => {
    clock += 2 * SECOND;
    const statusOf = async (token: string): Promise<number> => {
      const { idx, uri } = v.parse(StatusClaim, decodeJwt(token)['status']).status_list;
      const { text } = await send(one, 'GET', new URL(uri).pathname);
      return getListFromStatusListJWT(text).getStatus(idx);
    };
    for (const token of lost) expect(await statusOf(token)).toBe(1);
    expect(await statusOf((await book(other, hours(30, 31), SIGNED)).text)).toBe(0);
  });

  test('sign with the keys that the database has, not with those that it lost (THREATS.md 73)', async () => {
    const signed = await book(one, hours(20, 21), SIGNED);
    expect(signed.status).toBe(201);
    const header = JSON.parse(Buffer.from(signed.text.split('.')[0] ?? '', 'base64url').toString());
    expect(lasting).toEqual([header.kid]);
    expect([await kids(one), await kids(other)]).toEqual([lasting, lasting]);
  });
});

describe('a primary that lives on after a standby was promoted', () => {
  let database: PostgresDatabase;
  const changes: string[] = [];
  const port = async (): Promise<unknown> =>
    (await database.reader.first('SELECT inet_server_port() AS port'))?.['port'];
  const portOf = ({ url }: RunningPostgres): number => Number(new URL(url).port);

  beforeAll(async () => {
    await primary.close();
    primary = standby;
    standby = await startStandby(primary);
    database = await PostgresDatabase.open(address.url, { onNewHistory: (_, to) => changes.push(to) });
    expect(await port()).toBe(portOf(primary));
    // Its connections stay: nobody stops it.
    await promote();
  }, 120_000);
  afterAll(() => database.close());

  test('is not used any more once one connection has led to the new one (THREATS.md 74)', async () => {
    expect(await port()).toBe(portOf(primary));
    await database
      .transaction(async (old) => {
        // The first connection is taken, so this needs a second one.
        expect(await port()).toBe(portOf(standby));
        expect(changes).toHaveLength(1);
        await old.run("INSERT INTO link (id, version) VALUES ('lost', 1)");
      })
      .then(
        () => expect.unreachable('it was committed where it is lost'),
        (error: unknown) => expect(error).toBeInstanceOf(StoreUnavailableError),
      );
    for (let turn = 0; turn < 3; turn += 1) expect(await port()).toBe(portOf(standby));
    expect(await ask(primary.url, "SELECT 1 FROM link WHERE id = 'lost'")).toEqual([]);
  });

  test('is refused where its address leads to it again (THREATS.md 74)', async () => {
    address.leadTo(primary.url);
    await ask(
      standby.url,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'slices-conn'",
    );
    // The first question may still meet the connection that was ended.
    await vi.waitFor(() => expect(port()).rejects.toMatchObject(unavailable('former primary')), PATIENCE);
    address.leadTo(standby.url);
    expect(await port()).toBe(portOf(standby));
    expect(changes).toHaveLength(1);
  });

  test('is used for a minute at most, however busy its connections are (THREATS.md 74)', async () => {
    address.leadTo(primary.url);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const busy = await PostgresDatabase.open(address.url);
    try {
      address.leadTo(standby.url);
      const ports: unknown[] = [];
      for (let seconds = 9; seconds <= 63; seconds += 9) {
        vi.advanceTimersByTime(9 * SECOND);
        ports.push((await busy.reader.first('SELECT inet_server_port() AS port'))?.['port']);
      }
      expect(new Set(ports.slice(0, -1))).toEqual(new Set([portOf(primary)]));
      expect(ports.at(-1)).toBe(portOf(standby));
    } finally {
      vi.useRealTimers();
      await busy.close();
    }
  });
});

describe('a standby', () => {
  beforeAll(async () => {
    await primary.close();
    primary = standby;
    standby = await startStandby(primary);
    address.leadTo(primary.url);
  }, 120_000);

  test('is no database for a server, and its audit can be read (THREATS.md 75)', async () => {
    await expect(PostgresDatabase.open(standby.url)).rejects.toMatchObject(unavailable('standby'));
    const reading = await PostgresDatabase.openToRead(standby.url);
    const links = await reading.snapshot((sql) => sql.all('SELECT id FROM link'));
    await reading.close();
    expect(links).toEqual([{ id: 'be-gent1~pl-poznan1' }]);
    const asked = `${standby.url}?target_session_attrs=read-write`;
    await expect(PostgresDatabase.openToRead(asked)).rejects.toMatchObject(unavailable('standby'));
  });
});

test('a database whose folder is restored in place has no new timeline; no bandwidth is given twice (THREATS.md 72)', async () => {
  const [one, other] = servers;
  if (!one || !other) throw new Error('no servers');
  const day = 24;
  // Both know the link.
  for (const server of [one, other]) expect((await book(server, hours(day, day + 1))).status).toBe(201);
  const saved = `${primary.data}.saved`;
  await primary.stop();
  execFileSync('cp', ['-a', primary.data, saved]);
  await primary.start();
  for (const hour of [1, 2, 3]) {
    for (const server of [one, other]) {
      expect((await book(server, hours(day + hour, day + hour + 1))).status).toBe(201);
    }
  }
  await primary.stop();
  rmSync(primary.data, { recursive: true });
  renameSync(saved, primary.data);
  await primary.start();
  const first = await book(other, { ...hours(day + 10, day + 11), bandwidth: '900' });
  const second = await book(one, { ...hours(day + 10, day + 11), bandwidth: '900' });
  expect([first.status, second.status]).toEqual([201, 422]);
  for (const server of [one, other, one, other]) {
    expect((await book(server, hours(day + 2, day + 3))).status).toBe(201);
  }
  expect(events).not.toContain('bug');
}, 120_000);
