import { afterAll, beforeAll, test } from 'vitest';
import { type RunningPostgres, startPostgres } from '../fixtures/postgres-server.ts';
import { killDatabase } from './database-kills.ts';
import { expectNothingFound } from './nothing-found.ts';

const until = { kills: 2, acknowledged: 30 };

let postgres: RunningPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

test('row 39: PostgreSQL is killed under load: what was acknowledged stays, 503 in time with Retry-After, recovered alone', async () => {
  const report = await killDatabase(postgres, { until, seed: 1 });
  expectNothingFound(report, until);
}, 600_000);
