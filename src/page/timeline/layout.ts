import type { Own } from '../service.ts';

/** Where things are, in CSS pixels. */
export interface Layout {
  width: number;
  /** Above the first row. */
  axis: number;
  /** From one row to the next. */
  row: number;
  /** The plot within a row. */
  top: number;
  plot: number;
}

/** The rows are narrow strips under their labels where there is no room for labels beside them. */
export function layoutFor(width: number, isNarrow: boolean): Layout {
  return isNarrow
    ? { width, axis: 44, row: 54, top: 21, plot: 29 }
    : { width, axis: 44, row: 38, top: 4, plot: 30 };
}

/** The row at a height, of so many; undefined above the first and below the last. */
export function rowAt(y: number, { axis, row }: Layout, count: number): number | undefined {
  const found = Math.floor((y - axis) / row);
  return found >= 0 && found < count ? found : undefined;
}

/** One of my reservations in its row, in CSS pixels from the top of the plot. */
export interface Bar {
  own: Own;
  y: number;
  height: number;
}

/** The lowest that a bar is drawn, in pixels. */
const LOWEST = 4;

/**
 * The bars of my reservations on a link: at the same time they stand below one another, as their bandwidths add up. Where
 * that is more than the plot has room for, the last ones lie upon each other.
 */
export function barsOf(list: readonly Own[], capacity: number, { plot }: Pick<Layout, 'plot'>): Bar[] {
  /** Until when each pixel is taken, from the top. */
  const taken = new Float64Array(plot);
  return list
    .toSorted((one, other) => one.start - other.start)
    .map((own) => {
      const height = Math.min(plot, Math.max(LOWEST, Math.round((own.bandwidth / capacity) * plot)));
      let y = 0;
      for (let at = 0; at < y + height && y + height <= plot; at += 1)
        if ((taken[at] ?? 0) > own.start) y = at + 1;
      y = Math.min(y, plot - height);
      for (let at = y; at < y + height; at += 1) taken[at] = Math.max(taken[at] ?? 0, own.end);
      return { own, y, height };
    });
}

/**
 * How tall a bandwidth is drawn, in whole pixels: rounded down, so that nothing looks free that is not; but a little is never
 * drawn as nothing.
 */
export function barHeight(mbps: number, capacity: number, height: number): number {
  return mbps > 0 ? Math.max(1, Math.floor((mbps * height) / capacity)) : 0;
}
