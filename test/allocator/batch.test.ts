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

function request(link: number, demand: Partial<Demand> & { name?: string } = {}): CreateRequest {
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
});

describe('a batch that moves as a whole', () => {
  beforeEach(async () => {
    opened = await openSqlite();
    [clock, ids] = [0, 0];
  });
  afterEach(() => opened.close());

  test('frees a name by deleting its holder, and not by deleting one of that name that has ended', async () => {
    const allocator = start();
    idsOf(await allocator.batch([create(0, { name: 'n' })]));
    clock = 20;
    idsOf(await allocator.batch([create(1, { start: 30, end: 40, name: 'n' })]));
    const next = create(2, { start: 50, end: 60, name: 'n' });
    expect(refusedIn(await allocator.batch([remove('r00000'), next]))).toEqual([[1, 'name_taken']]);
    const [gone, taken] = await Promise.all([
      allocator.delete('r00000', { by: 'user' }),
      allocator.create(next.action === 'create' ? next.request : request(2)),
    ]);
    expect([gone, taken.ok]).toEqual([true, false]);
    idsOf(await allocator.batch([remove('r00001'), next]));
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
});
