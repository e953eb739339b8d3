import type { Period } from '../../contract/instants.ts';
import type { Column, Link, Own } from '../service.ts';
import type { TimelineAction, TimelineState, TimelineTerms } from './model.ts';

/** Options of the timeline. */
export interface TimelineOptions {
  /** A row each, in this order. */
  links: readonly Link[];
  /**
   * Asks what is free between two sites in so many columns of equal length. Where nothing has changed since the time before, the
   * same array is given back; the timeline then asks nothing more of them.
   */
  columns(link: Link, window: Period, points: number, signal: AbortSignal): Promise<readonly Column[]>;
  /** Changes the timeline's state, and so shows it. */
  dispatch(action: TimelineAction): void;
  /** A start on a link was picked by a click or a tap: not before now. */
  onStart(link: Link, start: number): void;
  /** A period of a link was picked, by pointer, by keyboard or in the table, from the next full minute on. */
  onPick(link: Link, period: Period): void;
  /** The bar of one of my reservations was clicked. */
  onOwn(own: Own): void;
  /** An edge of it was dragged. */
  onResize(own: Own, period: Period): void;
}

/** The parts of the state that the timeline shows. */
export interface TimelineParts extends TimelineTerms {
  state: TimelineState;
  zone: string;
  /** My reservations, which are drawn below the use of each link. */
  own: readonly Own[];
  /** The id of my reservation that is looked at. */
  marked: string | undefined;
}

/** A part on which something that is shown depends. */
type Part = (parts: TimelineParts) => unknown;
/** The loaded tiles depend on these. */
export const MOVED: readonly Part[] = [
  ...([({ state }) => state.window, ({ state }) => state.layout] satisfies Part[]),
  ...([({ state }) => state.rows, ({ pair }) => pair] satisfies Part[]),
];
/** The height of the drawing, and its labels, depend on these. */
export const RESERVED: readonly Part[] = [
  ...([({ state }) => state.layout, ({ state }) => state.rows, ({ pair }) => pair] satisfies Part[]),
];
/** The bars of my reservations depend on these. */
export const BARS: readonly Part[] = [({ own }) => own, ({ pair }) => pair];
/** The table depends on these. */
export const TABLED: readonly Part[] = [
  ...([({ state }) => state.isTable, ({ own }) => own] satisfies Part[]),
  ...([({ zone }) => zone, ({ mayPick }) => mayPick, ({ state }) => state.rows] satisfies Part[]),
];
/** The drawing depends on these, and on {@link MOVED}. */
export const DRAWN: readonly Part[] = [
  ...([({ own }) => own, ({ marked }) => marked, ({ mark }) => mark] satisfies Part[]),
  ...([({ selectedRows }) => selectedRows] satisfies Part[]),
  ...([({ zone }) => zone, ({ now }) => now, ({ state }) => state.isTable] satisfies Part[]),
  ...([({ state }) => state.drag, ({ state }) => state.cursor, ({ state }) => state.loads] satisfies Part[]),
];
