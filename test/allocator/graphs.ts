import fc from 'fast-check';
import type { Route, RouteTerms } from '../../src/allocator/routes.ts';
import type { Link } from '../../src/contract/links.ts';
import { smallLink } from './small-link.ts';

const SITES = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

/** A network of 4 to 7 sites with any of the links between them. */
export const networks = fc.integer({ min: 4, max: 7 }).chain((count) => {
  const sites = SITES.slice(0, count);
  const pairs = sites.flatMap((site1, index) => sites.slice(index + 1).map((site2) => ({ site1, site2 })));
  return fc.subarray(pairs, { minLength: 1 }).map((chosen) => ({
    sites,
    links: chosen.map(({ site1, site2 }): Link => ({ ...smallLink(), site1, site2 })),
  }));
});

/** The same links with C-tags that differ at each site, as they have to. */
export function withTags(links: readonly Link[]): Link[] {
  return links.map((link, index) => {
    const tags: [number, number] = [1 + 3 * index, 3 + 3 * index];
    return { ...link, site1_c_tags: tags, site2_c_tags: tags };
  });
}

/** All routes, found by walking everywhere: this proof shares nothing with the code that it checks. */
export function every(
  links: readonly Link[],
  { site1, site2, via = [], avoid = [], hops: [least, most] = [1, 8] }: RouteTerms,
): string[][] {
  const walk = (sites: string[]): string[][] => {
    const at = sites.at(-1) ?? '';
    if (at === site2) {
      const order = via.map((site) => sites.indexOf(site));
      const isRight = order.every((place, index) => place > (order[index - 1] ?? 0));
      const isAvoided = sites.some((site) => avoid.includes(site));
      return isRight && !isAvoided && sites.length > least && sites.length <= most + 1 ? [sites] : [];
    }
    return links.flatMap((link) => {
      const next = link.site1 === at ? link.site2 : link.site2 === at ? link.site1 : undefined;
      return next === undefined || sites.includes(next) ? [] : walk([...sites, next]);
    });
  };
  return walk([site1]).toSorted(
    (one, other) => one.length - other.length || (one.join() < other.join() ? -1 : 1),
  );
}

/** The sites that a route passes. */
export function sitesOf(route: Route, from: string): string[] {
  const sites = [from];
  for (const { site1, site2 } of route) sites.push(sites.at(-1) === site1 ? site2 : site1);
  return sites;
}

/** The links between sites in a row. */
export function linksOf(links: readonly Link[], sites: readonly string[]): Link[] {
  return sites
    .slice(1)
    .flatMap((to, index) =>
      links.filter(
        ({ site1, site2 }) => [site1, site2].includes(to) && [site1, site2].includes(sites[index] ?? ''),
      ),
    );
}
