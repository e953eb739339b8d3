import type { Period } from '../contract/instants.ts';

export type { Period } from '../contract/instants.ts';

/** The four tags that a reservation holds, each at the link's own first or second end. */
export interface Tags {
  site1_s_tag: number;
  site1_c_tag: number;
  site2_s_tag: number;
  site2_c_tag: number;
}

/** One of the four places where a reservation needs a tag. */
export type TagPlace = keyof Tags;
/** Every place where a reservation needs a tag. */
export const TAG_PLACES = [
  'site1_s_tag',
  'site1_c_tag',
  'site2_s_tag',
  'site2_c_tag',
] as const satisfies readonly TagPlace[];

/** A request for bandwidth, in Mbps, over a period. */
export interface Demand extends Period {
  bandwidth: number;
}

/** A reservation's share of its link. */
export interface Holding extends Demand {
  tags: Tags;
  /** Whose share it counts in; needed only where shares are limited. */
  tenant?: string;
}
