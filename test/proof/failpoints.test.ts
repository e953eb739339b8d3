import { test } from 'vitest';
import { usePostgres } from '../fixtures/postgres.ts';
import { proveFailpoints } from './failpoints.ts';
import { expectNothingFound } from './nothing-found.ts';
import { postgresStatements, sqliteStatements } from './statements.ts';

const postgres = usePostgres();

test('rows 38 and 39: each step of a transaction on SQLite fails: all or nothing, and every allocator agrees', async () => {
  const opened = await sqliteStatements();
  expectNothingFound(await proveFailpoints(opened, { thorough: false }).finally(opened.close), {
    rounds: 50,
  });
}, 600_000);

test('rows 38 and 39: each step of a transaction on PostgreSQL fails: all or nothing, and every allocator agrees', async () => {
  const opened = await postgresStatements(await postgres.withTables());
  const report = await proveFailpoints(opened, { thorough: false }).finally(opened.close);
  expectNothingFound(report, { rounds: 50 });
}, 600_000);
