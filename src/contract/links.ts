import * as v from 'valibot';
import { countFrom, SiteName } from './fields.ts';
import { VlanTag } from './reservation.ts';

/** An inclusive range of VLAN tags, `[from, to]`. */
export const TagRange = v.pipe(
  v.tuple([VlanTag, VlanTag]),
  v.check(([from, to]) => from <= to, 'the range ends before it starts'),
  v.description('Inclusive range [from, to].'),
);
/** See {@link TagRange}. */
export type TagRange = v.InferOutput<typeof TagRange>;

/**
 * A link between two sites: its capacity in Mbps and, at each end, the S-tags and C-tags that may be given out
 * (contract/README.md, "Extensions"). It has no direction.
 */
export const Link = v.object({
  site1: SiteName,
  site2: SiteName,
  bandwidth: countFrom(1, 'Capacity in Mbps.'),
  site1_s_tags: TagRange,
  site1_c_tags: TagRange,
  site2_s_tags: TagRange,
  site2_c_tags: TagRange,
});
/** See {@link Link}. */
export type Link = v.InferOutput<typeof Link>;

/** A link's id: its sites in alphabetical order, so that it has no direction. */
export function linkId(site1: string, site2: string): string {
  return site1 < site2 ? `${site1}~${site2}` : `${site2}~${site1}`;
}

/** The two sites of a {@link linkId}, in alphabetical order. */
export function sitesOfLink(id: string): [site1: string, site2: string] {
  const [site1 = '', site2 = ''] = id.split('~');
  return [site1, site2];
}

/** Where a site is on Earth: `[longitude, latitude]` in degrees, east and north positive. */
export const Place = v.tuple([
  v.pipe(v.number(), v.minValue(-180), v.maxValue(180)),
  v.pipe(v.number(), v.minValue(-90), v.maxValue(90)),
]);
/** See {@link Place}. */
export type Place = v.InferOutput<typeof Place>;

/**
 * The sites and the links between them, as a topology file holds them (contract/README.md, "The reference server"). `places` says
 * where sites are, for the map of the page; sites may be missing there.
 */
export const Topology = v.object({
  sites: v.pipe(v.array(SiteName), v.minLength(1)),
  links: v.array(Link),
  places: v.optional(v.record(v.string(), Place)),
});
/** See {@link Topology}. */
export type Topology = v.InferOutput<typeof Topology>;

/** The reply of `GET …/links` (extension). */
export const LinkList = v.object({ items: v.array(Link), nextCursor: v.null() });

/**
 * The built-in network: its sites, where they are, and the links between them. A new site is a line in the first table,
 * and a line in the second for each of its links.
 *
 * A deployment may know fewer or others: its topology decides. The sites are those that the spec names, in the order of
 * contract/README.md, "Available sites"; each is in the town of the institute that runs it. `fr-slices` is the French
 * node, in Paris.
 */
const PLACES = {
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
} as const satisfies Readonly<Record<string, Readonly<Place>>>;

type BuiltInSite = keyof typeof PLACES;

/** Pairs of sites and the capacity between them in Gbps. A site has at most four links; see `builtInTopology`. */
export const BUILT_IN_LINKS: readonly (readonly [BuiltInSite, BuiltInSite, gbps: number])[] = [
  ['be-gent1', 'pl-poznan1', 100],
  ['be-antwerp', 'be-gent1', 100],
  ['be-gent1', 'fr-lille', 100],
  ['be-gent1', 'se-kth', 10],
  ['fr-lille', 'fr-slices', 40],
  ['fr-nantes', 'fr-slices', 40],
  ['fr-slices', 'fr-sophia', 40],
  ['fr-slices', 'pl-poznan1', 100],
  ['es-uc3m', 'fr-sophia', 10],
  ['es-uc3m', 'es-upvehu', 10],
  ['hu-sztaki', 'pl-poznan1', 10],
  ['gr-uth', 'hu-sztaki', 1],
];

/** The sites of the built-in network between which links can be booked. */
export const SITES = Object.keys(PLACES) as readonly BuiltInSite[];

/** Where the sites of the built-in network are. */
export const BUILT_IN_PLACES: Readonly<Record<string, Readonly<Place>>> = PLACES;
