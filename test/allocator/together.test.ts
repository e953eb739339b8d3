import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Demand } from '../../src/allocator/demand.ts';
import { Line } from '../../src/allocator/line.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import {
  CommitUnknownError,
  type ReservationStore,
  StoreUnavailableError,
} from '../../src/allocator/store.ts';
import { linkId } from '../../src/contract/links.ts';
import type { Problem } from '../../src/contract/problems.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { type OpenedStore, openPostgres, openSqlite } from '../store/opened-store.ts';
import { Allocator, type Outcome } from './allocator.ts';
import { smallLink } from './small-link.ts';
import { sweep } from './sweep.ts';

const postgres = usePostgres();
const TAGS: [number, number] = [1, 40];
const LINK = smallLink({
  site1_s_tags: TAGS,
  site1_c_tags: TAGS,
  site2_s_tags: TAGS,
  site2_c_tags: TAGS,
});
const ID = linkId('a', 'b');
const HOUR = 3_600_000;
/** What a caller's own check says. */
const SHORTER: readonly Problem[] = [{ code: 'date_invalid', msg: 'shorter' }];
const SOME: Demand = { start: 10, end: 20, bandwidth: 100 };

const ENGINES = [
  ['SQLite', () => openSqlite(join(temporaryFolder(), 'links.db'))],
  ['PostgreSQL', async () => openPostgres(await postgres.emptied())],
] as const;

describe.each(ENGINES)('on %s, requests that wait for one link', (_, open) => {
  let opened: OpenedStore;
  let ids: number;
  /** How many requests each transaction decided. */
  let sizes: number[];

  beforeEach(async () => {
    opened = await open();
    [ids, sizes] = [0, []];
  });
  afterEach(async () => {
    expect(await sweep(opened, ID, LINK)).toEqual([]);
    await opened.close();
  });

  const start = (store: ReservationStore = opened.store): Allocator =>
    new Allocator({
      network: createNetwork({ sites: ['a', 'b'], links: [LINK] }),
      store,
      now: () => 0,
      newId: () => `r${String(ids++).padStart(3, '0')}`,
      observe: { committed: (size) => sizes.push(size) },
    });

  function book(allocator: Allocator, demand: Partial<Demand> = {}): Promise<Outcome> {
    const who = { experiment: 'exp', createdBy: 'user', expiry: 100 * HOUR };
    return allocator.create({ site1: 'a', site2: 'b', ...SOME, ...demand, ...who });
  }

  async function booked(allocator: Allocator, demand: Partial<Demand> = {}): Promise<string> {
    const outcome = await book(allocator, demand);
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.refusals));
    return outcome.record.id;
  }

  const liveIds = async (): Promise<unknown[]> =>
    (await opened.rows('SELECT id FROM reservation WHERE deleted_ms IS NULL ORDER BY id')).map(
      ({ id }) => id,
    );

  test('share a transaction, each as if the earlier ones were committed', async () => {
    const allocator = start();
    await booked(allocator, { start: 0, end: 1 });
    sizes = [];
    const asked = Array.from({ length: 150 }, (_, index) =>
      book(allocator, { bandwidth: index < 8 ? 100 : 50, start: 10, end: index < 16 ? 20 : 15 }),
    );
    const outcomes = await Promise.all(asked);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(150);
    expect(sizes.length).toBeLessThanOrEqual(4);
    expect(outcomes.map(({ ok }) => ok)).toEqual(Array.from({ length: 150 }, (_, index) => index < 12));
    expect(outcomes[12]).toMatchObject({ refusals: [{ limit: 'bandwidth', free: 0 }] });
    expect(await liveIds()).toHaveLength(13);
    expect((await opened.rows('SELECT version FROM link WHERE id = $1', ID)).map(Object.values)).toEqual([
      [13],
    ]);
  });

  test('each get their own answer, with the audit in the order of the decisions', async () => {
    const allocator = start();
    const [kept, gone] = [await booked(allocator), await booked(allocator)];
    const found = await opened.store.find(kept);
    const other = await opened.store.find(gone);
    if (!found || !other) throw new Error('both were booked');
    const who = { site1: 'a', site2: 'b', experiment: 'exp', createdBy: 'user', expiry: 100 * HOUR };
    const booking = (bandwidth: number) =>
      allocator.change([{ action: 'create', request: { ...who, ...SOME, bandwidth } }]);
    const change = (update: Partial<Demand>) =>
      allocator.change([
        {
          action: 'update',
          found,
          update,
          terms: {
            by: 'user',
            expiry: HOUR,
            check: (current, { end }) => (end < current.end ? SHORTER : undefined),
          },
        },
      ]);
    const deletion = () => allocator.change([{ action: 'delete', found: other, terms: { by: 'user' } }]);
    const answers = await Promise.all([
      booking(900),
      change({ bandwidth: 200 }),
      deletion(),
      deletion(),
      change({ end: 15 }),
      booking(801),
      booking(800),
      change({ bandwidth: 201 }),
    ]);
    const refused = (item: object) => ({ ok: false, items: [item] });
    expect(answers).toMatchObject([
      refused({ refusals: [{ free: 800 }] }),
      { ok: true, records: [{ bandwidth: 200 }] },
      { ok: true },
      refused({ reason: 'missing' }),
      refused({ reason: 'rule', problems: SHORTER }),
      refused({ refusals: [{ free: 800 }] }),
      { ok: true, records: [{ bandwidth: 800 }] },
      refused({ refusals: [{ free: 200 }] }),
    ]);
    // What decided nothing has no row.
    const audit = await opened.rows('SELECT version, action, accepted FROM audit ORDER BY seq');
    expect(audit.slice(2).map(({ version, action, accepted }) => [version, action, accepted])).toEqual([
      [2, 'create', 0],
      [3, 'update', 1],
      [4, 'delete', 1],
      [4, 'create', 0],
      [5, 'create', 1],
      [5, 'update', 0],
    ]);
  });

  test.each([
    ['one of them throws', false],
    ['the database refuses one of them', true],
  ])('still succeed when %s: only that one fails', async (_, isRefused) => {
    const store: ReservationStore = {
      ...opened.store,
      changeLinks: (locks, work) =>
        opened.store.changeLinks(locks, (transaction) =>
          work({
            ...transaction,
            async write(decided, now) {
              const isThird = decided.changes.some(({ record }) => record.bandwidth === 3);
              if (isThird && !isRefused) throw new TypeError('a bug of one caller');
              const [change] = decided.changes;
              const hops = change?.record.hops;
              if (!isThird || !change || !hops) return transaction.write(decided, now);
              const tags = { ...hops[0].tags, site1_s_tag: Number.NaN };
              const record = { ...change.record, hops: [{ ...hops[0], tags }] as const };
              return transaction.write({ ...decided, changes: [{ ...change, record }] }, now);
            },
          }),
        ),
    };
    const allocator = start(store);
    const answers = await Promise.allSettled([1, 2, 3, 4].map((bandwidth) => book(allocator, { bandwidth })));
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    const rows = await opened.rows('SELECT bandwidth FROM reservation ORDER BY bandwidth');
    expect(rows.map(({ bandwidth }) => Number(bandwidth))).toEqual([1, 2, 4]);
    expect(await book(allocator, { bandwidth: 994 })).toMatchObject({ ok: false, refusals: [{ free: 993 }] });
  });
});

describe('row 64: a database that fails while requests wait for one link', () => {
  /** Asks for six, of which the second throws; then the database is lost with an error. @returns what each is told, and how often it was asked */
  async function askSix(lost: number, error: StoreUnavailableError) {
    const asked: number[] = [];
    const line = new Line<string, string>(64, async (works) => {
      asked.push(works.length);
      if (asked.length > lost) throw error;
      if (works.includes('1')) throw new TypeError('a bug of one caller');
      return works;
    });
    const answers = await Promise.allSettled(Array.from({ length: 6 }, (_, index) => line.run(`${index}`)));
    return {
      answers: answers.map((each) => (each.status === 'rejected' ? each.reason.name : each.value)),
      asked,
    };
  }

  test('is waited for once: what has not begun knows that nothing was done', async () => {
    const { answers, asked } = await askSix(3, new StoreUnavailableError('away'));
    expect(answers).toEqual(['0', 'TypeError', ...Array.from({ length: 4 }, () => 'StoreUnavailableError')]);
    // All together, then each alone, until it was away.
    expect(asked).toEqual([6, 1, 1, 1]);
  });

  test('leaves only what it was asked last unknown', async () => {
    const { answers } = await askSix(3, new CommitUnknownError('lost'));
    expect(answers.slice(2)).toEqual([
      'CommitUnknownError',
      ...Array.from({ length: 3 }, () => 'StoreUnavailableError'),
    ]);
  });

  test('fails all that wait behind those that it was asked for', async () => {
    const away = Promise.withResolvers<never>();
    let asked = 0;
    const line = new Line<string, never>(64, () => {
      asked += 1;
      return away.promise;
    });
    const first = line.run('first');
    await expect.poll(() => asked).toBe(1);
    const second = line.run('second');
    away.reject(new CommitUnknownError('lost'));
    await expect(first).rejects.toThrow(CommitUnknownError);
    await expect(second).rejects.not.toThrow(CommitUnknownError);
    await expect(second).rejects.toThrow(StoreUnavailableError);
    expect(asked).toBe(1);
  });
});
