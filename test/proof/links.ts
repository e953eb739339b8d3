import { linkId } from '../../src/allocator/network.ts';
import type { Link, TagRange, Topology } from '../../src/contract/links.ts';
import { SITES } from '../../src/contract/sites.ts';
import type { Rows } from '../allocator/sweep.ts';
import { sweep } from '../allocator/sweep.ts';
import type { Finding } from './report.ts';

/** So few of each that a load uses them up, in bandwidth here and in tags there. */
const CAPACITY = 1000;
const TAGS = 12;

function link(site1: string, site2: string, first: number): Link {
  const range: TagRange = [first, first + TAGS - 1];
  const ranges = { site1_s_tags: range, site1_c_tags: range, site2_s_tags: range, site2_c_tags: range };
  return { site1, site2, bandwidth: CAPACITY, ...ranges };
}

/** Links that a load fills: the first is the hot one. */
export const LINKS: readonly [Link, ...Link[]] = [
  link('be-gent1', 'pl-poznan1', 100),
  link('be-gent1', 'fr-lille', 200),
  link('fr-lille', 'pl-poznan1', 300),
];

/** The same as a topology file holds it. */
export const TOPOLOGY: Topology = { sites: ['be-gent1', 'fr-lille', 'pl-poznan1'], links: [...LINKS] };

/** Twenty links, from two sites to each of the other ten. */
export const TWENTY: Topology = {
  sites: [...SITES],
  links: SITES.slice(0, 2).flatMap((site1, first) =>
    SITES.slice(2).map((site2, second) => link(site1, site2, 100 * (1 + 10 * first + second))),
  ),
};

/** Sweeps every link. */
export async function sweepAll(rows: Rows, links: readonly Link[] = LINKS): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const each of links) {
    const id = linkId(each.site1, each.site2);
    for (const what of await sweep({ rows }, id, each)) {
      found.push({ kind: what.startsWith('leak:') ? 'leaked' : 'wrong', what: `${id}: ${what}` });
    }
  }
  return found;
}
