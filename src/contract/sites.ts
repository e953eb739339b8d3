/**
 * The twelve sites between which links can be booked, in the order of contract/README.md, "Available sites".
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
