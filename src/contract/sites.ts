import * as v from 'valibot';

/**
 * The twelve sites between which links can be booked, in the order of SPEC.md, "Available sites".
 *
 * A deployment may know fewer or others: its topology decides. This list is what the spec names.
 */
export const SITES = [
  'pl-poznan1',
  'be-gent1',
  'be-antwerp',
  'hu-sztaki',
  'gr-uth',
  'se-kth',
  'es-uc3m',
  'es-upvehu',
  'fr-sophia',
  'fr-slices',
  'fr-nantes',
  'fr-lille',
] as const;

/**
 * The name of a site: a lower-case label of 1 to 63 characters, as in SPEC.md, "Available sites".
 *
 * The schema holds the form only. Whether the site exists is the topology's to say, so that the answer to an
 * unknown one can name its nearest neighbour.
 */
export const SiteName = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/),
  v.description('Site name, from the list of sites.'),
  v.examples(['be-gent1', 'pl-poznan1']),
);
/** See {@link SiteName}. */
export type SiteName = v.InferOutput<typeof SiteName>;
