import { formatBandwidth } from '../../contract/amounts.ts';
import { linkName } from '../../words/links.ts';
import { setText } from '../elements.ts';
import { hopsOf, isSamePair, linkBetween, type Route, routeBetween, routeText } from '../route.ts';
import type { Link } from '../service.ts';
import type { Selected } from '../state.ts';
import { DOT, type Scene } from './layout.ts';

/** The parts of the state that the map shows. */
export interface MapView {
  /** The share of each link that is in use, see `State`. */
  use: ReadonlyMap<Link, number | null>;
  selected?: Selected;
  /** Between the sites that are selected. */
  route?: Route;
}

/** A choice on the map: a link, or a site by its name. */
export type Target = Link | string;

/** The facts that a mark shows. */
export interface MarkFacts extends MapView {
  /** Where the pointer or the keyboard is. */
  pointed: Target | undefined;
  /** The route to there, where one site is chosen. */
  hinted: Route | undefined;
  /** The targets on the two routes. */
  onRoute: ReadonlySet<Target>;
  onHint: ReadonlySet<Target>;
  links: readonly Link[];
}

/** The sites and links of a route, if any. */
export function targetsOf(links: readonly Link[], route: Route | undefined): ReadonlySet<Target> {
  return new Set(route && [...route.sites, ...hopsOf(links, route.sites)]);
}

/** Links from this share on are drawn as busy, and from the second on as nearly full. */
export const [BUSY, FULL] = [0.5, 0.8];

/** How far from a dot it is meant, in pixels. */
const REACH = 12;

const HINT = 'Choose two sites, or a link, to see the way between them.';

/** The sites that are selected once one more is chosen. Chosen again, the first one is not. */
export function withSite(selected: Selected | undefined, site: string): Selected {
  if (!selected?.site1 || selected.site2 !== '') return { site1: site, site2: '' };
  return selected.site1 === site ? { site1: '', site2: '' } : { site1: selected.site1, site2: site };
}

/** The route from the site that is chosen to the one at which the pointer is. */
export function pointedRoute(
  { selected }: MapView,
  pointed: Target | undefined,
  links: readonly Link[],
): Route | undefined {
  if (typeof pointed !== 'string' || !selected?.site1 || selected.site2 !== '') return undefined;
  return routeBetween(links, { site1: selected.site1, site2: pointed });
}

/** Shows the state at a mark, or at a button below the map. */
export function showMark(mark: HTMLElement | SVGElement, target: Target, facts: MarkFacts): void {
  const { selected, pointed, onRoute, onHint, use } = facts;
  const isSite = typeof target === 'string';
  const isEnd = isSite && (target === selected?.site1 || target === selected?.site2);
  const isChosen = isSite ? isEnd : selected !== undefined && isSamePair(target, selected);
  mark.classList.toggle('selected', isEnd || onRoute.has(target));
  mark.classList.toggle('end', isEnd);
  mark.classList.toggle('pointed', target === pointed || onHint.has(target));
  const share = isSite ? null : (use.get(target) ?? null);
  if (!isSite && mark instanceof SVGElement) {
    mark.setAttribute('data-use', level(share));
    mark.style.setProperty('--use', String(share ?? 0));
  }
  if (mark.ariaHidden === 'true') return;
  mark.ariaPressed = `${isChosen}`;
  const name = isSite ? target : nameOf(target, share);
  if (mark instanceof HTMLElement) setText(mark, name);
  else mark.ariaLabel = name;
}

/** The line below the map: of where the pointer is, or of what is selected. */
export function readoutText({ use, selected, route, pointed, hinted, links }: MarkFacts): string {
  if (hinted) return routeSentence(hinted);
  const ends = { site1: '', site2: '', ...selected };
  const link = linkBetween(links, ends);
  if (typeof pointed === 'object')
    return (pointed === link ? 'Chosen: ' : '') + nameOf(pointed, use.get(pointed) ?? null);
  if (pointed !== undefined && pointed !== ends.site1 && pointed !== ends.site2) return pointed;
  if (ends.site1 === '') return HINT;
  if (ends.site2 === '') return `Chosen: ${ends.site1}. Choose another site.`;
  if (link && route?.sites.length === 2) return `Chosen: ${nameOf(link, use.get(link) ?? null)}`;
  return `Chosen: ${route ? routeSentence(route) : routeText([ends.site1, ends.site2])}`;
}

function routeSentence({ sites, bandwidth }: Route): string {
  return `${routeText(sites)}, ${formatBandwidth(bandwidth)} at most`;
}

/** The drawing of a link: a wide line to point at, the link itself, and its use. None where it has no ends. */
export function linkLine({ site1, site2 }: Link, at: Scene['at']): SVGGElement[] {
  const [from, to] = [at.get(site1), at.get(site2)];
  if (!from || !to) return [];
  const ends = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
  const lines = ['hit', 'mark', 'use'].map((name) => svg('line', { class: name, ...ends }));
  return [svg('g', { class: 'map-link' }, ...lines)];
}

/** The dot of a site, with its name where there is room, and a wide one to point at. */
export function siteMark(name: string, scene: Scene): SVGGElement[] {
  const point = scene.at.get(name);
  if (!point) return [];
  const [cx, cy] = [point.x, point.y];
  const dots = [svg('circle', { class: 'hit', cx, cy, r: REACH }), svg('circle', { cx, cy, r: DOT })];
  const label = scene.labels.get(name);
  if (!label) return [svg('g', { class: 'map-site' }, ...dots, svg('title', {}, name))];
  const middle = { x: label.x + label.width / 2, y: label.y + label.height / 2 };
  const leader = svg('line', { class: 'leader', x1: cx, y1: cy, x2: middle.x, y2: middle.y });
  // From the dot to all of its name: its middle too, which some programs click in place of a person.
  const [x, y] = [Math.min(cx, label.x), Math.min(cy, label.y)];
  const width = Math.max(cx, label.x + label.width) - x;
  const reach = svg('rect', { class: 'hit', x, y, width, height: Math.max(cy, label.y + label.height) - y });
  const text = svg('text', { ...middle, 'text-anchor': 'middle', dy: '.35em' }, name);
  return [svg('g', { class: 'map-site' }, reach, ...(label.leader ? [leader] : []), ...dots, text)];
}

/** Lets keys and screen readers meet a drawing as a button. */
export function makeButton(mark: SVGElement, choose: () => void): void {
  mark.setAttribute('role', 'button');
  mark.setAttribute('tabindex', '0');
  mark.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    choose();
  });
}

/** Marks what is drawn while the pointer is at it, or the focus where keys reach it. */
export function followPointing(
  drawing: SVGElement,
  hasKeys: boolean,
  mark: (on: boolean) => () => void,
): void {
  // Chromium lets keys reach whatever in a picture listens for the focus.
  for (const name of hasKeys ? ['pointerenter', 'focus'] : ['pointerenter']) {
    drawing.addEventListener(name, mark(true));
  }
  for (const name of hasKeys ? ['pointerleave', 'blur'] : ['pointerleave']) {
    drawing.addEventListener(name, mark(false));
  }
}

/** A link in words, such as `be-gent1 – pl-poznan1, 3 of 100 Gbps in use`. */
function nameOf(link: Link, share: number | null): string {
  const { bandwidth } = link;
  const between = linkName(link);
  if (share === null) return `${between}, ${formatBandwidth(bandwidth)}`;
  const [inUse, capacity] = [Math.round(share * bandwidth), formatBandwidth(bandwidth)];
  const unit = bandwidth >= 1000 ? 1000 : 1;
  // `0.25 of 1 Gbps`: one unit for both, rounded as people say it.
  const amount = Number((inUse / unit).toPrecision(3));
  return `${between}, ${amount} of ${capacity} in use`;
}

function level(share: number | null): string {
  if (share === null) return 'unknown';
  return share <= 0 ? 'none' : share < BUSY ? 'some' : share < FULL ? 'busy' : 'full';
}

type Content = SVGElement | string;

/** An element of SVG. */
export function svg<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string | number>>,
  ...content: readonly Content[]
): SVGElementTagNameMap[Name] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...content);
  return element;
}
