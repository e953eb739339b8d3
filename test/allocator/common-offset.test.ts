import fc from 'fast-check';
import { expect, test } from 'vitest';
import { movedBy } from '../../src/allocator/common-offset.ts';
import type { AllocationRules, ChangeItem } from '../../src/allocator/decide.ts';
import type { Demand, Holding, Period } from '../../src/allocator/demand.ts';
import { type ChangeOutcome, listOperation } from '../../src/allocator/list.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import { routesBetween } from '../../src/allocator/routes.ts';
import { TooMuchError } from '../../src/allocator/steps.ts';
import type { ReservationRecord } from '../../src/allocator/store.ts';
import { LinksView } from '../../src/allocator/view.ts';
import type { Link } from '../../src/contract/links.ts';
import { networks } from './graphs.ts';
import { answerOf, rowsOf } from './uses.ts';

/** No create may end after this instant. */
const UNTIL = 40;
const CAPACITY = 6;
const WHO = { experiment: 'exp', tenant: 'exp', createdBy: 'user', createdAt: 0 };

const demands = fc
  .record({
    start: fc.nat(14),
    length: fc.integer({ min: 1, max: 8 }),
    bandwidth: fc.integer({ min: 1, max: CAPACITY }),
  })
  .map(({ start, length, bandwidth }): Demand => ({ start, end: start + length, bandwidth }));

const items = fc.record({
  action: fc.constantFrom('create', 'create', 'create', 'update', 'delete'),
  ends: fc.tuple(fc.nat(6), fc.nat(6)),
  demand: demands,
  which: fc.nat(20),
});

const cases = fc.record({
  graph: networks,
  held: fc.array(fc.record({ ends: fc.tuple(fc.nat(6), fc.nat(6)), demand: demands }), { maxLength: 14 }),
  asked: fc.array(items, { minLength: 1, maxLength: 4 }),
  /** Whether creates may take any route, or those with the fewest hops. */
  avoid: fc.boolean().map((isAny) => (isAny ? ['nowhere'] : [])),
});
type Case = typeof cases extends fc.Arbitrary<infer Value> ? Value : never;

/** What is known of a network, and a list of changes that is asked for. */
interface Given {
  rules: AllocationRules;
  records: Map<string, ReservationRecord>;
  list: ChangeItem[];
}

/** Links with what is held of them, and a list of changes. @param tags how many there are at each place */
async function made({ graph, held, asked, avoid }: Case, tags: number): Promise<Given> {
  const links = graph.links.map((link, index): Link => {
    const c: [number, number] = [1 + tags * index, tags * (index + 1)];
    const s: [number, number] = [1, tags];
    const range = { site1_s_tags: s, site2_s_tags: s, site1_c_tags: c, site2_c_tags: c };
    return { ...link, ...range, bandwidth: CAPACITY - (index % 4 === 3 ? 2 : 0) };
  });
  const network = createNetwork({ sites: graph.sites, links });
  let ids = 0;
  const rules: AllocationRules = { network, newId: () => `r${ids++}` };
  const sitesOf = ([one, other]: [number, number]) => {
    const [site1 = '', site2 = ''] = [one, other].map((index) => graph.sites[index % graph.sites.length]);
    const hasRoute = site1 !== site2 && !routesBetween(network, { site1, site2 }).next().done;
    return hasRoute ? { site1, site2 } : undefined;
  };
  const records = new Map<string, ReservationRecord>();
  const create = (sites: { site1: string; site2: string }, demand: Demand): ChangeItem => ({
    action: 'create',
    request: { ...WHO, ...sites, ...demand, avoid, expiry: 1000 },
  });
  for (const { ends, demand } of held) {
    const sites = sitesOf(ends);
    if (!sites) continue;
    const outcome = await decided({ rules, records, list: [create(sites, demand)] });
    for (const record of outcome.ok ? outcome.records : []) if (record) records.set(record.id, record);
  }
  const live = [...records.values()];
  const list = asked.flatMap(({ action, ends, demand, which }): ChangeItem[] => {
    const found = live[which % Math.max(1, live.length)];
    const sites = sitesOf(ends);
    if (action === 'create') return sites ? [create(sites, demand)] : [];
    if (!found) return [];
    if (action === 'delete') return [{ action, found, terms: { by: 'user' } }];
    return [{ action, found, update: demand, terms: { by: 'user', expiry: 1000, check: () => undefined } }];
  });
  return { rules, records, list };
}

/** The decision on a list; a search is told after so many looks that it takes too much. */
async function decided(
  { rules, records, list }: Given,
  { earliest, looks }: { earliest?: { until: number }; looks?: number } = {},
): Promise<ChangeOutcome> {
  const operation = listOperation(list, { earliest }, rules);
  const overlapping = async (link: string, period: Period) => {
    const held = [...records.values()].flatMap(({ id, hops, ...record }): [string, Holding][] =>
      hops.filter((hop) => hop.link === link).map(({ tags }) => [id, { ...record, tags }]),
    );
    return rowsOf(new Map(held), period);
  };
  const view = new LinksView(0, { network: rules.network, reading: { overlapping } });
  const none = { versions: new Map(), live: new Map(), names: new Map(), keys: new Map() };
  view.know({ ...none, records: new Map(records) });
  for (const { link, period } of operation.looks(view)) await view.use(link).load(period);
  return (await answerOf(operation.decide(view), looks)).answer;
}

/** The smallest offset at which the list is accepted, by trying each. */
async function smallest(given: Given): Promise<number | undefined> {
  const ends = given.list.map((item) => (item.action === 'create' ? item.request.end : 0));
  for (let offset = 0; offset <= UNTIL - Math.max(...ends); offset += 1) {
    const list = given.list.map((item) => movedBy(item, offset));
    if ((await decided({ ...given, list })).ok) return offset;
  }
  return undefined;
}

/** Each case with a create. */
function holds(
  tags: number,
  runs: number,
  check: (given: Given, looks: number) => Promise<void>,
): Promise<void> {
  const property = fc.asyncProperty(cases, fc.integer({ min: 1, max: 30 }), async (each, looks) => {
    const given = await made(each, tags);
    fc.pre(given.list.some(({ action }) => action === 'create'));
    await check(given, looks);
  });
  return fc.assert(property, { numRuns: runs });
}

const RUNS = Number(process.env['PROVE_BATCHES'] ?? 300);
const earliest = { until: UNTIL };

// With three tags at each place, most lists meet tags that are used up.
test.each([30, 3])('the smallest offset is that which a try of each finds, with %i tags', async (tags) => {
  let moved = 0;
  await holds(tags, RUNS, async (given) => {
    const due = await smallest(given);
    if (due) moved += 1;
    const outcome = await decided(given, { earliest });
    expect(outcome.ok ? outcome.offset : undefined).toBe(due);
  });
  expect(moved).toBeGreaterThan(RUNS / 20);
});

test('a search that takes too much tells below which offset none fits (THREATS.md 81)', async () => {
  let givenUp = 0;
  await holds(30, Math.ceil(RUNS / 3), async (given, looks) => {
    const due = (await smallest(given)) ?? Infinity;
    let outcome: ChangeOutcome;
    try {
      outcome = await decided(given, { earliest, looks });
    } catch (error) {
      // The search had ended.
      expect(error).toBeInstanceOf(TooMuchError);
      return;
    }
    if (outcome.ok) expect(outcome.offset).toBe(due);
    else if (outcome.reason === 'key_taken' || outcome.givenUpAt === undefined) expect(due).toBe(Infinity);
    else {
      expect(outcome.givenUpAt).toBeLessThanOrEqual(due);
      givenUp += 1;
    }
  });
  expect(givenUp).toBeGreaterThan(RUNS / 40);
});
