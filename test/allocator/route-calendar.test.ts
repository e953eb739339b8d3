import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LinkCalendar } from '../../src/allocator/calendar.ts';
import type { Demand } from '../../src/allocator/demand.ts';
import { RouteCalendar } from '../../src/allocator/route-calendar.ts';
import { routesBetween } from '../../src/allocator/routes.ts';
import { type Link, linkId } from '../../src/contract/links.ts';
import { every, linksOf, networks } from './graphs.ts';

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

/** Two sites of a network on which something is held; of each link, as its own calendar says. */
const cases = networks
  .chain(({ sites, links }) =>
    fc.record({
      links: fc.constant(links.map((link): Link => ({ ...link, bandwidth: CAPACITY }))),
      ends: fc.shuffledSubarray(sites, { minLength: 2, maxLength: 2 }),
      held: fc.array(fc.tuple(fc.nat(links.length - 1), demands), { maxLength: 40 }),
      share: fc.constantFrom(100, 50),
    }),
  )
  .map(({ links, ends: [site1 = '', site2 = ''], held, share }) => {
    const calendars = new Map(links.map((link) => [link, new LinkCalendar(link, share)]));
    for (const [number, [index, demand]] of held.entries()) {
      const calendar = calendars.get(links[index] as Link);
      const tenant = number % 2 === 0 ? TENANT : 'proj_2';
      const plan = calendar?.plan(demand, 0, { tenant });
      if (plan?.accepted) calendar?.put(`r${number}`, { ...demand, tags: plan.tags, tenant });
    }
    return { links, terms: { site1, site2 }, at: (link: Link) => calendars.get(link) as LinkCalendar };
  })
  .filter(({ links, terms }) => !routesBetween({ links }, terms).next().done);
type Case = typeof cases extends fc.Arbitrary<infer Value> ? Value : never;

function calendarOf({ links, terms, at }: Case): RouteCalendar {
  return new RouteCalendar(
    links.map((link) => ({ id: linkId(link.site1, link.site2), link, calendar: at(link) })),
    [...routesBetween({ links }, terms)],
  );
}

/** The routes that carry a demand, the best first. */
function carrying(
  { links, terms, at }: Case,
  demand: Demand,
  of: { tenant?: string } = { tenant: TENANT },
): Link[][] {
  const left = (route: readonly Link[]): number =>
    Math.min(...route.map((link) => at(link).freeBandwidth(demand)));
  return every(links, terms)
    .map((sites) => linksOf(links, sites))
    .filter((route) => route.every((link) => at(link).plan(demand, 0, of).accepted))
    .toSorted((one, other) => one.length - other.length || left(other) - left(one));
}

const instants = Array.from({ length: LAST + 1 }, (_, at) => at);
const widths = Array.from({ length: CAPACITY }, (_, index) => index + 1);

function holds(check: (each: Case, demand: Demand) => void): void {
  fc.assert(fc.property(cases, demands, check), { numRuns: 150 });
}

describe('against a look at every route', () => {
  test('a demand gets the best route with tags on each of its links, or the reason why none has them', () => {
    holds((each, demand) => {
      const plan = calendarOf(each).plan(demand, { now: 0, tenant: TENANT });
      const [best] = carrying(each, demand);
      if (!plan.accepted) {
        expect(best).toBeUndefined();
        const alone = each.at(plan.link).plan(demand, 0, { tenant: TENANT });
        expect(alone).toEqual({ accepted: false, refusals: plan.refusals });
        return;
      }
      const due = best?.map((link) => {
        const alone = each.at(link).plan(demand, 0, { tenant: TENANT });
        return { link: linkId(link.site1, link.site2), tags: alone.accepted ? alone.tags : undefined };
      });
      expect(plan.hops).toEqual(due);
    });
  });

  test('the most that is free, until when, and the earliest start', () => {
    holds((each, demand) => {
      const calendar = calendarOf(each);
      const { start, end, bandwidth } = demand;
      const fits = (asked: Demand): boolean => carrying(each, asked).length > 0;
      expect(calendar.freeBandwidth(demand, TENANT)).toBe(
        widths.findLast((width) => fits({ ...demand, bandwidth: width })) ?? 0,
      );
      expect(calendar.freeUntil(start, bandwidth, LAST, TENANT)).toBe(
        instants.findLast((until) => until > start && fits({ start, end: until, bandwidth })),
      );
      const after = instants.find(
        (from) => from >= start && fits({ start: from, end: from + end - start, bandwidth }),
      );
      expect(calendar.earliest(start, end - start, bandwidth, TENANT)).toBe(after);
    });
  });

  test('what is free step by step: on a route with tags, at best as throughout', () => {
    holds((each, { start }) => {
      for (const step of calendarOf(each).steps({ start, end: LAST })) {
        // Nobody's share counts.
        const most = widths.findLast((bandwidth) => carrying(each, { ...step, bandwidth }, {}).length > 0);
        expect(step.tags > 0 ? step.bandwidth : 0).toBe(most ?? 0);
        expect(step.bandwidthMax).toBe(step.bandwidth);
      }
    });
  });

  test('the most for which a period is free within a window', () => {
    holds((each, { start, end }) => {
      const duration = end - start;
      const starts = instants.filter((from) => from >= start && from + duration <= LAST);
      const due = widths.findLast((bandwidth) =>
        starts.some((from) => carrying(each, { start: from, end: from + duration, bandwidth }).length > 0),
      );
      const found = calendarOf(each).mostBandwidth({ start, end: LAST, duration }, TENANT);
      expect(found).toBe(due ?? 0);
    });
  });

  test('the transfer that is over first', () => {
    holds((each, { start, end, bandwidth }) => {
      const volume = 125 * (end - start) * bandwidth;
      const found = calendarOf(each).fastest({ start, end: LAST, bandwidth, volume }, TENANT);
      const over = widths
        .filter((rate) => rate <= bandwidth)
        .flatMap((rate) => {
          const duration = Math.ceil(volume / (125 * rate));
          return instants
            .filter((from) => from >= start && from + duration <= LAST)
            .filter(
              (from) => carrying(each, { start: from, end: from + duration, bandwidth: rate }).length > 0,
            )
            .map((from) => from + duration);
        });
      expect(found?.end).toBe(over.length > 0 ? Math.min(...over) : undefined);
      if (found) expect(carrying(each, found).length).toBeGreaterThan(0);
    });
  });
});
