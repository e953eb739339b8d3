import { afterAll, beforeAll, test } from 'vitest';
import { usePostgres } from '../fixtures/postgres.ts';
import { type RunningPostgres, startPostgres } from '../fixtures/postgres-server.ts';
import { killClients } from './client-kills.ts';
import { killDatabase } from './database-kills.ts';
import { expectNothingFound } from './nothing-found.ts';
import { killPlans } from './plan-kills.ts';
import { killServers } from './server-kills.ts';

const postgres = usePostgres();

test('row 39: serve on SQLite is killed under load: every reply that was sent is on disk', async () => {
  const until = { rounds: 2, kills: 2, acknowledged: 30 };
  expectNothingFound(await killServers({ until, seed: 1 }), until);
});

test('row 39: replicas of serve on PostgreSQL are killed under load: every reply that was sent is on disk', async () => {
  const until = { rounds: 2, kills: 2, acknowledged: 30 };
  const report = await killServers({ until, seed: 1, postgres: await postgres.withTables() });
  expectNothingFound(report, until);
});

// One database will do for the clients; npm run prove has both, and servers on PostgreSQL are killed under batches too.
test('row 39: reserve is killed, serve is on SQLite: the ledger knows every reservation, and a key books once', async () => {
  const until = { rounds: 2, kills: 3 };
  expectNothingFound(await killClients({ until, seed: 1 }), until);
});

test('row 39: apply or serve on SQLite is killed: all of the file or nothing, then its state, then no change; a link that does not fit leaves nothing', async () => {
  const until = { rounds: 2, kills: 2, acknowledged: 4 };
  expectNothingFound(await killPlans({ until, seed: 1 }), until);
});

let own: RunningPostgres;
beforeAll(async () => {
  own = await startPostgres();
});
afterAll(() => own.close());

test('row 39: PostgreSQL is killed under load: what was acknowledged stays, 503 in time with Retry-After, recovered alone', async () => {
  const until = { kills: 2, acknowledged: 30 };
  expectNothingFound(await killDatabase(own, { until, seed: 1 }), until);
});
