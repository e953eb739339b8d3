import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KEY_SET_PATH } from '../../src/contract/routes.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import { idIn, send, signedBy } from '../fixtures/asked-server.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { addressOf, booking, CONNECTIVITY, NOW } from '../fixtures/service.ts';

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

  test('a token of one is accepted by the other, which reads, updates and deletes reservations of the first', async () => {
    const headers = await signedBy(one);
    const booked = await send(one, 'POST', CONNECTIVITY, { headers, body: booking() });
    expect(booked.status).toBe(201);
    const path = addressOf('readReservation', idIn(booked.text));

    expect(await send(other, 'GET', path, { headers })).toEqual({ status: 200, text: booked.text });
    const changed = await send(other, 'PUT', path, { headers, body: booking({ bandwidth: '200' }) });
    expect(changed.status).toBe(200);
    expect(JSON.parse((await send(one, 'GET', path, { headers })).text)).toMatchObject({ bandwidth: 200 });
    expect((await send(one, 'DELETE', path, { headers: await signedBy(other) })).status).toBe(204);
    expect((await send(other, 'GET', path, { headers })).status).toBe(404);
  });
});
