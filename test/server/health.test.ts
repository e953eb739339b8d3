import { statSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { StoreUnavailableError } from '../../src/allocator/store.ts';
import { createHealth } from '../../src/server/health.ts';
import { noLog } from '../../src/server/log.ts';
import { ProblemError } from '../../src/server/problem-error.ts';
import { routeMounter } from '../../src/server/routing.ts';
import { CAN_LIMIT_FILES, underFileLimit } from '../fixtures/file-limit.ts';
import { startIdentity } from '../fixtures/identity.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { addressOf, openService, outcome } from '../fixtures/service.ts';

const HEALTH = addressOf('health');
const READY = addressOf('readiness');
const mount = routeMounter({ projects: 'projects', experiments: 'experiments' });

/** What the checks say alone, over a database of the test's own. */
function checksOver(ping: () => Promise<void>, timeout?: number) {
  const checks = createHealth({ mount, ping, log: noLog, ...(timeout === undefined ? {} : { timeout }) });
  checks.routes.onError((error) => {
    if (error instanceof ProblemError) return new Response(error.message, { status: 503 });
    throw error;
  });
  const ask = async (path: string): Promise<number> =>
    (await checks.routes.fetch(new Request(`http://server.invalid${path}`))).status;
  return { ...checks, ask };
}

describe('the two checks of a server', async () => {
  const service = await openService();

  test.each([HEALTH, READY])(
    '%s: 200 under any Host, not to be kept, without a token, and not logged',
    async (address) => {
      const before = service.log.length;
      const reply = await service.send('GET', address);
      expect(outcome(reply)).toBe('200');
      expect(reply.body).toEqual({ status: 'ok' });
      expect(reply.headers.get('cache-control')).toBe('no-store');
      for (const more of ['', '/', '?verbose']) {
        expect(outcome(await service.send('GET', `http://10.0.0.7:8080${address}${more}`))).toBe('200');
      }
      expect(service.log.slice(before)).toEqual([]);
      for (const method of ['POST', 'PUT', 'DELETE']) {
        expect(outcome(await service.send(method, address))).toBe('405 method_not_allowed');
      }
    },
  );

  test.each([`${HEALTH}x`, `${READY}/x`, `/x${HEALTH}`, '/portal/readyz'])(
    'what only looks like it is not: %s',
    async (address) => {
      expect(outcome(await service.send('GET', `http://10.0.0.7:8080${address}`))).toBe('421 host_unknown');
    },
  );
});

test('a server below a path answers below it', async () => {
  const service = await openService({ baseUrl: 'http://offline.localhost/links' });
  for (const address of [HEALTH, READY]) {
    expect((await service.send('GET', `http://10.0.0.7/links${address}`)).status).toBe(200);
    expect((await service.send('GET', `http://10.0.0.7${address}`)).status).toBe(421);
  }
});

describe('readiness', () => {
  test('is 503 while the database is away, and 200 once it is back; health does not ask the database', async () => {
    let away = true;
    let asked = 0;
    const { ask } = checksOver(async () => {
      asked += 1;
      if (away) throw new StoreUnavailableError('away');
    });
    expect(await ask(HEALTH)).toBe(200);
    expect(asked).toBe(0);
    expect(await ask(READY)).toBe(503);
    away = false;
    expect(await ask(READY)).toBe(200);
  });

  test.skipIf(!CAN_LIMIT_FILES)('is 503 while the disk is full, and every change is refused', async () => {
    const { server, file } = await startIdentity();
    const ask = async (path: string): Promise<number> =>
      (await server.fetch(new Request(server.addresses.connectivity + path))).status;
    expect([await ask(READY), await ask(HEALTH)]).toEqual([200, 200]);
    await underFileLimit(statSync(`${file}-wal`).size, async () => {
      await vi.waitFor(async () => expect(await ask(READY)).toBe(503), PATIENCE);
      expect(await ask('/.well-known/jwks.json')).toBe(200);
      expect(await ask(HEALTH)).toBe(200);
    });
    expect(await ask(READY)).toBe(200);
  });

  test('does not wait for a database that says nothing, and asks it one thing at a time', async () => {
    let asked = 0;
    const answered = Promise.withResolvers<void>();
    const { ask } = checksOver(() => {
      asked += 1;
      return answered.promise;
    }, 20);
    const replies = await Promise.all(Array.from({ length: 50 }, () => ask(READY)));
    expect(new Set(replies)).toEqual(new Set([503]));
    expect(await ask(READY)).toBe(503);
    expect(asked).toBe(1);
    answered.resolve();
    await vi.waitFor(async () => {
      expect(await ask(READY)).toBe(200);
      expect(asked).toBe(2);
    }, PATIENCE);
  });

  test('is 503 too when the server is told to stop while it asks', async () => {
    const answered = Promise.withResolvers<void>();
    const { ask, drain } = checksOver(() => answered.promise);
    const reply = ask(READY);
    drain();
    answered.resolve();
    expect(await reply).toBe(503);
  });
});
