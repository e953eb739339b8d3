import { builtInTopology } from '../../src/allocator/network.ts';
import { RouteCalendar } from '../../src/allocator/route-calendar.ts';
import { routesBetween } from '../../src/allocator/routes.ts';
import { linkId } from '../../src/contract/links.ts';
import type { Benchmark } from './benchmark.ts';
import { median } from './measure.ts';
import { cost, demandsOn, fullCalendar } from './searches.ts';
import { seeded } from './seeded.ts';

const QUESTIONS = 500;

/** What the earliest start costs over all routes between two sites. */
export const routeSearches: Benchmark = {
  name: 'route-searches',
  method:
    'LinkCalendars as in searches, one for each of the built-in links; each question between two sites at random over all routes of at most 8 links, and on each link alone',
  async run({ quick }) {
    const random = seeded(12);
    const live = quick ? 20_000 : 100_000;
    const { sites, links: named } = builtInTopology();
    const links = named.map((link) => {
      const { calendar, capacity } = fullCalendar(live, random);
      const { site1, site2 } = link;
      return { id: linkId(site1, site2), link: { ...link, bandwidth: capacity }, calendar };
    });
    const network = { links: links.map(({ link }) => link) };
    const capacity = Math.min(...network.links.map(({ bandwidth }) => bandwidth));
    const asked = demandsOn({ live, capacity, count: QUESTIONS }, random);
    const over: number[] = [];
    const alone: number[] = [];
    for (const [index, { start, end, bandwidth }] of asked.entries()) {
      const [site1 = '', site2 = ''] = sites
        .map((site) => ({ site, at: random() }))
        .toSorted((one, other) => one.at - other.at)
        .map(({ site }) => site);
      const routes = [...routesBetween(network, { site1, site2 })];
      const calendar = new RouteCalendar(links, routes);
      over.push(cost(() => calendar.earliest(start, end - start, bandwidth)));
      const link = links[index % links.length];
      alone.push(cost(() => link?.calendar.earliest(start, end - start, bandwidth)));
    }
    return [
      {
        name: 'route-searches, earliest start',
        what: `the earliest start over all routes at ${live.toExponential(0)} live on each of ${links.length} links ÷ on one link, medians`,
        ratio: median(over) / median(alone),
        limit: 60,
        bound: 'atMost',
        measured: `${median(over).toFixed(1)} µs ÷ ${median(alone).toFixed(1)} µs; ${Math.max(...over).toFixed(0)} µs at worst`,
      },
    ];
  },
};
