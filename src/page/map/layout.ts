import type { Point } from '../point.ts';
import type { Link } from '../service.ts';
import { project, WORLD } from './projection.ts';

/** A site as the map gets it. */
export interface MapSite {
  name: string;
  place: readonly [longitude: number, latitude: number] | null;
}

/** A part of the picture, in CSS pixels. */
export interface Rect extends Point {
  width: number;
  height: number;
}

/** A dot of the map: one site, or several that lie together. */
export interface Dot extends Point {
  sites: readonly string[];
}

/** The line of a link between two dots. */
export interface Line {
  link: Link;
  from: Point;
  to: Point;
}

/** Where everything lies on the map, in CSS pixels. */
export interface MapLayout {
  width: number;
  height: number;
  /** The pixels of a unit of {@link project}, and the corner of the Earth; null where no land is behind the sites. */
  land: { scale: number; x: number; y: number } | null;
  dots: readonly Dot[];
  /** The names of a dot's sites, below each other. A dot that is missing here has no room for them. */
  labels: ReadonlyMap<Dot, Rect>;
  /** Links within one dot have no line. */
  lines: readonly Line[];
}

/** The room that the map has, the width of a site's name in CSS pixels, and how many times as large it is drawn. */
export interface MapRoom {
  width: number;
  height: number;
  textWidth(name: string): number;
  times: number;
}

/** How many times as large the map can be drawn. Then each site has a dot of its own. */
export const LARGEST = 8;
/** The radius of a site's dot, and of a dot of several sites, in pixels. */
export const [DOT, GROUP] = [5, 9];
/** The height of a name. */
export const LINE_HEIGHT = 15;

/** Sites closer than this lie together, in pixels. */
const CLOSE = 17;
/** Around the sites, for their names. */
const MARGIN = { x: 60, y: 20 };
/** Pixels of a unit of the map at most: land has no more detail to show. */
const FINEST = 3;
/** Between the lines of links between the same two dots. */
const BESIDE = 7;
/** A dot of more sites than these shows their number alone. */
const MOST_NAMES = 3;
/** A name that is closer to another dot than this seems to be its name. */
const NEAR = 14;
/** The sides of a dot on which a name can stand, and how much each is disliked, in pixels of hidden links. */
const SIDES: readonly (readonly [dx: number, dy: number, cost: number])[] = [
  [1, 0, 0],
  [-1, 0, 3],
  [0, -1, 4],
  [0, 1, 4],
  [0.6, -1, 5],
  [0.6, 1, 5],
  [-0.6, -1, 6],
  [-0.6, 1, 6],
];

/** Lays the map out, fitted to the sites that have a place; the others are left out. Where no site has one, all stand in a ring. */
export function layOut(sites: readonly MapSite[], links: readonly Link[], room: MapRoom): MapLayout {
  const [width, height] = [room.width * room.times, room.height * room.times];
  const drawn = { ...room, width, height };
  const { land, at } = onLand(sites, drawn) ?? { land: null, at: inRing(sites, drawn) };
  const dots = together(at).flatMap((dot) => (room.times < LARGEST ? dot : apart(dot)));
  const lines = linesOf(links, dots);
  return { width, height, land, dots, lines, labels: named(dots, lines, drawn) };
}

/** How many times as large the map is to be drawn so that the sites of a dot lie apart. */
export function timesToOpen(sites: readonly MapSite[], { sites: [first = ''] }: Dot, room: MapRoom): number {
  const isAlone = (times: number): boolean =>
    layOut(sites, [], { ...room, times }).dots.some(
      (dot) => dot.sites.length === 1 && dot.sites[0] === first,
    );
  let times = Math.min(room.times * 2, LARGEST);
  while (times < LARGEST && !isAlone(times)) times = Math.min(times * 2, LARGEST);
  return times;
}

/** The sites on the land, and how that is placed; undefined where no site has a place. */
function onLand(sites: readonly MapSite[], { width, height, times }: MapRoom) {
  const projected = sites.flatMap(({ name, place }) => (place ? [{ name, point: project(place) }] : []));
  if (projected.length === 0) return undefined;
  // The map is cut where most of the Earth has no site.
  const xs = projected.map(({ point: [x] }) => x).toSorted((one, other) => one - other);
  let cut = { gap: 0, x: 0 };
  for (const [index, x] of xs.entries()) {
    const gap = x - (xs[index - 1] ?? (xs.at(-1) ?? 0) - WORLD);
    if (gap > cut.gap) cut = { gap, x };
  }
  const units = projected.map(({ name, point: [x, y] }) => ({ name, x: x < cut.x ? x + WORLD : x, y }));
  const [left, right] = ends(units.map(({ x }) => x));
  const [top, bottom] = ends(units.map(({ y }) => y));
  const scale = Math.min(
    (width - 2 * MARGIN.x * times) / (right - left || 1),
    (height - 2 * MARGIN.y * times) / (bottom - top || 1),
    FINEST * times,
  );
  const land = {
    scale,
    x: width / 2 - (scale * (left + right)) / 2,
    y: height / 2 - (scale * (top + bottom)) / 2,
  };
  const at = new Map(units.map(({ name, x, y }) => [name, { x: land.x + x * scale, y: land.y + y * scale }]));
  return { land, at };
}

/** The least and the most of some numbers. */
export function ends(values: readonly number[]): readonly [least: number, most: number] {
  return [Math.min(...values), Math.max(...values)];
}

/** All sites in a ring, where no place is known. */
function inRing(sites: readonly MapSite[], { width, height, textWidth }: MapRoom): Map<string, Point> {
  const widest = Math.max(...sites.map(({ name }) => textWidth(name)), 0);
  const [rx, ry] = [Math.max(width / 2 - Math.min(widest, width / 3) - 24, 40), height / 2 - 24];
  return new Map(
    sites.map(({ name }, index) => {
      const angle = (2 * Math.PI * index) / sites.length - Math.PI / 2;
      return [name, { x: width / 2 + rx * Math.cos(angle), y: height / 2 + ry * Math.sin(angle) }];
    }),
  );
}

/** The sites as dots: each joins the first dot to which it lies close. */
function together(at: ReadonlyMap<string, Point>): Dot[] {
  const groups: { first: Point; sites: string[] }[] = [];
  for (const [name, point] of at) {
    const near = groups.find(({ first }) => Math.hypot(first.x - point.x, first.y - point.y) < CLOSE);
    if (near) near.sites.push(name);
    else groups.push({ first: point, sites: [name] });
  }
  const mean = (sites: readonly string[], of: (point: Point) => number): number =>
    sites.reduce((sum, site) => sum + of(at.get(site) ?? { x: 0, y: 0 }), 0) / sites.length;
  return groups.map(({ sites }) => ({ sites, x: mean(sites, ({ x }) => x), y: mean(sites, ({ y }) => y) }));
}

/** The sites of a dot around it, such as of two in one building, until each can be chosen. */
function apart({ sites, x, y }: Dot): Dot[] {
  if (sites.length === 1) return [{ sites, x, y }];
  const radius = Math.max(14, sites.length * 4);
  return sites.map((site, index) => {
    const angle = (2 * Math.PI * index) / sites.length;
    return { sites: [site], x: x + radius * Math.cos(angle), y: y + radius * Math.sin(angle) };
  });
}

/** The lines of the links that are on the map. Those between the same two dots lie beside each other. */
function linesOf(links: readonly Link[], dots: readonly Dot[]): Line[] {
  const dotOf = new Map(dots.flatMap((dot) => dot.sites.map((site) => [site, dot])));
  const alike = new Map<string, (Line & { from: Dot; to: Dot })[]>();
  for (const link of links) {
    const [one, other] = [dotOf.get(link.site1), dotOf.get(link.site2)];
    if (!one || !other || one === other) continue;
    const [from, to] = dots.indexOf(one) < dots.indexOf(other) ? [one, other] : [other, one];
    const name = `${dots.indexOf(from)} ${dots.indexOf(to)}`;
    alike.set(name, [...(alike.get(name) ?? []), { link, from, to }]);
  }
  return [...alike.values()].flatMap((lines) =>
    lines.map(({ link, from, to }, index) => {
      const aside = (index - (lines.length - 1) / 2) * BESIDE;
      const [dx, dy] = [to.x - from.x, to.y - from.y];
      const length = Math.hypot(dx, dy) || 1;
      const moved = ({ x, y }: Point): Point => ({
        x: x - (dy / length) * aside,
        y: y + (dx / length) * aside,
      });
      return { link, from: moved(from), to: moved(to) };
    }),
  );
}

/**
 * Finds room for the names of dots: within the picture, on no dot and on no other name; and of the places that are left, the one
 * that hides the least of the lines. The dot with the fewest places chooses first.
 */
function named(dots: readonly Dot[], lines: readonly Line[], room: MapRoom): Map<Dot, Rect> {
  const taken = dots.map((dot) => around(dot, dot.sites.length > 1 ? GROUP : DOT + 2));
  // Of very many lines it does not matter what a name hides.
  const hidden = lines.length > 300 ? [] : lines;
  const choices = dots
    .filter(({ sites }) => sites.length <= MOST_NAMES)
    .map((dot) => {
      const others = dots.filter((other) => other !== dot);
      const boxes = boxesFor(dot, room.textWidth)
        .filter(({ box }) => isFree(box, taken) && isWithin(box, room))
        .map(({ box, cost }) => {
          const near = Math.max(0, ...others.map((other) => NEAR - distance(box, other)));
          return {
            box,
            cost: hidden.reduce((sum, line) => sum + lengthIn(box, line), cost + 4 * near),
          };
        })
        .toSorted((one, other) => one.cost - other.cost);
      return { dot, boxes };
    })
    .toSorted((one, other) => one.boxes.length - other.boxes.length);
  const found = new Map<Dot, Rect>();
  for (const { dot, boxes } of choices) {
    const best = boxes.find(({ box }) => isFree(box, [...found.values()]));
    if (best) found.set(dot, best.box);
  }
  return found;
}

/** The places where the names of a dot could stand, with the cost of each. */
function boxesFor({ x, y, sites }: Dot, textWidth: (name: string) => number) {
  const width = Math.max(...sites.map(textWidth));
  const height = LINE_HEIGHT * sites.length;
  const gap = sites.length > 1 ? GROUP + 3 : DOT + 3;
  return SIDES.map(([dx, dy, cost]) => {
    const across = Math.abs(dx) === 1 ? dx * gap : 0;
    const box = {
      x: x + across - ((1 - dx) * width) / 2,
      y: y + dy * gap - ((1 - dy) * height) / 2,
      ...{ width, height },
    };
    return { box, cost };
  });
}

function around({ x, y }: Point, margin: number): Rect {
  return { x: x - margin, y: y - margin, width: 2 * margin, height: 2 * margin };
}

function isWithin({ x, y, width, height }: Rect, room: MapRoom): boolean {
  return x >= 2 && y >= 2 && x + width <= room.width - 2 && y + height <= room.height - 2;
}

function isFree(rect: Rect, others: readonly Rect[]): boolean {
  return !others.some(
    (other) =>
      rect.x < other.x + other.width &&
      other.x < rect.x + rect.width &&
      rect.y < other.y + other.height &&
      other.y < rect.y + rect.height,
  );
}

/** How far a point is from a rectangle. */
function distance({ x, y, width, height }: Rect, point: Point): number {
  return Math.hypot(
    Math.max(x - point.x, 0, point.x - x - width),
    Math.max(y - point.y, 0, point.y - y - height),
  );
}

/** How much of a line lies within a rectangle, in pixels (Liang and Barsky). */
function lengthIn({ x, y, width, height }: Rect, { from, to }: Line): number {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  let [enter, leave] = [0, 1];
  for (const [step, space] of [
    [-dx, from.x - x],
    [dx, x + width - from.x],
    [-dy, from.y - y],
    [dy, y + height - from.y],
  ] as const) {
    if (step === 0 && space < 0) return 0;
    if (step < 0) enter = Math.max(enter, space / step);
    if (step > 0) leave = Math.min(leave, space / step);
  }
  return enter < leave ? (leave - enter) * Math.hypot(dx, dy) : 0;
}
