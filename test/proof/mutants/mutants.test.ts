import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ReservationStore } from '../../../src/allocator/store.ts';
import { reservationStore } from '../../../src/store/reservations.ts';
import { History, shapes, steps } from '../../allocator/history.ts';
import { usePostgres } from '../../fixtures/postgres.ts';
import { rowsOf } from '../../store/opened-store.ts';
import { proveFailpoints } from '../failpoints.ts';
import { type OpenedStatements, postgresStatements, sqliteStatements } from '../statements.ts';
import { writesHopsApart } from './hops-apart.ts';
import { locksWhereItReads } from './lock-in-reading-statement.ts';
import { raceHere } from './race-here.ts';
import { type Mistake, SmallAllocator } from './small-allocator.ts';

const postgres = usePostgres();
const ENGINES = [
  { engine: 'SQLite', histories: 150, right: 40, open: sqliteStatements },
  {
    engine: 'PostgreSQL',
    histories: 20,
    right: 10,
    open: async () => postgresStatements(await postgres.withTables()),
  },
];

type Proof = (opened: OpenedStatements, histories: number, mistake?: Mistake) => Promise<unknown[]>;

/** Two allocators on one database live through random histories, against the oracle. */
const history: Proof = async ({ database, locking, close: _ }, numRuns, mistake) => {
  const opened = {
    store: reservationStore(database, locking),
    rows: rowsOf(database),
    close: async () => undefined,
  };
  let number = 0;
  const details = await fc.check(
    fc.asyncProperty(
      // The protocol in small has no shares and no searches.
      shapes.map((shape) => ({ ...shape, share: 100, unit: 1 })),
      fc.array(
        steps.map((step) => ({ ...step, search: undefined, startsNow: false })),
        { minLength: 10, maxLength: 25, size: 'max' },
      ),
      async (shape, taken) => {
        number += 1;
        const make = (options: ConstructorParameters<typeof SmallAllocator>[0]) =>
          new SmallAllocator(options, mistake);
        const life = new History(opened, shape, { allocators: 2, number, make });
        for (const step of taken) await life.take(step);
        await life.conclude();
      },
    ),
    { numRuns, seed: 1, endOnFailure: true },
  );
  return details.failed ? [details.errorInstance] : [];
};

const failpoints: Proof = async (opened, _, mistake) => {
  const report = await proveFailpoints(opened, {
    make: (options) => new SmallAllocator(options, mistake),
    thorough: false,
    untilFound: true,
  });
  return report.findings;
};

const race: Proof = async ({ database, locking }, _, mistake) => {
  const store = reservationStore(database, locking);
  const make = (options: Omit<ConstructorParameters<typeof SmallAllocator>[0], 'store'>) =>
    new SmallAllocator({ ...options, store }, mistake);
  return raceHere([make, make, make, make], { store, rows: rowsOf(database) });
};

// So many histories find each mistake; fewer show that it is the mistake that is found.
describe.each(ENGINES)('on $engine', ({ histories, right, open }) => {
  test.each([
    ['random histories', history],
    ['a race', race],
  ])('%s: the protocol in small is right, so nothing is found', async (_, prove) => {
    const opened = await open();
    expect(await prove(opened, right).finally(opened.close)).toEqual([]);
  });

  test.each<[Mistake, string, Proof]>([
    ['check and insert in two transactions', 'a race', race],
    ['equal deltas counted once', 'a race', race],
    ['rows read before the lock', 'a race', race],
    ['rows of what has begun not read', 'random histories', history],
    ['an update that skips the check', 'random histories', history],
    ['an update that counts its own use', 'random histories', history],
    ['closed intervals', 'random histories', history],
  ])('mistake: %s, caught by %s', async (mistake, _, prove) => {
    const opened = await open();
    expect(await prove(opened, histories, mistake).finally(opened.close)).not.toEqual([]);
  });
});

// What fails is the same on either engine; SQLite is quicker.
describe('a failure at each step', () => {
  test('the protocol in small is right, so nothing is found', async () => {
    const opened = await sqliteStatements();
    expect(await failpoints(opened, 0).finally(opened.close)).toEqual([]);
  });

  test('mistake: the hops of a route in transactions of their own, is caught', async () => {
    const opened = await sqliteStatements();
    const only = ['create over a route'];
    const options = { storeOf: writesHopsApart, thorough: false, only };
    const { findings } = await proveFailpoints(opened, options).finally(opened.close);
    expect(findings.map(({ what }) => what)).toContainEqual(expect.stringContaining('half a route'));
  });

  test.each<Mistake>(['key kept in another transaction', 'the failing one of a group answered as success'])(
    'mistake: %s, is caught',
    async (mistake) => {
      const opened = await sqliteStatements();
      expect(await failpoints(opened, 0, mistake).finally(opened.close)).not.toEqual([]);
    },
  );
});

test('mistake: the lock in the statement that reads, on PostgreSQL, caught by a race', async () => {
  const raced = async (storeOf: (statements: OpenedStatements) => ReservationStore): Promise<string[]> => {
    for (;;) {
      const found = await racedOnce(storeOf);
      // On a busy machine so many wait too long for a connection or the lock: that race has shown nothing.
      if (!found.some((each) => each.startsWith('StoreUnavailableError'))) return found;
    }
  };
  const racedOnce = async (
    storeOf: (statements: OpenedStatements) => ReservationStore,
  ): Promise<string[]> => {
    const opened = await postgresStatements(await postgres.withTables());
    const store = storeOf(opened);
    const maker = (options: Omit<ConstructorParameters<typeof SmallAllocator>[0], 'store'>) =>
      new SmallAllocator({ ...options, store });
    const makers = Array.from({ length: 36 }, () => maker);
    const rows = rowsOf(opened.database);
    return raceHere(makers, { store, rows }).finally(opened.close);
  };
  // Whether the mistake shows is a matter of luck: almost always in the first race.
  let found: string[] = [];
  for (let race = 0; race < 20 && found.length === 0; race += 1) {
    found = await raced(({ database }) => locksWhereItReads(database));
  }
  expect(found).not.toEqual([]);
  expect(await raced(({ database, locking }) => reservationStore(database, locking))).toEqual([]);
});
