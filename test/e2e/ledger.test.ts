import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import * as v from 'valibot';
import { describe, expect, test, vi } from 'vitest';
import { Reservation } from '../../src/contract/reservation.ts';
import { send } from '../fixtures/identity.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { CONNECTIVITY } from '../fixtures/service.ts';
import { reportOf, reservationIn } from './command.ts';
import { type Client, newClient, serveBehindProxy } from './served.ts';
import { logIn } from './wire-caller.ts';

const LATER = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start', '+1h', '--for', '2h'];

/** A server whose replies can be held back, a machine that is logged in to it, and what the server holds, past its proxy. */
async function newService() {
  const service = await serveBehindProxy();
  const client = newClient(service.server.env);
  await client.result('login');
  const headers = await logIn(service.server);
  const booked = async (): Promise<Reservation[]> => {
    const { text } = await send(service.server, 'GET', CONNECTIVITY, { headers });
    return v.parse(v.object({ items: v.array(Reservation) }), JSON.parse(text)).items;
  };
  return { ...service, client, booked };
}

const ledgerOf = ({ state }: Client): string => join(state, 'ledger.sqlite');

/** The rows of the ledger's file, which another process may have open. */
function rowsOf(client: Client): object[] {
  const database = new DatabaseSync(ledgerOf(client), { readOnly: true });
  try {
    const rows = 'SELECT key, asked, outcome, reservation_id, requested FROM attempt ORDER BY asked_ms';
    const found = database.prepare(rows).all();
    return found.map((row) => ({ ...row, requested: JSON.parse(String(row['requested'])) }));
  } finally {
    database.close();
  }
}

describe('row 12: a reply that never arrives', () => {
  /** Starts a `reserve` that the service takes, and whose answer is held back. */
  async function waiting(...flags: string[]) {
    const service = await newService();
    const { client, proxy, booked } = service;
    let atArrival: object[] = [];
    proxy.arm('"site1"', 1, 'after it was passed on', () => {
      atArrival = rowsOf(client);
      proxy.silence();
    });
    const reserving = client.start(...flags, ...LATER);
    await vi.waitFor(async () => expect(await booked()).toHaveLength(1), { timeout: PATIENCE });
    return { ...service, reserving, atArrival: () => atArrival };
  }

  test('reserve is killed: its attempt was in the ledger before the request left, and list finds the reservation', async () => {
    const { client, proxy, booked, changes, reserving, atArrival } = await waiting();
    reserving.signal('SIGKILL');
    await reserving.ended;
    const unknown = { asked: 'reserve', outcome: 'unknown', reservation_id: null };
    expect(atArrival()).toMatchObject([{ ...unknown, requested: { site1: 'be-gent1', bandwidth: 1000 } }]);
    expect(rowsOf(client)).toMatchObject([unknown]);
    proxy.mend();
    const [reservation] = await booked();
    const { id = '', site1, site2, bandwidth, start_date, end_date } = reservation ?? {};
    const requested = { site1, site2, bandwidth, start_date, end_date };
    const found = { id, reservation, state: 'scheduled', source: 'service', requested };
    expect(await client.result('list')).toEqual({ items: [found] });
    expect(rowsOf(client)).toMatchObject([{ outcome: 'booked', reservation_id: id }]);
    expect(changes).toEqual(['POST']);
  });

  test.each([
    ['SIGINT', 130, 'interrupted'],
    ['SIGTERM', 143, 'terminated'],
  ] as const)(
    'row 44: %s meanwhile: exit %i, says that it may be booked, and list settles it',
    async (signal, exitCode, code) => {
      const { client, proxy, booked, reserving } = await waiting('--json');
      reserving.signal(signal);
      expect(reportOf(await reserving.ended)).toMatchObject({
        code,
        exitCode,
        why: expect.stringContaining('may have taken effect'),
        fix: 'slices-conn list',
        maybeDone: true,
      });
      expect(rowsOf(client)).toMatchObject([{ outcome: 'unknown', reservation_id: null }]);
      proxy.mend();
      expect(await client.result('list')).toMatchObject({
        items: [{ state: 'scheduled', source: 'service' }],
      });
      expect(await booked()).toHaveLength(1);
    },
  );
});

test.each<[string, (path: string) => void]>([
  ['garbage', (path) => writeFileSync(path, 'garbage '.repeat(1000))],
  [
    'of a newer version',
    (path) => {
      const database = new DatabaseSync(path);
      database.exec('PRAGMA user_version = 99');
      database.close();
    },
  ],
])(
  'a ledger that is %s: a change is 2, nothing is sent, nothing is deleted; list still shows the service’s',
  async (_, damage) => {
    const { client, changes } = await newService();
    const { id } = reservationIn(await client.result(...LATER));
    damage(ledgerOf(client));
    const before = readFileSync(ledgerOf(client));
    changes.length = 0;
    for (const args of [LATER, ['delete', '--yes', id], ['update', id, '--extend', '1h']]) {
      const report = reportOf(await client.command('--json', ...args));
      expect(report).toMatchObject({ code: 'state_unusable', exitCode: 2 });
      expect(report.message).toContain(ledgerOf(client));
      expect(report.fix).toContain('mv ');
    }
    const listed = await client.command('--json', 'list');
    expect(JSON.parse(listed.stdout)).toMatchObject({ items: [{ id, source: 'service' }] });
    expect(listed.stderr).toMatch(/warning: .*ledger/i);
    expect(changes).toEqual([]);
    expect(readFileSync(ledgerOf(client)).equals(before)).toBe(true);
  },
);
