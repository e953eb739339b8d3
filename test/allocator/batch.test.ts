import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CreateRequest } from '../../src/allocator/decide.ts';
import type { Demand } from '../../src/allocator/demand.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import type { ReservationStore } from '../../src/allocator/store.ts';
import { linkId } from '../../src/contract/links.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { type OpenedStore, openPostgres, openSqlite } from '../store/opened-store.ts';
import { Allocator, type AllocatorOptions, type ChangeOutcome, type Item } from './allocator.ts';
import { smallLink } from './small-link.ts';
import { sweep } from './sweep.ts';

const postgres = usePostgres();
/** Three links: each of 1000 Mbps, and with few tags. */
const LINKS = [
  smallLink({ site1: 'a', site2: 'b' }),
  smallLink({ site1: 'b', site2: 'c', site1_c_tags: [4, 6] }),
  smallLink({ site1: 'a', site2: 'c', site1_c_tags: [4, 6], site2_c_tags: [4, 6] }),
];
const NETWORK = createNetwork({ sites: ['a', 'b', 'c'], links: LINKS });
const FAR = 1_000_000;

let opened: OpenedStore;
let clock: number;
let ids: number;

function start(store: ReservationStore = opened.store, options: Partial<AllocatorOptions> = {}): Allocator {
  return new Allocator({
    network: NETWORK,
    store,
    now: () => clock,
    newId: () => `r${String(ids++).padStart(5, '0')}`,
    ...options,
  });
}

type Create = CreateRequest & { search?: undefined };

function request(link: number, demand: Partial<Demand> & { name?: string } = {}): Create {
  const { site1, site2 } = LINKS[link % LINKS.length] ?? smallLink();
  const who = { experiment: 'exp', createdBy: 'user', expiry: FAR };
  return { site1, site2, start: 10, end: 20, bandwidth: 100, ...who, ...demand };
}

const create = (link: number, demand: Partial<Demand> & { name?: string } = {}): Item => ({
  action: 'create',
  request: request(link, demand),
});
const update = (id: string, change: Partial<Demand>): Item => ({
  action: 'update',
  id,
  update: change,
  terms: { by: 'user', expiry: FAR, check: () => undefined },
});
const remove = (id: string): Item => ({ action: 'delete', id, terms: { by: 'user' } });

function idsOf(outcome: ChangeOutcome): (string | null)[] {
  if (!outcome.ok) throw new Error(JSON.stringify(outcome));
  return outcome.records.map((record) => record?.id ?? null);
}

/** The places of the items that could not be done, each with the reason. */
function refusedIn(outcome: ChangeOutcome): [number, string][] {
  if (outcome.ok || outcome.reason !== 'refused') throw new Error(JSON.stringify(outcome));
  return outcome.items.flatMap((item, index): [number, string][] => (item.ok ? [] : [[index, item.reason]]));
}

async function everything(): Promise<unknown> {
  return Promise.all([
    opened.rows('SELECT * FROM reservation ORDER BY id'),
    opened.rows('SELECT * FROM hop ORDER BY reservation, position'),
    opened.rows('SELECT id, version FROM link WHERE version > 0 ORDER BY id'),
    opened.rows('SELECT * FROM idempotency_key ORDER BY key'),
  ]);
}

/** What an allocator decides is what one decides that reads everything anew. */
async function isTrue(allocator: Allocator): Promise<void> {
  const steps = (asked: Allocator) => asked.askEach((use) => use.steps({ start: 0, end: 1000 }));
  expect(await steps(allocator)).toEqual(await steps(start()));
  for (const link of LINKS) expect(await sweep(opened, linkId(link.site1, link.site2), link)).toEqual([]);
}

describe.each([
  ['SQLite', () => openSqlite()],
  ['PostgreSQL', async () => openPostgres(await postgres.withTables())],
])('a batch on %s', (_, open) => {
  beforeEach(async () => {
    opened = await open();
    [clock, ids] = [0, 0];
  });
  afterEach(() => opened.close());

  test('creates, updates and deletes on several links in one transaction', async () => {
    const allocator = start();
    const before = idsOf(await allocator.batch([create(0), create(1), create(2)]));
    expect(before).toEqual(['r00000', 'r00001', 'r00002']);
    const outcome = await allocator.batch([
      update('r00000', { bandwidth: 400 }),
      remove('r00001'),
      create(1, { bandwidth: 1000 }),
      create(2, { start: 20, end: 30 }),
    ]);
    expect(idsOf(outcome)).toEqual(['r00000', 'r00001', 'r00003', 'r00004']);
    expect(await opened.store.find('r00000')).toMatchObject({ bandwidth: 400 });
    expect(await opened.store.find('r00001')).toBeUndefined();
    await isTrue(allocator);
  });

  test('of which one of 20 is refused leaves nothing behind, and says which and why', async () => {
    const allocator = start();
    idsOf(await allocator.batch([create(0, { bandwidth: 950 })]));
    const before = await everything();
    const items = Array.from({ length: 20 }, (_, index) =>
      create(1 + (index % 2), { start: 10 * index, end: 10 * index + 10 }),
    );
    items[12] = create(0);
    const outcome = await allocator.batch(items);
    expect(refusedIn(outcome)).toEqual([[12, 'refused']]);
    expect(!outcome.ok && outcome.reason === 'refused' && outcome.items[12]).toMatchObject({
      refusals: [{ limit: 'bandwidth', free: 50 }],
      offers: [{ kind: 'most_bandwidth' }, { kind: 'other_route', via: ['c'] }, { kind: 'earliest' }],
    });
    expect(await everything()).toEqual(before);
    await isTrue(allocator);
  });

  test('finds every item that can not be done: refused, missing, a name that is taken', async () => {
    const allocator = start();
    idsOf(await allocator.batch([create(0, { bandwidth: 1000, name: 'mine' })]));
    const before = await everything();
    const items = [
      create(0),
      create(1),
      remove('nobody'),
      create(2, { name: 'mine' }),
      create(1, { name: 'two' }),
    ];
    items.push(create(2, { name: 'two' }));
    expect(refusedIn(await allocator.batch(items))).toEqual([
      [0, 'refused'],
      [2, 'missing'],
      [3, 'name_taken'],
      [5, 'name_taken'],
    ]);
    expect(await everything()).toEqual(before);
  });

  test('sees what its earlier items do: what they free, and what they take', async () => {
    const allocator = start();
    idsOf(await allocator.batch([create(0, { bandwidth: 1000 })]));
    // In this order it fits, in the other it does not.
    expect(refusedIn(await allocator.batch([create(0, { bandwidth: 600 }), remove('r00000')]))).toEqual([
      [0, 'refused'],
    ]);
    idsOf(await allocator.batch([remove('r00000'), create(0, { bandwidth: 600 })]));
    expect(
      refusedIn(await allocator.batch([create(0, { bandwidth: 400 }), create(0, { bandwidth: 400 })])),
    ).toEqual([[1, 'refused']]);
    await isTrue(allocator);
  });

  test('lets reservations change places, tags included', async () => {
    const allocator = start();
    const [one = '', other = ''] = idsOf(
      await allocator.batch([
        create(0, { bandwidth: 1000 }),
        create(0, { start: 20, end: 30, bandwidth: 1000 }),
      ]),
    );
    const swapped = await allocator.batch([
      update(one ?? '', { start: 40, end: 50 }),
      update(other ?? '', { start: 10, end: 20 }),
      update(one ?? '', { start: 20, end: 30 }),
    ]);
    expect(idsOf(swapped)).toEqual([one, other, one]);
    expect(await opened.store.find(one ?? '')).toMatchObject({ start: 20, end: 30 });
    await isTrue(allocator);
  });

  test('deletes on a link that left the network, and books on another', async () => {
    const [id] = idsOf(await start().batch([create(0)]));
    const [gone, ...links] = LINKS;
    const left = start(opened.store, { network: createNetwork({ sites: NETWORK.sites, links }) });
    expect(gone).toBeDefined();
    for (const dryRun of [true, false]) {
      expect(await left.batch([remove(id ?? ''), create(1)], { dryRun })).toMatchObject({ ok: true });
    }
  });

  test('is rehearsed without a trace', async () => {
    const allocator = start();
    idsOf(await allocator.batch([create(0)]));
    const before = await everything();
    const items = [create(0), update('r00000', { bandwidth: 200 }), remove('r00000'), create(1)];
    expect(await allocator.batch(items, { dryRun: true })).toMatchObject({ ok: true, offset: 0 });
    expect(refusedIn(await allocator.batch([create(0, { bandwidth: 950 })], { dryRun: true }))).toEqual([
      [0, 'refused'],
    ]);
    expect(await everything()).toEqual(before);
    await isTrue(allocator);
  });

  test('under an idempotency key is done once', async () => {
    const allocator = start();
    const keyed = { createdBy: 'user', experiment: 'exp', key: 'k', fingerprint: 'f' };
    const done = await allocator.batch([create(0), create(1)], { keyed });
    const rows = await everything();
    const again = await Promise.all(
      [allocator, start()].map((each) => each.batch([create(0), create(1)], { keyed })),
    );
    for (const outcome of again) expect(outcome).toEqual({ ...done, replayed: ['r00000', 'r00001'] });
    expect(await start().replay(keyed)).toEqual({ ...done, replayed: ['r00000', 'r00001'] });
    expect(await everything()).toEqual(rows);
    const other = { ...keyed, fingerprint: 'g' };
    expect(await allocator.batch([create(0)], { keyed: other })).toEqual({ ok: false, reason: 'key_taken' });
    await allocator.delete('r00000', { by: 'user' });
    expect(idsOf(await allocator.batch([create(0), create(1)], { keyed }))).toEqual([null, 'r00001']);
  });

  test('a name is free again when its reservation has ended or was deleted', async () => {
    const allocator = start();
    idsOf(await allocator.batch([create(0, { name: 'n' })]));
    const named = async (link: number, start: number) =>
      allocator.create({ ...request(link, { start, end: start + 5 }), name: 'n' });
    expect(await named(1, 12)).toMatchObject({ ok: false, reason: 'name_taken', reservation: 'r00000' });
    expect(await allocator.create({ ...request(1), name: 'n', experiment: 'another' })).toMatchObject({
      ok: true,
    });
    clock = 20;
    expect(await named(1, 30)).toMatchObject({ ok: true, record: { name: 'n' } });
    expect(await named(0, 30)).toMatchObject({ ok: false, reason: 'name_taken' });
    idsOf(await allocator.batch([remove('r00002'), create(2, { start: 40, end: 50, name: 'n' })]));
  });

  test('counts all its links against the most that an experiment may have', async () => {
    const allocator = start(opened.store, { maxLive: 2 });
    expect(refusedIn(await allocator.batch([create(0), create(1), create(2)]))).toEqual([[2, 'refused']]);
    expect(
      await allocator.batch([create(0), create(1), create(2)], { earliest: { until: FAR } }),
    ).toMatchObject({
      ok: false,
    });
    idsOf(await allocator.batch([create(0), create(1), remove('nobody')].slice(0, 2)));
  });

  test('two allocators, batches and single requests at once: no deadlock, nothing overbooked', async () => {
    const allocators = [start(), start()];
    let seed = 1;
    const chance = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    let done = 0;
    const client = async (allocator: Allocator): Promise<void> => {
      for (let round = 0; round < 12; round += 1) {
        const items = Array.from({ length: 3 }, () => {
          const at = chance(60);
          return create(chance(3), { start: at, end: at + 1 + chance(6), bandwidth: 50 + chance(200) });
        });
        const [first] = items;
        const outcome = await allocator.batch(items);
        if (outcome.ok) done += 3;
        if (first?.action === 'create') await allocator.create(first.request);
        if (outcome.ok && round % 3 === 0)
          await allocator.delete(outcome.records[0]?.id ?? '', { by: 'user' });
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, index) => client(allocators[index % 2] ?? start())));
    expect(done).toBeGreaterThan(0);
    for (const allocator of allocators) await isTrue(allocator);
  });
});

describe('a batch that moves as a whole', () => {
  beforeEach(async () => {
    opened = await openSqlite();
    [clock, ids] = [0, 0];
  });
  afterEach(() => opened.close());

  test('starts where all its links are free together', async () => {
    const allocator = start();
    const held = { bandwidth: 1000 };
    idsOf(
      await allocator.batch([
        create(0, { ...held, start: 10, end: 30 }),
        create(1, { ...held, start: 35, end: 50 }),
        create(2, { ...held, start: 60, end: 65 }),
      ]),
    );
    const items = [create(0), create(1), create(2, { start: 12, end: 22 })];
    // At 50 the third would run from 52 to 62, which is taken from 60 on.
    expect(await allocator.batch(items, { earliest: { until: FAR } })).toMatchObject({
      ok: true,
      offset: 53,
    });
    await isTrue(allocator);
  });

  test('fits by its deadline, or is refused as it was asked for', async () => {
    const allocator = start();
    idsOf(await allocator.batch([create(0, { bandwidth: 1000, start: 0, end: 100 })]));
    const items = [create(0), create(1)];
    expect(refusedIn(await allocator.batch(items, { earliest: { until: 109 } }))).toEqual([[0, 'refused']]);
    expect(await allocator.batch(items, { earliest: { until: 110 } })).toMatchObject({
      ok: true,
      offset: 90,
    });
  });

  test('says what no other time would mend, and nothing of times that do not fit', async () => {
    const allocator = start();
    await allocator.batch([
      create(0, { bandwidth: 900 }),
      create(1, { start: 500, end: 510, name: 'taken' }),
    ]);
    const outcome = await allocator.batch([create(0, { bandwidth: 200 }), create(1, { name: 'taken' })], {
      earliest: { until: FAR },
    });
    expect(outcome).toMatchObject({
      ok: false,
      items: [
        { ok: true, record: { start: 20 } },
        { ok: false, reason: 'name_taken' },
      ],
    });
  });

  test('by the smallest offset: as brute force finds it', async () => {
    const demand = fc.record({
      link: fc.nat(1),
      start: fc.nat(20),
      length: fc.integer({ min: 1, max: 8 }),
      bandwidth: fc.integer({ min: 1, max: 10 }).map((part) => part * 100),
    });
    const asItem = (
      {
        link,
        start: from,
        length,
        bandwidth,
      }: { link: number; start: number; length: number; bandwidth: number },
      offset = 0,
    ) => create(link, { start: from + offset, end: from + offset + length, bandwidth });
    await fc.assert(
      fc.asyncProperty(
        fc.array(demand, { maxLength: 8 }),
        fc.array(demand, { minLength: 1, maxLength: 4 }),
        async (held, asked) => {
          const database = await openSqlite();
          const allocator = start(database.store);
          for (const each of held) {
            const item = asItem(each);
            if (item.action === 'create') await allocator.create(item.request);
          }
          const until = 60;
          const fits = async (offset: number) =>
            (
              await allocator.batch(
                asked.map((each) => asItem(each, offset)),
                { dryRun: true },
              )
            ).ok;
          const last = Math.max(...asked.map(({ start: from, length }) => from + length));
          let due: number | undefined;
          for (let offset = 0; due === undefined && last + offset <= until; offset += 1) {
            if (await fits(offset)) due = offset;
          }
          const outcome = await allocator.batch(
            asked.map((each) => asItem(each)),
            { earliest: { until } },
          );
          expect(outcome.ok ? outcome.offset : undefined).toBe(due);
          await database.close();
        },
      ),
      { numRuns: Number(process.env['PROVE_BATCHES'] ?? 30) },
    );
  });
});
