/** The wishes for the route of a reservation: extensions (contract/README.md, "Extensions"). Absent members wish nothing. */
export interface AskedRoute {
  /** The sites that it passes, in this order from `site1` on. */
  via?: string[];
  /** The sites that it does not pass. */
  avoid?: string[];
  /** Whether one link must connect the two sites. */
  direct?: boolean;
}

/** The members about the route alone. */
export function askedRouteOf({ via, avoid, direct }: AskedRoute): AskedRoute {
  return { via, avoid, direct };
}

/** Whether anything is asked of a route. */
export function asksForRoute({ via = [], avoid = [], direct = false }: AskedRoute): boolean {
  return direct || via.length + avoid.length > 0;
}

/** Whether two requests ask the same of their routes. */
export function isSameRoute(one: AskedRoute, other: AskedRoute): boolean {
  const told = ({ via = [], avoid = [], direct = false }: AskedRoute): string =>
    JSON.stringify([via, avoid, direct]);
  return told(one) === told(other);
}

/** How a route is not what was asked for: a site that it must pass and does not, or passes and must not; or it has several hops. */
export type RouteFault = { asked: 'via' | 'avoid'; site: string } | { asked: 'direct' };

/**
 * The first way in which a reservation's route is not what was asked for; undefined where it is.
 *
 * @param asked its sites may be named in either order: `via` is from its `site1` on
 */
export function routeFault(
  reservation: { site1: string; via?: readonly string[] },
  asked: AskedRoute & { site1: string },
): RouteFault | undefined {
  const { via: passed = [], site1 } = reservation;
  const rest = site1 === asked.site1 ? [...passed] : passed.toReversed();
  if (asked.direct && passed.length > 0) return { asked: 'direct' };
  const avoided = asked.avoid?.find((site) => passed.includes(site));
  if (avoided !== undefined) return { asked: 'avoid', site: avoided };
  for (const site of asked.via ?? []) {
    const at = rest.indexOf(site);
    if (at === -1) return { asked: 'via', site };
    rest.splice(0, at + 1);
  }
  return undefined;
}
