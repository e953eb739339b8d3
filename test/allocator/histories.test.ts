import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { usePostgres } from '../fixtures/postgres.ts';
import { type OpenedStore, openPostgres, openSqlite } from '../store/opened-store.ts';
import { History, seen, shapes, steps } from './history.ts';

const postgres = usePostgres();

/** How many histories are tried on SQLite: 150 find each mistake of test/proof/mutants. `npm run prove` tries more. */
const { PROVE_HISTORIES } = process.env;
const HISTORIES = Number(PROVE_HISTORIES ?? 200);

seen.clear();

/** Histories per engine, half of them with one allocator and half with two. */
const ENGINES = [
  { engine: 'SQLite', histories: HISTORIES, open: () => openSqlite() },
  {
    engine: 'PostgreSQL',
    histories: Math.ceil(HISTORIES / 4),
    open: async () => openPostgres(await postgres.withTables()),
  },
];

describe.each(ENGINES)(
  'random histories on $engine: the allocator gives the oracle’s answers',
  { timeout: HISTORIES * 500 },
  ({ open, histories: planned }) => {
    let opened: OpenedStore;
    let histories = 0;

    beforeAll(async () => {
      opened = await open();
    });
    afterAll(async () => {
      await opened.close();
    });

    // This counts histories and has no time limit of its own.
    test.each([1, 2])('with %i of them on one database', { timeout: 600_000 }, async (allocators) => {
      await fc.assert(
        fc.asyncProperty(
          shapes,
          fc.array(steps, { minLength: 10, maxLength: 25, size: 'max' }),
          async (shape, steps) => {
            histories += 1;
            const history = new History(opened, shape, { allocators, number: histories });
            for (const step of steps) await history.take(step);
            await history.conclude();
          },
        ),
        // The suite tries the same ones each time: by chance, a rare answer came up in none of them.
        { numRuns: planned / 2, ...(PROVE_HISTORIES === undefined ? { seed: allocators } : {}) },
      );
    });
  },
);

test('every kind of answer came up', () => {
  for (const kind of KINDS) expect.soft(seen.get(kind) ?? 0, kind).toBeGreaterThan(1);
});

const KINDS = [
  'create: accepted',
  'create: bandwidth',
  'create: tags',
  'create: bandwidth and tags',
  'create: share',
  'update: accepted',
  'update: bandwidth',
  'update: tags',
  'update: share',
  'update: rule',
  'update: gone',
  'delete: done',
  'delete: gone',
  'offer: most_bandwidth',
  'offer: earliest',
  'offer: longest',
  'update offer: most_bandwidth',
  'update offer: earliest',
  'update offer: longest',
  'offer: most_bandwidth now',
  'offer: longest now',
  'search duration: found',
  'search duration: nothing',
  'search volume: found',
  'search volume: nothing',
];
