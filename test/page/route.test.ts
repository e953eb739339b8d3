import { describe, expect, test } from 'vitest';
import { builtInTopology, createNetwork } from '../../src/allocator/network.ts';
import { allowedRoutes, sitesOf, widest } from '../../src/allocator/routes.ts';
import { hopsOf, overText, routeBetween, routeOver, routesFrom, routeText } from '../../src/page/route.ts';

const LINKS = [
  { site1: 'a', site2: 'b', bandwidth: 10 },
  { site1: 'b', site2: 'd', bandwidth: 5 },
  { site1: 'a', site2: 'c', bandwidth: 10 },
  { site1: 'd', site2: 'c', bandwidth: 8 },
  { site1: 'd', site2: 'e', bandwidth: 10 },
  { site1: 'x', site2: 'y', bandwidth: 10 },
];

describe('the route between two sites', () => {
  test('has the fewest hops, and of these is the widest', () => {
    expect(routeBetween(LINKS, { site1: 'a', site2: 'e' })).toEqual({
      sites: ['a', 'c', 'd', 'e'],
      bandwidth: 8,
    });
    expect([...routesFrom(LINKS, 'a').keys()].toSorted()).toEqual(['b', 'c', 'd', 'e']);
    expect(routeBetween(LINKS, { site1: 'a', site2: 'x' })).toBeUndefined();
    expect(routeBetween(LINKS, { site1: 'a', site2: 'a' })).toBeUndefined();
  });

  test('is what the service takes where nothing is reserved, between any two sites of the built-in network', () => {
    const { sites, links } = builtInTopology();
    const network = createNetwork(builtInTopology());
    for (const site1 of sites) {
      for (const site2 of sites.filter((site) => site !== site1)) {
        const routes = allowedRoutes(network, { site1, site2 });
        const { route } = widest(routes, ({ bandwidth }) => bandwidth);
        expect(routeBetween(links, { site1, site2 })?.sites).toEqual(sitesOf(route, site1));
      }
    }
  });

  test('has eight links at most', () => {
    const chain = Array.from({ length: 9 }, (_, at) => ({
      site1: `s${at}`,
      site2: `s${at + 1}`,
      bandwidth: 1,
    }));
    expect(routeBetween(chain, { site1: 's0', site2: 's8' })?.sites).toHaveLength(9);
    expect(routeBetween(chain, { site1: 's0', site2: 's9' })).toBeUndefined();
  });

  test('over given sites has their links, and as much as the narrowest one', () => {
    const { sites, bandwidth } = routeOver(LINKS, { site1: 'a', via: ['b'], site2: 'd' });
    expect([hopsOf(LINKS, sites), bandwidth]).toEqual([LINKS.slice(0, 2), 5]);
  });

  test('in words names the sites in between', () => {
    expect([routeText(['a', 'b']), routeText(['a', 'b', 'c', 'd'])]).toEqual(['a – b', 'a – d over b and c']);
    expect([overText([]), overText(['b']), overText(['b', 'c', 'd'])]).toEqual([
      ...['', ' over b', ' over b, c and d'],
    ]);
  });
});
