import { test } from 'vitest';
import { killClients } from './client-kills.ts';
import { expectNothingFound } from './nothing-found.ts';
import { killPlans } from './plan-kills.ts';

const until = { rounds: 2, kills: 3 };
const LIMIT = 600_000;

// One database will do here; npm run prove has both, and server-kills.test.ts kills servers on PostgreSQL under batches too.
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
