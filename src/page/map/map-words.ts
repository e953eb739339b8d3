import { formatBandwidth } from '../../contract/amounts.ts';
import { linkName } from '../../words/links.ts';
import { linkBetween, type Route, routeText } from '../route.ts';
import type { Link } from '../service.ts';
import type { Selected } from '../state.ts';
import type { Dot } from './layout.ts';

/** Links from this share of use on are drawn as busy, and from the second on as nearly full. */
export const [BUSY, FULL] = [0.5, 0.8];

/** How much of a link is in use, as it is drawn. */
export type Level = 'unknown' | 'none' | 'some' | 'busy' | 'full';

/** The share of each link that is in use, 0 to 1; null where it is not known. */
export type Use = ReadonlyMap<Link, number | null>;

/** The level of a share of use. */
export function levelOf(share: number | null): Level {
  if (share === null) return 'unknown';
  return share <= 0 ? 'none' : share < BUSY ? 'some' : share < FULL ? 'busy' : 'full';
}

/** The sites that are selected once one more is chosen. Chosen again, the first one is not. */
export function withSite(selected: Selected | undefined, site: string): Selected {
  if (!selected?.site1 || selected.site2 !== '') return { site1: site, site2: '' };
  return selected.site1 === site ? { site1: '', site2: '' } : { site1: selected.site1, site2: site };
}

/** A link in words, such as `be-gent1 – pl-poznan1, 3 of 100 Gbps in use`. */
export function linkText(link: Link, share: number | null): string {
  const { bandwidth } = link;
  const capacity = formatBandwidth(bandwidth);
  if (share === null) return `${linkName(link)}, ${capacity}`;
  // `0.25 of 1 Gbps`: one unit for both, rounded as people say it.
  const amount = Math.round(share * bandwidth) / (bandwidth >= 1000 ? 1000 : 1);
  return `${linkName(link)}, ${Number(amount.toPrecision(3))} of ${capacity} in use`;
}

const LIST = new Intl.ListFormat('en-GB');

/** A dot in words: the name of its site, or of all that lie together. */
export function dotText({ sites }: Dot): string {
  return sites.length === 1 ? (sites[0] ?? '') : `${sites.length} sites: ${LIST.format(sites)}`;
}

/** The facts that the line beside the map says. */
export interface Pointing {
  use: Use;
  selected: Selected | undefined;
  /** Between the sites that are selected. */
  route: Route | undefined;
  /** Where the pointer or the keyboard is. */
  pointed: Link | Dot | undefined;
  /** The route from the site that is chosen to there. */
  hinted: Route | undefined;
  links: readonly Link[];
}

/** The line beside the map: of where the pointer is, or of what is selected. */
export function readoutText({ use, selected, route, pointed, hinted, links }: Pointing): string {
  if (hinted) return routeSentence(hinted);
  const ends = { site1: '', site2: '', ...selected };
  const link = linkBetween(links, ends);
  if (pointed && 'site1' in pointed)
    return (pointed === link ? 'Chosen: ' : '') + linkText(pointed, use.get(pointed) ?? null);
  if (pointed && !(pointed.sites.length === 1 && [ends.site1, ends.site2].includes(pointed.sites[0] ?? '')))
    return dotText(pointed);
  if (ends.site1 === '') return 'Choose two sites, or a link, to see the way between them.';
  if (ends.site2 === '') return `Chosen: ${ends.site1}. Choose another site.`;
  if (link && route?.sites.length === 2) return `Chosen: ${linkText(link, use.get(link) ?? null)}`;
  return `Chosen: ${route ? routeSentence(route) : routeText([ends.site1, ends.site2])}`;
}

function routeSentence({ sites, bandwidth }: Route): string {
  return `${routeText(sites)}, ${formatBandwidth(bandwidth)} at most`;
}
