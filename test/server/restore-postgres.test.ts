import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { builtInTopology } from '../../src/allocator/network.ts';
import { linkId } from '../../src/contract/links.ts';
import { KEY_SET_PATH } from '../../src/contract/routes.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import { sweep } from '../allocator/sweep.ts';
import { idIn, send, signedBy } from '../fixtures/asked-server.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { addressOf, booking, CONNECTIVITY, NOW } from '../fixtures/service.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { openPostgres } from '../store/opened-store.ts';

const postgres = usePostgres();

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
const WAYS: Record<string, { served: boolean; copy: (from: string, to: string) => Promise<void> }> = {
  'a template': {
    served: false,
    async copy(from, to) {
      const beside = new URL(from);
      beside.pathname = '/postgres';
      await postgres.ask(beside.href, `DROP DATABASE ${nameIn(to)}`);
      await postgres.ask(beside.href, `CREATE DATABASE ${nameIn(to)} TEMPLATE ${nameIn(from)}`);
    },
  },
  'pg_dump and pg_restore': {
    served: true,
    async copy(from, to) {
      const file = join(temporaryFolder(), 'slices.dump');
      tool('pg_dump', from, '--format=custom', `--file=${file}`);
      tool('pg_restore', to, '--exit-on-error', '--no-owner', file);
    },
  },
};

test.for(Object.keys(WAYS))(
  'a server on a copy made by %s has all data and tokens of the original',
  async (way, { skip }) => {
    const found = WAYS[way];
    if (!found) throw new Error('there is no such way');
    const [from, to] = [await postgres.database(), await postgres.database()];
    skip(found.served && !(await hasPgDump(from)), 'no pg_dump of the version of the server');
    const before = await createReferenceServer({ database: from, now: () => NOW });
    const headers = await signedBy(before);
    const booked = await send(before, 'POST', CONNECTIVITY, { headers, body: booking() });
    expect(booked.status).toBe(201);
    const keys = await send(before, 'GET', KEY_SET_PATH);
    if (!found.served) await before.close();
    await found.copy(from, to);
    if (found.served) await before.close();

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
