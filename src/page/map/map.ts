import { element as make, setText, skipTo } from '../elements.ts';
import type { Link } from '../service.ts';
import type { Selected } from '../state.ts';
import { type Inset, layOut, type MapLayout, type MapSite, type Scene } from './layout.ts';
import {
  BUSY,
  FULL,
  followPointing,
  linkLine,
  type MapView,
  makeButton,
  pointedRoute,
  readoutText,
  showMark,
  siteMark,
  svg,
  type Target,
  targetsOf,
  withSite,
} from './marks.ts';
import { type Land, WORLD } from './projection.ts';
import { createZoom } from './zoom.ts';

/** Options of {@link createMap}. */
export interface MapOptions {
  sites: readonly MapSite[];
  links: readonly Link[];
  /** Called when a link or a site is chosen, by click or key: with both ends of a link, or with one more site than before. */
  onSelect(selected: Selected): void;
}

/** The network as a picture: sites, and links with their use now. */
export interface NetworkMap {
  readonly element: HTMLElement;
  /** Shows the state. */
  show(view: MapView): void;
}

/** Makes the map. It is drawn when it has a width, and again whenever that changes. */
export function createMap({ sites, links, onSelect }: MapOptions): NetworkMap {
  const picture = svg('svg', {
    role: 'group',
    'aria-label': 'Map of the network: choose two sites, or a link',
  });
  const readout = make('p', { class: 'map-readout', 'aria-hidden': 'true' });
  const spoken = make('p', { class: 'spoken', role: 'status' });
  const element = make('div', { class: 'map' });
  const end = make('span', { id: 'after-map' });
  let width = 0;
  const zoom = createZoom(
    picture,
    (times) => {
      const layout = layOut(sites, links, width, textMeasure(element), times);
      draw(layout);
      return layout;
    },
    () => view.route?.sites ?? [view.selected?.site1 ?? ''],
  );
  const line = make('div', { class: 'map-line' }, readout, zoom.tools);
  element.append(skipTo(end, 'Skip the map'), zoom.place, line, legend(), spoken, end);

  let view: MapView = { use: new Map() };
  /** Each is drawn on the map or in an inset, and what is in both, twice. */
  let drawn = new Map<Target, SVGElement[]>();
  /** Where the pointer or the keyboard is. */
  let pointed: Target | undefined;
  const choose = (target: Target) => (): void => {
    if (typeof target === 'string') onSelect(withSite(view.selected, target));
    else onSelect({ site1: target.site1, site2: target.site2 });
  };
  /** Buttons below the map, for sites and links without a place on it. */
  const listed = new Map(
    missingTargets({ sites, links }).map((target) => [
      target,
      make('button', { type: 'button', onclick: choose(target) }),
    ]),
  );

  function show(): void {
    const hinted = pointedRoute(view, pointed, links);
    const facts = {
      ...{ ...view, pointed, hinted, links },
      ...{ onRoute: targetsOf(links, view.route), onHint: targetsOf(links, hinted) },
    };
    for (const [target, marks] of drawn) for (const mark of marks) showMark(mark, target, facts);
    for (const [target, button] of listed) showMark(button, target, facts);
    setText(readout, readoutText(facts));
    const first = view.selected?.site2 === '' ? view.selected.site1 : '';
    setText(spoken, first === '' ? '' : `${first} is chosen. Choose another site.`);
  }

  /** Makes a drawing what can be chosen. What is drawn twice, keys and screen readers meet once. */
  function button<Mark extends SVGElement>(target: Target, mark: Mark): Mark {
    const marks = drawn.get(target) ?? [];
    drawn.set(target, [...marks, mark]);
    mark.addEventListener('click', choose(target));
    if (marks.length === 0) makeButton(mark, choose(target));
    else mark.ariaHidden = 'true';
    followPointing(mark, marks.length === 0, (isOn) => () => {
      pointed = isOn ? target : undefined;
      show();
    });
    return mark;
  }

  function drawScene(scene: Scene, behind: readonly SVGElement[] = []): SVGElement[] {
    return [
      ...landBehind(scene),
      ...behind,
      ...scene.links.flatMap((link) => linkLine(link, scene.at).map((line) => button(link, line))),
      ...scene.sites.flatMap((site) => siteMark(site, scene).map((mark) => button(site, mark))),
    ];
  }

  function draw(layout: MapLayout): void {
    const focused = [...drawn].find(([, marks]) => marks.some((mark) => mark === document.activeElement));
    drawn = new Map();
    picture.setAttribute('width', String(layout.width));
    picture.setAttribute('height', String(layout.height));
    picture.setAttribute('viewBox', `0 0 ${layout.width} ${layout.height}`);
    // What is in an inset comes first, so that keys reach it where it can be seen best.
    const insets = layout.insets.map((inset) => drawInset(inset, drawScene(inset)));
    const beams = layout.insets.flatMap((inset) => beamsTo(inset));
    picture.replaceChildren(...drawScene(layout, beams), ...insets);
    show();
    const again = focused ? drawn.get(focused[0])?.find((mark) => mark.hasAttribute('tabindex')) : undefined;
    again?.focus();
  }

  if (listed.size > 0)
    end.before(
      make(
        'p',
        { class: 'map-elsewhere' },
        'Not on the map: ',
        ...[...listed.values()].flatMap((one) => [one, ' ']),
      ),
    );
  show();
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry?.contentRect.width ?? 0);
    if (now === width || now === 0) return;
    width = now;
    zoom.reset();
  }).observe(element);

  return {
    element,
    show(next) {
      view = next;
      show();
    },
  };
}

/** The sites without a place, and their links; nothing where no site has one. */
function missingTargets({ sites, links }: Pick<MapOptions, 'sites' | 'links'>): Target[] {
  const missing = sites.flatMap(({ name, place }) => (place ? [] : [name]));
  if (missing.length === sites.length) return [];
  return [
    ...missing,
    ...links.filter(({ site1, site2 }) => missing.includes(site1) || missing.includes(site2)),
  ];
}

/** The meaning of the lines' colours; screen readers hear it with each link. */
function legend(): HTMLElement {
  const entries = [
    ['none', 0, 'nothing'],
    ['some', 0.25, `up to ${BUSY * 100} %`],
    ['busy', 0.65, `up to ${FULL * 100} %`],
    ['full', 1, 'more'],
  ] as const;
  const samples = entries.map(([kind, share, words]) => {
    const line = svg('line', { class: 'use', x1: 2, y1: 6, x2: 22, y2: 6 });
    const sample = svg('g', { class: 'map-link', 'data-use': kind }, line);
    sample.style.setProperty('--use', String(share));
    return make('span', {}, svg('svg', { width: 24, height: 12 }, sample), words);
  });
  return make('p', { class: 'map-legend', 'aria-hidden': 'true' }, 'In use now:', ...samples);
}

/** The sites' own width of text; the picture is laid out in pixels, so that names are as large as other text. */
function textMeasure(element: HTMLElement): (text: string) => number {
  const context = document.createElement('canvas').getContext('2d');
  const { fontFamily } = getComputedStyle(element);
  if (context) context.font = `600 12.5px ${fontFamily}`;
  return (text) => Math.ceil(context?.measureText(text).width ?? text.length * 8) + 4;
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
    svg(
      'svg',
      { ...frame, viewBox: `${x} ${y} ${width} ${height}` },
      svg('rect', { class: 'sea', ...frame }),
      ...content,
    ),
    svg('rect', { class: 'frame', ...frame }),
  );
}

/** The two lines to an inset from its part on the map: between the corners that both can see. They lie behind the names. */
function beamsTo({ of, ...to }: Inset): SVGElement[] {
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
    return start && end
      ? [svg('line', { class: 'beam', x1: start.x, y1: start.y, x2: end.x, y2: end.y })]
      : [];
  });
}
