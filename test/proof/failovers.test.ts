import { test } from 'vitest';
import { failOver } from './failovers.ts';
import { expectNothingFound } from './nothing-found.ts';

const until = { kills: 1, acknowledged: 60 };

test.each([true, false])(
  'a standby is promoted under load (synchronous: %s): nothing is lost but what it had not got, and no link overbooked (THREATS.md 72)',
  async (synchronous) => {
    const report = await failOver({ until, seed: 1, synchronous });
    expectNothingFound(report, until);
  },
  600_000,
);
