import { hopsOf, isSamePair } from '../route.ts';
import type { Link, Own } from '../service.ts';
import { type Bar, barsOf, type Layout } from './layout.ts';

/** My reservations by row: each in those of the links of its route, and in that of its two sites where they have one. */
export class OwnBars {
  readonly #rows: readonly (readonly Own[])[];
  readonly #bars: (readonly Bar[] | undefined)[] = [];
  readonly #links: readonly Link[];
  readonly #layout: Layout;

  /**
   * @param links a row each
   * @param pair two sites without a link; their row comes after those of the links
   */
  constructor(own: readonly Own[], links: readonly Link[], pair: Link | undefined, layout: Layout) {
    [this.#links, this.#layout] = [pair ? [...links, pair] : links, layout];
    const rows = new Map(this.#links.map((link) => [link, [] as Own[]]));
    const routes = new Map<string, readonly Link[]>();
    for (const one of own) {
      const { site1, via = [], site2 } = one;
      const sites = [site1, ...via, site2];
      const route = routes.get(`${sites}`) ?? hopsOf(links, sites);
      routes.set(`${sites}`, route);
      for (const link of route) rows.get(link)?.push(one);
      if (pair && isSamePair(pair, one)) rows.get(pair)?.push(one);
    }
    this.#rows = [...rows.values()];
  }

  /** The reservations in a row. */
  in(row: number): readonly Own[] {
    return this.#rows[row] ?? [];
  }

  /** Their bars. */
  barsIn(row: number): readonly Bar[] {
    const bars = this.#bars[row] ?? barsOf(this.in(row), this.#links[row]?.bandwidth ?? 1, this.#layout);
    this.#bars[row] = bars;
    return bars;
  }

  /**
   * The reservation whose bar is here, or nearest.
   *
   * @param below pixels below the top of the row's plot
   * @param slop how far beside a bar it is still meant, in pixels; from and until are so far apart already
   */
  at(row: number, below: number, [from, until]: readonly [number, number], slop: number): Own | undefined {
    const away = ({ y, height }: Bar): number => Math.max(y - below, below - y - height, 0);
    return this.barsIn(row)
      .filter((bar) => bar.own.start <= until && bar.own.end > from && away(bar) <= slop)
      .toSorted((one, other) => away(one) - away(other))[0]?.own;
  }
}
