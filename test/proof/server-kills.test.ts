import { test } from 'vitest';
import { usePostgres } from '../fixtures/postgres.ts';
import { expectNothingFound } from './nothing-found.ts';
import { killServers } from './server-kills.ts';

const postgres = usePostgres();

const FEW = { seconds: 7, seed: 1 };
const LIMIT = 60_000;

test(
  'row 39: serve on SQLite is killed under load: every reply that was sent is on disk, nothing leaks',
  async () => {
    expectNothingFound(await killServers(FEW), { kills: 3, acknowledged: 50 });
  },
  LIMIT,
);

test(
  'row 39: replicas of serve on PostgreSQL are killed under load: every reply that was sent is on disk, nothing leaks',
  async () => {
    const report = await killServers({ ...FEW, postgres: await postgres.database() });
    expectNothingFound(report, { kills: 3, acknowledged: 50 });
  },
  LIMIT,
);
