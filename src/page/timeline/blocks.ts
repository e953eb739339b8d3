import type { Period } from '../../contract/instants.ts';
import { hopsOf, isSamePair } from '../route.ts';
import type { Link, Own } from '../service.ts';
import { LANES } from './layout.ts';

/** One of my reservations as it is drawn; or the number of those for which no lane is left, in the lane below. */
export type Block = Period & { own: readonly [Own, ...Own[]]; lane: number };

/** How wide a block is at least, and a number of further ones, in pixels. */
const LEAST = 3;
const NUMBER = 30;

/**
 * My reservations by row, by their start: each in the rows of the links of its route, and in that of its two sites where they
 * have one.
 *
 * @param links a row each
 * @param pair two sites without a link; their row comes after those of the links
 */
export function ownByRow(own: readonly Own[], links: readonly Link[], pair: Link | undefined): Own[][] {
  const rows = new Map((pair ? [...links, pair] : links).map((link) => [link, [] as Own[]]));
  const routes = new Map<string, readonly Link[]>();
  for (const one of own.toSorted((some, other) => some.start - other.start || some.end - other.end)) {
    const { site1, via = [], site2 } = one;
    const sites = [site1, ...via, site2];
    const route = routes.get(`${sites}`) ?? hopsOf(links, sites);
    routes.set(`${sites}`, route);
    for (const link of route) rows.get(link)?.push(one);
    if (pair && isSamePair(pair, one)) rows.get(pair)?.push(one);
  }
  return [...rows.values()];
}

/**
 * The blocks of a row in a window. A reservation keeps its lane while the window moves.
 *
 * @param own the row's, by their start
 * @param pixel the length of a pixel, in milliseconds
 */
export function blocksOf(own: readonly Own[], window: Period, pixel: number): Block[] {
  const blocks: Block[] = [];
  const ends: number[] = Array(LANES).fill(Number.NEGATIVE_INFINITY);
  let more: { own: [Own, ...Own[]]; lane: number; start: number; end: number } | undefined;
  for (const one of own) {
    const end = Math.max(one.end, one.start + LEAST * pixel);
    const lane = ends.findIndex((taken) => taken <= one.start);
    if (lane >= 0) ends[lane] = end;
    if (end <= window.start || one.start >= window.end) continue;
    const start = Math.max(one.start, window.start);
    if (lane >= 0) blocks.push({ own: [one], lane, start: one.start, end });
    else if (more && start < more.end) more.own.push(one);
    else {
      more = { own: [one], lane: LANES, start, end: start + NUMBER * pixel };
      blocks.push(more);
    }
  }
  return blocks;
}
