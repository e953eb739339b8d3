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
