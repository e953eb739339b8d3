import { setBounded } from '../contract/bounded.ts';
import type { Link } from '../contract/links.ts';
import { MAX_HOPS } from '../contract/request-limits.ts';
import type { Network } from './network.ts';

/** Which routes between two sites may be taken. */
export interface RouteTerms {
  site1: string;
  site2: string;
  /** Sites that the route passes, in this order. */
  via?: readonly string[];
  /** Sites that it does not pass. */
  avoid?: readonly string[];
  /** How many hops it has, at least and at most, up to {@link MAX_HOPS}. Default: any number up to that. */
  hops?: readonly [least: number, most: number];
  /** At how many links of sites the walk looks at most. Default: {@link MAX_STEPS}. */
  maxSteps?: number;
}

/** Links that lead from one site to another, each site passed once. */
export type Route = readonly [Link, ...Link[]];

/** The sites that links in a row pass, from the first one on. */
export function sitesOf(route: readonly Pick<Link, 'site1' | 'site2'>[], from: string): string[] {
  const sites = [from];
  for (const { site1, site2 } of route) sites.push(sites.at(-1) === site1 ? site2 : site1);
  return sites;
}

/** A link of a site, and where it leads. */
interface Way {
  to: string;
  link: Link;
}

/** At how many links of sites a walk looks at most: some 20 ms. */
const MAX_STEPS = 300_000;

/**
 * The routes between two sites: by the number of their hops, then by the names of the sites that they pass.
 *
 * It lengthens a path only while the rest of the way can fit into the hops that are left, so the first routes are found
 * without a look at the others. After `maxSteps` it is given up: many paths may lead to a site, and none on from there.
 *
 * @example
 * // a – b – c, a – c: from a to c the routes are a – c, and a – b – c.
 */
export function* routesBetween(network: Pick<Network, 'links'>, terms: RouteTerms): Generator<Route> {
  const { site1, site2, via = [], hops: [least, most] = [1, MAX_HOPS], maxSteps = MAX_STEPS } = terms;
  const stops = [...via, site2];
  // No site is passed twice.
  if (new Set([site1, ...stops]).size <= stops.length) return;
  const ways = waysOf(network, terms);
  const left = hopsLeft(ways, stops);
  const passed = new Set([site1]);
  const path: Link[] = [];
  let steps = 0;
  function* lengthen(at: string, stop: number, length: number): Generator<Route> {
    const [first, ...rest] = path;
    if (first && stop === stops.length) {
      if (path.length === length) yield [first, ...rest];
      return;
    }
    for (const { to, link } of ways.get(at) ?? []) {
      steps += 1;
      if (steps > maxSteps) return;
      const isStop = to === stops[stop];
      // A stop that is passed before its turn can't be passed again.
      if (passed.has(to) || (!isStop && stops.includes(to))) continue;
      const next = isStop ? stop + 1 : stop;
      if (path.length + 1 + left(to, next) > length) continue;
      passed.add(to);
      path.push(link);
      yield* lengthen(to, next, length);
      path.pop();
      passed.delete(to);
    }
  }
  const first = Math.max(least, left(site1, 0));
  for (let length = first; length <= most; length += 1) yield* lengthen(site1, 0, length);
}

/** Among how many routes between two sites a reservation's is looked for: those with the fewest hops. */
export const MAX_ROUTES = 1000;

/** What is asked of a route between two sites. */
export type AskedRoutes = Omit<RouteTerms, 'hops' | 'maxSteps'> & {
  /** Whether one link must connect the two. Default: no. */
  direct?: boolean;
};

/**
 * The routes that a reservation between two sites may take, by hops and name, {@link MAX_ROUTES} at most: where something is asked
 * of its route, all that are as asked; else those with as few hops as any, since a longer one costs others more.
 *
 * @returns none where no route is as asked
 */
export function allowedRoutes(
  network: Pick<Network, 'between' | 'links'>,
  { direct = false, ...asked }: AskedRoutes,
): readonly Route[] {
  const { site1, site2, via = [], avoid = [] } = asked;
  const link = network.between(site1, site2);
  if (direct) return link && via.length === 0 ? [[link]] : [];
  if (via.length + avoid.length > 0) {
    return known(network, ['all', site1, site2, via, avoid], () => routesBetween(network, asked));
  }
  if (link) return [[link]];
  return known(network, ['fewest', site1, site2], () => {
    const [shortest] = routesBetween(network, { site1, site2 });
    const hops = shortest?.length ?? 0;
    return routesBetween(network, { site1, site2, hops: [hops, hops] });
  });
}

/** The routes with more hops than those which are taken where nothing is asked, {@link MAX_ROUTES} at most. */
export function longerRoutes(
  network: Pick<Network, 'between' | 'links'>,
  { site1, site2 }: AskedRoutes,
): readonly Route[] {
  const [shortest] = allowedRoutes(network, { site1, site2 });
  if (!shortest) return [];
  return known(network, ['longer', site1, site2], () =>
    routesBetween(network, { site1, site2, hops: [shortest.length + 1, MAX_HOPS] }),
  );
}

/** For how many questions routes are known: with very many routes each, they are some 30 MiB. */
const MAX_KNOWN = 500;

/** The routes of a network that were asked for last: it never changes. */
const KNOWN_ROUTES = new WeakMap<object, Map<string, readonly Route[]>>();

/** Routes that are known, or are walked now. @param question a name of their own */
function known(network: object, question: unknown, walk: () => Iterable<Route>): readonly Route[] {
  const all = KNOWN_ROUTES.get(network) ?? new Map<string, readonly Route[]>();
  KNOWN_ROUTES.set(network, all);
  const name = JSON.stringify(question);
  const before = all.get(name);
  if (before) return before;
  const routes: Route[] = [];
  for (const route of walk()) {
    routes.push(route);
    if (routes.length === MAX_ROUTES) break;
  }
  setBounded(all, name, routes, MAX_KNOWN);
  return routes;
}

/**
 * Why no route between two sites is as asked for: how many hops it may have, and the sites to be passed or avoided without one
 * of which there is a route; where none alone is in the way, all of them. `route` is the shortest one, whatever is asked.
 *
 * @returns undefined where no route connects the two
 */
export function obstaclesOf(
  network: Pick<Network, 'between' | 'links'>,
  { site1, site2, via = [], avoid = [], direct = false }: AskedRoutes,
): { route: string[]; hops: number; via: string[]; avoid: string[] } | undefined {
  const [shortest] = allowedRoutes(network, { site1, site2 });
  if (!shortest) return undefined;
  const route = sitesOf(shortest, site1);
  // A direct link passes no site, so none is in its way.
  if (direct) return { route, hops: 1, via: [], avoid: [] };
  // All walks together take as long as one.
  const maxSteps = Math.ceil(MAX_STEPS / (via.length + avoid.length));
  const alone = [...via, ...avoid].filter((one) => {
    const [passed, avoided] = [via, avoid].map((sites) => sites.filter((site) => site !== one));
    const terms = { site1, site2, via: passed, avoid: avoided, maxSteps };
    return routesBetween(network, terms).next().done === false;
  });
  const inTheWay = (sites: readonly string[]) =>
    sites.filter((site) => alone.length === 0 || alone.includes(site));
  return { route, hops: MAX_HOPS, via: inTheWay(via), avoid: inTheWay(avoid) };
}

/** The most that a reservation between two sites can have if nothing is held, in Mbps; undefined where there is no route. */
export function capacityBetween(
  network: Pick<Network, 'between' | 'links'>,
  asked: AskedRoutes,
): number | undefined {
  const routes = allowedRoutes(network, asked);
  return routes.length > 0 ? widest(routes, ({ bandwidth }) => bandwidth).width : undefined;
}

/** The links that may be used, at each site by the name of the other. */
function waysOf({ links }: Pick<Network, 'links'>, { avoid = [] }: RouteTerms): Map<string, Way[]> {
  const ways = new Map<string, Way[]>();
  for (const link of links) {
    const { site1, site2 } = link;
    if (avoid.includes(site1) || avoid.includes(site2)) continue;
    for (const [from, to] of [
      [site1, site2],
      [site2, site1],
    ] as const) {
      const known = ways.get(from) ?? [];
      known.push({ to, link });
      ways.set(from, known);
    }
  }
  for (const known of ways.values()) known.sort((one, other) => (one.to < other.to ? -1 : 1));
  return ways;
}

/** How many hops are left at least from a site through the stops from one on; infinity where there is no way. */
function hopsLeft(
  ways: ReadonlyMap<string, readonly Way[]>,
  stops: readonly string[],
): (site: string, stop: number) => number {
  const from = stops.map((stop) => distances(ways, stop));
  const between = stops.map((_, index) =>
    stops
      .slice(index + 1)
      .reduce((sum, stop, after) => sum + (from[index + after]?.get(stop) ?? Infinity), 0),
  );
  return (site, stop) =>
    stop === stops.length ? 0 : (from[stop]?.get(site) ?? Infinity) + (between[stop] ?? 0);
}

/** How many hops each site is away that can be reached. */
function distances(ways: ReadonlyMap<string, readonly Way[]>, from: string): Map<string, number> {
  const found = new Map([[from, 0]]);
  // A map gives what is added while it is walked.
  for (const [site, hops] of found) {
    for (const { to } of ways.get(site) ?? []) if (!found.has(to)) found.set(to, hops + 1);
  }
  return found;
}

/**
 * The route that has most on each of its links, and of equal ones the first.
 *
 * @param measure what a link has, for example free Mbps, or until when it is free; asked once for each link
 * @throws RangeError where there is no route
 */
export function widest(
  routes: readonly Route[],
  measure: (link: Link) => number,
): { route: Route; width: number } {
  const known = new Map<Link, number>();
  const has = (link: Link): number => {
    const found = known.get(link) ?? measure(link);
    known.set(link, found);
    return found;
  };
  let best: { route: Route; width: number } | undefined;
  for (const route of routes) {
    const width = Math.min(...route.map(has));
    if (!best || width > best.width) best = { route, width };
  }
  if (!best) throw new RangeError('there is no route');
  return best;
}
