import { MAX_HOPS } from '../contract/request-limits.ts';
import type { Ends, Link } from './service.ts';

/** A way between two sites: all that it passes, in order, and the capacity of its narrowest link in Mbps. */
export interface Route {
  sites: readonly string[];
  bandwidth: number;
}

/** Whether two pairs are of the same sites. */
export function isSamePair(one: Ends, other: Ends): boolean {
  return (
    (one.site1 === other.site1 && one.site2 === other.site2) ||
    (one.site1 === other.site2 && one.site2 === other.site1)
  );
}

/** The link between two sites. */
export function linkBetween(links: readonly Link[], ends: Ends): Link | undefined {
  return links.find((link) => isSamePair(link, ends));
}

/** The sites that can be reached from a site over {@link MAX_HOPS} links at most, each with a route: one of the widest of those with the fewest hops. */
export function routesFrom(links: readonly Link[], site: string): ReadonlyMap<string, Route> {
  const found = new Map<string, Route>([[site, { sites: [site], bandwidth: Infinity }]]);
  // A map gives what is added while it is walked; a better route of as many hops takes its place before its turn.
  for (const [at, { sites, bandwidth }] of found) {
    if (sites.length > MAX_HOPS) break;
    for (const link of links) {
      const to = link.site1 === at ? link.site2 : link.site2 === at ? link.site1 : undefined;
      if (to === undefined) continue;
      const next = { sites: [...sites, to], bandwidth: Math.min(bandwidth, link.bandwidth) };
      const known = found.get(to);
      if (!known || isBetter(next, known)) found.set(to, next);
    }
  }
  found.delete(site);
  return found;
}

function isBetter(one: Route, other: Route): boolean {
  if (one.sites.length !== other.sites.length) return false;
  if (one.bandwidth !== other.bandwidth) return one.bandwidth > other.bandwidth;
  return one.sites.join() < other.sites.join();
}

/** Routes are asked for at each move of a pointer. */
const ROUTES = new WeakMap<readonly Link[], Map<string, Route | undefined>>();

/**
 * The route that the service takes between two sites where nothing is reserved: with the fewest hops; of these the widest; of
 * these the first by name. Undefined where none leads there.
 */
export function routeBetween(links: readonly Link[], { site1, site2 }: Ends): Route | undefined {
  const routes = ROUTES.get(links) ?? new Map<string, Route | undefined>();
  ROUTES.set(links, routes);
  const name = `${site1} ${site2}`;
  if (!routes.has(name)) routes.set(name, findRoute(links, { site1, site2 }));
  return routes.get(name);
}

function findRoute(links: readonly Link[], { site1, site2 }: Ends): Route | undefined {
  const { bandwidth } = routesFrom(links, site1).get(site2) ?? {};
  if (bandwidth === undefined) return undefined;
  // Among links that count the same, names alone decide.
  const wide = links.flatMap((link) => (link.bandwidth < bandwidth ? [] : { ...link, bandwidth }));
  return routesFrom(wide, site1).get(site2);
}

/** Two sites without a link, which have a row of their own; undefined for others. */
export function pairOf(links: readonly Link[], { site1, site2 }: Ends): Link | undefined {
  if (linkBetween(links, { site1, site2 })) return undefined;
  const route = routeBetween(links, { site1, site2 });
  return route && { site1, site2, bandwidth: route.bandwidth };
}

/** The route between two sites that passes some others. */
export function routeOver(
  links: readonly Link[],
  { site1, via = [], site2 }: Ends & { via?: readonly string[] },
): Route {
  const sites = [site1, ...via, site2];
  return { sites, bandwidth: Math.min(...hopsOf(links, sites).map(({ bandwidth }) => bandwidth)) };
}

/** The links between sites in a row. */
export function hopsOf(links: readonly Link[], sites: readonly string[]): Link[] {
  return sites
    .slice(1)
    .flatMap((site2, index) => linkBetween(links, { site1: sites[index] ?? '', site2 }) ?? []);
}

/** A route in words. @example 'be-gent1 – gr-uth over pl-poznan1 and hu-sztaki' */
export function routeText(sites: readonly string[]): string {
  return `${sites[0]} – ${sites.at(-1)}${overText(sites.slice(1, -1))}`;
}

const LIST = new Intl.ListFormat('en-GB');

/** ` over pl-poznan1 and hu-sztaki`; empty for none. @param via the sites in between */
export function overText(via: readonly string[]): string {
  return via.length === 0 ? '' : ` over ${LIST.format(via)}`;
}
