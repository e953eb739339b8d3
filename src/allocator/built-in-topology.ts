import type { Topology } from '../contract/links.ts';
import { SITES } from '../contract/sites.ts';

const GBPS = 1000;

/** Pairs of sites and the capacity between them in Mbps. */
const LINKS: readonly (readonly [site1: string, site2: string, bandwidth: number])[] = [
  ['be-gent1', 'pl-poznan1', 100 * GBPS],
  ['be-antwerp', 'be-gent1', 100 * GBPS],
  ['be-gent1', 'fr-lille', 100 * GBPS],
  ['be-gent1', 'se-kth', 10 * GBPS],
  ['fr-lille', 'fr-slices', 40 * GBPS],
  ['fr-nantes', 'fr-slices', 40 * GBPS],
  ['fr-slices', 'fr-sophia', 40 * GBPS],
  ['fr-slices', 'pl-poznan1', 100 * GBPS],
  ['es-uc3m', 'fr-sophia', 10 * GBPS],
  ['es-uc3m', 'es-upvehu', 10 * GBPS],
  ['hu-sztaki', 'pl-poznan1', 10 * GBPS],
  ['gr-uth', 'hu-sztaki', 1 * GBPS],
];

/** How many tags of each kind a link has at each end. */
const TAGS = 1000;

/**
 * The topology of a reference server that is given none: the twelve sites of SPEC.md and some links between them;
 * the other pairs are not connected. Each link has 1,000 S-tags and 1,000 C-tags at each end. A site has at most
 * four links, whose C-tag ranges lie one after the other.
 */
export function builtInTopology(): Topology {
  const used = new Map<string, number>();
  const nextRange = (site: string): [number, number] => {
    const from = (used.get(site) ?? 0) + 1;
    used.set(site, from + TAGS - 1);
    return [from, from + TAGS - 1];
  };
  const links = LINKS.map(([site1, site2, bandwidth]) => ({
    site1,
    site2,
    bandwidth,
    site1_s_tags: [1001, 1000 + TAGS] as [number, number],
    site1_c_tags: nextRange(site1),
    site2_s_tags: [1001, 1000 + TAGS] as [number, number],
    site2_c_tags: nextRange(site2),
  }));
  return { sites: [...SITES], links };
}
