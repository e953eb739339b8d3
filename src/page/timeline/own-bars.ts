import { hopsOf, isSamePair } from '../route.ts';
import type { Link, Own } from '../service.ts';

/** My reservations by row: each in those of the links of its route, and in that of its two sites where they have one. */
export class OwnBars {
  readonly #rows: readonly (readonly Own[])[];

  /**
   * @param links a row each
   * @param pair two sites without a link; their row comes after those of the links
   */
  constructor(own: readonly Own[], links: readonly Link[], pair: Link | undefined) {
    const rows = new Map((pair ? [...links, pair] : links).map((link) => [link, [] as Own[]]));
    const routes = new Map<string, readonly Link[]>();
    // The shorter ones are drawn upon the longer ones, so that the ends of both can be seen.
    for (const one of own.toSorted((some, other) => lengthOf(other) - lengthOf(some))) {
      const { site1, via = [], site2 } = one;
      const sites = [site1, ...via, site2];
      const route = routes.get(`${sites}`) ?? hopsOf(links, sites);
      routes.set(`${sites}`, route);
      for (const link of route) rows.get(link)?.push(one);
      if (pair && isSamePair(pair, one)) rows.get(pair)?.push(one);
    }
    this.#rows = [...rows.values()];
  }

  /** The reservations in a row, the longest first. */
  in(row: number): readonly Own[] {
    return this.#rows[row] ?? [];
  }

  /**
   * The reservations whose bars are here, or near: the uppermost first.
   *
   * @param slop how long before and after a bar it is still meant, in milliseconds
   */
  at(row: number, instant: number, slop: number): Own[] {
    const away = ({ start, end }: Own): number => Math.max(start - instant, instant - end, 0);
    return this.in(row)
      .filter((one) => away(one) <= slop)
      .toReversed()
      .toSorted((one, other) => away(one) - away(other));
  }
}

function lengthOf({ start, end }: Own): number {
  return end - start;
}
