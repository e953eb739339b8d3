import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { send } from '../fixtures/identity.ts';
import { freePort, newDatabase, type RunningPostgres, startPostgres } from '../fixtures/postgres-server.ts';
import { addressOf } from '../fixtures/service.ts';
import { newMachine } from './command.ts';
import { serveWith } from './served.ts';
import { book, idIn, logIn } from './wire-caller.ts';

let postgres: RunningPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

/** A server as a process of its own, once it answers. */
const serve = (database: string, ...args: string[]) =>
  serveWith('--port', '0', '--database', database, '--auto-approve', 'lead', ...args);

/** Who runs commands on a database beside its servers. */
function operator(database: string) {
  const { run } = newMachine();
  const on = (...words: readonly string[]) => run(['serve', ...words, '--database', database]);
  return {
    on,
    json: async (...words: readonly string[]) => JSON.parse((await on(...words, '--json')).stdout),
  };
}

describe('serve --database', () => {
  test('two servers share a database; while it is down both say 503, and go on once it is back', async () => {
    const { url: database } = await newDatabase(postgres.url);
    const one = await serve(database);
    const other = await serve(database, '--port', String(await freePort()), '--base-url', one.base);
    const headers = await logIn(one);
    const booked = await book(one, headers);
    expect(booked.status).toBe(201);
    const path = addressOf('readReservation', idIn(booked));
    expect((await send(other, 'GET', path, { headers })).text).toBe(booked.text);

    await postgres.stop();
    for (const target of [one, other]) {
      for (const reply of [await book(target, headers), await send(target, 'GET', path, { headers })]) {
        expect(reply.status).toBe(503);
        expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
        expect(JSON.parse(reply.text)).toMatchObject({ code: 'unavailable' });
      }
    }
    const login = await send(one, 'POST', '/auth/device/auth', { body: { client_id: 'slices-conn' } });
    expect(login.status).toBeGreaterThanOrEqual(400);

    await postgres.start();
    for (const target of [one, other]) {
      expect((await send(target, 'GET', path, { headers })).text).toBe(booked.text);
      expect((await book(target, headers)).status).toBe(201);
    }
    await logIn(other);
    // What else operators do to a server's data.
    const { json } = operator(database);
    const { items } = await json('audit');
    expect(items).toMatchObject([{ reservation: idIn(booked) }, {}, {}]);
    expect((await json('rotate-keys')).items).toHaveLength(6);
    for (const { process } of [one, other]) {
      process.signal('SIGTERM');
      expect((await process.ended).exitCode).toBe(0);
    }
  });

  test('an empty one has neither decisions nor keys', async () => {
    const { on } = operator((await newDatabase(postgres.url)).url);
    for (const [word, said] of [
      ['audit', 'No server has kept its data there yet.'],
      ['rotate-keys', 'The database holds no keys.'],
    ] as const) {
      expect(await on(word)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(said) });
    }
  });

  test.each([[['--port', '0']], [['audit']], [['rotate-keys']]])(
    '%j at one that is away is exit 7, and the password is not told',
    async (words) => {
      const away = `postgres://someone:hunter2@127.0.0.1:${await freePort()}/none`;
      const ended = await operator(away).on(...words);
      expect(ended).toMatchObject({ exitCode: 7, stderr: expect.stringContaining("can't be") });
      expect(ended.stderr).not.toContain('hunter2');
    },
  );
});
