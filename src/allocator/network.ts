import * as v from 'valibot';
import { refusedValue } from '../contract/foreign-errors.ts';
import { isObject } from '../contract/json.ts';
import {
  BUILT_IN_LINKS,
  BUILT_IN_PLACES,
  Link,
  linkId,
  type Place,
  SITES,
  type TagRange,
  Topology,
} from '../contract/links.ts';

/** A topology that breaks a rule. Each violation is named in `violations`. */
export class TopologyError extends Error {
  /** The first word of `toString`. */
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

/**
 * Reads a topology and checks its rules (contract/README.md, "The reference server"): known sites, one link per pair, no link
 * from a site to itself, tag ranges within 1 to 4094, and C-tag ranges disjoint among the links of a site, so that a
 * C-tag is unique at its site and every rule concerns one link alone; places only of sites of the topology.
 *
 * @param topology parsed JSON
 * @throws TopologyError naming every violation
 */
export function createNetwork(topology: unknown): Network {
  const result = v.safeParse(Topology, topology);
  // What has the form is checked where the rest has not: all that is wrong is said at once.
  const { sites, links, places = {} } = result.success ? result.output : soundParts(topology);
  const violations = [
    ...(result.issues ?? []).map((issue) => formViolation(issue, topology)),
    ...siteViolations(sites),
    ...(sites.length > 0 ? linkViolations(sites, links) : []),
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

/** The sites and links of a topology that have the form. */
function soundParts(topology: unknown): Topology {
  const { sites, links } = isObject(topology) ? topology : {};
  return {
    sites: Array.isArray(sites) ? sites.filter((site) => typeof site === 'string') : [],
    links: Array.isArray(links) ? links.filter((link) => v.is(Link, link)) : [],
  };
}

/** The fault in the form of a topology; where it is a link's, with the link's name. */
function formViolation(issue: v.BaseIssue<unknown>, topology: unknown): string {
  const keys = (issue.path ?? []).map(({ key }) => String(key));
  const [list, index, ...rest] = keys;
  const links: unknown = isObject(topology) ? topology['links'] : undefined;
  const link: unknown = list === 'links' && Array.isArray(links) ? links[Number(index)] : undefined;
  const place = isObject(link)
    ? `Link ${String(link['site1'])} – ${String(link['site2'])}, ${rest.join('.')}`
    : keys.join('.');
  return `${refusedValue(place === '' ? 'It' : place, issue.message)}.`;
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

/** How many tags of each kind a link has at each end. */
const TAGS = 1000;

/**
 * The topology of a reference server that is given none: the sites and links of contract/links.ts. Each link has 1,000
 * S-tags and 1,000 C-tags at each end. A site has at most four links, whose C-tag ranges lie one after the other. Each
 * site has its place.
 */
export function builtInTopology(): Topology {
  const used = new Map<string, number>();
  const nextRange = (site: string): [number, number] => {
    const from = (used.get(site) ?? 0) + 1;
    used.set(site, from + TAGS - 1);
    return [from, from + TAGS - 1];
  };
  const links = BUILT_IN_LINKS.map(([site1, site2, gbps]) => ({
    site1,
    site2,
    bandwidth: 1000 * gbps,
    site1_s_tags: [1001, 1000 + TAGS] as [number, number],
    site1_c_tags: nextRange(site1),
    site2_s_tags: [1001, 1000 + TAGS] as [number, number],
    site2_c_tags: nextRange(site2),
  }));
  return structuredClone({ sites: [...SITES], links, places: { ...BUILT_IN_PLACES } }) as Topology;
}
