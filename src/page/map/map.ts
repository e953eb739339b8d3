import { formatBandwidth } from '../../contract/bandwidth.ts';
import { element as make, skipTo } from '../elements.ts';
import type { Link } from '../service.ts';
import { DOT, type Inset, layOut, type MapLayout, type MapSite, type Scene } from './layout.ts';
import { WORLD } from './projection.ts';

/** Options of {@link createMap}. */
export interface MapOptions {
  sites: readonly MapSite[];
  links: readonly Link[];
  /** Called when a link is chosen, by click or key. */
  onSelect(link: Link): void;
}

/** The network as a picture: sites, and links with their use now. */
export interface NetworkMap {
  readonly element: HTMLElement;
  /** Shows the share of each link that is in use, see `State`, and marks one link. */
  show(parts: { use: ReadonlyMap<Link, number | null>; selected?: Link }): void;
}

/** Links from this share on are drawn as busy, and from the second on as nearly full. */
const [BUSY, FULL] = [0.5, 0.8];

/** How many times as large the map can be drawn. */
const LARGEST = 8;

const HINT = 'Point at a link, or choose it, to see what it has.';

/** Makes the map. It is drawn when it has a width, and again whenever that changes. */
export function createMap({ sites, links, onSelect }: MapOptions): NetworkMap {
  const picture = svg('svg', { role: 'group', 'aria-label': 'Map of the network' });
  const readout = make('p', { class: 'map-readout', 'aria-hidden': 'true' });
  const element = make('div', { class: 'map' });
  const end = make('span', { id: 'after-map' });
  let width = 0;
  const zoom = createZoom(picture, (times) => {
    const layout = layOut(sites, links, width, textMeasure(element), times);
    draw(layout);
    return layout;
  });
  const line = make('div', { class: 'map-line' }, readout, zoom.tools);
  element.append(skipTo(end, 'Skip the map'), zoom.place, line, legend(), end);

  let use: ReadonlyMap<Link, number | null> = new Map();
  /** Each link is drawn on the map or in an inset, and where it leaves an inset in both. */
  let drawn = new Map<Link, SVGElement[]>();
  let selected: Link | null = null;
  /** Where the pointer or the keyboard is. */
  let pointed: Link | null = null;
  /** Links to sites without a place, as buttons below the map. */
  const listed = linkButtons({ sites, links, onSelect });

  const showUse = (link: Link): void => {
    const button = listed.get(link);
    if (button) button.textContent = nameOf(link, use.get(link) ?? null);
    for (const line of drawn.get(link) ?? []) {
      const share = use.get(link) ?? null;
      line.setAttribute('data-use', level(share));
      line.style.setProperty('--use', String(share ?? 0));
      if (line.hasAttribute('role')) line.setAttribute('aria-label', nameOf(link, share));
    }
    if (link === (pointed ?? selected)) say();
  };
  const showSelected = (): void => {
    for (const [link, button] of listed) button.setAttribute('aria-pressed', String(link === selected));
    for (const [link, lines] of drawn) {
      for (const line of lines) {
        if (line.hasAttribute('role')) line.setAttribute('aria-pressed', String(link === selected));
        line.classList.toggle('selected', link === selected);
      }
    }
    say();
  };
  const say = (): void => {
    const link = pointed ?? selected;
    const what = link === selected ? 'Chosen: ' : '';
    readout.textContent = link ? what + nameOf(link, use.get(link) ?? null) : HINT;
  };

  /** A link's line. Where it is drawn twice, keys and screen readers meet it once. */
  function drawLink(link: Link, at: Scene['at']): SVGElement[] {
    const [from, to] = [at.get(link.site1), at.get(link.site2)];
    if (!from || !to) return [];
    const line = linkLine(from, to);
    const lines = drawn.get(link) ?? [];
    drawn.set(link, [...lines, line]);
    const choose = () => onSelect(link);
    line.addEventListener('click', choose);
    if (lines.length === 0) {
      makeButton(line, choose);
    } else {
      line.setAttribute('aria-hidden', 'true');
    }
    const mark = (on: boolean) => () => {
      for (const each of drawn.get(link) ?? []) each.classList.toggle('pointed', on);
      pointed = on ? link : null;
      say();
    };
    followPointing(line, lines.length === 0, mark);
    return [line];
  }

  function drawScene(scene: Scene): SVGElement[] {
    return [
      ...landBehind(scene),
      ...scene.links.flatMap((link) => drawLink(link, scene.at)),
      svg('g', { class: 'map-sites', 'aria-hidden': 'true' }, ...siteMarks(scene)),
    ];
  }

  function draw(layout: MapLayout): void {
    const focused = [...drawn].find(([, lines]) => lines.some((line) => line === document.activeElement));
    drawn = new Map();
    picture.setAttribute('width', String(layout.width));
    picture.setAttribute('height', String(layout.height));
    picture.setAttribute('viewBox', `0 0 ${layout.width} ${layout.height}`);
    // The links of an inset come first, so that keys reach them where they can be seen best.
    const insets = layout.insets.map((inset) => drawInset(inset, drawScene(inset)));
    picture.replaceChildren(...drawScene(layout), ...insets);
    for (const link of links) showUse(link);
    showSelected();
    const again = focused ? drawn.get(focused[0])?.find((line) => line.hasAttribute('tabindex')) : undefined;
    again?.focus();
  }

  const missing = missingSites(sites);
  if (missing.length > 0) {
    for (const link of listed.keys()) showUse(link);
    end.before(elsewhere(missing, [...listed.values()]));
    showSelected();
  }

  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry?.contentRect.width ?? 0);
    if (now === width || now === 0) return;
    width = now;
    zoom.reset();
  }).observe(element);

  return {
    element,
    show(parts) {
      [use, selected] = [parts.use, parts.selected ?? null];
      for (const link of links) showUse(link);
      showSelected();
    },
  };
}

/**
 * The place in which a picture is scrolled, and buttons that draw it larger. What is in the middle stays there.
 *
 * @param drawAt draws it so many times as large
 */
function createZoom(picture: SVGElement, drawAt: (times: number) => MapLayout) {
  const place = make('div', { class: 'map-place' }, picture);
  let times = 1;
  const zoomTo = (next: number): void => {
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = place;
    const by = next / times;
    times = next;
    const { height } = drawAt(times);
    if (times === 1) place.style.height = `${height}px`;
    const [x, y] = [scrollLeft + clientWidth / 2, scrollTop + clientHeight / 2];
    place.scrollTo(x * by - clientWidth / 2, y * by - clientHeight / 2);
  };
  const button = (text: string, label: string, by: number): HTMLElement => {
    const onclick = (): void => zoomTo(Math.min(LARGEST, Math.max(1, times * by)));
    return make('button', { type: 'button', class: 'quiet', 'aria-label': label, onclick }, text);
  };
  const tools = make('span', {}, button('−', 'Shrink the map', 0.5), button('+', 'Enlarge the map', 2));
  return { place, tools, reset: () => zoomTo(1) };
}

/** The sites without a place; none where no site has one. */
function missingSites(sites: readonly MapSite[]): readonly MapSite[] {
  return sites.some(({ place }) => place) ? sites.filter(({ place }) => !place) : [];
}

/** A button for each link that the map can't draw, since one of its sites is missing there. */
function linkButtons({ sites, links, onSelect }: MapOptions): Map<Link, HTMLButtonElement> {
  const buttons = new Map<Link, HTMLButtonElement>();
  if (missingSites(sites).length === 0) return buttons;
  const placed = new Set(sites.flatMap(({ name, place }) => (place ? [name] : [])));
  for (const link of links.filter(({ site1, site2 }) => !placed.has(site1) || !placed.has(site2))) {
    const button = document.createElement('button');
    button.type = 'button';
    button.addEventListener('click', () => onSelect(link));
    buttons.set(link, button);
  }
  return buttons;
}

/** What is not on the map, in words and as buttons. */
function elsewhere(missing: readonly MapSite[], buttons: readonly HTMLButtonElement[]): HTMLElement {
  const line = document.createElement('p');
  line.className = 'map-elsewhere';
  line.append(`Not on the map: ${missing.map(({ name }) => name).join(', ')}. `);
  for (const button of buttons) line.append(button, ' ');
  return line;
}

/** The drawing of a link: a wide line to point at, the link itself, and its use. */
function linkLine(from: { x: number; y: number }, to: { x: number; y: number }): SVGGElement {
  const ends = { x1: from.x, y1: from.y, x2: to.x, y2: to.y };
  return svg(
    'g',
    { class: 'map-link' },
    svg('line', { class: 'hit', ...ends }),
    svg('line', { class: 'mark', ...ends }),
    svg('line', { class: 'use', ...ends }),
  );
}

/** Lets keys and screen readers meet a line as a button. */
function makeButton(line: SVGElement, choose: () => void): void {
  line.setAttribute('role', 'button');
  line.setAttribute('tabindex', '0');
  line.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    choose();
  });
}

/** Marks a link while the pointer is at its line, or the focus where keys reach it. */
function followPointing(line: SVGElement, hasKeys: boolean, mark: (on: boolean) => () => void): void {
  // Chromium lets keys reach whatever in a picture listens for the focus.
  for (const name of hasKeys ? ['pointerenter', 'focus'] : ['pointerenter']) {
    line.addEventListener(name, mark(true));
  }
  for (const name of hasKeys ? ['pointerleave', 'blur'] : ['pointerleave']) {
    line.addEventListener(name, mark(false));
  }
}

/** The dots of a scene's sites, with their names. */
function siteMarks(scene: Scene): SVGElement[] {
  return scene.sites.flatMap((name) => {
    const point = scene.at.get(name);
    if (!point) return [];
    const dot = svg('circle', { cx: point.x, cy: point.y, r: DOT }, svg('title', {}, name));
    const label = scene.labels.get(name);
    if (!label) return [dot];
    const middle = { x: label.x + label.width / 2, y: label.y + label.height / 2 };
    const leader = svg('line', { class: 'leader', x1: point.x, y1: point.y, x2: middle.x, y2: middle.y });
    const text = svg('text', { ...middle, 'text-anchor': 'middle', dy: '.35em' }, name);
    return label.leader ? [leader, dot, text] : [dot, text];
  });
}

/** A link in words, such as `be-gent1 – pl-poznan1, 3 of 100 Gbps in use`. */
function nameOf({ site1, site2, bandwidth }: Link, share: number | null): string {
  const between = `${site1} – ${site2}`;
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

/** What the lines mean; screen readers hear it with each link. */
function legend(): HTMLElement {
  const list = document.createElement('p');
  list.className = 'map-legend';
  list.setAttribute('aria-hidden', 'true');
  list.append('In use now:');
  const entries = [
    ['none', 0, 'nothing'],
    ['some', 0.25, `up to ${BUSY * 100} %`],
    ['busy', 0.65, `up to ${FULL * 100} %`],
    ['full', 1, 'more'],
  ] as const;
  for (const [kind, share, words] of entries) {
    const line = svg('line', { class: 'use', x1: 2, y1: 6, x2: 22, y2: 6 });
    const sample = svg('g', { class: 'map-link', 'data-use': kind }, line);
    sample.style.setProperty('--use', String(share));
    const entry = document.createElement('span');
    entry.append(svg('svg', { width: 24, height: 12 }, sample), words);
    list.append(entry);
  }
  return list;
}

/** The sites' own width of text; the picture is laid out in pixels, so that names are as large as other text. */
function textMeasure(element: HTMLElement): (text: string) => number {
  const context = document.createElement('canvas').getContext('2d');
  const { fontFamily } = getComputedStyle(element);
  if (context) context.font = `600 12.5px ${fontFamily}`;
  return (text) => Math.ceil(context?.measureText(text).width ?? text.length * 8) + 4;
}

interface Land {
  land: string;
  borders: string;
}

/** Asked for once; a map without land is still a map. */
let land: Promise<Land | null> | undefined;
function loadLand(): Promise<Land | null> {
  land ??= fetch(new URL('land.json', import.meta.url))
    .then((reply) => (reply.ok ? reply.json() : null))
    .catch(() => null);
  return land;
}

/** Land fills in when it has come. It is drawn once more beyond 180°, where a map can go on. */
function landBehind({ land: placed }: Scene): SVGElement[] {
  if (!placed) return [];
  const { x, y, scale } = placed;
  const group = svg('g', {
    class: 'map-land',
    'aria-hidden': 'true',
    transform: `translate(${x} ${y}) scale(${scale})`,
  });
  void loadLand().then((paths) => {
    if (!paths) return;
    for (const turn of [0, WORLD]) {
      const transform = `translate(${turn} 0)`;
      group.append(
        svg('path', { d: paths.land, class: 'land', transform }),
        svg('path', { d: paths.borders, class: 'borders', transform }),
      );
    }
  });
  return [group];
}

/** The frame of an inset, what it shows, and where that is on the map. */
function drawInset(inset: Inset, content: readonly SVGElement[]): SVGElement {
  const { x, y, width, height, of } = inset;
  const frame = { x, y, width, height };
  return svg(
    'g',
    { class: 'map-inset' },
    svg('rect', { class: 'of', x: of.x, y: of.y, width: of.width, height: of.height }),
    ...beams(of, inset).map((ends) => svg('line', { class: 'beam', ...ends })),
    svg(
      'svg',
      { ...frame, viewBox: `${x} ${y} ${width} ${height}` },
      svg('rect', { class: 'sea', ...frame }),
      ...content,
    ),
    svg('rect', { class: 'frame', ...frame }),
  );
}

/** The two lines from the part on the map to its inset: between the corners that both can see. */
function beams(of: Scene | Inset['of'], to: Inset['of']) {
  const corners = ({ x, y, width, height }: Inset['of']) => [
    { x, y },
    { x: x + width, y },
    { x: x + width, y: y + height },
    { x, y: y + height },
  ];
  const middle = {
    x: to.x + to.width / 2 - of.x - of.width / 2,
    y: to.y + to.height / 2 - of.y - of.height / 2,
  };
  const [from, until] = [corners(of), corners(to)];
  // The outermost corners, seen along the way from one middle to the other.
  const side = (corner: { x: number; y: number }) =>
    (corner.x - of.x - of.width / 2) * middle.y - (corner.y - of.y - of.height / 2) * middle.x;
  const outer = [...from.keys()].toSorted((one, other) => side(from[one] ?? of) - side(from[other] ?? of));
  return [outer[0], outer.at(-1)].flatMap((index) => {
    const [start, end] = [from[index ?? 0], until[index ?? 0]];
    return start && end ? [{ x1: start.x, y1: start.y, x2: end.x, y2: end.y }] : [];
  });
}

type Content = SVGElement | string;

/** An element of SVG. */
function svg<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string | number>>,
  ...content: readonly Content[]
): SVGElementTagNameMap[Name] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...content);
  return element;
}
