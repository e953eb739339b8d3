import type { Point } from '../point.ts';
import type { Link } from '../service.ts';
import { candidates, isFree, type LabelBox, lengthIn, type Rect } from './labels.ts';
import { project, WORLD } from './projection.ts';

/** A site as the map gets it. */
export interface MapSite {
  name: string;
  place: readonly [longitude: number, latitude: number] | null;
}

/** The sites and links of one picture: the map itself, or an inset. */
export interface Scene extends Rect {
  /** Pixels a unit of the map has, and where the map's corner lies; null where no land is behind the sites. */
  land: { scale: number; x: number; y: number } | null;
  /** Where each site is; also those outside, since links lead to them. */
  at: ReadonlyMap<string, Point>;
  /** The sites that have a dot here. */
  sites: readonly string[];
  /** A site that is missing here has no room for its name. */
  labels: ReadonlyMap<string, LabelBox>;
  /** The links that are drawn here. */
  links: readonly Link[];
}

/** An enlarged part of the map, for sites that lie close together. */
export interface Inset extends Scene {
  /** The part, on the map. */
  of: Rect;
}

/** Where everything is. */
export interface MapLayout extends Scene {
  insets: readonly Inset[];
}

/** The radius of a site's dot. */
export const DOT = 5;

/** Dots whose centres are closer than this are drawn in an inset. */
const CLOSE = 20;
/** The closest that two dots come in an inset; they are pushed apart if they must. */
const APART = 30;
/** Around the sites, for half a name. */
const MARGIN = { x: 44, y: 30 };
/** Pixels of a unit of the map at most: land has no more detail to show. */
const LARGEST = { map: 3, inset: 24 };
/** Around an inset. */
const GAP = 8;
/** With more groups than these no inset is drawn. */
const MOST_INSETS = 3;
/** Insets for which the map is made higher, where it has no room for them. */
const MOST_BELOW = 2;
const LABEL_HEIGHT = 17;
/** How far around the sites an inset is rather not, in pixels. */
const BESIDE = 90;
/** A name that is closer to another dot than this seems to be its name. */
const NEAR = 16;
/** How far from the middle of an inset its sites can lie, as a share of its width. */
const SHIFTS = [0, -0.14, 0.14];

/**
 * Lays the map out: fitted to the sites that have a place, sites that lie close together enlarged in insets. Sites without
 * a place, and their links, are left out. Where no site has one, all stand in a ring.
 *
 * @param room how wide the picture is as a whole, in CSS pixels
 * @param textWidth of a site's name, in CSS pixels
 * @param zoom how many times as large it is drawn
 */
export function layOut(
  sites: readonly MapSite[],
  links: readonly Link[],
  room: number,
  textWidth: (text: string) => number,
  zoom = 1,
): MapLayout {
  const width = room * zoom;
  const placed = sites.filter(hasPlace);
  if (placed.length === 0) return ring(sites, links, width, textWidth);

  const { units, box } = fitted(placed);
  const height = Math.round(Math.min(Math.max(room * 0.5, 260), 420) * zoom);
  const scale = Math.min(
    (width - 2 * MARGIN.x) / (box.width || 1),
    (height - 2 * MARGIN.y) / (box.height || 1),
    LARGEST.map * zoom,
  );
  /** The sites in the middle, or so far beside it. */
  const placedAt = (beside: number) => {
    const land = {
      scale,
      x: width / 2 + beside - scale * (box.x + box.width / 2),
      y: height / 2 - scale * (box.y + box.height / 2),
    };
    return { land, at: onLand(units, land) };
  };
  const middle = placedAt(0);
  const names = [...units.keys()];
  const field = { x: 0, y: 0, width, height };
  const groups = closeTogether(names, middle.at);
  // Where there is room, an inset has a side for itself, and covers none of the land between the sites.
  const spare = width - scale * box.width - 2 * MARGIN.x;
  const aside = insetSize(field).width + GAP;
  const isBeside = zoom === 1 && groups.length === 1 && spare > aside;
  const { land, at } = isBeside
    ? placedAt((aside / 2) * sideOf(groups[0] ?? new Set(), links, middle.at, width))
    : middle;
  const map: Scene = {
    ...{ ...field, land, at, sites: names, labels: new Map() },
    links: links.filter(({ site1, site2 }) => at.has(site1) && at.has(site2)),
  };
  const insets: Inset[] = [];
  // Of many insets the map would be covered: it is enlarged instead; then an inset would lie out of sight.
  for (const group of zoom > 1 || groups.length > MOST_INSETS ? [] : groups) {
    const inset = enlarged(group, map, insets, units, textWidth);
    if (inset) insets.push(inset);
  }
  // What an inset has whole is not drawn on the map too.
  const enlargedIn = (name: string): Inset | undefined =>
    insets.find(({ sites: inside }) => inside.includes(name));
  map.links = map.links.filter(({ site1, site2 }) => {
    const inset = enlargedIn(site1);
    return !inset || inset !== enlargedIn(site2);
  });
  const labels = named(
    map,
    names.filter((name) => !enlargedIn(name)),
    field,
    insets.flatMap((inset) => [inset, inset.of]),
    textWidth,
  );
  return { ...map, labels, insets };
}

function hasPlace(site: MapSite): site is MapSite & { place: readonly [number, number] } {
  return site.place !== null;
}

function onLand(
  units: ReadonlyMap<string, Point>,
  { x, y, scale }: { x: number; y: number; scale: number },
): Map<string, Point> {
  return new Map([...units].map(([name, unit]) => [name, { x: x + unit.x * scale, y: y + unit.y * scale }]));
}

/** The sites in the map's units, and the box around them. The map is cut where most of the Earth has no site. */
function fitted(placed: readonly (MapSite & { place: readonly [number, number] })[]) {
  const projected = placed.map(({ name, place }) => ({ name, point: project(place) }));
  const xs = projected.map(({ point: [x] }) => x).toSorted((one, other) => one - other);
  let cut = { gap: 0, x: 0 };
  for (const [index, x] of xs.entries()) {
    const gap = x - (xs[index - 1] ?? (xs.at(-1) ?? 0) - WORLD);
    if (gap > cut.gap) cut = { gap, x };
  }
  const units = new Map(
    projected.map(({ name, point: [x, y] }) => [name, { x: x < cut.x ? x + WORLD : x, y }]),
  );
  return { units, box: around([...units.values()]) };
}

function around(points: readonly Point[], margin = 0): Rect {
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  const [left, top] = [Math.min(...xs) - margin, Math.min(...ys) - margin];
  return { x: left, y: top, width: Math.max(...xs) + margin - left, height: Math.max(...ys) + margin - top };
}

/** The groups of sites that lie {@link CLOSE} to another of their group. */
function closeTogether(names: readonly string[], at: ReadonlyMap<string, Point>): Set<string>[] {
  let groups: Set<string>[] = [];
  for (const name of names) {
    const near = groups.filter((group) => [...group].some((other) => distance(at, name, other) < CLOSE));
    groups = [
      ...groups.filter((group) => !near.includes(group)),
      new Set([name, ...near.flatMap((g) => [...g])]),
    ];
  }
  return groups.filter(({ size }) => size > 1);
}

function distance(at: ReadonlyMap<string, Point>, one: string, other: string): number {
  const [a, b] = [at.get(one), at.get(other)];
  return a && b ? Math.hypot(a.x - b.x, a.y - b.y) : Number.POSITIVE_INFINITY;
}

/** How large an inset is in a map. */
function insetSize({ width, height }: Pick<Rect, 'width' | 'height'>): { width: number; height: number } {
  return {
    width: Math.min(Math.max(width * 0.3, 150), 320),
    height: Math.min(Math.max(height * 0.4, 124), 220),
  };
}

/** The side to which the sites move, away from a group's inset: -1 to the left. The inset is where fewer links lead. */
function sideOf(
  group: ReadonlySet<string>,
  links: readonly Link[],
  at: ReadonlyMap<string, Point>,
  width: number,
): 1 | -1 {
  const from = around([...group].flatMap((name) => at.get(name) ?? []));
  const covered = (x: number, until: number): number =>
    links.reduce(
      (sum, { site1, site2 }) =>
        sum +
        lengthIn(
          { x, y: from.y - 40, width: until - x, height: from.height + 80 },
          at.get(site1),
          at.get(site2),
        ),
      0,
    );
  return covered(0, from.x) <= covered(from.x + from.width, width) ? 1 : -1;
}

/** The inset of a group, where the map has most room for it, else below; undefined where there are many already. */
function enlarged(
  group: ReadonlySet<string>,
  map: Scene,
  others: readonly Inset[],
  units: ReadonlyMap<string, Point>,
  textWidth: (text: string) => number,
): Inset | undefined {
  const inside = [...group];
  const size = insetSize(map);
  const of = around(
    inside.flatMap((name) => map.at.get(name) ?? []),
    DOT + 3,
  );
  let place = roomiest(size, of, map, group, others);
  if (!place) {
    if (others.length >= MOST_BELOW) return undefined;
    size.width = Math.min(map.width - 2 * GAP, 240);
    place = { x: GAP, y: map.height, ...size };
    map.height += size.height + GAP;
  }

  const box = around(inside.flatMap((name) => units.get(name) ?? []));
  const widest = Math.max(...inside.map(textWidth));
  const scale = Math.min(
    Math.max(size.width - widest - 40, 40) / (box.width || 1),
    (size.height - 64) / (box.height || 1),
    LARGEST.inset,
  );
  const frame = {
    ...place,
    of,
    links: map.links.filter(({ site1, site2 }) => group.has(site1) || group.has(site2)),
  };
  /** The inset with its sites in the middle, or beside it: names may have more room there. */
  const shifted = (shift: number): { inset: Inset; cost: number } => {
    const land = {
      scale,
      x: place.x + size.width * (0.5 + shift) - scale * (box.x + box.width / 2),
      y: place.y + size.height / 2 - scale * (box.y + box.height / 2),
    };
    const at = onLand(units, land);
    const within = { x: place.x + 14, y: place.y + 14, width: size.width - 28, height: size.height - 28 };
    pushApart(inside, at, within);
    const scene = { ...frame, land, at, sites: inside, labels: new Map() };
    const labels = named(scene, inside, place, [], textWidth);
    const cost = [...labels].reduce((sum, [name, box]) => sum + costOf(name, box, scene), 0);
    return {
      inset: { ...scene, labels },
      cost: cost + 1000 * (inside.length - labels.size) + 20 * Math.abs(shift),
    };
  };
  return SHIFTS.map(shifted).toSorted((one, other) => one.cost - other.cost)[0]?.inset;
}

/** The place at the map's edge that hides no site, and the least of the links; the nearer of equals. */
function roomiest(
  size: { width: number; height: number },
  of: Rect,
  { at, links, ...field }: Scene,
  group: ReadonlySet<string>,
  others: readonly Inset[],
): Rect | undefined {
  const [right, bottom] = [field.width - size.width - GAP, field.height - size.height - GAP];
  const steps = [0, 0.25, 0.5, 0.75, 1];
  const places = [
    ...steps.flatMap((step) => [
      { x: GAP + (right - GAP) * step, y: GAP },
      { x: GAP + (right - GAP) * step, y: bottom },
    ]),
    ...steps.flatMap((step) => [
      { x: GAP, y: GAP + (bottom - GAP) * step },
      { x: right, y: GAP + (bottom - GAP) * step },
    ]),
  ];
  const taken = [of, ...others.flatMap((other) => [other, other.of])];
  const dots = [...at].filter(([name]) => !group.has(name)).map(([, { x, y }]) => around([{ x, y }], 14));
  const all = around([...at.values()], BESIDE);
  let best: { rect: Rect; cost: number } | undefined;
  for (const place of places) {
    const rect = { ...place, ...size };
    if (!isFree(rect, [...taken, ...dots])) continue;
    const hidden = links.reduce(
      (sum, { site1, site2 }) => sum + lengthIn(rect, at.get(site1), at.get(site2)),
      0,
    );
    const covers = overlap(rect, all);
    const away = Math.hypot(rect.x + size.width / 2 - of.x, rect.y + size.height / 2 - of.y);
    const cost = hidden * 4 + away * 0.2 + covers * 0.02;
    if (!best || cost < best.cost) best = { rect, cost };
  }
  return best?.rect;
}

/** The area that two rectangles have in common. */
function overlap(one: Rect, other: Rect): number {
  const across = Math.min(one.x + one.width, other.x + other.width) - Math.max(one.x, other.x);
  const along = Math.min(one.y + one.height, other.y + other.height) - Math.max(one.y, other.y);
  return Math.max(0, across) * Math.max(0, along);
}

/** Moves sites that an inset can't separate, such as two in one building, until each can be seen and chosen. */
function pushApart(names: readonly string[], at: Map<string, Point>, within: Rect): void {
  for (let round = 0; round < 60; round += 1) {
    let moved = false;
    for (const [index, one] of names.entries()) {
      for (const other of names.slice(index + 1)) {
        const [a, b] = [at.get(one), at.get(other)];
        if (!a || !b) continue;
        const apart = Math.hypot(a.x - b.x, a.y - b.y);
        if (apart >= APART - 0.5) continue;
        moved = true;
        // In the same place there is no direction: each pair gets its own.
        const angle = apart > 0.01 ? Math.atan2(b.y - a.y, b.x - a.x) : index * 2.4;
        const push = (APART - apart) / 2;
        at.set(one, kept(within, a.x - Math.cos(angle) * push, a.y - Math.sin(angle) * push));
        at.set(other, kept(within, b.x + Math.cos(angle) * push, b.y + Math.sin(angle) * push));
      }
    }
    if (!moved) return;
  }
}

function kept({ x: left, y: top, width, height }: Rect, x: number, y: number): Point {
  return {
    x: Math.max(left, Math.min(left + width, x)),
    y: Math.max(top, Math.min(top + height, y)),
  };
}

/** All sites in a ring, where no place is known. */
function ring(
  sites: readonly MapSite[],
  links: readonly Link[],
  width: number,
  textWidth: (text: string) => number,
): MapLayout {
  const widest = Math.max(...sites.map(({ name }) => textWidth(name)), 0);
  const height = Math.min(Math.max(width * 0.72, 260), 440);
  const [rx, ry] = [Math.max(width / 2 - Math.min(widest, width / 3) - 24, 40), height / 2 - 36];
  const at = new Map(
    sites.map(({ name }, index) => {
      const angle = (2 * Math.PI * index) / sites.length - Math.PI / 2;
      return [name, { x: width / 2 + rx * Math.cos(angle), y: height / 2 + ry * Math.sin(angle) }];
    }),
  );
  const names = sites.map(({ name }) => name);
  const scene: Scene = {
    ...{ x: 0, y: 0, width, height },
    ...{ land: null, at, sites: names, labels: new Map(), links },
  };
  return { ...scene, labels: named(scene, names, scene, [], textWidth), insets: [] };
}

/**
 * Finds room for the names of sites: within the bounds, on no dot, on no other name and on nothing that is taken; and of
 * the places that are left, the one that hides the least of the links. The site with the fewest places chooses first.
 */
function named(
  scene: Scene,
  names: readonly string[],
  bounds: Rect,
  taken: readonly Rect[],
  textWidth: (text: string) => number,
): Map<string, LabelBox> {
  const { at, sites } = scene;
  const dots = sites.flatMap((name) => {
    const point = at.get(name);
    return point ? [around([point], DOT + 2)] : [];
  });
  const choices = names
    .flatMap((name) => {
      const point = at.get(name);
      if (!point) return [];
      const boxes = candidates(point, { width: textWidth(name), height: LABEL_HEIGHT }).filter(
        (box) =>
          isFree(box, [...taken, ...dots]) &&
          box.x >= bounds.x + 2 &&
          box.y >= bounds.y + 2 &&
          box.x + box.width <= bounds.x + bounds.width - 2 &&
          box.y + box.height <= bounds.y + bounds.height - 2,
      );
      return [{ name, boxes: boxes.map((box) => ({ box, cost: box.cost + costOf(name, box, scene) })) }];
    })
    .toSorted((one, other) => one.boxes.length - other.boxes.length);
  const found = new Map<string, LabelBox>();
  for (const { name, boxes } of choices) {
    const open = boxes.filter(({ box }) => isFree(box, [...found.values()]));
    const best = open.toSorted((one, other) => one.cost - other.cost)[0];
    if (best) found.set(name, best.box);
  }
  return found;
}

/** How far a point is from a rectangle. */
function apart({ x, y, width, height }: Rect, point: Point): number {
  return Math.hypot(
    Math.max(x - point.x, 0, point.x - x - width),
    Math.max(y - point.y, 0, point.y - y - height),
  );
}

/** How much of the links a name would lie on, which of very many does not matter; and whether it seems to be another dot's. */
function costOf(name: string, box: Rect, { links, at, sites }: Scene): number {
  const hidden = links.length > 300 ? [] : links;
  const others = sites.flatMap((site) => (site === name ? [] : (at.get(site) ?? [])));
  const near = Math.max(0, ...others.map((other) => NEAR - apart(box, other)));
  return hidden.reduce(
    (sum, { site1, site2 }) => sum + lengthIn(box, at.get(site1), at.get(site2)),
    4 * near,
  );
}
