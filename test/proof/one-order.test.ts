import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createNetwork } from '../../src/allocator/network.ts';
import { CommitUnknownError, StoreUnavailableError } from '../../src/allocator/store.ts';
import { linkId } from '../../src/contract/links.ts';
import { Allocator } from '../allocator/allocator.ts';
import { sweep } from '../allocator/sweep.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { openEither } from '../store/opened-store.ts';
import { chanceFrom } from './chance.ts';
import { LINKS, TOPOLOGY } from './links.ts';
import { replay } from './replay.ts';

const [HOT] = LINKS;
const ALLOCATORS = 4;
const CHANGES = 120;

const postgres = usePostgres();
const folder = temporaryFolder();

/** Asks again where a busy machine has kept it waiting for a connection too long: nothing was changed then. */
async function answered<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || error instanceof CommitUnknownError) throw error;
    }
  }
}

const ENGINES = [
  { engine: 'SQLite', database: async () => join(folder, 'one-order.db') },
  { engine: 'PostgreSQL', database: () => postgres.withTables() },
];

describe.each(ENGINES)('row 38: concurrent updates on $engine', ({ database }) => {
  test('of one reservation, by allocators on connections of their own, have one order, in which each answer was right', async () => {
    const path = await database();
    const opened = await Promise.all(Array.from({ length: ALLOCATORS }, () => openEither(path)));
    const chance = chanceFrom(38);
    let ids = 0;
    const allocators = opened.map(
      ({ store }) =>
        new Allocator({
          network: createNetwork(TOPOLOGY),
          store,
          now: () => 0,
          newId: () => `r${ids++}`,
        }),
    );
    const [first] = allocators;
    const [one] = opened;
    if (!first || !one) throw new RangeError('nobody to ask');
    const { site1, site2 } = HOT;
    const who = { experiment: 'exp', createdBy: 'user', expiry: 1000 };
    for (const bandwidth of [100, 300, 300]) {
      await first.create({ site1, site2, start: 10, end: 30, bandwidth, ...who });
    }
    const outcomes = await Promise.all(
      Array.from({ length: CHANGES }, (_, index) => {
        const start = 5 + chance.below(20);
        const change = { start, end: start + 1 + chance.below(10), bandwidth: 1 + chance.below(900) };
        const terms = { by: 'user', expiry: 1000, check: () => undefined };
        return answered(() => (allocators[index % ALLOCATORS] ?? first).update('r0', change, terms));
      }),
    );
    const { rows } = one;
    const updates = await rows(`SELECT accepted FROM audit WHERE action = 'update' ORDER BY seq`);
    const accepted = outcomes.filter((outcome) => outcome?.ok).length;
    expect(updates).toHaveLength(CHANGES);
    expect(updates.filter((row) => row['accepted'] === 1)).toHaveLength(accepted);
    // Of both there are many, else nothing was tried.
    expect(Math.min(accepted, CHANGES - accepted)).toBeGreaterThan(10);
    expect(await replay(rows, HOT, { oracle: CHANGES })).toEqual([]);
    expect(await sweep({ rows }, linkId(site1, site2), HOT)).toEqual([]);
    await Promise.all(opened.map(({ close }) => close()));
  });
});
