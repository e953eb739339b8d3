import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CreateRequest } from '../../src/allocator/decide.ts';
import type { Demand } from '../../src/allocator/demand.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import type { ReservationStore } from '../../src/allocator/store.ts';
import { type Link, linkId, type TagRange } from '../../src/contract/links.ts';
import { PostgresDatabase } from '../../src/store/postgres/database.ts';
import { reservationStore } from '../../src/store/reservations.ts';
import { type Locking, READ_LINK } from '../../src/store/sql.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { type OpenedStore, openPostgres } from '../store/opened-store.ts';
import { Allocator } from './allocator.ts';
import { race, tally } from './race.ts';
import type { RaceAnswer } from './race-process.ts';
import { smallLink } from './small-link.ts';
import { sweep } from './sweep.ts';

const ID = linkId('a', 'b');
const ALL: Demand = { start: 10, end: 20, bandwidth: 100 };
const RANGE: TagRange = [100, 199];
const WIDE = { site1_s_tags: RANGE, site1_c_tags: RANGE, site2_s_tags: RANGE, site2_c_tags: RANGE };

const postgres = usePostgres();
let path: string;
let opened: OpenedStore;

beforeEach(async () => {
  path = await postgres.emptied();
  opened = await openPostgres(path);
});
afterEach(async () => {
  await opened.close();
});

const liveIds = async (): Promise<unknown[]> =>
  (await opened.rows('SELECT id FROM reservation WHERE deleted_ms IS NULL ORDER BY id')).map(({ id }) => id);
const idsOf = (answers: readonly RaceAnswer[]): string[] =>
  answers.flatMap((answer) => (answer.ok ? [answer.id] : [])).toSorted();

function request({ site1, site2 }: Link): CreateRequest {
  return { site1, site2, ...ALL, experiment: 'exp', createdBy: 'user', expiry: 1000 };
}

function allocatorOn(store: ReservationStore, link: Link, name: string): Allocator {
  let ids = 0;
  return new Allocator({
    network: createNetwork({ sites: [link.site1, link.site2], links: [link] }),
    store,
    now: () => 0,
    newId: () => `${name}${ids++}`,
  });
}

describe('bookings that race on PostgreSQL', () => {
  const limits = [
    { last: 'bandwidth', link: smallLink({ ...WIDE, bandwidth: 1099 }), winners: 10, why: 'bandwidth' },
    {
      last: 'tags',
      link: smallLink({ ...WIDE, bandwidth: 1_000_000, site2_c_tags: [100, 106] }),
      winners: 7,
      why: 'tags',
    },
  ];

  test.each(limits)(
    '36 requests of three processes race for the last $last: the database holds exactly the acknowledged ones',
    async ({ link, winners, why }) => {
      const order = { path, link, book: Array.from({ length: 12 }, () => ALL) };
      const answers = await race(['one', 'two', 'three'].map((name) => ({ ...order, name })));
      expect(tally(answers)).toEqual({ won: winners, [why]: 36 - winners });
      expect(await sweep(opened, ID, link)).toEqual([]);
      expect(await liveIds()).toEqual(idsOf(answers));
    },
  );

  test('without the lock of the link, two decisions at once overbook it', async () => {
    const link = smallLink({ ...WIDE, bandwidth: 1000 });
    const first = allocatorOn(opened.store, link, 'first');
    for (const start of [20, 25]) {
      await first.create({ ...request(link), start, end: start + 10, bandwidth: 1 });
    }
    const database = await PostgresDatabase.open(path);
    const unlocked: Locking = {
      lock: (sql, id) => sql.first(READ_LINK, { link: id }),
      lockNames: async () => undefined,
      hasOneWriter: false,
      deleteExpiredKeys: '',
    };
    let decided = 0;
    const both = Promise.withResolvers<void>();
    // A store of its own for each: in one they would share a transaction.
    const meeting = (): ReservationStore => {
      const store = reservationStore(database, unlocked);
      return {
        ...store,
        changeLinks: (links, work) =>
          store.changeLinks(links, (transaction) =>
            work({
              ...transaction,
              async write(...given) {
                decided += 1;
                if (decided === 2) both.resolve();
                await both.promise;
                await transaction.write(...given);
              },
            }),
          ),
      };
    };
    const answers = await Promise.all(
      [10, 15].map((start) =>
        allocatorOn(meeting(), link, `${start}-`).create({
          ...request(link),
          start,
          end: start + 10,
          bandwidth: 600,
        }),
      ),
    );
    await database.close();
    expect(answers.map(({ ok }) => ok)).toEqual([true, true]);
    expect(await sweep(opened, ID, link)).toContainEqual(expect.stringMatching(/^120\d of 1000 Mbps/));
  });
});

test('two replicas update different members of one reservation, and neither change is lost', async () => {
  const link = smallLink(WIDE);
  const other = await openPostgres(path);
  const [one, two] = [allocatorOn(opened.store, link, 'one'), allocatorOn(other.store, link, 'two')];
  const booked = await one.create(request(link));
  const id = booked.ok ? booked.record.id : '';
  const steps = Array.from({ length: 20 }, (_, index) => 101 + index);
  const change = async (allocator: Allocator, changes: readonly Partial<Demand>[]): Promise<unknown[]> => {
    const outcomes: unknown[] = [];
    for (const each of changes) {
      outcomes.push(
        (await allocator.update(id, each, { by: 'user', expiry: 1000, check: () => undefined }))?.ok,
      );
    }
    return outcomes;
  };
  const outcomes = await Promise.all([
    change(
      one,
      steps.map((bandwidth) => ({ bandwidth })),
    ),
    change(
      two,
      steps.map((end) => ({ end })),
    ),
  ]);
  await other.close();
  expect(outcomes.flat()).toEqual(Array.from({ length: 40 }, () => true));
  expect(await opened.store.find(id)).toMatchObject({ start: 10, end: 120, bandwidth: 120 });
  expect(await opened.rows('SELECT version FROM link WHERE id = $1', ID)).toEqual([{ version: 41 }]);
  expect(await sweep(opened, ID, link)).toEqual([]);
});

test('one key for two links at once, by two processes: one of them is booked', async () => {
  const links = [smallLink(WIDE), { ...smallLink(WIDE), site1: 'c', site2: 'd' }];
  const answers = await race(
    links.map((link, index) => ({
      path,
      link,
      name: `p${index}-`,
      key: 'k',
      // The second request under the same key is refused.
      book: Array.from({ length: 10 }, () => ({ ...ALL, bandwidth: index + 1 })),
    })),
  );
  const live = await liveIds();
  expect(live).toHaveLength(1);
  expect(tally(answers)).toEqual({ won: 10, key_taken: 10 });
  expect(new Set(idsOf(answers))).toEqual(new Set(live));
});
