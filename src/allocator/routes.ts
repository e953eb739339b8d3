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
  /** How many hops it may have, 1 to {@link MAX_HOPS}. Default: {@link MAX_HOPS}. */
  maxHops?: number;
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

/**
 * The routes between two sites: by the number of their hops, then by the names of the sites that they pass.
 *
 * It lengthens a path only while the rest of the way can fit into the hops that are left, so the first routes are found
 * without a look at the others.
 *
 * @param fits whether a link may be used; by default each
 * @example
 * // a – b – c, a – c: from a to c the routes are a – c, and a – b – c.
 */
export function* routesBetween(
  network: Pick<Network, 'links'>,
  terms: RouteTerms,
  fits: (link: Link) => boolean = () => true,
): Generator<Route> {
  const { site1, site2, via = [], maxHops = MAX_HOPS } = terms;
  const stops = [...via, site2];
  const ways = waysOf(network, terms, fits);
  const left = hopsLeft(ways, stops);
  const passed = new Set([site1]);
  const path: Link[] = [];
  function* lengthen(at: string, stop: number, length: number): Generator<Route> {
    const [first, ...rest] = path;
    if (first && stop === stops.length) {
      if (path.length === length) yield [first, ...rest];
      return;
    }
    for (const { to, link } of ways.get(at) ?? []) {
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
  for (let length = left(site1, 0); length <= maxHops; length += 1) yield* lengthen(site1, 0, length);
}

/** Routes that may be taken: how, and the links that they may use. */
export interface AllowedRoutes {
  links: readonly Link[];
  terms: RouteTerms;
}

/** The routes that are asked for between two sites, whatever the network allows. */
export type AskedRoutes = Omit<RouteTerms, 'maxHops'> & {
  /** Whether one link must connect the two. Default: no. */
  direct?: boolean;
};

/**
 * The routes that a reservation between two sites may take: those with as many hops as the shortest one of the network, and
 * as many more as the network allows; undefined where none of these is as asked for. Where one link is all that may be taken,
 * nothing is walked.
 */
export function allowedRoutes(
  network: Pick<Network, 'between' | 'links' | 'detour'>,
  asked: AskedRoutes,
): AllowedRoutes | undefined {
  const { site1, site2, via = [], avoid, direct = false } = asked;
  const link = network.between(site1, site2);
  if (direct || (link && network.detour === 0)) {
    return link && via.length === 0 ? { links: [link], terms: { site1, site2, maxHops: 1 } } : undefined;
  }
  const [shortest] = routesBetween(network, { site1, site2 });
  if (!shortest) return undefined;
  const maxHops = Math.min(MAX_HOPS, shortest.length + network.detour);
  const terms = { site1, site2, via, avoid, maxHops };
  const [some] = routesBetween(network, terms);
  return some && { links: linksWithin(network, terms), terms };
}

/**
 * Why no route between two sites is as asked for: how many hops it may have, and the sites to be passed or avoided without one
 * of which there is a route; where none alone is in the way, all of them. `route` is the shortest one, whatever is asked.
 *
 * @returns undefined where no route connects the two
 */
export function obstaclesOf(
  network: Pick<Network, 'between' | 'links' | 'detour'>,
  asked: AskedRoutes,
): { route: string[]; hops: number; via: string[]; avoid: string[] } | undefined {
  const { site1, site2, via = [], avoid = [], direct = false } = asked;
  const [shortest] = routesBetween(network, { site1, site2 });
  if (!shortest) return undefined;
  const route = sitesOf(shortest, site1);
  // A direct link passes no site, so none is in its way.
  if (direct) return { route, hops: 1, via: [], avoid: [] };
  const isInTheWay = (one: string): boolean => {
    const [passed, avoided] = [via, avoid].map((sites) => sites.filter((site) => site !== one));
    return allowedRoutes(network, { site1, site2, via: passed, avoid: avoided }) !== undefined;
  };
  const isAlone = [...via, ...avoid].some(isInTheWay);
  const inTheWay = (sites: readonly string[]) => sites.filter((site) => !isAlone || isInTheWay(site));
  const hops = Math.min(MAX_HOPS, route.length - 1 + network.detour);
  return { route, hops, via: inTheWay(via), avoid: inTheWay(avoid) };
}

/** The most that a reservation between two sites can have if nothing is held, in Mbps; undefined where there is no route. */
export function capacityBetween(
  network: Pick<Network, 'between' | 'links' | 'detour'>,
  sites: AskedRoutes,
): number | undefined {
  const allowed = allowedRoutes(network, sites);
  return allowed && widest(allowed, allowed.terms, { measure: ({ bandwidth }) => bandwidth, least: 0 });
}

/** The links that a route may use: those from which both sites are near enough. */
function linksWithin(network: Pick<Network, 'links'>, terms: RouteTerms): Link[] {
  const { site1, site2, maxHops = MAX_HOPS } = terms;
  const ways = waysOf(network, terms, () => true);
  const [from, to] = [distances(ways, site1), distances(ways, site2)];
  const length = (one: string, other: string): number =>
    (from.get(one) ?? Infinity) + 1 + (to.get(other) ?? Infinity);
  const usable = [...ways.values()].flat().flatMap(({ link }) => {
    const shortest = Math.min(length(link.site1, link.site2), length(link.site2, link.site1));
    return shortest <= maxHops ? link : [];
  });
  return [...new Set(usable)];
}

/** The links that may be used, at each site by the name of the other. */
function waysOf(
  { links }: Pick<Network, 'links'>,
  { avoid = [] }: RouteTerms,
  fits: (link: Link) => boolean,
): Map<string, Way[]> {
  const ways = new Map<string, Way[]>();
  for (const link of links) {
    const { site1, site2 } = link;
    if (avoid.includes(site1) || avoid.includes(site2) || !fits(link)) continue;
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
 * The route that is taken: of those with the fewest hops, the one whose narrowest link has most left, and of equal ones the
 * first by name.
 *
 * @param fits whether a link has what is asked for
 * @param left how much a link has left, for example in Mbps
 */
export function bestRoute(
  network: Pick<Network, 'links'>,
  terms: RouteTerms,
  { fits, left }: { fits: (link: Link) => boolean; left: (link: Link) => number },
): Route | undefined {
  let best: { route: Route; width: number } | undefined;
  for (const route of routesBetween(network, terms, fits)) {
    if (best && route.length > best.route.length) break;
    const width = Math.min(...route.map(left));
    if (!best || width > best.width) best = { route, width };
  }
  return best?.route;
}

/**
 * The earliest start from an instant on at which some route has all its links free. Exact: before the next instant that it
 * looks at, no link becomes free that leaves the sites which are reached.
 *
 * @param free the earliest start, at an instant or after it, at which a link is free; undefined for never. Milliseconds
 * @param latest the last start to look at; by default there is none
 */
export function earliestStart(
  network: Pick<Network, 'links'>,
  terms: RouteTerms,
  {
    from,
    latest = Number.MAX_SAFE_INTEGER,
    free,
  }: { from: number; latest?: number; free: (link: Link, from: number) => number | undefined },
): number | undefined {
  const { site1, maxHops = MAX_HOPS } = terms;
  const known = new Map<Link, number>();
  for (let start = from; start <= latest; ) {
    const freeFrom = (link: Link): number => {
      const last = known.get(link);
      if (last !== undefined && last >= start) return last;
      const next = free(link, start) ?? Infinity;
      known.set(link, next);
      return next;
    };
    const fits = (link: Link): boolean => freeFrom(link) === start;
    const [route] = routesBetween(network, terms, fits);
    if (route) return start;
    const reached = distances(waysOf(network, terms, fits), site1);
    const isNear = (site: string): boolean => (reached.get(site) ?? Infinity) < maxHops;
    const leaving = [...waysOf(network, terms, (link) => !fits(link))].filter(([site]) => isNear(site));
    start = Math.min(...leaving.flatMap(([, ways]) => ways.map(({ link }) => freeFrom(link))));
  }
  return undefined;
}

/**
 * The most that some route has on each of its links.
 *
 * @param measure what a link has, for example free Mbps, or until when it is free
 * @returns undefined where no route has more than `least`
 */
export function widest(
  network: Pick<Network, 'links'>,
  terms: RouteTerms,
  { measure, least }: { measure: (link: Link) => number; least: number },
): number | undefined {
  const measured = new Map(network.links.map((link) => [link, measure(link)]));
  const has = (link: Link): number => measured.get(link) ?? least;
  const widths = [...new Set(measured.values())].filter((width) => width > least).toSorted((a, b) => a - b);
  const isWay = (width: number): boolean =>
    !routesBetween(network, terms, (link) => has(link) >= width).next().done;
  // The widths that some route has come first.
  let [low, high] = [0, widths.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isWay(widths[middle] ?? Infinity)) low = middle + 1;
    else high = middle;
  }
  return widths[low - 1];
}
