import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { IDEMPOTENCY_KEY_HEADER, KEY_SET_PATH } from '../../src/contract/routes.ts';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import { idIn, send, signedBy } from '../fixtures/asked-server.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { addressOf, booking, CONNECTIVITY, EXPERIMENTS, NOW } from '../fixtures/service.ts';

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

  test('bandwidth that one has given out is refused by the other', async () => {
    const headers = await signedBy(one);
    const whole = booking({ bandwidth: '100000' });
    const booked = await send(one, 'POST', CONNECTIVITY, { headers, body: whole });
    expect(booked.status).toBe(201);
    const refused = await send(other, 'POST', CONNECTIVITY, { headers, body: whole });
    expect(refused.status).toBe(422);
    expect(JSON.parse(refused.text)).toMatchObject({ code: 'bandwidth_unavailable' });
    await send(other, 'DELETE', addressOf('readReservation', idIn(booked.text)), { headers });
    const free = await send(one, 'POST', CONNECTIVITY, { headers, body: whole });
    expect(free.status).toBe(201);
    await send(one, 'DELETE', addressOf('readReservation', idIn(free.text)), { headers });
  });

  test('many requests under one key, at both at once, are one booking', async () => {
    const headers = { ...(await signedBy(one)), [IDEMPOTENCY_KEY_HEADER]: 'once' };
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        send(index % 2 === 0 ? one : other, 'POST', CONNECTIVITY, { headers, body: booking() }),
      ),
    );
    for (const { status } of replies) expect([200, 201]).toContain(status);
    expect(new Set(replies.map(({ text }) => idIn(text))).size).toBe(1);
  });

  test('an experiment of one name is made once, at whichever of them', async () => {
    const { authorization = '' } = await signedBy(one);
    const [project] = await postgres.ask(url, "SELECT id FROM project WHERE name = 'demo'");
    const body = {
      name: 'rivals',
      project_id: project?.['id'],
      expires_at: new Date(NOW + 3_600_000).toISOString(),
      description: 'a text with \0 in it',
    };
    const replies = await Promise.all(
      [one, other, one, other].map((server) =>
        send(server, 'POST', EXPERIMENTS, { headers: { authorization }, body }),
      ),
    );
    expect(replies.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409]);
  });
});
