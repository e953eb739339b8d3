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
  /** The lane of my reservations within a row, below its plot. */
  lane: number;
}

/** How tall that lane is drawn, and how tall it is for a pointer: the lowest part of the row. */
export const LANE = 7;
const TARGET = 24;

/** The rows are narrow strips under their labels where there is no room for labels beside them. */
export function layoutFor(width: number, isNarrow: boolean): Layout {
  return isNarrow
    ? { width, axis: 44, row: 64, top: 21, plot: 29, lane: 52 }
    : { width, axis: 44, row: 48, top: 4, plot: 30, lane: 36 };
}

/** The row at a height, of so many; undefined above the first and below the last. */
export function rowAt(y: number, { axis, row }: Layout, count: number): number | undefined {
  const found = Math.floor((y - axis) / row);
  return found >= 0 && found < count ? found : undefined;
}

/** Whether the lane of a row is meant at a height. */
export function isLane(y: number, { axis, row }: Layout): boolean {
  return y >= axis && (y - axis) % row >= row - TARGET;
}

/**
 * How tall a bandwidth is drawn, in whole pixels: rounded down, so that nothing looks free that is not; but a little is never
 * drawn as nothing.
 */
export function barHeight(mbps: number, capacity: number, height: number): number {
  return mbps > 0 ? Math.max(1, Math.floor((mbps * height) / capacity)) : 0;
}
