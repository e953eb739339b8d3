import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createNetwork } from '../../../src/allocator/network.ts';
import type { ReservationStore } from '../../../src/allocator/store.ts';
import { linkId, type TagRange } from '../../../src/contract/links.ts';
import { reservationStore } from '../../../src/store/reservations.ts';
import { Allocator } from '../../allocator/allocator.ts';
import { History, shapes, steps } from '../../allocator/history.ts';
import { smallLink } from '../../allocator/small-link.ts';
import { sweep } from '../../allocator/sweep.ts';
import { usePostgres } from '../../fixtures/postgres.ts';
import { rowsOf } from '../../store/opened-store.ts';
import { proveFailpoints } from '../failpoints.ts';
import { type OpenedStatements, postgresStatements, sqliteStatements } from '../statements.ts';
import { locksWhereItReads, MISTAKES } from './mistakes.ts';

// The proofs must find each mistake that a store may make under the allocator, and nothing in the store as it is.
const postgres = usePostgres();
const ENGINES = [
  { engine: 'SQLite', histories: 150, open: sqliteStatements },
  {
    engine: 'PostgreSQL',
    histories: 20,
    open: async () => postgresStatements(await postgres.withTables()),
  },
];

/** @returns what it finds */
type Proof = (opened: OpenedStatements, store: ReservationStore, histories: number) => Promise<unknown[]>;

/** Two allocators on one database live through random histories, against the oracle. */
const history: Proof = async ({ database }, store, numRuns) => {
  const opened = { store, rows: rowsOf(database), close: async () => undefined };
  let number = 0;
  const details = await fc.check(
    fc.asyncProperty(
      shapes.map((shape) => ({ ...shape, share: 100, unit: 1 })),
      fc.array(
        steps.map((step) => ({ ...step, search: undefined, startsNow: false })),
        { minLength: 10, maxLength: 25, size: 'max' },
      ),
      async (shape, taken) => {
        number += 1;
        const life = new History(opened, shape, { allocators: 2, number });
        for (const step of taken) await life.take(step);
        await life.conclude();
      },
    ),
    { numRuns, seed: 1, endOnFailure: true },
  );
  return details.failed ? [details.errorInstance] : [];
};

const RANGE: TagRange = [100, 119];
const RANGES = { site1_s_tags: RANGE, site1_c_tags: RANGE, site2_s_tags: RANGE, site2_c_tags: RANGE };
/** A link for ten bookings of 100 Mbps, of which more are asked for at once, each by an allocator of its own. */
const LINK = smallLink({ bandwidth: 1099, ...RANGES });
const [FIT, ASKED] = [10, 36];

const race: Proof = async ({ database }, store) => {
  const id = linkId(LINK.site1, LINK.site2);
  // The row exists before the race, so that no connection waits for its creation.
  await store.changeLinks({ links: [id] }, async () => undefined);
  const network = createNetwork({ sites: [LINK.site1, LINK.site2], links: [LINK] });
  const who = { experiment: 'exp', createdBy: 'user', expiry: 1000 };
  const request = { site1: LINK.site1, site2: LINK.site2, start: 10, end: 20, bandwidth: 100, ...who };
  const answers = await Promise.allSettled(
    Array.from({ length: ASKED }, (_, index) =>
      new Allocator({ network, store, now: () => 0, newId: () => `r${index}` }).create(request),
    ),
  );
  const errors = answers.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []));
  const won = answers.filter((each) => each.status === 'fulfilled' && each.value.ok).length;
  return [
    ...errors,
    ...(won === FIT ? [] : [`${won} were accepted where ${FIT} fit`]),
    ...(await sweep({ rows: rowsOf(database) }, id, LINK)),
  ];
};

// So many histories find each mistake; histories.test.ts finds nothing in more of them.
test.each(
  ENGINES.flatMap((engine) =>
    (
      [
        ['check and insert in two transactions', 'a race', race],
        ['equal deltas counted once', 'a race', race],
        ['rows read before the lock', 'a race', race],
        ['rows of what has begun not read', 'random histories', history],
        ['an update that skips the check', 'random histories', history],
        ['an update that counts its own use', 'random histories', history],
        ['closed intervals', 'random histories', history],
      ] as const
    ).map(([mistake, by, prove]) => ({ ...engine, mistake, by, prove })),
  ),
)('on $engine, mistake: $mistake, caught by $by', async ({ histories, open, mistake, prove }) => {
  const opened = await open();
  const store = MISTAKES[mistake](reservationStore(opened.database, opened.locking));
  expect(await prove(opened, store, histories).finally(opened.close)).not.toEqual([]);
});

// What fails is the same on either engine; SQLite is quicker.
test.each([
  ['the hops of a route in transactions of their own', 'create over a route', 'half a route'],
  ['key kept in another transaction', 'create under a key', ''],
  ['the failing one of a group answered as success', 'all at once', ''],
] as const)('mistake: %s, caught by a failure at each step', async (mistake, scenario, what) => {
  const opened = await sqliteStatements();
  const storeOf: typeof reservationStore = (...given) => MISTAKES[mistake](reservationStore(...given));
  const options = { storeOf, thorough: false, only: [scenario] };
  const { findings } = await proveFailpoints(opened, options).finally(opened.close);
  expect(findings.map((found) => found.what)).toContainEqual(expect.stringContaining(what));
});

test.each(
  ENGINES.flatMap((engine) => [
    { ...engine, by: 'random histories', prove: history },
    { ...engine, by: 'a race', prove: race },
  ]),
)('on $engine $by: nothing is found in the store as it is', async ({ open, prove }) => {
  const storeOf = ({ database, locking }: OpenedStatements) => reservationStore(database, locking);
  expect(await proved(prove, storeOf, open)).toEqual([]);
});

test('mistake: the lock in the statement that reads, on PostgreSQL, caught by a race', async () => {
  // Whether the mistake shows is a matter of luck: almost always in the first race.
  let found: unknown[] = [];
  while (found.length === 0) {
    const open = async () => postgresStatements(await postgres.withTables());
    found = await proved(race, ({ database }) => locksWhereItReads(database), open);
  }
});

/** Tries until no allocator has waited too long, as many do on a busy machine: that has shown nothing. */
async function proved(
  prove: Proof,
  storeOf: (opened: OpenedStatements) => ReservationStore,
  open: () => Promise<OpenedStatements>,
): Promise<unknown[]> {
  for (;;) {
    const opened = await open();
    const found = await prove(opened, storeOf(opened), 10).finally(opened.close);
    if (!found.some((each) => String(each).startsWith('StoreUnavailableError'))) return found;
  }
}
