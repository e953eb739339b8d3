import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { merge, mesh } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import { type Land, project, WORLD } from '../page/map/projection.ts';

type MapPoint = [x: number, y: number];

/** Where most sites are, in degrees: here the map keeps every detail that a screen shows. Elsewhere it is coarse. */
const DETAILED = { west: -13, east: 33, south: 33, north: 64 };

/** The area, in units of the map, of the smallest triangle that is kept on a line: within {@link DETAILED}, and elsewhere. */
const SMALLEST_TRIANGLE = { detailed: 200, elsewhere: 20_000 };
/** The same for islands and lakes, by the box around them. */
const SMALLEST_RING = { detailed: 400, elsewhere: 80_000 };

/**
 * Makes land and borders from Natural Earth's countries (public domain, by the package world-atlas), simplified as
 * Visvalingam and Whyatt do it: of each line the point goes first that makes the smallest triangle with its neighbours.
 * Lines that countries share are simplified once, so that they stay shared.
 */
export function drawLand(): Land {
  const path = fileURLToPath(import.meta.resolve('world-atlas/countries-50m.json'));
  const atlas: Topology<{ countries: GeometryCollection }> = JSON.parse(readFileSync(path, 'utf8'));
  const { countries } = atlas.objects;
  // Mercator shows no pole.
  const shown = countries.geometries.filter(({ id }) => id !== ANTARCTICA);
  const simple: typeof atlas = {
    type: 'Topology',
    objects: atlas.objects,
    arcs: absolute(atlas).map((arc) => simplified(arc)),
  };
  const rings = merge(simple, shown as Parameters<typeof merge>[1]).coordinates.flat();
  const lines = mesh(simple, { ...countries, geometries: shown }, (one, other) => one !== other)
    .coordinates.map(unwrapped)
    .filter((line) => !line.every(within(CRIMEA)));
  return {
    land: rings
      .map((ring) => unwrapped(ring).map(rounded))
      .filter(isLarge)
      .map((ring) => `${drawn(ring)}z`)
      .join(''),
    borders: lines.map((line) => drawn(line.map(rounded))).join(''),
  };
}

/** ISO 3166-1 numeric. */
const ANTARCTICA = '010';

/** Natural Earth draws who holds Crimea; in law no border is there, so that none is drawn. */
const CRIMEA = { west: 32, east: 37, south: 44, north: 46.5 };

/** The arcs of a quantized topology (TopoJSON 2.1.3), on the map. */
function absolute({ arcs, transform }: Topology): MapPoint[][] {
  const { scale, translate } = transform ?? { scale: [1, 1], translate: [0, 0] };
  return arcs.map((arc) => {
    let [x, y] = [0, 0];
    return arc.map(([dx = 0, dy = 0]) => {
      x += dx;
      y += dy;
      return project([x * scale[0] + translate[0], y * scale[1] + translate[1]]);
    });
  });
}

function within({ west, east, south, north }: typeof DETAILED): (point: MapPoint) => boolean {
  const [[left, top], [right, bottom]] = [project([west, north]), project([east, south])];
  return ([x, y]) => x > left && x < right && y > top && y < bottom;
}

const isDetailed = within(DETAILED);

/** Its ends stay, where lines meet. */
function simplified(line: readonly MapPoint[]): MapPoint[] {
  let kept = [...line];
  const weight = (index: number): number => {
    const [before, at, after] = [kept[index - 1], kept[index], kept[index + 1]];
    if (!before || !at || !after) return Number.POSITIVE_INFINITY;
    const area =
      Math.abs((before[0] - at[0]) * (after[1] - at[1]) - (after[0] - at[0]) * (before[1] - at[1])) / 2;
    return area / (isDetailed(at) ? SMALLEST_TRIANGLE.detailed : SMALLEST_TRIANGLE.elsewhere);
  };
  for (let before = 0; before !== kept.length; ) {
    before = kept.length;
    const weights = kept.map((_, index) => weight(index));
    // Of neighbours only the lighter one goes, since the other's triangle changes by it.
    kept = kept.filter((_, index) => {
      const own = weights[index] ?? 1;
      return own >= 1 || own > (weights[index - 1] ?? 1) || own >= (weights[index + 1] ?? 1);
    });
  }
  return kept;
}

/** Lines that cross 180° go on beyond the map's edge, and do not jump to its other side. */
function unwrapped(line: readonly (readonly number[])[]): MapPoint[] {
  let turns = 0;
  return line.map(([x = 0, y = 0], index) => {
    const step = x - (line[index - 1]?.[0] ?? x);
    if (Math.abs(step) > WORLD / 2) turns -= Math.sign(step) * WORLD;
    return [x + turns, y];
  });
}

const rounded = ([x, y]: MapPoint): MapPoint => [Math.round(x), Math.round(y)];

function isLarge(ring: readonly MapPoint[]): boolean {
  const [xs, ys] = [ring.map(([x]) => x), ring.map(([, y]) => y)];
  const box = (Math.max(...xs) - Math.min(...xs)) * (Math.max(...ys) - Math.min(...ys));
  return ring.length > 3 && box >= (ring.some(isDetailed) ? SMALLEST_RING.detailed : SMALLEST_RING.elsewhere);
}

/** A line as a path of SVG: each point by its distance from the one before it, which is the shortest text. */
function drawn([first = [0, 0], ...others]: readonly MapPoint[]): string {
  let text = `M${first.join(' ')}l`;
  let [x, y] = first;
  for (const point of others) {
    const [dx, dy] = [point[0] - x, point[1] - y];
    if (dx === 0 && dy === 0) continue;
    // A minus separates two numbers as well as a space does.
    text += `${dx >= 0 && !text.endsWith('l') ? ' ' : ''}${dx}${dy < 0 ? '' : ' '}${dy}`;
    [x, y] = point;
  }
  return text.endsWith('l') ? '' : text;
}
