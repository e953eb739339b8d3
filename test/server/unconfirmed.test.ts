import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { builtInTopology } from '../../src/allocator/network.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import { type LogFields, withoutRepeats } from '../../src/server/log.ts';
import { idIn, send, signedBy } from '../fixtures/asked-server.ts';
import { ask, type RunningPostgres, startPostgres } from '../fixtures/postgres-server.ts';
import { addressOf, booking, CONNECTIVITY, hours, NOW, SIGNED } from '../fixtures/service.ts';

afterEach(() => void vi.useRealTimers());

let postgres: RunningPostgres;
let server: ReferenceServer;
const log: { event: string; fields: LogFields }[] = [];

beforeAll(async () => {
  postgres = await startPostgres();
  server = await createReferenceServer({
    database: postgres.url,
    now: () => NOW,
    log: (level, event, fields) => void (level === 'error' && log.push({ event, fields })),
  });
}, 120_000);
afterAll(async () => {
  await server.close();
  await postgres.close();
});

/** Confirmed by a standby that is away: a commit is done here and waits for ever. Empty: by this server alone. */
async function confirmBy(standby: string): Promise<void> {
  await ask(postgres.url, `ALTER SYSTEM SET synchronous_standby_names = '${standby}'`);
  await ask(postgres.url, 'SELECT pg_reload_conf()');
}

/** How many of the server's connections there are in this state. */
async function count(state: string): Promise<number> {
  const own = `SELECT 1 FROM pg_stat_activity WHERE application_name = 'slices-conn' AND ${state}`;
  return (await ask(postgres.url, own)).length;
}

test('what was sent with COMMIT is unknown, and of what waited nothing was sent: each answer says so (THREATS.md 78)', async () => {
  const headers = await signedBy(server);
  const links = builtInTopology().links.slice(0, 4);
  const on = (link: number, changes: Record<string, unknown> = {}) => {
    const { site1, site2 } = links[link] ?? {};
    return booking({ ...hours(1, 2), site1, site2, bandwidth: '1', ...changes });
  };
  const post = (body: object) => send(server, 'POST', CONNECTIVITY, { headers, body });
  // A signed one with a late end: no other needs a note about its key.
  const late = booking(hours(1, 9));
  await send(server, 'POST', CONNECTIVITY, { headers: { ...headers, ...SIGNED }, body: late });
  // Each link has its row: to make one is another commit.
  for (const link of [0, 3]) expect((await post(on(link))).status).toBe(201);
  const updated = idIn((await post(on(1, { name: 'updated' }))).text);
  const deleted = idIn((await post(on(2, { name: 'deleted' }))).text);

  await confirmBy('absent');
  const { tokens: _, ...item } = on(3, { name: 'batched' });
  const path = (id: string) => addressOf('updateReservation', id);
  const sent = [
    post(on(0, { name: 'created' })),
    send(server, 'PUT', path(updated), { headers, body: on(1, { bandwidth: '7' }) }),
    send(server, 'DELETE', path(deleted), { headers }),
    send(server, 'POST', addressOf('batchReservations'), {
      headers,
      body: { items: [{ action: 'create', ...item }], tokens: [] },
    }),
  ];
  while ((await count("wait_event = 'SyncRep'")) < sent.length);
  const waiting = Array.from({ length: 20 }, (_, n) => post(on(0, { name: `waiting${n}` })));

  const outcome = ({ status, text }: { status: number; text: string }) => {
    const { code, detail } = JSON.parse(text);
    return `${status} ${code}: ${detail[0].msg}`;
  };
  for (const each of await Promise.all(sent)) expect(outcome(each)).toMatch(/^503 outcome_unknown: /);
  for (const each of await Promise.all(waiting)) {
    expect(outcome(each)).toBe(
      "503 unavailable: The database can't be used at the moment. Nothing was changed; try again.",
    );
  }
  await confirmBy('');
  while ((await count('xact_start IS NOT NULL')) > 0);
  const rows = await ask(
    postgres.url,
    `SELECT name, bandwidth::int, deleted_ms IS NOT NULL AS gone FROM reservation WHERE name IS NOT NULL ORDER BY name`,
  );
  expect(rows).toEqual([
    { name: 'batched', bandwidth: 1, gone: false },
    { name: 'created', bandwidth: 1, gone: false },
    { name: 'deleted', bandwidth: 1, gone: true },
    { name: 'updated', bandwidth: 7, gone: false },
  ]);
}, 60_000);

test('what an administrator ended the wait for is unknown too: a failover would lose it (THREATS.md 78)', async () => {
  const headers = await signedBy(server);
  await confirmBy('absent');
  const body = booking({ ...hours(3, 4), bandwidth: '1' });
  const sent = send(server, 'POST', CONNECTIVITY, { headers, body });
  while ((await count("wait_event = 'SyncRep'")) === 0);
  await ask(postgres.url, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
  const { status, text } = await sent;
  expect({ status, ...JSON.parse(text) }).toMatchObject({ status: 503, code: 'outcome_unknown' });
  await confirmBy('');
}, 60_000);

test('equal errors are written once a second, with their number (THREATS.md 79)', () => {
  vi.useFakeTimers();
  const lines: [event: string, fields: LogFields][] = [];
  const sparing = withoutRepeats((_, event, fields) => lines.push([event, fields]));
  for (let n = 0; n < 500; n += 1) {
    sparing('error', 'store_unavailable', { why: 'away' });
    sparing('info', 'request', { status: 503 });
  }
  sparing('error', 'store_unavailable', { why: 'full' });
  const errors = () => lines.splice(0).filter(([event]) => event !== 'request');
  expect(lines.filter(([event]) => event === 'request')).toHaveLength(500);
  expect(errors()).toEqual([
    ['store_unavailable', { why: 'away' }],
    ['store_unavailable', { why: 'full' }],
  ]);
  vi.advanceTimersByTime(1000);
  expect(errors()).toEqual([['store_unavailable', { why: 'away', times: 499 }]]);
  sparing('error', 'store_unavailable', { why: 'away' });
  expect(errors()).toEqual([]);
  vi.advanceTimersByTime(2000);
  expect(errors()).toEqual([['store_unavailable', { why: 'away', times: 1 }]]);
  sparing('error', 'store_unavailable', { why: 'away' });
  expect(errors()).toEqual([['store_unavailable', { why: 'away' }]]);
  expect(vi.getTimerCount()).toBe(1);
});
