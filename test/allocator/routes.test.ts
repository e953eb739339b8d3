import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createNetwork } from '../../src/allocator/network.ts';
import {
  allowedRoutes,
  longerRoutes,
  MAX_ROUTES,
  type Route,
  type RouteTerms,
  routesBetween,
  widest,
} from '../../src/allocator/routes.ts';
import type { Link } from '../../src/contract/links.ts';
import { every, linksOf, networks, sitesOf, withTags } from './graphs.ts';
import { smallLink } from './small-link.ts';

const asked = networks.chain((network) =>
  fc.record({
    network: fc.constant(network),
    terms: fc
      .record({
        ends: fc.shuffledSubarray(network.sites, { minLength: 2, maxLength: 2 }),
        others: fc.shuffledSubarray(network.sites, { maxLength: 3 }),
        avoided: fc.integer({ min: 0, max: 2 }),
        hops: fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 8 })),
      })
      .map(({ ends: [site1 = '', site2 = ''], others, avoided, hops }): RouteTerms => {
        const between = others.filter((site) => site !== site1 && site !== site2);
        return { site1, site2, avoid: between.slice(0, avoided), via: between.slice(avoided), hops };
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

  test('where nothing is asked those with the fewest hops are taken, and the longer ones are known; else all that are as asked', () => {
    fc.assert(
      fc.property(asked, ({ network: { sites, links }, terms: { hops: _, ...terms } }) => {
        const network = createNetwork({ sites, links: withTags(links) });
        const names = (routes: readonly Route[]) => routes.map((route) => sitesOf(route, terms.site1));
        const { site1, site2 } = terms;
        const all = every(links, { site1, site2 });
        const fewest = all[0]?.length;
        expect(names(allowedRoutes(network, { site1, site2 }))).toEqual(
          all.filter(({ length }) => length === fewest),
        );
        expect(names(longerRoutes(network, { site1, site2 }))).toEqual(
          all.filter(({ length }) => length !== fewest),
        );
        const asksNothing = [...(terms.via ?? []), ...(terms.avoid ?? [])].length === 0;
        if (!asksNothing) expect(names(allowedRoutes(network, terms))).toEqual(every(links, terms));
        expect(names(allowedRoutes(network, { ...terms, direct: true }))).toEqual(
          terms.via?.length ? [] : all.filter(({ length }) => length === 2),
        );
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
  const network = { links, between: () => undefined };
  const [route] = routesBetween(network, { site1: 's00', site2: 's39' });
  expect(route).toHaveLength(8);
  // There are millions.
  const longer = longerRoutes(network, { site1: 's00', site2: 's20' });
  expect(longer).toHaveLength(MAX_ROUTES);
  expect(longer.at(-1)?.length).toBeLessThan(8);
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
