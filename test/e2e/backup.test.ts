import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { builtInTopology } from '../../src/allocator/network.ts';
import { linkId } from '../../src/contract/links.ts';
import { SERVER_FILE } from '../../src/store/stores.ts';
import { sweep } from '../allocator/sweep.ts';
import { send } from '../fixtures/identity.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { freePort } from '../fixtures/postgres.ts';
import { addressOf } from '../fixtures/service.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { openSqlite } from '../store/opened-store.ts';
import { newMachine, reportOf, reservationIn } from './command.ts';
import { newClient, serveHere, serveWith } from './served.ts';
import { book, idIn, logIn } from './wire-caller.ts';

/** Puts a copy where a server can be started on it. @returns the folder */
function restore(copy: string): string {
  const restored = join(temporaryFolder(), 'restored');
  mkdirSync(restored, { mode: 0o700 });
  copyFileSync(copy, join(restored, SERVER_FILE));
  return restored;
}

test('a copy that is made under load holds every reservation that was acknowledged before, and serves', async () => {
  const data = temporaryFolder();
  // As it is made: by another process than the server's.
  const server = await serveWith('--port', '0', '--data', data, '--auto-approve', 'lead');
  const headers = await logIn(server);
  const acknowledged: string[] = [];
  let loaded = true;
  const load = Array.from({ length: 4 }, async () => {
    while (loaded) {
      const reply = await book(server, headers, { bandwidth: '1' });
      expect(reply.status).toBe(201);
      acknowledged.push(idIn(reply));
    }
  });
  const clients = Promise.all(load);
  // Their failure is told below, unless something else fails first.
  clients.catch(() => undefined);
  const until = (count: number) => vi.waitUntil(() => acknowledged.length >= count, PATIENCE);

  await until(40);
  const before = [...acknowledged];
  const copy = join(temporaryFolder(), 'copy.sqlite');
  const made = await newMachine().run(['--json', 'serve', 'backup', '--data', data, copy]);
  const after = acknowledged.length;
  expect(made).toMatchObject({ exitCode: 0, stderr: '' });
  const told = JSON.parse(made.stdout);
  const reservations = expect.any(Number);
  expect(told).toEqual({ file: copy, bytes: statSync(copy).size, database: data, reservations });
  expect(told.reservations).toBeGreaterThanOrEqual(before.length);
  expect(statSync(copy).mode & 0o777).toBe(0o600);
  // The load went on meanwhile, and goes on.
  await until(after + 10);
  loaded = false;
  await clients;
  const [last = ''] = acknowledged.slice(-1);
  server.process.signal('SIGTERM');
  expect((await server.process.ended).exitCode).toBe(0);

  const restored = restore(copy);
  const port = await freePort();
  const again = await serveHere('--port', String(port), '--base-url', server.base, '--data', restored);
  // The tokens of before are good: the signing keys came along.
  const statusOf = async (id: string) =>
    (await send(again, 'GET', addressOf('readReservation', id), { headers })).status;
  for (const id of before) expect(await statusOf(id)).toBe(200);
  expect(await statusOf(last)).toBe(404);
  expect((await book(again, headers)).status).toBe(201);
  expect((await again.stop()).exitCode).toBe(0);

  const link = builtInTopology().links.find(({ site1 }) => site1 === 'be-gent1');
  if (!link) throw new Error('the built-in topology lacks the link');
  const store = await openSqlite(join(restored, SERVER_FILE));
  expect(await sweep(store, linkId(link.site1, link.site2), link)).toEqual([]);
  const [row] = await store.rows('SELECT count(*) AS live FROM reservation WHERE deleted_ms IS NULL');
  expect(row).toEqual({ live: told.reservations + 1 });
  await store.close();
});

test('after a restore a command under its idempotency key books again, once (THREATS.md 104)', async () => {
  const [data, port] = [temporaryFolder(), await freePort()];
  const flags = ['--port', String(port), '--auto-approve', 'lead'];
  const server = await serveHere(...flags, '--data', data);
  const person = newClient(server.env);
  expect((await person.command('login', '--no-browser')).exitCode).toBe(0);
  const copy = join(temporaryFolder(), 'copy.sqlite');
  expect(await person.command('serve', 'backup', '--data', data, copy)).toMatchObject({ exitCode: 0 });
  const retry = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start', '+2h', '--for', '1h'];
  const under = (key: string) => [...retry, '--idempotency-key', key];
  const lost = reservationIn(await person.result(...under('kept')));
  const deleted = reservationIn(await person.result(...under('deleted')));
  await person.result('delete', '--yes', deleted.id);
  await server.stop();

  const restored = restore(copy);
  const again = await serveHere(...flags, '--data', restored);
  // The ledger has learned meanwhile that the service does not have it.
  expect((await person.command('show', lost.id)).exitCode).toBe(3);
  const anew = reservationIn(await person.result(...under('kept')));
  expect(anew.id).not.toBe(lost.id);
  expect(reservationIn(await person.result(...under('kept')))).toEqual(anew);
  // What the person deleted stays deleted, though this service knows nothing of it.
  const refused = reportOf(await person.command('--json', ...under('deleted')));
  expect(refused).toMatchObject({ code: 'idempotency_key_reused', exitCode: 2 });
  expect(await person.result('list')).toMatchObject({ items: [{ reservation: { id: anew.id } }] });
  await again.stop();
});

describe('serve backup', () => {
  const { run } = newMachine();
  const backUp = (...args: string[]) => run(['serve', 'backup', ...args]);

  test('copies the database while no server runs, into a folder that is there, and overwrites nothing', async () => {
    const data = temporaryFolder();
    await (await serveHere('--data', data)).stop();
    const copy = join(temporaryFolder(), 'copy.sqlite');
    // The folder may stand before it.
    const made = await run(['serve', '--data', data, 'backup', copy]);
    expect(made).toMatchObject({ exitCode: 0, stderr: '' });
    expect(made.stdout).toContain(`Backed up to ${copy}`);
    expect(made.stdout).toContain('0 reservations');
    writeFileSync(copy, 'mine');
    const refused = await backUp('--data', data, copy);
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('It exists already.') });
    expect(readFileSync(copy, 'utf8')).toBe('mine');
    expect((await backUp('--data', data, join(data, 'nowhere', 'copy.sqlite'))).exitCode).toBe(2);
  });

  // What else is no database of a server is in test/store.
  test.each<[string, (path: string) => void, string]>([
    ['nothing', () => undefined, 'There is no database at '],
    ['no database', (path) => writeFileSync(path, 'x'.repeat(4096)), 'damaged'],
  ])('of %s makes nothing', async (_, spoil, says) => {
    const [data, folder] = [temporaryFolder(), temporaryFolder()];
    spoil(join(data, SERVER_FILE));
    const before = readdirSync(data);
    const refused = await backUp('--data', data, join(folder, 'copy.sqlite'));
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(says) });
    expect([readdirSync(data), readdirSync(folder)]).toEqual([before, []]);
  });
});
