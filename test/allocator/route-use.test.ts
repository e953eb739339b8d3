import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Demand, Period, Tags } from '../../src/allocator/demand.ts';
import { RouteUse } from '../../src/allocator/route-use.ts';
import { routesBetween } from '../../src/allocator/routes.ts';
import { type Steps, TooMuchError } from '../../src/allocator/steps.ts';
import type { Hop } from '../../src/allocator/store.ts';
import { type Link, linkId } from '../../src/contract/links.ts';
import { every, linksOf, networks } from './graphs.ts';
import { Oracle } from './oracle.ts';
import { answerOf, useOf } from './uses.ts';

/** Everything happens before this instant. */
const LAST = 24;
const CAPACITY = 6;
const TENANT = 'proj_1';

const demands = fc
  .record({
    start: fc.integer({ min: 0, max: 12 }),
    length: fc.integer({ min: 1, max: 8 }),
    bandwidth: fc.integer({ min: 1, max: CAPACITY }),
  })
  .map(({ start, length, bandwidth }): Demand => ({ start, end: start + length, bandwidth }));

/** Two sites of a network, maybe by way of a third or not over it, and what is held of each link. */
const cases = networks
  .chain(({ sites, links }) =>
    fc.record({
      links: fc.constant(links.map((link, index): Link => ({ ...link, bandwidth: CAPACITY - (index % 3) }))),
      ends: fc.shuffledSubarray(sites, { minLength: 3, maxLength: 3 }),
      third: fc.constantFrom(undefined, undefined, 'via', 'avoid'),
      // On one link or two, with the lowest free tags, or one from before the topology changed.
      held: fc.array(fc.tuple(fc.nat(20), fc.nat(20), demands, fc.constantFrom(0, 0, 0, 9)), {
        maxLength: 40,
      }),
      share: fc.constantFrom(100, 50),
      own: fc.option(fc.nat(39)),
    }),
  )
  .map(({ links, ends: [site1 = '', site2 = '', site3 = ''], third, held, share, own: drawn }) => {
    const terms = { site1, site2, ...(third ? { [third]: [site3] } : {}) };
    const all = new Map(links.map((link) => [link, new Oracle(link, share)]));
    const own = drawn === null ? '' : `r${drawn}`;
    for (const [number, [one, other, demand, tag]] of held.entries()) {
      for (const index of new Set([one % links.length, other % links.length])) {
        const oracle = all.get(links[index] as Link);
        const plan = oracle?.plan(demand);
        if (!plan?.accepted) continue;
        const tags = { ...plan.tags, site2_s_tag: tag || plan.tags.site2_s_tag };
        oracle?.hold(`r${number}`, { ...demand, tags, tenant: number % 2 === 0 ? TENANT : 'proj_2' });
      }
    }
    return { links, terms, all, share, own, routes: [...routesBetween({ links }, terms)] };
  })
  // Over no more routes is a transfer looked for.
  .filter(({ routes }) => routes.length > 0 && routes.length <= 64);

type Case = typeof cases extends fc.Arbitrary<infer Value> ? Value : never;

/** What the look at every route and every instant finds, as if the reservation that is updated were on none of the links. */
class Trial {
  readonly routes: Link[][];
  readonly #case: Case;
  readonly #most = new Map<string, number>();

  constructor(each: Case) {
    this.#case = each;
    this.routes = every(each.links, each.terms).map((sites) => linksOf(each.links, sites));
  }

  /** What a link has throughout a period. */
  linkMost(link: Link, period: Period, tenant?: string): number {
    const { all, links, own } = this.#case;
    const key = [links.indexOf(link), period.start, period.end, tenant].join();
    const known = this.#most.get(key);
    if (known !== undefined) return known;
    const oracle = all.get(link) as Oracle;
    const row = oracle.held.get(own);
    oracle.drop(own);
    oracle.tenant = tenant;
    const most = oracle.most(period);
    if (row) oracle.hold(own, row);
    this.#most.set(key, most);
    return most;
  }

  /** The most that a route has at an instant, whatever its tags. */
  mostAt(at: number): number {
    const { all, own } = this.#case;
    const free = (link: Link): number => {
      const oracle = all.get(link) as Oracle;
      const row = oracle.held.get(own);
      oracle.drop(own);
      const [instant] = oracle.free({ start: at, end: at + 1 });
      if (row) oracle.hold(own, row);
      return instant?.bandwidth ?? 0;
    };
    return Math.max(...this.routes.map((route) => Math.min(...route.map(free))));
  }

  routeMost(route: readonly Link[], period: Period, tenant?: string): number {
    return Math.min(...route.map((link) => this.linkMost(link, period, tenant)));
  }

  most(period: Period, tenant?: string): number {
    return Math.max(...this.routes.map((route) => this.routeMost(route, period, tenant)));
  }

  starts({ start, end, bandwidth, duration }: Demand & { duration: number }): number[] {
    return instants.filter(
      (at) =>
        at >= start &&
        at + duration <= end &&
        this.most({ start: at, end: at + duration }, TENANT) >= bandwidth,
    );
  }

  /** The route that is taken: the fewest hops, then the most that is left whoever asks, then the names. */
  best(demand: Demand): Link[] | undefined {
    const left = (route: readonly Link[]): number => this.routeMost(route, demand);
    return this.routes
      .filter((route) => this.routeMost(route, demand, TENANT) >= demand.bandwidth)
      .toSorted((one, other) => one.length - other.length || left(other) - left(one))[0];
  }

  fastest({ start, end, bandwidth, volume }: Demand & { volume: number }): Demand | undefined {
    const rates = Array.from({ length: bandwidth }, (_, index) => index + 1);
    return rates
      .flatMap((rate) => {
        const duration = Math.ceil(volume / (125 * rate));
        const [first] = this.starts({ start, end, bandwidth: rate, duration });
        return first === undefined ? [] : [{ start: first, end: first + duration, bandwidth: rate }];
      })
      .toSorted((one, other) => one.end - other.end || one.bandwidth - other.bandwidth)[0];
  }
}

const instants = Array.from({ length: LAST + 1 }, (_, at) => at);

interface Asking {
  trial: Trial;
  each: Case;
  demand: Demand;
  /** Asks a use that has read no more than it needs, without the reservation that is updated. */
  ask<Answer>(question: (use: RouteUse) => Steps<Answer>, looks?: number): Promise<Answer>;
}

function holds(check: (asking: Asking) => Promise<void>): Promise<void> {
  const property = fc.asyncProperty(cases, demands, (each, demand) => {
    const { all, share, own, routes } = each;
    return check({
      trial: new Trial(each),
      each,
      demand,
      async ask(question, looks) {
        const uses = [...new Set(routes.flat())].map((link) => {
          return useOf(link, all.get(link)?.held ?? new Map(), { share });
        });
        // What is updated was read.
        for (const use of own ? uses : []) await use.load({ start: 0, end: LAST });
        const use = new RouteUse(uses, routes);
        return answerOf(use.without(own, question(use)), looks);
      },
    });
  });
  return fc.assert(property, { numRuns: Number(process.env['PROVE_ROUTED'] ?? 150) });
}

test('a demand gets the best route with tags on each of its links, or the reason why none has them', () =>
  holds(async ({ trial, each: { all, own }, demand, ask }) => {
    const keep = [...all].flatMap(([link, { held }]): Hop[] => {
      const tags = held.get(own)?.tags;
      return tags ? [{ link: idOf(link), tags }] : [];
    });
    const alone = (link: Link) => (all.get(link) as Oracle).plan(demand, own, TENANT);
    const plan = await ask((use) => use.plan(demand, { tenant: TENANT, keep }));
    const best = trial.best(demand);
    if (plan.accepted) {
      const tagsOf = (link: Link): Tags | undefined => {
        const due = alone(link);
        return due.accepted ? due.tags : undefined;
      };
      expect(plan.hops).toEqual(best?.map((link) => ({ link: idOf(link), tags: tagsOf(link) })));
    } else {
      expect(best).toBeUndefined();
      expect(alone(plan.link)).toEqual({ accepted: false, refusals: plan.refusals });
      // It is the narrowest of the widest route.
      expect(trial.linkMost(plan.link, demand, TENANT)).toBe(trial.most(demand, TENANT));
    }
  }));

test('the most that is free, until when, and every start', () =>
  holds(async ({ trial, demand, ask }) => {
    const { start, end, bandwidth } = demand;
    const sought = { start, end: LAST, bandwidth, duration: end - start, tenant: TENANT };
    const starts = trial.starts(sought);
    expect(await ask((use) => use.freeBandwidth(demand, TENANT))).toBe(trial.most(demand, TENANT));
    expect(await ask((use) => use.freeUntil({ ...demand, end: LAST }, TENANT))).toBe(
      instants.findLast((until) => until > start && trial.most({ start, end: until }, TENANT) >= bandwidth),
    );
    expect(await ask((use) => use.earliest(sought))).toBe(starts[0]);
    const slots: { first: number; last: number }[] = [];
    await ask((use) => use.slots(sought, slots, LAST));
    expect(slots.flatMap(({ first, last }) => instants.slice(first, last + 1))).toEqual(starts);
    expect(slots.every(({ first }, index) => first > (slots[index - 1]?.last ?? -2) + 1)).toBe(true);
    const widths = instants.filter((at) => at >= start && at + sought.duration <= LAST);
    expect(await ask((use) => use.mostBandwidth(sought, TENANT))).toBe(
      Math.max(...widths.map((at) => trial.most({ start: at, end: at + sought.duration }, TENANT))),
    );
  }));

test('a search for starts that takes too much tells before which instant there is none (THREATS.md 81)', async () => {
  let givenUp = 0;
  await holds(async ({ trial, demand: { start, end, bandwidth }, ask }) => {
    const sought = { start, end: LAST, bandwidth, duration: end - start, tenant: TENANT };
    const starts = trial.starts(sought);
    for (const looks of [1, 3, 6, 10, 15]) {
      const slots: { first: number; last: number }[] = [];
      const error = await ask((use) => use.slots(sought, slots, LAST), looks).catch((failure) => failure);
      const found = slots.flatMap(({ first, last }) => instants.slice(first, last + 1));
      expect(starts.slice(0, found.length)).toEqual(found);
      if (error === undefined) continue;
      expect(error).toBeInstanceOf(TooMuchError);
      expect(error.notBefore ?? start).toBeLessThanOrEqual(starts[found.length] ?? LAST);
      givenUp += 1;
    }
  });
  expect(givenUp).toBeGreaterThan(50);
});

test('what is free step by step and in columns: on a route with tags, whosever share it is', () =>
  holds(async ({ trial, demand: { start, bandwidth: count }, ask }) => {
    const steps: Awaited<ReturnType<typeof columnsOf>> = [];
    const columnsOf = () => ask((use) => use.columns({ start, end: LAST }, count));
    await ask((use) => use.steps({ start, end: LAST }, steps, LAST));
    for (const parts of [steps, await columnsOf()]) {
      expect(parts.map((part) => part.start)).toEqual([start, ...parts.slice(0, -1).map(({ end }) => end)]);
      expect(parts.at(-1)?.end).toBe(LAST);
    }
    for (const step of steps) {
      expect(step.tags > 0 ? step.bandwidth : 0).toBe(instantMost(trial, step));
      expect(step.bandwidthMax).toBe(step.bandwidth);
    }
    for (const { tags, bandwidth, bandwidthMax, ...column } of await columnsOf()) {
      const each = instants
        .slice(column.start, column.end)
        .map((at) => trial.most({ start: at, end: at + 1 }));
      const free = tags > 0 ? bandwidth : 0;
      // A tag may be free at each instant and none throughout.
      expect(free).toBeGreaterThanOrEqual(trial.most(column));
      expect(free).toBeLessThanOrEqual(Math.min(...each));
      const most = instants.slice(column.start, column.end).map((at) => trial.mostAt(at));
      expect(bandwidthMax).toBe(Math.max(...most));
    }
  }));

/** The most at each instant of a step, which all have the same. */
function instantMost(trial: Trial, { start, end }: Period): number {
  const each = instants.slice(start, end).map((at) => trial.most({ start: at, end: at + 1 }));
  expect(new Set(each).size).toBe(1);
  return each[0] ?? 0;
}

test('the transfer that is over first, and of equals the slowest of one of them', () =>
  holds(async ({ trial, each, demand: { start, end, bandwidth }, ask }) => {
    const sought = { start, end: LAST, bandwidth, volume: 125 * (end - start) * bandwidth - (end % 2) };
    const found = await ask((use) => use.fastest(sought, TENANT));
    const due = trial.fastest(sought);
    if (each.routes.length === 1) expect(found).toEqual(due);
    expect(found?.end).toBe(due?.end);
    if (found) expect(trial.most(found, TENANT)).toBeGreaterThanOrEqual(found.bandwidth);
  }));

function idOf({ site1, site2 }: Link): string {
  return linkId(site1, site2);
}
