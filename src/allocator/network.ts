import * as v from 'valibot';
import { isObject } from '../contract/json.ts';
import { type Link, type Place, type TagRange, Topology } from '../contract/links.ts';
import { SITES } from '../contract/sites.ts';

/** A topology that breaks a rule. Each violation is named in `violations`. */
export class TopologyError extends Error {
  override readonly name = 'TopologyError';
  /** One sentence per violation. */
  readonly violations: readonly string[];

  constructor(violations: readonly string[]) {
    super(`The topology can't be used: ${violations.join(' ')}`);
    this.violations = violations;
  }
}

/** The sites and links that reservations are made on. */
export interface Network {
  readonly sites: readonly string[];
  /** Every link, its sites in alphabetical order. */
  readonly links: readonly Link[];
  /** The link between two sites, named either way round; undefined when there is none. */
  between(site1: string, site2: string): Link | undefined;
  /** The link with this id; see {@link linkId}. */
  byId(id: string): Link | undefined;
  /** The sites that a site is connected with, in alphabetical order. */
  neighbours(site: string): readonly string[];
  /** Where a site is; undefined where the topology does not say. */
  placeOf(site: string): Place | undefined;
}

/** A link's name in the store: its sites in alphabetical order, so that it has no direction. */
export function linkId(site1: string, site2: string): string {
  return site1 < site2 ? `${site1}~${site2}` : `${site2}~${site1}`;
}

/**
 * Reads a topology and checks its rules (contract/README.md, "The reference server"): known sites, one link per pair, no link
 * from a site to itself, tag ranges within 1 to 4094, and C-tag ranges disjoint among the links of a site, so that a
 * C-tag is unique at its site and every rule concerns one link alone. Places are those of sites.
 *
 * @param topology parsed JSON
 * @throws TopologyError naming every violation
 */
export function createNetwork(topology: unknown): Network {
  const result = v.safeParse(Topology, topology);
  if (!result.success) {
    throw new TopologyError(result.issues.map((issue) => formViolation(issue, topology)));
  }
  const { sites, links, places = {} } = result.output;
  const violations = [
    ...siteViolations(sites),
    ...linkViolations(sites, links),
    ...tagViolations(links),
    ...placeViolations(sites, places),
  ];
  if (violations.length > 0) throw new TopologyError(violations);

  const byId = new Map(links.map((link) => [linkId(link.site1, link.site2), alphabetical(link)]));
  const placed = new Map(Object.entries(places));
  return {
    sites,
    links: [...byId.values()],
    between: (site1, site2) => byId.get(linkId(site1, site2)),
    byId: (id) => byId.get(id),
    neighbours: (site) =>
      links
        .flatMap(({ site1, site2 }) => (site1 === site ? [site2] : site2 === site ? [site1] : []))
        .toSorted(),
    placeOf: (site) => placed.get(site),
  };
}

/** What is wrong with the form of a topology; where it is a link's, with the link's name. */
function formViolation(issue: v.BaseIssue<unknown>, topology: unknown): string {
  const keys = (issue.path ?? []).map(({ key }) => String(key));
  const [list, index, ...rest] = keys;
  const links: unknown = isObject(topology) ? topology['links'] : undefined;
  const link: unknown = list === 'links' && Array.isArray(links) ? links[Number(index)] : undefined;
  const place = isObject(link)
    ? `Link ${String(link['site1'])} – ${String(link['site2'])}, ${rest.join('.')}`
    : keys.join('.');
  return `${place === '' ? 'It' : place}: ${issue.message}.`;
}

function siteViolations(sites: readonly string[]): string[] {
  return sites
    .filter((site, index) => sites.indexOf(site) !== index)
    .map((site) => `Site ${site} is listed twice.`);
}

function linkViolations(sites: readonly string[], links: readonly Link[]): string[] {
  const seen = new Set<string>();
  return links.flatMap(({ site1, site2 }) => {
    const id = linkId(site1, site2);
    const found = [site1, site2]
      .filter((site) => !sites.includes(site))
      .map((site) => `Link ${site1} – ${site2} names ${site}, which is not a site.`);
    if (site1 === site2) found.push(`Link ${site1} – ${site2} connects a site with itself.`);
    if (seen.has(id)) found.push(`There are two links between ${site1} and ${site2}.`);
    seen.add(id);
    return found;
  });
}

function tagViolations(links: readonly Link[]): string[] {
  const ends = links.flatMap((link) => [
    { link, site: link.site1, range: link.site1_c_tags },
    { link, site: link.site2, range: link.site2_c_tags },
  ]);
  return ends.flatMap((end, index) =>
    ends
      .slice(index + 1)
      .filter(
        (other) => other.site === end.site && other.link !== end.link && overlap(other.range, end.range),
      )
      .map(
        (other) =>
          `At ${end.site} the C-tags of ${name(end.link)} (${end.range.join('–')}) and ${name(other.link)} (${other.range.join('–')}) overlap.`,
      ),
  );
}

function placeViolations(sites: readonly string[], places: Readonly<Record<string, Place>>): string[] {
  return Object.keys(places)
    .filter((site) => !sites.includes(site))
    .map((site) => `Places names ${site}, which is not a site.`);
}

function name({ site1, site2 }: Link): string {
  return `${site1} – ${site2}`;
}

function overlap([from, to]: TagRange, [otherFrom, otherTo]: TagRange): boolean {
  return from <= otherTo && otherFrom <= to;
}

function alphabetical(link: Link): Link {
  if (link.site1 < link.site2) return link;
  return {
    site1: link.site2,
    site2: link.site1,
    bandwidth: link.bandwidth,
    site1_s_tags: link.site2_s_tags,
    site1_c_tags: link.site2_c_tags,
    site2_s_tags: link.site1_s_tags,
    site2_c_tags: link.site1_c_tags,
  };
}

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

/** Where the sites are: the towns of the institutes that run them. `fr-slices` is the French node, in Paris. */
const PLACES: Readonly<Record<(typeof SITES)[number], readonly [longitude: number, latitude: number]>> = {
  'pl-poznan1': [16.93, 52.41],
  'be-gent1': [3.72, 51.05],
  'be-antwerp': [4.4, 51.22],
  'hu-sztaki': [19.06, 47.48],
  'gr-uth': [22.94, 39.36],
  'se-kth': [18.07, 59.35],
  'es-uc3m': [-3.77, 40.33],
  'es-upvehu': [-2.97, 43.33],
  'fr-sophia': [7.06, 43.62],
  'fr-slices': [2.35, 48.85],
  'fr-nantes': [-1.55, 47.22],
  'fr-lille': [3.06, 50.63],
};

/** How many tags of each kind a link has at each end. */
const TAGS = 1000;

/**
 * The topology of a reference server that is given none: the twelve sites of the API and some links between them;
 * the other pairs are not connected. Each link has 1,000 S-tags and 1,000 C-tags at each end. A site has at most
 * four links, whose C-tag ranges lie one after the other. Each site has its place.
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
  const places = Object.fromEntries(
    Object.entries(PLACES).map(([site, [longitude, latitude]]): [string, Place] => [
      site,
      [longitude, latitude],
    ]),
  );
  return { sites: [...SITES], links, places };
}
