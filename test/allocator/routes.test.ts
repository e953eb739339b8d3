import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  allowedRoutes,
  bestRoute,
  MAX_ROUTES,
  type RouteTerms,
  routesBetween,
  widest,
} from '../../src/allocator/routes.ts';
import type { Link } from '../../src/contract/links.ts';
import { every, linksOf, networks, sitesOf } from './graphs.ts';
import { smallLink } from './small-link.ts';

const asked = networks.chain((network) =>
  fc.record({
    network: fc.constant(network),
    terms: fc
      .record({
        ends: fc.shuffledSubarray(network.sites, { minLength: 2, maxLength: 2 }),
        others: fc.shuffledSubarray(network.sites, { maxLength: 3 }),
        avoided: fc.integer({ min: 0, max: 2 }),
        maxHops: fc.integer({ min: 1, max: 8 }),
      })
      .map(({ ends: [site1 = '', site2 = ''], others, avoided, maxHops }): RouteTerms => {
        const between = others.filter((site) => site !== site1 && site !== site2);
        return { site1, site2, avoid: between.slice(0, avoided), via: between.slice(avoided), maxHops };
      }),
    values: fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 21, maxLength: 21 }),
  }),
);

describe('against a walk through all routes', () => {
  test('the routes are all there are, in their order', () => {
    fc.assert(
      fc.property(asked, ({ network, terms }) => {
        const found = [...routesBetween(network, terms)].map((route) => sitesOf(route, terms.site1));
        expect(found).toEqual(every(network.links, terms));
      }),
      { numRuns: 300 },
    );
  });

  test('the best one has the fewest hops, then most left on its narrowest link, then the smaller name', () => {
    fc.assert(
      fc.property(asked, ({ network, terms, values }) => {
        const value = (link: Link): number => values[network.links.indexOf(link)] ?? 0;
        const fits = (link: Link): boolean => value(link) > 1;
        const due = every(network.links.filter(fits), terms)
          .map((sites) => ({ sites, width: Math.min(...linksOf(network.links, sites).map(value)) }))
          .toSorted((one, other) => one.sites.length - other.sites.length || other.width - one.width)[0];
        const found = bestRoute([...routesBetween(network, terms)], { fits, left: value });
        expect(found && sitesOf(found, terms.site1)).toEqual(due?.sites);
      }),
      { numRuns: 300 },
    );
  });

  test('the widest is the most that all links of a route have', () => {
    fc.assert(
      fc.property(asked, ({ network, terms, values }) => {
        const measure = (link: Link): number => values[network.links.indexOf(link)] ?? 0;
        const routes = [...routesBetween(network, terms)];
        fc.pre(routes.length > 0);
        const widths = every(network.links, terms).map((sites) =>
          Math.min(...linksOf(network.links, sites).map(measure)),
        );
        expect(widest(routes, measure).width).toBe(Math.max(...widths));
      }),
      { numRuns: 300 },
    );
  });
});

test('row 132: of millions of routes only the first are looked at', () => {
  const sites = Array.from({ length: 40 }, (_, index) => `s${String(index).padStart(2, '0')}`);
  const links = sites.flatMap((site1, index) =>
    [1, 2, 3, 4, 5].flatMap((step): Link[] => {
      const site2 = sites[index + step];
      return site2 === undefined ? [] : [{ ...smallLink(), site1, site2 }];
    }),
  );
  const network = { links, detour: 7, between: () => undefined };
  const [route] = routesBetween(network, { site1: 's00', site2: 's39' });
  expect(route).toHaveLength(8);
  // There are millions.
  const allowed = allowedRoutes(network, { site1: 's00', site2: 's20' });
  expect(allowed).toHaveLength(MAX_ROUTES);
  expect(allowed?.at(-1)?.length).toBeLessThan(8);
});

test('row 132: where millions of paths lead to a site and none on from it, the walk is given up', () => {
  const sites = Array.from({ length: 60 }, (_, index) => `s${index}`);
  const links = sites.flatMap((site1, index) =>
    sites.slice(index + 1).map((site2): Link => ({ ...smallLink(), site1, site2 })),
  );
  links.push({ ...smallLink(), site1: 's30', site2: 'end' });
  expect([...routesBetween({ links }, { site1: 's0', site2: 's1', via: ['end'] })]).toEqual([]);
});

test.each([
  { site1: 's00', site2: 's00' },
  { site1: 's00', site2: 's01', via: ['s00'] },
  { site1: 's00', site2: 's01', via: ['s01'] },
  { site1: 's00', site2: 's01', via: ['s02', 's02'] },
])('row 132: where no route can be, none is walked: %j', (terms) => {
  const links = new Proxy<Link[]>([], {
    get: () => {
      throw new RangeError('the links are looked at');
    },
  });
  expect([...routesBetween({ links }, terms)]).toEqual([]);
});
