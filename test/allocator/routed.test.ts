import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Demand } from '../../src/allocator/demand.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import type { Hop, ReservationRecord, ReservationStore } from '../../src/allocator/store.ts';
import { type Link, linkId } from '../../src/contract/links.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { type OpenedStore, openPostgres, openSqlite } from '../store/opened-store.ts';
import { Allocator } from './allocator.ts';
import { every, linksOf, networks } from './graphs.ts';
import { Oracle } from './oracle.ts';
import { smallLink } from './small-link.ts';
import { sweep } from './sweep.ts';

const postgres = usePostgres();

/** How many histories there are of each engine, and of how many steps each. */
const [HISTORIES, STEPS] = [Number(process.env['PROVE_ROUTED'] ?? 40), 30];
const CAPACITY = 6;
const WHO = { experiment: 'exp', createdBy: 'user', expiry: 1000 };

/** Networks whose C-tags differ at each site, as they have to. */
const graphs = networks.map(({ sites, links }) => ({
  sites,
  links: links.map((link, index): Link => {
    const tags: [number, number] = [1 + 3 * index, 3 + 3 * index];
    return { ...link, bandwidth: CAPACITY, site1_c_tags: tags, site2_c_tags: tags };
  }),
}));

const steps = fc.array(
  fc.record({
    action: fc.constantFrom('create', 'create', 'create', 'update', 'delete', 'search'),
    ends: fc.tuple(fc.nat(6), fc.nat(6)),
    start: fc.integer({ min: 1, max: 30 }),
    length: fc.integer({ min: 1, max: 12 }),
    bandwidth: fc.integer({ min: 1, max: CAPACITY }),
    which: fc.nat(20),
  }),
  { minLength: STEPS, maxLength: STEPS },
);

/** What is held of each link, as far as this test knows. */
class Known {
  readonly links: readonly Link[];
  readonly live = new Map<string, ReservationRecord>();
  readonly #oracles: Map<string, Oracle>;

  constructor(links: readonly Link[]) {
    this.links = links;
    this.#oracles = new Map(links.map((link) => [idOf(link), new Oracle(link)]));
  }

  at(link: Link): Oracle {
    return this.#oracles.get(idOf(link)) as Oracle;
  }

  put(record: ReservationRecord): void {
    this.drop(record.id);
    for (const { link, tags } of record.hops) this.#oracles.get(link)?.hold(record.id, { ...record, tags });
    this.live.set(record.id, record);
  }

  drop(id: string): void {
    for (const oracle of this.#oracles.values()) oracle.drop(id);
    this.live.delete(id);
  }

  /** The hops of the best route for a demand; undefined where no route carries it. */
  best(site1: string, site2: string, demand: Demand, detour: number): Hop[] | undefined {
    const all = every(this.links, { site1, site2 });
    const most = (all[0]?.length ?? 0) + detour;
    const left = (route: readonly Link[]): number =>
      Math.min(...route.map((link) => this.at(link).most(demand)));
    const [best] = all
      .filter((sites) => sites.length <= most)
      .map((sites) => linksOf(this.links, sites))
      .filter((route) => route.every((link) => this.at(link).plan(demand).accepted))
      .toSorted((one, other) => one.length - other.length || left(other) - left(one));
    return best?.flatMap((link) => {
      const plan = this.at(link).plan(demand);
      return plan.accepted ? [{ link: idOf(link), tags: plan.tags }] : [];
    });
  }
}

function idOf({ site1, site2 }: Link): string {
  return linkId(site1, site2);
}

async function live(
  opened: OpenedStore,
  graph: { sites: readonly string[]; links: readonly Link[] },
  {
    asked,
    detour,
  }: { asked: typeof steps extends fc.Arbitrary<infer Steps> ? Steps : never; detour: number },
): Promise<void> {
  let ids = 0;
  const allocator = new Allocator({
    network: createNetwork(graph, detour),
    store: opened.store,
    now: () => 0,
    newId: () => `r${String(ids++).padStart(3, '0')}`,
  });
  const known = new Known(graph.links);
  for (const { action, ends, start, length, bandwidth, which } of asked) {
    const [site1 = '', site2 = ''] = ends.map((index) => graph.sites[index % graph.sites.length]);
    const demand = { start, end: start + length, bandwidth };
    const record = [...known.live.values()][which % Math.max(1, known.live.size)];
    if (action === 'delete' && record) {
      expect(await allocator.delete(record.id, { by: 'user' })).toBe(true);
      known.drop(record.id);
    } else if (action === 'update' && record) {
      const terms = { by: 'user', expiry: 1000, check: () => undefined };
      const outcome = await allocator.update(record.id, { bandwidth, end: record.start + length }, terms);
      known.drop(record.id);
      const asked = { start: record.start, end: record.start + length, bandwidth };
      const links = record.hops.map((hop) => graph.links.find((link) => idOf(link) === hop.link) as Link);
      const fits = links.every((link) => known.at(link).plan(asked).accepted);
      expect(outcome?.ok).toBe(fits);
      // It keeps its route.
      const after = outcome?.ok ? outcome.record : record;
      expect(after.hops.map(({ link }) => link)).toEqual(record.hops.map(({ link }) => link));
      known.put(after);
    } else if (site1 !== site2 && every(graph.links, { site1, site2 }).length > 0) {
      const found = action === 'search';
      const window = { start, end: start + length + 20, bandwidth };
      const outcome = await allocator.create({
        ...{ ...WHO, site1, site2 },
        ...(found ? { ...window, duration: length } : demand),
      });
      const starts = found ? Array.from({ length: 21 }, (_, after) => start + after) : [start];
      const due = starts
        .map((at) => ({ start: at, end: at + length, bandwidth }))
        .map((each) => ({ ...each, hops: known.best(site1, site2, each, detour) }))
        .find(({ hops }) => hops !== undefined);
      expect(outcome.ok).toBe(due !== undefined);
      if (outcome.ok) {
        expect(outcome.record).toMatchObject({ site1, site2, ...due });
        known.put(outcome.record);
      } else await expectTrue(outcome.offers, allocator, { site1, site2 });
    }
  }
  expect(await opened.rows('SELECT count(*) AS count FROM reservation WHERE deleted_ms IS NULL')).toEqual([
    { count: known.live.size },
  ]);
  for (const link of graph.links) expect(await sweep(opened, idOf(link), link)).toEqual([]);
}

/** What a refusal offers is accepted when it is asked for, also over a route that is not the one which was refused. */
async function expectTrue(
  offers: readonly Demand[],
  allocator: Allocator,
  sites: { site1: string; site2: string },
): Promise<void> {
  for (const { start, end, bandwidth } of offers) {
    const dryRun = await allocator.create({ ...WHO, ...sites, start, end, bandwidth }, true);
    expect(dryRun.ok).toBe(true);
  }
}

/** Random histories on one engine. */
async function histories(open: () => Promise<OpenedStore>, numRuns: number): Promise<void> {
  const property = fc.asyncProperty(
    graphs,
    fc.record({ asked: steps, detour: fc.constantFrom(0, 1, 2, 7) }),
    async (graph, history) => {
      const opened = await open();
      try {
        await live(opened, graph, history);
      } finally {
        await opened.close();
      }
    },
  );
  await fc.assert(property, { numRuns });
}

test('a random history over routes goes as a look at every route says, on SQLite', () =>
  histories(async () => openSqlite(), HISTORIES));

test('and on PostgreSQL', () =>
  histories(async () => openPostgres(await postgres.withTables()), Math.ceil(HISTORIES / 8)));

/** Four sites in a ring, with a link across: each pair has two or three routes. */
const RING = {
  sites: ['a', 'b', 'c', 'd'],
  links: ['ab', 'bc', 'cd', 'ad', 'ac'].map(([site1 = '', site2 = ''], index): Link => {
    const tags: [number, number] = [1 + 3 * index, 3 + 3 * index];
    return { ...smallLink(), site1, site2, bandwidth: CAPACITY, site1_c_tags: tags, site2_c_tags: tags };
  }),
};

/** How many requests each of the clients makes at the same time as the others. */
const REQUESTS = Number(process.env['PROVE_ROUTED'] ?? 40) / 4;

/** Two servers' allocators on one database, with eight clients each that create and delete over random routes. */
async function race(open: () => Promise<OpenedStore>): Promise<void> {
  const stores = await Promise.all([open(), open()]);
  let ids = 0;
  const allocators = stores.map(
    ({ store }) =>
      new Allocator({
        network: createNetwork(RING, 2),
        store,
        now: () => 0,
        newId: () => `r${String(ids++).padStart(4, '0')}`,
      }),
  );
  const client = async (number: number): Promise<void> => {
    const allocator = allocators[number % 2] as Allocator;
    const random = fc.sample(fc.array(fc.nat(1000), { minLength: 6, maxLength: 6 }), REQUESTS);
    const own: string[] = [];
    for (const [from = 0, to = 0, start = 0, length = 0, rate = 0, what = 0] of random) {
      const id = what % 3 === 0 ? own.pop() : undefined;
      if (id !== undefined) {
        expect(await allocator.delete(id, { by: 'user' })).toBe(true);
        continue;
      }
      const [site1 = '', site2 = ''] = [RING.sites[from % 4], RING.sites[(from + 1 + (to % 3)) % 4]];
      const period = { start: 1 + (start % 20), end: 2 + (start % 20) + (length % 10) };
      const outcome = await allocator.create({ ...WHO, site1, site2, ...period, bandwidth: 1 + (rate % 4) });
      if (outcome.ok) own.push(outcome.record.id);
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, number) => client(number)));
  for (const link of RING.links) expect(await sweep(stores[0] as OpenedStore, idOf(link), link)).toEqual([]);
  for (const store of stores) await store.close();
}

test('two allocators at once leave no half of a route, no tag twice and no link above its capacity, on SQLite', async () => {
  const path = join(temporaryFolder(), 'race.sqlite');
  await race(() => openSqlite(path));
});

test('and on PostgreSQL, where both write at the same time', async () => {
  const url = await postgres.withTables();
  await race(() => openPostgres(url));
});

test('an update is rehearsed without its own use, also on a link that changes all the time', async () => {
  const opened = await openSqlite();
  const link = smallLink();
  let changes = 0;
  const options = {
    network: createNetwork({ sites: ['a', 'b'], links: [link] }),
    now: () => 0,
    newId: () => 'r',
  };
  await new Allocator({ ...options, store: opened.store }).create({
    ...{ ...WHO, site1: 'a', site2: 'b', start: 1, end: 9, bandwidth: link.bandwidth },
  });
  const store: ReservationStore = {
    ...opened.store,
    async versions(links) {
      changes += 1;
      return (await opened.store.versions(links)).map((row) => ({ ...row, version: row.version + changes }));
    },
  };
  const terms = { by: 'user', expiry: 1000, check: () => undefined, dryRun: true };
  const outcome = await new Allocator({ ...options, store }).update('r', { end: 10 }, terms);
  expect(outcome).toMatchObject({ ok: true });
  await opened.close();
});
