import { Failure } from '../../contract/failure.ts';
import { RESERVATION_NAME } from '../../contract/fields.ts';
import type { OptionDeclaration, OptionsOf, OptionTable } from '../../contract/flags.ts';
import {
  type AskedRoute,
  askedRouteOf,
  asksForRoute,
  type ReservationText,
} from '../../contract/reservation.ts';
import { contradictionText } from '../../words/links.ts';
import { siteName } from '../values.ts';

/** The flags of a route. */
export const ROUTE_OPTIONS = {
  via: {
    flags: '--via <sites>',
    help: 'sites that the route passes, in this order: fr-slices or fr-slices,fr-sophia',
  },
  avoid: { flags: '--avoid <sites>', help: 'sites that the route does not pass' },
  direct: { flags: '--direct', help: 'only a link that connects the two sites' },
} as const satisfies OptionTable;

/**
 * Reads the flags of a route between two sites.
 *
 * @throws Failure `usage` for a text that is no list of site names, for flags that contradict each other, and without the
 *   second site
 */
export function readRoute(
  flags: OptionsOf<typeof ROUTE_OPTIONS>,
  { site1, site2 }: { site1: string; site2: string | undefined },
): AskedRoute {
  const sites = (list: string | undefined) => list?.split(',').map((name) => siteName(name.trim()));
  const asked = askedRouteOf({ via: sites(flags.via), avoid: sites(flags.avoid), direct: flags.direct });
  if (!asksForRoute(asked)) return asked;
  const contradiction =
    site2 === undefined
      ? '--via, --avoid and --direct need both sites.'
      : contradictionText({ site1, site2, ...asked }, (member) => `--${member}`);
  if (contradiction === undefined) return asked;
  throw new Failure('usage', contradiction);
}

/** A route as it is asked for by flags. */
export function routeWords({ via = [], avoid = [], direct = false }: AskedRoute): string[] {
  return [
    ...(via.length > 0 ? ['--via', via.join(',')] : []),
    ...(avoid.length > 0 ? ['--avoid', avoid.join(',')] : []),
    ...(direct ? ['--direct'] : []),
  ];
}

/** The flag of each text of a reservation, whose value is that text. */
export const TEXT_OPTIONS = {
  name: {
    flags: '--name <name>',
    help: 'a name to be used in place of its id: lower-case letters, digits and -',
    parse: reservationName,
  },
  description: {
    flags: '--description <text>',
    help: "what it is for, up to 200 characters; '' for nothing",
  },
} as const satisfies Record<ReservationText, OptionDeclaration>;

/** Checks the form of a name. */
function reservationName(text: string): string {
  if (RESERVATION_NAME.test(text)) return text;
  throw new RangeError('It must be 1 to 64 of a to z, 0 to 9 and -, a letter first.');
}
