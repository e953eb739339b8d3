import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { builtInTopology } from '../../src/allocator/network.ts';
import { linkId } from '../../src/contract/links.ts';
import { KEY_SET_PATH } from '../../src/contract/routes.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import { sweep } from '../allocator/sweep.ts';
import { idIn, send, signedBy } from '../fixtures/asked-server.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { addressOf, booking, CONNECTIVITY, NOW } from '../fixtures/service.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { openPostgres } from '../store/opened-store.ts';

const postgres = usePostgres();
let url: string;
let one: ReferenceServer;
let other: ReferenceServer;

beforeAll(async () => {
  url = await postgres.database();
  // Started at once, on a database that is empty.
  [one, other] = await Promise.all([open(), open()]);
});
afterAll(async () => {
  await Promise.all([one.close(), other.close()]);
});

function open(): Promise<ReferenceServer> {
  return createReferenceServer({ database: url, now: () => NOW });
}

describe('two servers on one PostgreSQL database', () => {
  test('that started at once have the same keys, users, projects and experiments', async () => {
    for (const path of ['', '/portal', '/auth']) {
      const [first, second] = await Promise.all(
        [one, other].map((server) => send(server, 'GET', `${path}${KEY_SET_PATH}`)),
      );
      expect(first?.status).toBe(200);
      expect(first).toEqual(second);
    }
    const people = await postgres.ask(url, 'SELECT name FROM person ORDER BY name');
    expect(people.map(({ name }) => name)).toEqual(['admin', 'lead', 'member', 'viewer']);
    for (const table of ['project', 'experiment']) {
      const named = await postgres.ask(url, `SELECT name FROM ${table} ORDER BY name`);
      expect(named.map(({ name }) => name)).toEqual(['demo', 'other']);
    }
  });
});

/** Whether this machine has a `pg_dump` that can read the tests' server: one of its version or newer. */
async function hasPgDump(url: string): Promise<boolean> {
  const [row] = await postgres.ask(url, "SELECT current_setting('server_version_num')::int / 10000 AS major");
  try {
    const told = execFileSync('pg_dump', ['--version'], { encoding: 'utf8' });
    return Number(/\d+/.exec(told)?.[0]) >= Number(row?.['major']);
  } catch {
    return false;
  }
}

const nameIn = (url: string): string => new URL(url).pathname.slice(1);

/** Runs one of PostgreSQL's tools, without the password in its arguments. */
function tool(name: string, url: string, ...args: string[]): void {
  const address = new URL(url);
  const { password } = address;
  address.password = '';
  const env = { ...process.env, PGPASSWORD: decodeURIComponent(password) };
  execFileSync(name, [...args, `--dbname=${address.href}`], { env, stdio: 'pipe' });
}

/** Ways to copy a database into an empty one, and whether servers may use it meanwhile. */
const WAYS = [
  {
    name: 'a template',
    served: false,
    async copy(from: string, to: string) {
      const beside = new URL(from);
      beside.pathname = '/postgres';
      await postgres.ask(beside.href, `DROP DATABASE ${nameIn(to)}`);
      await postgres.ask(beside.href, `CREATE DATABASE ${nameIn(to)} TEMPLATE ${nameIn(from)}`);
    },
  },
  {
    name: 'pg_dump and pg_restore',
    served: true,
    async copy(from: string, to: string) {
      const file = join(temporaryFolder(), 'slices.dump');
      tool('pg_dump', from, '--format=custom', `--file=${file}`);
      tool('pg_restore', to, '--exit-on-error', '--no-owner', file);
    },
  },
];

test.for(WAYS)(
  'a server on a copy made by $name has all data and tokens of the original',
  async ({ served, copy }, { skip }) => {
    const [from, to] = [await postgres.database(), await postgres.database()];
    skip(served && !(await hasPgDump(from)), 'no pg_dump of the version of the server');
    const before = await createReferenceServer({ database: from, now: () => NOW });
    const headers = await signedBy(before);
    const booked = await send(before, 'POST', CONNECTIVITY, { headers, body: booking() });
    expect(booked.status).toBe(201);
    const keys = await send(before, 'GET', KEY_SET_PATH);
    if (!served) await before.close();
    await copy(from, to);
    if (served) await before.close();

    const after = await createReferenceServer({ database: to, now: () => NOW });
    expect(await send(after, 'GET', KEY_SET_PATH)).toEqual(keys);
    const path = addressOf('readReservation', idIn(booked.text));
    // Earlier tokens are valid, and earlier reservations are there and hold their tags.
    expect(await send(after, 'GET', path, { headers })).toEqual({ status: 200, text: booked.text });
    const whole = await send(after, 'POST', CONNECTIVITY, {
      headers,
      body: booking({ bandwidth: '100000' }),
    });
    expect(whole.status).toBe(422);
    expect((await send(after, 'POST', CONNECTIVITY, { headers, body: booking() })).status).toBe(201);
    await after.close();

    const link = builtInTopology().links.find(({ site1 }) => site1 === 'be-gent1');
    if (!link) throw new Error('the built-in topology lacks the link');
    const store = await openPostgres(to);
    expect(await sweep(store, linkId(link.site1, link.site2), link)).toEqual([]);
    await store.close();
  },
);
