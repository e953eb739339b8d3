import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CreateRequest } from '../../src/allocator/decide.ts';
import type { Demand } from '../../src/allocator/demand.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { type OpenedStore, openPostgres, openSqlite } from '../store/opened-store.ts';
import { Allocator, type AllocatorOptions, type Outcome } from './allocator.ts';
import { smallLink } from './small-link.ts';

const postgres = usePostgres();
const WIDE = smallLink({
  site1_s_tags: [1, 40],
  site1_c_tags: [1, 40],
  site2_s_tags: [1, 40],
  site2_c_tags: [1, 40],
});
const NARROW = smallLink({ site1: 'c', site2: 'd', site2_c_tags: [1, 2] });
const HOUR = 3_600_000;
const ASKED = {
  ...{ site1: 'a', site2: 'b', start: 10, end: 20, bandwidth: 100 },
  ...{ experiment: 'mine', createdBy: 'user', expiry: HOUR },
};

describe.each([
  ['SQLite', async () => openSqlite()],
  ['PostgreSQL', async () => openPostgres(await postgres.emptied())],
] as const)('row 59: on %s, one experiment', (_, open) => {
  let opened: OpenedStore;
  let clock: number;
  let ids: number;
  beforeEach(async () => {
    opened = await open();
    await opened.store.prepareCounts();
    [clock, ids] = [0, 0];
  });
  afterEach(() => opened.close());

  const start = (limits: Pick<AllocatorOptions, 'maxShare' | 'maxLive'>): Allocator =>
    new Allocator({
      network: createNetwork({ sites: ['a', 'b', 'c', 'd'], links: [WIDE, NARROW] }),
      store: opened.store,
      now: () => clock,
      newId: () => `r${String(++ids).padStart(3, '0')}`,
      ...limits,
    });
  const book = (
    allocator: Allocator,
    changes: Partial<Demand & Pick<CreateRequest, 'site1' | 'site2' | 'experiment' | 'tenant'>> = {},
    dryRun = false,
  ): Promise<Outcome> =>
    allocator.create(
      {
        ...ASKED,
        ...changes,
      },
      dryRun,
    );
  const idOf = (outcome: Outcome): string => {
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.refusals));
    return outcome.record.id;
  };
  const inProject = (index: number) => ({ experiment: `e${index}`, tenant: 'proj_1' });
  const terms = { by: 'user', expiry: HOUR, check: () => undefined };
  const granted = (outcomes: readonly Outcome[]): number => outcomes.filter(({ ok }) => ok).length;

  test('shares with the others of its project, also on another server and after a restart', async () => {
    const [one, other] = [start({ maxShare: 50 }), start({ maxShare: 50 })];
    const asked = Array.from({ length: 24 }, (_, index) =>
      book(index % 2 === 0 ? one : other, inProject(index)),
    );
    expect(granted(await Promise.all(asked))).toBe(5);
    const full = { limit: 'share', of: 'bandwidth', held: 500, allowed: 500, start: 10, end: 20 };
    for (const allocator of [one, other, start({ maxShare: 50 })]) {
      expect(await book(allocator, { ...inProject(99), bandwidth: 1 })).toMatchObject({
        tenant: 'proj_1',
        refusals: [full],
      });
    }
    // An experiment of another project, and one without a project, have their own.
    expect(granted([await book(one, { experiment: 'e1', tenant: 'proj_2', bandwidth: 250 })])).toBe(1);
    expect(granted([await book(other, { experiment: 'alone', bandwidth: 250 })])).toBe(1);
  });

  test('keeps what it has where its share became smaller, and may reduce it', async () => {
    const id = idOf(await book(start({ maxShare: 50 }), { bandwidth: 500, end: 25 }));
    const stricter = start({ maxShare: 10 });
    expect(await stricter.update(id, { bandwidth: 450, end: 22 }, terms)).toMatchObject({ ok: true });
    expect(await stricter.update(id, { end: 23 }, terms)).toMatchObject({ refusals: [{ limit: 'share' }] });
    await stricter.delete(id, { by: 'user' });
    expect(await book(stricter, { bandwidth: 100 })).toMatchObject({ ok: true });
  });

  test('has no more live reservations on all links than the limit, with its project and requests at once', async () => {
    const replicas = [start({ maxLive: 3 }), start({ maxLive: 3 })] as const;
    const links = [
      { site1: 'a', site2: 'b' },
      { site1: 'c', site2: 'd' },
    ];
    const asked = Array.from({ length: 24 }, (_, index) =>
      book(replicas[index % 2 === 0 ? 0 : 1], {
        ...links[Math.floor(index / 2) % 2],
        start: index * 100,
        end: index * 100 + 100,
        bandwidth: 1,
        ...inProject(index),
      }),
    );
    expect(granted(await Promise.all(asked))).toBe(3);
    expect(await book(replicas[0], { ...inProject(99), bandwidth: 5000 })).toMatchObject({
      refusals: [{ limit: 'bandwidth' }, { limit: 'share', of: 'live', held: 3, allowed: 3 }],
      offers: [],
    });
    expect(await book(replicas[1], inProject(99), true)).toMatchObject({
      refusals: [{ of: 'live' }],
      offers: [],
    });
    expect(await book(replicas[0], { experiment: 'other' })).toMatchObject({ ok: true });
  });
});

test.each([
  { maxShare: 0 },
  { maxShare: 101 },
  { maxShare: 1.5 },
  { maxShare: Number.NaN },
  { maxLive: 0 },
  { maxLive: 0.5 },
])('%j is refused as a limit', async (limits) => {
  const opened = await openSqlite();
  const options = { network: createNetwork({ sites: ['a', 'b'], links: [WIDE] }), store: opened.store };
  expect(() => new Allocator({ ...options, now: () => 0, newId: () => '', ...limits })).toThrow(RangeError);
  await opened.close();
});
