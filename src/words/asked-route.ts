import type { AskedRoute, RouteFault } from '../contract/asked-route.ts';

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
