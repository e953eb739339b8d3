import { test } from 'vitest';
import { usePostgres } from '../fixtures/postgres.ts';
import { expectNothingFound } from './nothing-found.ts';
import { killServers } from './server-kills.ts';

const postgres = usePostgres();

const until = { rounds: 2, kills: 2, acknowledged: 30 };
const LIMIT = 600_000;

test(
  'row 39: serve on SQLite is killed under load: every reply that was sent is on disk, nothing leaks',
  async () => {
    expectNothingFound(await killServers({ until, seed: 1 }), until);
  },
  LIMIT,
);

test(
  'row 39: replicas of serve on PostgreSQL are killed under load: every reply that was sent is on disk, nothing leaks',
  async () => {
    const report = await killServers({ until, seed: 1, postgres: await postgres.withTables() });
    expectNothingFound(report, until);
  },
  LIMIT,
);
