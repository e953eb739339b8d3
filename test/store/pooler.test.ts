import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { PostgresDatabase } from '../../src/store/postgres/database.ts';
import { failureOf } from '../fixtures/failures.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { freePort, usePostgres } from '../fixtures/postgres.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** PgBouncer comes from the system (`apt-get install pgbouncer`): without it, the title of the test says so. */
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const isInstalled = (() => {
  try {
    execFileSync('sh', ['-c', 'command -v pgbouncer'], { env: { PATH: SYSTEM_PATH }, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

const postgres = usePostgres();
const folder = temporaryFolder();
const started: ChildProcess[] = [];
afterAll(() => {
  for (const pooler of started) pooler.kill('SIGKILL');
});

const LIMITS = 'statement_timeout,lock_timeout,idle_in_transaction_session_timeout';

/** Starts PgBouncer in front of a new database. @returns its address */
async function behindPgBouncer(mode: string, ignored: string): Promise<string> {
  const { hostname, port, password, pathname } = new URL(await postgres.database());
  const name = pathname.slice(1);
  const own = await freePort();
  const config = join(folder, `${own}.ini`);
  writeFileSync(
    config,
    `[databases]
${name} = host=${hostname} port=${port} user=postgres password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
ignore_startup_parameters = ${ignored}
`,
  );
  // It refuses to run as root.
  for (const path of [folder, config]) chmodSync(path, 0o755);
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  started.push(
    spawn('pgbouncer', [config], { env: { PATH: SYSTEM_PATH }, cwd: '/', stdio: 'ignore', ...nobody }),
  );
  await vi.waitFor(
    () =>
      new Promise<void>((resolve, reject) => {
        const socket = connect(own, '127.0.0.1', () => resolve(void socket.end()));
        socket.on('error', reject);
      }),
    { timeout: PATIENCE },
  );
  return `postgres://postgres@127.0.0.1:${own}/${name}`;
}

const suffix = isInstalled ? '' : ' (not run: pgbouncer is not installed here)';
test.skipIf(!isInstalled).each([
  ['transaction', LIMITS],
  ['statement', LIMITS],
  ['transaction', 'extra_float_digits'],
])(`pool_mode = %s, ignoring %s, is refused with the reason${suffix}`, async (mode, ignored) => {
  const failure = await failureOf(async () => PostgresDatabase.open(await behindPgBouncer(mode, ignored)));
  expect([failure.code, failure.message]).toEqual([
    'usage',
    'The address of the database is that of a connection pooler.',
  ]);
});

test.skipIf(!isInstalled)(`pool_mode = session works${suffix}`, async () => {
  const database = await PostgresDatabase.open(await behindPgBouncer('session', LIMITS));
  expect(await database.all('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  await database.close();
});
