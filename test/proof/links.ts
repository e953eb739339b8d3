import { type Link, linkId, SITES, type TagRange, type Topology } from '../../src/contract/links.ts';
import { type Rows, sweep } from '../allocator/sweep.ts';
import type { Finding } from './report.ts';

/** So few of each that a load uses them up, in bandwidth here and in tags there. */
const CAPACITY = 1000;
const TAGS = 12;

function link(site1: string, site2: string, first: number): Link {
  const range: TagRange = [first, first + TAGS - 1];
  const ranges = { site1_s_tags: range, site1_c_tags: range, site2_s_tags: range, site2_c_tags: range };
  return { site1, site2, bandwidth: CAPACITY, ...ranges };
}

/** Three links that a load fills: the first is the hot one. */
export const LINKS: readonly [Link, ...Link[]] = [
  link('be-gent1', 'pl-poznan1', 100),
  link('be-gent1', 'fr-lille', 200),
  link('fr-lille', 'pl-poznan1', 300),
];

/** Links beyond: to `hu-sztaki` and `gr-uth` routes lead over two or three links, and more than one route at a time is the best. */
const FURTHER: readonly Link[] = [
  link('hu-sztaki', 'pl-poznan1', 400),
  link('fr-lille', 'hu-sztaki', 500),
  link('gr-uth', 'hu-sztaki', 600),
];
const ALL: readonly Link[] = [...LINKS, ...FURTHER];

/** All links as a topology file holds them. */
export const TOPOLOGY: Topology = {
  sites: ['be-gent1', 'fr-lille', 'gr-uth', 'hu-sztaki', 'pl-poznan1'],
  links: [...ALL],
};

/** The two sites of a reservation, in its order. */
export type Pair = Pick<Link, 'site1' | 'site2'>;

/** Each pair of sites, both ways round: the first is the hot link. */
export const PAIRS: readonly [Pair, ...Pair[]] = [
  LINKS[0],
  ...TOPOLOGY.sites.flatMap((site1) =>
    TOPOLOGY.sites.filter((site2) => site2 !== site1).map((site2) => ({ site1, site2 })),
  ),
];

/** Whether no link connects two sites, so that a route is found on a snapshot, before its links are locked. */
export function isRouted({ site1, site2 }: Pair): boolean {
  return !ALL.some((each) => linkId(each.site1, each.site2) === linkId(site1, site2));
}

/**
 * A bandwidth that tells what is refused on a snapshot: when the audit gets the refusal, it may fit again. It is odd, since the
 * audit has no other place for it; all others are even.
 */
export function markedBandwidth(bandwidth: number, isOnSnapshot: boolean): number {
  return bandwidth - (bandwidth % 2) + (isOnSnapshot ? 1 : 0);
}

/** Whether {@link markedBandwidth} says so. */
export function isOnSnapshot({ bandwidth }: { bandwidth: number }): boolean {
  return bandwidth % 2 === 1;
}

/** Twenty links, from two sites to each of the other ten. */
export const TWENTY: Topology = {
  sites: [...SITES],
  links: SITES.slice(0, 2).flatMap((site1, first) =>
    SITES.slice(2).map((site2, second) => link(site1, site2, 100 * (1 + 10 * first + second))),
  ),
};

/** Sweeps every link. @param links default: all of {@link TOPOLOGY} */
export async function sweepAll(rows: Rows, links: readonly Link[] = ALL): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const each of links) {
    const id = linkId(each.site1, each.site2);
    const wrong = await sweep({ rows }, id, each);
    found.push(...wrong.map((what): Finding => ({ kind: 'wrong', what: `${id}: ${what}` })));
  }
  return found;
}
