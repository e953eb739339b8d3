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
        site1: 'a',
        site2: 'b',
        start: 10,
        end: 20,
        bandwidth: 100,
        experiment: 'mine',
        createdBy: 'user',
        expiry: HOUR,
        ...changes,
      },
      dryRun,
    );
  const idOf = (outcome: Outcome): string => {
    if (!outcome.ok) throw new Error(JSON.stringify(outcome.refusals));
    return outcome.record.id;
  };
  const terms = { by: 'user', expiry: HOUR, check: () => undefined };
  const granted = (outcomes: readonly Outcome[]): number => outcomes.filter(({ ok }) => ok).length;

  test('holds no more than its share of the bandwidth, also with requests at once; others get their share', async () => {
    const replicas = [start({ maxShare: 50 }), start({ maxShare: 50 })] as const;
    const asked = Array.from({ length: 24 }, (_, index) =>
      book(replicas[index % 2 === 0 ? 0 : 1], { experiment: index % 4 < 2 ? 'mine' : 'other' }),
    );
    const outcomes = await Promise.all(asked);
    expect(granted(outcomes)).toBe(10);
    expect(
      await opened.rows('SELECT experiment, sum(bandwidth) AS mbps FROM reservation GROUP BY 1 ORDER BY 1'),
    ).toMatchObject([{ experiment: 'mine' }, { experiment: 'other' }]);
    for (const experiment of ['mine', 'other']) {
      expect(await book(replicas[0], { experiment, bandwidth: 1 })).toMatchObject({
        ok: false,
        refusals: expect.arrayContaining([
          { limit: 'share', of: 'bandwidth', held: 500, allowed: 500, start: 10, end: 20 },
        ]),
      });
    }
  });

  test('shares with the others of its project, also on another server and after a restart', async () => {
    const [one, other] = [start({ maxShare: 50 }), start({ maxShare: 50 })];
    const inProject = (index: number) => ({ experiment: `e${index}`, tenant: 'proj_1' });
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

  test('counts its live reservations with those of the others of its project', async () => {
    const [one, other] = [start({ maxLive: 3 }), start({ maxLive: 3 })];
    const asked = Array.from({ length: 24 }, (_, index) =>
      book(index % 2 === 0 ? one : other, { experiment: `e${index}`, tenant: 'proj_1', bandwidth: 1 }),
    );
    expect(granted(await Promise.all(asked))).toBe(3);
    expect(await book(one, { experiment: 'e99', tenant: 'proj_1' })).toMatchObject({
      refusals: [{ limit: 'share', of: 'live', held: 3, allowed: 3 }],
    });
    expect(await book(one, { experiment: 'e99', tenant: 'proj_2' })).toMatchObject({ ok: true });
    const { id } = (await opened.rows("SELECT id FROM reservation WHERE tenant = 'proj_1' LIMIT 1"))[0] ?? {};
    await one.delete(String(id), { by: 'user' });
    expect(await book(other, { experiment: 'e99', tenant: 'proj_1' })).toMatchObject({ ok: true });
  });

  test('holds no more than its share of the tags of the place with the fewest, at any instant', async () => {
    const allocator = start({ maxShare: 50 });
    const there = { site1: 'c', site2: 'd', bandwidth: 1 };
    await book(allocator, there);
    expect(await book(allocator, { ...there, start: 19, end: 30 })).toMatchObject({
      refusals: [{ limit: 'share', of: 'tags', place: 'site2_c_tag', held: 1, allowed: 1 }],
      // As soon as the other has ended.
      offers: [{ start: 20, end: 31, bandwidth: 1 }],
    });
    expect(await book(allocator, { ...there, start: 20, end: 30 })).toMatchObject({ ok: true });
    expect(await book(allocator, { ...there, experiment: 'other' })).toMatchObject({ ok: true });
  });

  test('is offered the rest of its share', async () => {
    const allocator = start({ maxShare: 50 });
    await book(allocator, { bandwidth: 300 });
    await book(allocator, { start: 20, end: 30, bandwidth: 450 });
    expect(await book(allocator, { bandwidth: 201 })).toMatchObject({
      refusals: [{ limit: 'share', of: 'bandwidth', held: 300, allowed: 500 }],
      offers: [
        { start: 10, end: 20, bandwidth: 200 },
        { start: 30, end: 40, bandwidth: 201 },
      ],
    });
    expect(await book(allocator, { bandwidth: 501 })).toMatchObject({
      offers: [{ start: 10, end: 20, bandwidth: 200 }],
    });
    for (const offer of [{ bandwidth: 200 }, { start: 30, end: 40, bandwidth: 201 }]) {
      expect(await book(allocator, offer, true)).toMatchObject({ ok: true });
    }
  });

  test('updates its reservations within its share, where their own use does not count', async () => {
    const allocator = start({ maxShare: 50 });
    const id = idOf(await book(allocator, { bandwidth: 400 }));
    expect(await allocator.update(id, { bandwidth: 500, end: 25 }, terms)).toMatchObject({ ok: true });
    expect(await allocator.update(id, { bandwidth: 501 }, terms)).toMatchObject({
      refusals: [{ limit: 'share', held: 0, allowed: 500 }],
      // The most that is free is what it has.
      offers: [],
    });
    expect(await allocator.update(id, { bandwidth: 501, end: 24 }, terms)).toMatchObject({
      offers: [{ kind: 'most_bandwidth', start: 10, end: 24, bandwidth: 500 }],
    });
    // A server with a smaller share keeps what is booked, and allows updates that reduce it.
    const stricter = start({ maxShare: 10 });
    expect(await stricter.update(id, { bandwidth: 450, end: 22 }, terms)).toMatchObject({ ok: true });
    expect(await stricter.update(id, { end: 23 }, terms)).toMatchObject({ refusals: [{ limit: 'share' }] });
    await stricter.delete(id, { by: 'user' });
    expect(await book(stricter, { bandwidth: 100 })).toMatchObject({ ok: true });
  });

  test('has no more live reservations on all links than the limit, also with requests at once', async () => {
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
      }),
    );
    expect(granted(await Promise.all(asked))).toBe(3);
    expect(await book(replicas[0], { bandwidth: 5000 })).toMatchObject({
      refusals: [{ limit: 'bandwidth' }, { limit: 'share', of: 'live', held: 3, allowed: 3 }],
      offers: [],
    });
    expect(await book(replicas[1], {}, true)).toMatchObject({ refusals: [{ of: 'live' }], offers: [] });
    expect(await book(replicas[0], { experiment: 'other' })).toMatchObject({ ok: true });
  });

  test('has room for another once one is deleted or has ended', async () => {
    const allocator = start({ maxLive: 2 });
    const first = idOf(await book(allocator));
    const second = idOf(await book(allocator));
    expect(await book(allocator)).toMatchObject({ ok: false });
    // It can update its reservations.
    expect(await allocator.update(second, { bandwidth: 1 }, terms)).toMatchObject({ ok: true });
    const [, third, fourth] = await Promise.all([
      allocator.delete(first, { by: 'user' }),
      opened.store.find('none').then(() => book(allocator)),
      opened.store.find('none').then(() => book(allocator)),
    ]);
    expect([third.ok, fourth.ok].toSorted()).toEqual([false, true]);
    clock = 20;
    const later = { start: 30, end: 40 };
    expect(
      granted([await book(allocator, later), await book(allocator, later), await book(allocator, later)]),
    ).toBe(2);
  });

  test('gets the replay of an accepted request although its quota is used up', async () => {
    const allocator = start({ maxLive: 1, maxShare: 10 });
    const request = {
      ...{
        site1: 'a',
        site2: 'b',
        start: 10,
        end: 20,
        bandwidth: 100,
        experiment: 'mine',
        createdBy: 'user',
      },
      ...{ expiry: HOUR, key: 'k', fingerprint: 'f' },
    };
    const first = await allocator.create(request);
    expect(await allocator.create(request)).toMatchObject({ ...first, replayed: true });
  });

  test('in random histories uses its quota exactly: a sweep of the rows finds no excess and no needless refusal', async () => {
    const allocator = start({ maxShare: 30 });
    let seed = 7;
    const draw = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    for (let step = 0; step < 120; step += 1) {
      const from = draw(12);
      const demand = { start: from, end: from + 1 + draw(6), bandwidth: 1 + draw(160) };
      const experiment = `e${draw(3)}`;
      const held = await opened.rows(
        'SELECT start_ms, end_ms, bandwidth FROM reservation WHERE experiment = $1 AND deleted_ms IS NULL',
        experiment,
      );
      const use = Array.from({ length: 20 }, (_, at) =>
        held
          .filter(({ start_ms, end_ms }) => Number(start_ms) <= at && at < Number(end_ms))
          .map(({ bandwidth }) => Number(bandwidth)),
      ).slice(demand.start, demand.end);
      const peak = Math.max(...use.map((each) => each.reduce((sum, one) => sum + one, 0)));
      const tags = Math.max(...use.map((each) => each.length));
      const outcome = await book(allocator, { ...demand, experiment });
      const broken = outcome.ok ? [] : outcome.refusals.filter(({ limit }) => limit === 'share');
      expect(broken.length > 0).toBe(peak + demand.bandwidth > 300 || tags + 1 > 12);
      if (outcome.ok && draw(3) === 0) await allocator.delete(outcome.record.id, { by: 'user' });
    }
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
