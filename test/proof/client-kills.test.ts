import { test } from 'vitest';
import { usePostgres } from '../fixtures/postgres.ts';
import { killClients } from './client-kills.ts';
import { expectNothingFound } from './nothing-found.ts';
import { killPlans } from './plan-kills.ts';

const postgres = usePostgres();

const until = { rounds: 2, kills: 3 };
const LIMIT = 600_000;

// What is killed is the client, so one database will do here; npm run prove has both.
test(
  'row 39: reserve is killed, serve is on SQLite: the ledger knows every reservation, and a key books once',
  async () => {
    expectNothingFound(await killClients({ until, seed: 1 }), until);
  },
  LIMIT,
);

const plans = { rounds: 2, kills: 2, acknowledged: 4 };

test(
  'row 39: apply or serve on SQLite is killed: all of the file or nothing, then its state, then no change; a link that does not fit leaves nothing',
  async () => {
    expectNothingFound(await killPlans({ until: plans, seed: 1 }), plans);
  },
  LIMIT,
);

test(
  'row 39: apply or serve on PostgreSQL is killed: all of the file or nothing, then its state, then no change; a link that does not fit leaves nothing',
  async () => {
    const report = await killPlans({ until: plans, seed: 1, postgres: await postgres.withTables() });
    expectNothingFound(report, plans);
  },
  LIMIT,
);
