import { test } from 'vitest';
import { usePostgres } from '../fixtures/postgres.ts';
import { killClients } from './client-kills.ts';
import { expectNothingFound } from './nothing-found.ts';

const postgres = usePostgres();

const FEW = { seconds: 5, seed: 1 };
const LIMIT = 60_000;

test(
  'row 39: reserve is killed, serve is on SQLite: the ledger knows every reservation, and a key books once',
  async () => {
    expectNothingFound(await killClients(FEW), { kills: 3 });
  },
  LIMIT,
);

test(
  'row 39: reserve is killed, serve is on PostgreSQL: the ledger knows every reservation, and a key books once',
  async () => {
    const report = await killClients({ ...FEW, postgres: await postgres.database() });
    expectNothingFound(report, { kills: 3 });
  },
  LIMIT,
);
