import { test } from 'vitest';
import { usePostgres } from '../fixtures/postgres.ts';
import { expectNothingFound } from './nothing-found.ts';
import { raceOnLinks } from './race.ts';

const until = { rounds: 1, acknowledged: 100 };
const postgres = usePostgres();

test('row 40: two processes with eight connections each on SQLite: never above the capacity, no tag held twice', async () => {
  expectNothingFound(await raceOnLinks({ until, seed: 1 }), until);
}, 600_000);

test('row 40: two processes with eight connections each on PostgreSQL: never above the capacity, no tag held twice', async () => {
  const report = await raceOnLinks({ until, seed: 1, postgres: await postgres.withTables() });
  expectNothingFound(report, until);
}, 600_000);
