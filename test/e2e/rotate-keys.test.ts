import * as v from 'valibot';
import { describe, expect, test, vi } from 'vitest';
import { KEY_SET_PATH } from '../../src/contract/routes.ts';
import { send } from '../fixtures/identity.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { freePort, usePostgres } from '../fixtures/postgres.ts';
import { newMachine } from './command.ts';
import { serveWith } from './served.ts';

const postgres = usePostgres();

const Rows = v.object({
  items: v.array(
    v.strictObject({
      service: v.picklist(['connectivity', 'portal', 'identity']),
      kid: v.string(),
      state: v.picklist(['signing', 'next', 'old']),
      signs_from: v.pipe(v.string(), v.isoTimestamp()),
      published_until: v.nullable(v.pipe(v.string(), v.isoTimestamp())),
    }),
  ),
});

/** The services, and where below the base address their key sets are. */
const PATHS = [
  ['connectivity', ''],
  ['portal', '/portal'],
  ['identity', '/auth'],
] as const;

/** A server that runs on a database or folder, and its key sets. */
async function serve(where: readonly string[]) {
  const server = await serveWith('--port', '0', ...where);
  const kids = async (path: string): Promise<string[]> => {
    const { text } = await send(server, 'GET', `${path}${KEY_SET_PATH}`);
    const { keys } = v.parse(v.object({ keys: v.array(v.object({ kid: v.string() })) }), JSON.parse(text));
    return keys.map(({ kid }) => kid);
  };
  return { running: server.process, kids };
}

// Both wait for a server to read its keys again, so they wait at the same time.
describe.concurrent.each([
  ['a folder', async () => ['--data', `${newMachine().home}/data`]],
  ['PostgreSQL', async () => ['--database', await postgres.withTables()]],
] as const)('serve rotate-keys beside a server on %s', (_, place) => {
  test('the server publishes the next key, without a restart; a retired one is gone', async () => {
    const where = await place();
    const { running, kids } = await serve(where);
    const [first] = await kids('');
    const { run } = newMachine();

    const rotated = await run(['serve', 'rotate-keys', ...where, '--json']);
    expect(rotated).toMatchObject({ exitCode: 0, stderr: '' });
    const { items } = v.parse(Rows, JSON.parse(rotated.stdout));
    expect(items.map(({ service, state }) => `${service} ${state}`)).toEqual([
      'connectivity signing',
      'connectivity next',
      'portal signing',
      'portal next',
      'identity signing',
      'identity next',
    ]);
    expect(items[0]?.kid).toBe(first);
    const due = new Set(items.map(({ kid }) => kid));
    expect(due.size).toBe(6);
    const waits = Date.parse(String(items[1]?.signs_from)) - Date.now();
    expect(waits).toBeGreaterThan(19 * 60_000);
    expect(waits).toBeLessThanOrEqual(20 * 60_000);
    // What waits to sign is not followed yet.
    const again = v.parse(Rows, JSON.parse((await run(['--json', 'serve', 'rotate-keys', ...where])).stdout));
    expect(again.items).toEqual(items);
    expect((await run(['serve', 'rotate-keys', ...where])).stdout).toContain(` ${first} `);

    const unasked = await run(['serve', 'rotate-keys', ...where, '--retire-now']);
    expect(unasked.exitCode).toBe(2);
    expect(unasked.stderr).toContain('--yes');
    for (const [service, path] of PATHS) {
      const own = items.filter((item) => item.service === service).map(({ kid }) => kid);
      await vi.waitFor(async () => expect(await kids(path)).toEqual(own), {
        timeout: PATIENCE,
        interval: 200,
      });
    }

    const retired = await run(['--json', '--yes', 'serve', 'rotate-keys', '--retire-now', ...where]);
    const left = v.parse(Rows, JSON.parse(retired.stdout)).items;
    expect(left.map(({ kid }) => due.has(kid))).toEqual([false, false, false]);
    for (const [service, path] of PATHS) {
      const own = left.filter((item) => item.service === service).map(({ kid }) => kid);
      await vi.waitFor(async () => expect(await kids(path)).toEqual(own), {
        timeout: PATIENCE,
        interval: 200,
      });
    }
    running.signal('SIGTERM');
    expect((await running.ended).exitCode).toBe(0);
  });
});

describe('serve rotate-keys where there is nothing to rotate', () => {
  test('a folder without a database is left as it is', async () => {
    const { home, run } = newMachine();
    const ended = await run(['serve', 'rotate-keys', '--data', `${home}/none`]);
    expect(ended.exitCode).toBe(2);
    expect(ended.stderr).toContain('There is no database');
    expect((await run(['serve', 'rotate-keys'])).stderr).toContain('There is no database');
  });

  test('a database without keys says so', async () => {
    const ended = await newMachine().run(['serve', 'rotate-keys', '--database', await postgres.database()]);
    expect(ended.exitCode).toBe(2);
    expect(ended.stderr).toContain('The database holds no keys.');
  });

  test('a database that is away is exit 7, and the password is not told', async () => {
    const away = `postgres://someone:hunter2@127.0.0.1:${await freePort()}/none`;
    const ended = await newMachine().run(['serve', 'rotate-keys', '--database', away]);
    expect(ended.exitCode).toBe(7);
    expect(ended.stderr).not.toContain('hunter2');
  });

  test.each([
    ['a folder and a database', ['rotate-keys', '--data', 'x', '--database', 'postgres://a@b/c']],
    ['no address', ['rotate-keys', '--database', 'mysql://someone:hunter2@host/none']],
    ['a flag of serve alone', ['rotate-keys', '--memory']],
    ['a flag of serve alone, before it', ['--port', '1', 'rotate-keys']],
    ['another sub-command', ['rotate-locks']],
    ['an age that is none', ['--rotate-keys-every', 'often']],
    ['an age of less than an hour', ['--rotate-keys-every', '59m']],
  ])('%s is exit 2', async (_, args) => {
    const ended = await newMachine().run(['serve', ...args]);
    expect(ended.exitCode).toBe(2);
    expect(ended.stderr).not.toContain('hunter2');
  });
});
