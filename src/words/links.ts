import type { AskedRoute, Reservation, RouteFault } from '../contract/reservation.ts';

/** A pair of sites that a link connects; a link has no direction. */
interface Ends {
  site1: string;
  site2: string;
}

/**
 * The name of a link for people: the same whichever of its sites was typed first, and the order in which a service
 * lists the two.
 *
 * @example linkName({ site1: 'se-kth', site2: 'be-gent1' }) // 'be-gent1 – se-kth'
 */
export function linkName({ site1, site2 }: Ends, between = ' – '): string {
  return site1 < site2 ? `${site1}${between}${site2}` : `${site2}${between}${site1}`;
}

/** The {@link linkName} of one link of a route. @param hop its two sites, in the order of the route */
export function hopName([site1 = '', site2 = '']: readonly string[]): string {
  return linkName({ site1, site2 });
}

/** The sites of a reservation's route, in the order of {@link linkName}. */
export function routeName({ site1, via = [], site2 }: Reservation): string {
  const sites = [site1, ...via, site2];
  return (site1 < site2 ? sites : sites.reverse()).join(' – ');
}

/** The sites between a reservation's ends, in the order of {@link linkName}; empty where there are none. */
export function viaName({ site1, via = [], site2 }: Pick<Reservation, 'site1' | 'via' | 'site2'>): string {
  return (site1 < site2 ? via : via.toReversed()).join(', ');
}

/** The sites of {@link viaName} as an aside in a sentence, such as ` via a, b`; empty where there are none. */
export function viaAside(reservation: Parameters<typeof viaName>[0], before = ' '): string {
  return reservation.via ? `${before}via ${viaName(reservation)}` : '';
}

/** One end of a reservation, with its tags. */
interface TaggedEnd {
  site: string;
  sTag: number;
  cTag: number;
}

/** Both ends of a reservation, in the order of {@link linkName}. */
export function linkEnds(reservation: Reservation): TaggedEnd[] {
  const { site1, site1_s_tag, site1_c_tag, site2, site2_s_tag, site2_c_tag } = reservation;
  const ends = [
    { site: site1, sTag: site1_s_tag, cTag: site1_c_tag },
    { site: site2, sTag: site2_s_tag, cTag: site2_c_tag },
  ];
  return site1 < site2 ? ends : ends.reverse();
}

/**
 * Why no route can be what is asked for, whatever the network; undefined where one can.
 *
 * @param named what people call a member: `via`, or `--via`
 * @example '--via and --avoid both name pl-poznan1.'
 */
export function contradictionText(
  { site1, site2, via = [], avoid = [], direct = false }: AskedRoute & { site1: string; site2: string },
  named: (member: keyof AskedRoute) => string = (member) => member,
): string | undefined {
  const isEnd = (site: string): boolean => site === site1 || site === site2;
  if (direct && via.length > 0) {
    return `${named('direct')} and ${named('via')} contradict each other: a direct link passes no site.`;
  }
  for (const [member, sites] of [
    ['via', via],
    ['avoid', avoid],
  ] as const) {
    const end = sites.find(isEnd);
    if (end !== undefined) return `${named(member)} names ${end}, which is one of the two ends.`;
  }
  const both = via.find((site) => avoid.includes(site));
  if (both !== undefined) return `${named('via')} and ${named('avoid')} both name ${both}.`;
  const twice = via.find((site, at) => via.indexOf(site) !== at);
  return twice && `${named('via')} names ${twice} twice, and a route passes a site once.`;
}

/** How a route is not what was asked for. @example 'It passes pl-poznan1, which was to be avoided.' */
export function routeFaultText(fault: RouteFault): string {
  if (fault.asked === 'direct') return 'It has several hops, and a direct link was asked for.';
  return fault.asked === 'avoid'
    ? `It passes ${fault.site}, which was to be avoided.`
    : `It does not pass ${fault.site}, or not in the order that was asked for.`;
}
