import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { MINUTE } from '../../contract/durations.ts';
import { linkName } from '../../words/links.ts';
import { picked } from '../draft.ts';
import type { Page } from '../page-props.ts';
import { hopsOf, isSamePair, type Route, routeBetween } from '../route.ts';
import type { Link, NetworkFacts } from '../service.ts';
import { useShown } from '../signals.ts';
import { SkipLink } from '../skip-link.tsx';
import { routeParts, type Selected, type State, shownRoute, useAt } from '../state.ts';
import { remembered } from '../store.ts';
import { type Dot, ends, layOut, type MapLayout, type MapRoom, timesToOpen } from './layout.ts';
import { BUSY, FULL, levelOf, type Pointing, readoutText, withSite } from './map-words.ts';
import { DotMark, HIDDEN, LinkMark, type MarkProps, RouteMark } from './marks.tsx';
import { type Land, WORLD } from './projection.ts';
import { useZoom } from './zoom.ts';

const routeNow = remembered(routeParts, shownRoute);
const useNow = remembered(
  ({ use, network, now }: State) => ({ use, network, at: now - (now % MINUTE) }),
  ({ at, ...known }) => useAt(at, known),
);

/** The network as a picture: sites, and links with their use now. Two sites, or a link, are chosen on it. */
export function NetworkMap({ page, network }: { page: Page; network: NetworkFacts }) {
  const { sites, links } = network;
  const shown = useShown(page, (state) => ({
    ...{ use: useNow(state), selected: state.selected, route: routeNow(state) },
  }));
  const { use, selected, route } = shown;
  const place = useRef<HTMLDivElement>(null);
  const size = useSize(place);
  const [pointed, setPointed] = useState<Link | Dot>();
  const drawn = useRef<MapLayout>(undefined);
  const zoom = useZoom(place, () => middleOf(drawn.current, route?.sites ?? [selected?.site1 ?? '']));
  const { times, zoomTo } = zoom;
  const room = size && { ...size, times };
  const layout = useMemo(() => room && layOut(sites, links, room), [sites, links, size, times]);
  drawn.current = layout;

  // Where the keyboard has come to another one meanwhile, that stays.
  const point = (target: Link | Dot, isThere: boolean): void =>
    setPointed((before) => (isThere ? target : before === target ? undefined : before));
  const select = (next: Selected): void => {
    page.begin();
    page.pick(next, picked(page.store.state.draft, next));
  };
  const choose = (target: Link | Dot): void => {
    if ('site1' in target) select({ site1: target.site1, site2: target.site2 });
    else if (target.sites.length === 1) select(withSite(selected, target.sites[0] ?? ''));
    else if (room) open(target, room);
  };
  /** Enlarges the map until the sites of a dot lie apart; the focus goes to the first of them. */
  const open = (dot: Dot, from: MapRoom): void => {
    setPointed(undefined);
    zoomTo(timesToOpen(sites, dot, from), undefined, () => middleOf(drawn.current, dot.sites));
    const first = [...(place.current?.querySelectorAll<SVGElement>('[data-site]') ?? [])];
    first.find((mark) => mark.dataset['site'] === dot.sites[0])?.focus({ preventScroll: true });
  };

  const hinted = pointedRoute({ ...shown, pointed, links });
  const pointing: Pointing = { ...shown, pointed, hinted, links };
  const zoomButton = (text: string, to: number, label?: string) => (
    <button type="button" class="quiet" aria-label={label} onClick={() => zoomTo(to)}>
      {text}
    </button>
  );
  const missing = sites.some(({ place: where }) => where) ? sites.filter(({ place: where }) => !where) : [];
  const first = selected?.site2 === '' ? selected.site1 : '';
  return (
    <div class="map">
      <SkipLink to="after-map">Skip the map</SkipLink>
      <div class={`map-place${times > 1 ? ' zoomed' : ''}`} ref={place} {...zoom.listeners}>
        {layout && <Picture {...{ ...pointing, layout, choose, point }} />}
      </div>
      <div class="map-side">
        <p class="map-readout" aria-hidden="true">
          {readoutText(pointing)}
        </p>
        {missing.length > 0 && (
          <p class="map-elsewhere">
            Not on the map:{' '}
            {missing.map(({ name }) => (
              <button
                key={name}
                type="button"
                class="quiet"
                aria-pressed={isEnd(name, selected)}
                onClick={() => select(withSite(selected, name))}
              >
                {name}
              </button>
            ))}
          </p>
        )}
        {[...use.values()].some((share) => share !== null) && <Legend />}
        <p class="map-tools">
          {zoomButton('+', times * 2, 'Enlarge the map')}
          {zoomButton('−', times / 2, 'Shrink the map')}
          {times > 1 && zoomButton('Whole map', 1)}
        </p>
      </div>
      <p class="spoken" role="status">
        {first !== '' && `${first} is chosen. Choose another site.`}
      </p>
      <span id="after-map" />
    </div>
  );
}

type PictureProps = Pointing & Pick<MarkProps<Link | Dot>, 'choose' | 'point'> & { layout: MapLayout };

function Picture({ layout, links, use, selected, route, pointed, hinted, choose, point }: PictureProps) {
  const { width, height, lines, dots, labels } = layout;
  const partsOf = (one: Route | undefined) => ({
    links: new Set(one && hopsOf(links, one.sites)),
    sites: new Set(one?.sites),
  });
  const [onRoute, onHint] = [partsOf(route), partsOf(hinted)];
  const does = { choose, point };
  return (
    <svg
      {...{ width, height, viewBox: `0 0 ${width} ${height}`, role: 'group' }}
      aria-label="Map of the network: choose two sites, or a link"
    >
      <LandBehind land={layout.land} />
      {lines.map((line) => (
        <LinkMark
          key={linkName(line.link)}
          {...{ line, ...does, share: use.get(line.link) ?? null }}
          isSelected={onRoute.links.has(line.link)}
          isPressed={selected !== undefined && isSamePair(line.link, selected)}
          isPointed={pointed === line.link || onHint.links.has(line.link)}
        />
      ))}
      <RouteMark kind="hinted" links={onHint.links} {...{ lines, use }} />
      <RouteMark kind="chosen" links={onRoute.links} {...{ lines, use }} />
      {dots.map((dot) => (
        <DotMark
          key={dot.sites.join(' ')}
          {...{ dot, ...does, label: labels.get(dot) }}
          isSelected={dot.sites.some((site) => isEnd(site, selected) || onRoute.sites.has(site))}
          isPressed={dot.sites.some((site) => isEnd(site, selected))}
          isPointed={pointed === dot || dot.sites.some((site) => onHint.sites.has(site))}
        />
      ))}
    </svg>
  );
}

function isEnd(site: string, selected: Selected | undefined): boolean {
  return site === selected?.site1 || site === selected?.site2;
}

/** The route from the site that is chosen to the one at which the pointer is. */
function pointedRoute({ selected, pointed, links }: Omit<Pointing, 'hinted'>): Route | undefined {
  if (!pointed || 'site1' in pointed || pointed.sites.length > 1) return undefined;
  if (!selected?.site1 || selected.site2 !== '') return undefined;
  return routeBetween(links, { site1: selected.site1, site2: pointed.sites[0] ?? '' });
}

/** The middle of the dots of some sites; undefined where none of them is on the map. */
function middleOf(layout: MapLayout | undefined, sites: readonly string[]) {
  const some = layout?.dots.filter((dot) => dot.sites.some((site) => sites.includes(site))) ?? [];
  if (some.length === 0) return undefined;
  const [[left, right], [top, bottom]] = [ends(some.map(({ x }) => x)), ends(some.map(({ y }) => y))];
  return { x: (left + right) / 2, y: (top + bottom) / 2 };
}

/** The meaning of the lines' widths and colours; readers of the screen hear it with each link. */
function Legend() {
  const entries = [
    [0, 'nothing'],
    [0.25, `up to ${BUSY * 100} %`],
    [0.65, `up to ${FULL * 100} %`],
    [1, `${FULL * 100} % or more`],
  ] as const;
  return (
    <p class="map-legend" aria-hidden="true">
      <span>In use now:</span>
      {entries.map(([share, words]) => (
        <span key={words}>
          <span class="map-sample" data-use={levelOf(share)} />
          {words}
        </span>
      ))}
    </p>
  );
}

/** The room of the map in its place; undefined until that is laid out. */
function useSize(place: { current: HTMLElement | null }): Omit<MapRoom, 'times'> | undefined {
  const [size, setSize] = useState<Omit<MapRoom, 'times'>>();
  useEffect(() => {
    const { current } = place;
    if (!current) return undefined;
    const observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = current;
      if (width > 0) setSize({ width, height, textWidth: textMeasure(current) });
    });
    observer.observe(current);
    return () => observer.disconnect();
  }, [place]);
  return size;
}

/** The width of a site's name; the picture is laid out in pixels, so that names are as large as other text. */
function textMeasure(element: HTMLElement): (text: string) => number {
  const context = document.createElement('canvas').getContext('2d');
  const { fontFamily } = getComputedStyle(element);
  if (context) context.font = `600 12px ${fontFamily}`;
  return (text) => Math.ceil(context?.measureText(text).width ?? text.length * 8) + 4;
}

/** Asked for once; a map without land is still a map. */
let loading: Promise<Land | null> | undefined;
function loadLand(): Promise<Land | null> {
  loading ??= fetch(new URL('land.json', import.meta.url))
    .then((reply) => (reply.ok ? reply.json() : null))
    .catch(() => null);
  return loading;
}

/** Land fills in when it has come. It is drawn once more beyond 180°, where a map can go on. */
function LandBehind({ land: placed }: Pick<MapLayout, 'land'>) {
  const [land, setLand] = useState<Land | null>(null);
  const isWanted = placed !== null;
  useEffect(() => {
    if (isWanted) void loadLand().then(setLand);
  }, [isWanted]);
  if (!placed || !land) return null;
  const { x, y, scale } = placed;
  return (
    <g {...HIDDEN} class="map-land" transform={`translate(${x} ${y}) scale(${scale})`}>
      {[0, WORLD].map((turn) => (
        <g key={turn} transform={`translate(${turn} 0)`}>
          <path class="land" d={land.land} />
          <path class="borders" d={land.borders} />
        </g>
      ))}
    </g>
  );
}
