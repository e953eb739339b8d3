import { mkdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { databaseFailure } from '../../src/operate/database.ts';
import type { ServeOptions } from '../../src/operate/options.ts';
import { serve } from '../../src/operate/serve.ts';
import { createReferenceServer, type ReferenceServerOptions } from '../../src/reference-server.ts';
import { createServerMetrics } from '../../src/server/metrics/server-metrics.ts';
import { openStores, SERVER_FILE } from '../../src/store/stores.ts';
import { freePort, usePostgres } from '../fixtures/postgres.ts';
import { SERVE_DEFAULTS } from '../fixtures/serve-defaults.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const postgres = usePostgres();
const folders: string[] = [];
afterAll(() => {
  vi.unstubAllEnvs();
  for (const folder of folders) rmSync(folder, { recursive: true });
});

const ENGINES = [
  {
    name: 'SQLite',
    async newPlace() {
      const data = temporaryFolder();
      folders.push(data);
      return { database: join(data, SERVER_FILE), where: { data } };
    },
    async damageKeys(path: string): Promise<void> {
      const database = new DatabaseSync(path);
      database.exec("UPDATE signing_key SET jwk = 'damaged'");
      database.close();
    },
    /** Leaving WAL mode needs the only connection to the file: it fails while another one is open. */
    async expectFree(path: string): Promise<void> {
      const database = new DatabaseSync(path);
      try {
        expect(database.prepare('PRAGMA journal_mode = DELETE').get()).toEqual({ journal_mode: 'delete' });
      } finally {
        database.close();
      }
    },
  },
  {
    name: 'PostgreSQL',
    async newPlace() {
      const database = await postgres.database();
      const url = new URL(database);
      // A flag may not hold the password.
      vi.stubEnv('PGPASSWORD', decodeURIComponent(url.password));
      url.password = '';
      return { database, where: { database: url.href } };
    },
    damageKeys: async (url: string) =>
      void (await postgres.ask(url, "UPDATE signing_key SET jwk = 'damaged'")),
    async expectFree(url: string): Promise<void> {
      const others =
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'slices-conn' AND datname = current_database()";
      await expect.poll(() => postgres.ask(url, others)).toEqual([{ n: 0 }]);
    },
  },
];

/** The number of timers that keep this process alive. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
}

const broken = (): never => {
  throw new TypeError('a bug');
};

describe.each(ENGINES)('row 65: a server on $name that does not start leaves nothing open', (engine) => {
  test.each<[string, ReferenceServerOptions, RegExp]>([
    ['a bug while the users are written', { random: broken }, /a bug/],
    ['an administrator who is none', { administrators: ['someone'] }, /administrator/],
    ['a bug of what counts', { metrics: { ...createServerMetrics(), serve: broken } }, /a bug/],
  ])('%s', async (_, options, why) => {
    const { database } = await engine.newPlace();
    await (await openStores(database)).close();
    const before = timers();
    await expect(createReferenceServer({ database, ...options })).rejects.toThrow(why);
    await engine.expectFree(database);
    expect(timers()).toBeLessThanOrEqual(before);
  });

  test('damaged keys', async () => {
    const { database } = await engine.newPlace();
    await (await createReferenceServer({ database })).close();
    await engine.damageKeys(database);
    const before = timers();
    await expect(createReferenceServer({ database })).rejects.toThrow();
    await engine.expectFree(database);
    expect(timers()).toBeLessThanOrEqual(before);
  });

  test('serve that fails at its last step closes sockets, database, transport and timers', async () => {
    const { database, where } = await engine.newPlace();
    await (await openStores(database)).close();
    const [port, metrics] = [await freePort(), await freePort()];
    const settings: ServeOptions = {
      ...SERVE_DEFAULTS,
      ...where,
      port,
      metrics: { host: '127.0.0.1', port: metrics },
      trust: [{ issuer: 'https://login.example.org' }],
      // The ready file can't be written: the last step that can fail.
      readyFile: join(tmpdir(), 'slices-conn-no-such-folder', 'ready.json'),
    };
    const before = timers();
    await expect(serve(settings, SURROUNDINGS)).rejects.toMatchObject({ code: 'file_unusable' });
    await engine.expectFree(database);
    for (const each of [port, metrics]) await takeAndLeave(each);
    expect(timers()).toBeLessThanOrEqual(before);
  });

  test('serve that fails to remove its ready file as it stops closes everything (THREATS.md 86)', async () => {
    const { database, where } = await engine.newPlace();
    const folder = temporaryFolder();
    folders.push(folder);
    const readyFile = join(folder, 'ready.json');
    const [port, metrics] = [await freePort(), await freePort()];
    const before = timers();
    const server = await serve(
      { ...SERVE_DEFAULTS, ...where, port, metrics: { host: '127.0.0.1', port: metrics }, readyFile },
      SURROUNDINGS,
    );
    rmSync(readyFile);
    mkdirSync(readyFile);
    await expect(server.stop()).rejects.toMatchObject({ code: 'file_unusable' });
    await engine.expectFree(database);
    for (const each of [port, metrics]) await takeAndLeave(each);
    expect(timers()).toBeLessThanOrEqual(before);
  });

  test('a server that is not fit to be reached by others does not start (THREATS.md 42)', async () => {
    const { where } = await engine.newPlace();
    const port = await freePort();
    const starting = serve({ ...SERVE_DEFAULTS, ...where, port, host: '0.0.0.0' }, SURROUNDINGS);
    await expect(starting).rejects.toMatchObject({ code: 'usage' });
    await takeAndLeave(port);
  });

  test('an option out of its bounds is not reported as a fault of the database', async () => {
    const { where } = await engine.newPlace();
    const settings = { ...SERVE_DEFAULTS, ...where, port: await freePort() };
    const starting = serve({ ...settings, maxShare: 1000 }, SURROUNDINGS);
    await expect(starting).rejects.toThrow(RangeError);
    await takeAndLeave(settings.port);
  });
});

test('an error of Node itself is passed on, although it has a code', () => {
  const bug = Object.assign(new TypeError('a bug'), { code: 'ERR_INVALID_ARG_TYPE' });
  for (const place of [{ database: 'postgres://h/x' }, { database: 'a.sqlite', file: 'a.sqlite' }]) {
    expect(databaseFailure(bug, place)).toBe(bug);
  }
});

test('a role without rights is told which it needs, and the next step names the database', () => {
  const cause = Object.assign(new Error('permission denied for schema public'), {
    code: '42501',
    severity: 'ERROR',
  });
  expect(databaseFailure(cause, { database: 'postgres://me@h/x?a=1&b=2' })).toMatchObject({
    facts: {
      why: 'permission denied for schema public. The role must own the database, or have CREATE on it and on its schema public.',
      fix: "psql 'postgres://me@h/x?a=1&b=2' -c 'SELECT version()'",
    },
  });
});

const SURROUNDINGS = { defaultFolder: tmpdir(), write: () => undefined, now: Date.now, random: Math.random };

/** Listens on a port, which must be free. */
function takeAndLeave(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(port, '127.0.0.1', () => server.close(() => resolve()));
  });
}
