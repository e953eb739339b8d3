import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Budget, TurnOverError } from '../../src/allocator/budget.ts';
import { LinkCalendar } from '../../src/allocator/calendar.ts';
import type { AllocationRules, ChangeItem } from '../../src/allocator/decide.ts';
import type { Demand } from '../../src/allocator/demand.ts';
import { LoopTurns, type Steps, stepsOf } from '../../src/allocator/event-loop.ts';
import { type OpenLink, TransactionView } from '../../src/allocator/link-view.ts';
import { type ChangeOutcome, changeOperation } from '../../src/allocator/list.ts';
import { createNetwork } from '../../src/allocator/network.ts';
import { routesBetween } from '../../src/allocator/routes.ts';
import type { ReservationRecord } from '../../src/allocator/store.ts';
import { type Link, linkId } from '../../src/contract/links.ts';
import { networks } from './graphs.ts';

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
  detour: fc.constantFrom(0, 1, 7),
});
type Case = typeof cases extends fc.Arbitrary<infer Value> ? Value : never;

/** Links with what is held of them, and a list of changes. @param tags how many there are at each place */
function made({ graph, held, asked, detour }: Case, tags: number) {
  const links = graph.links.map((link, index): Link => {
    const c: [number, number] = [1 + tags * index, tags * (index + 1)];
    const s: [number, number] = [1, tags];
    const range = { site1_s_tags: s, site2_s_tags: s, site1_c_tags: c, site2_c_tags: c };
    return { ...link, ...range, bandwidth: CAPACITY };
  });
  const network = createNetwork({ sites: graph.sites, links }, detour);
  let ids = 0;
  const rules: AllocationRules = { network, newId: () => `r${ids++}` };
  const sitesOf = ([one, other]: [number, number]) => {
    const [site1 = '', site2 = ''] = [one, other].map((index) => graph.sites[index % graph.sites.length]);
    const hasRoute = site1 !== site2 && !routesBetween(network, { site1, site2 }).next().done;
    return hasRoute ? { site1, site2 } : undefined;
  };
  const open = new Map<string, OpenLink>(
    network.links.map((link) => [
      linkId(link.site1, link.site2),
      { version: 0, calendar: new LinkCalendar(link) },
    ]),
  );
  const records = new Map<string, ReservationRecord>();
  const known = { records, live: new Map(), keys: new Map(), names: new Map() };
  const view = new TransactionView(0, open, known);
  const create = (sites: { site1: string; site2: string }, demand: Demand): ChangeItem => ({
    action: 'create',
    request: { ...WHO, ...sites, ...demand, expiry: 1000 },
  });
  for (const { ends, demand } of held) {
    const sites = sitesOf(ends);
    if (!sites) continue;
    atOnce(changeOperation([create(sites, demand)], {}, rules).decide(view));
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
  return { view, rules, list };
}

/** The smallest offset at which the list is accepted, by trying each. */
function smallest({ view, rules, list }: ReturnType<typeof made>): number | undefined {
  const last = UNTIL - Math.max(...list.map((item) => (item.action === 'create' ? item.request.end : 0)));
  for (let offset = 0; offset <= last; offset += 1) {
    const moved = (item: ChangeItem): ChangeItem => {
      if (item.action !== 'create') return item;
      const { start, end } = item.request;
      return { ...item, request: { ...item.request, start: start + offset, end: end + offset } };
    };
    const operation = changeOperation(list.map(moved), { dryRun: true }, rules);
    if (atOnce(operation.decide(view)).answer.ok) return offset;
  }
  return undefined;
}

/** What work comes to that goes on to its end, without a turn for others. */
function atOnce<Decided extends object>(steps: Steps<Decided>): Decided {
  const all = stepsOf(steps);
  for (;;) {
    const step = all.next();
    if (step.done) return step.value;
  }
}

/** Turns of the event loop that are never over. */
const endless = () => new LoopTurns(() => 0);

function found({ view, rules, list }: ReturnType<typeof made>, budget: Budget): ChangeOutcome {
  const terms = { dryRun: true, earliest: { until: UNTIL } };
  const question = changeOperation(list, terms, rules, budget);
  for (;;) {
    try {
      return atOnce(question.decide(view)).answer;
    } catch (error) {
      if (!(error instanceof TurnOverError)) throw error;
    }
  }
}

/** Each turn draws new ids. */
const withoutId = (key: string, value: unknown) => (key === 'id' ? undefined : value);

const RUNS = Number(process.env['PROVE_BATCHES'] ?? 300);

// With three tags at each place, most lists meet tags that are used up.
test.each([30, 3])('the smallest offset is that which a try of each finds, with %i tags', (tags) => {
  let moved = 0;
  fc.assert(
    fc.property(cases, (each) => {
      const given = made(each, tags);
      fc.pre(given.list.some(({ action }) => action === 'create'));
      const due = smallest(given);
      if (due) moved += 1;
      const outcome = found(given, new Budget(endless()));
      expect(outcome.ok ? outcome.offset : undefined).toBe(due);
    }),
    { numRuns: RUNS },
  );
  expect(moved).toBeGreaterThan(RUNS / 20);
});

test('in turns that end after each look the offset is the same', () => {
  fc.assert(
    fc.property(cases, (each) => {
      fc.pre(made(each, 30).list.length > 0);
      let now = 0;
      const short = new Budget(new LoopTurns(() => (now += 100)));
      const told = (budget: Budget) => JSON.stringify(found(made(each, 30), budget), withoutId);
      expect(told(short)).toEqual(told(new Budget(endless())));
    }),
    { numRuns: Math.ceil(RUNS / 3) },
  );
});

test('a search whose looks are used up tells below which offset none fits (THREATS.md 81)', () => {
  fc.assert(
    fc.property(cases, fc.integer({ min: 1, max: 30 }), (each, looks) => {
      const given = made(each, 30);
      fc.pre(given.list.some(({ action }) => action === 'create'));
      const due = smallest(given) ?? Infinity;
      const outcome = found(given, new Budget(endless(), looks));
      if (outcome.ok) expect(outcome.offset).toBe(due);
      else expect(outcome).toMatchObject({ reason: 'refused' });
      if (!outcome.ok && outcome.reason === 'refused') {
        expect(outcome.givenUpAt ?? Infinity).toBeLessThanOrEqual(due);
        if (outcome.givenUpAt === undefined) expect(due).toBe(Infinity);
      }
    }),
    { numRuns: Math.ceil(RUNS / 3) },
  );
});
