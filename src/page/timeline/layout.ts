/** From one row to the next, and where its plot begins and how high it is, in CSS pixels. */
export type Layout = { row: number; top: number; plot: number };

/** The height of the dates above the rows. */
export const AXIS = 40;
/** The height of a lane of my reservations, with the gap below it. The lanes begin at a plot's top. */
export const LANE = 11;
/** How many lanes a row has; below them is the number of further reservations. */
export const LANES = 2;

/** The rows are narrow strips under their labels where there is no room for labels beside them. */
export function layoutFor(isNarrow: boolean): Layout {
  return isNarrow ? { row: 56, top: 19, plot: 36 } : { row: 36, top: 0, plot: 35 };
}

/**
 * How tall a bandwidth is drawn, in whole pixels: rounded down, so that nothing looks free that is not; but a little is never
 * drawn as nothing.
 */
export function barHeight(mbps: number, capacity: number, height: number): number {
  return mbps > 0 ? Math.max(1, Math.floor((mbps * height) / capacity)) : 0;
}
