import type { Own } from '../service.ts';
import type { TimelineState, TimelineTerms } from './model.ts';

/** The parts of the state that the timeline shows. */
export interface TimelineParts extends TimelineTerms {
  state: TimelineState;
  zone: string;
  /** My reservations, which are drawn above others' use. */
  own: readonly Own[];
}

/** A part on which something that is shown depends. */
type Part = (parts: TimelineParts) => unknown;
/** What is loaded depends on these. */
export const MOVED: readonly Part[] = [
  ...([({ state }) => state.window, ({ state }) => state.layout, ({ state }) => state.rows] satisfies Part[]),
];
/** The bars of my reservations depend on these. */
export const BARS: readonly Part[] = [(parts) => parts.own, ({ state }) => state.layout];
/** The table depends on these. */
export const TABLED: readonly Part[] = [
  ...([({ state }) => state.isTable, ({ own }) => own] satisfies Part[]),
  ...([({ zone }) => zone, ({ mayPick }) => mayPick, ({ state }) => state.rows] satisfies Part[]),
];
/** The drawing depends on these, and on {@link MOVED}. */
export const DRAWN: readonly Part[] = [
  ...([({ own }) => own, ({ mark }) => mark, ({ selectedRow }) => selectedRow] satisfies Part[]),
  ...([({ zone }) => zone, ({ now }) => now, ({ state }) => state.isTable] satisfies Part[]),
  ...([({ state }) => state.drag, ({ state }) => state.cursor, ({ state }) => state.loads] satisfies Part[]),
];
