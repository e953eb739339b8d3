import type { Period } from '../../contract/instants.ts';
import type { Point } from '../point.ts';
import type { Column, Link, Own } from '../service.ts';
import { type Block, blocksOf } from './blocks.ts';
import { LANE, LANES, type Layout } from './layout.ts';
import type { Mark, TimelineState, TimelineTerms } from './model.ts';
import { draggedPeriod, gripAt, grippedPeriod, nearestStep } from './pick.ts';
import { instantAt, placeOf, snapStep } from './windows.ts';

/** All that the drawing and the table show. */
export interface View extends TimelineTerms {
  state: TimelineState;
  /** The id of my reservation that is looked at. */
  marked: string | undefined;
  /** The numbers of the rows, from top to bottom. */
  rows: readonly number[];
  /** My reservations by row, by their start. */
  own: readonly (readonly Own[])[];
  /** What is known of the use of each link. */
  columns: ReadonlyMap<Link, readonly Column[]>;
  /** The width of the drawing in pixels, and the rows that are on the screen or near: from the first to before the last. */
  width: number;
  first: number;
  last: number;
  layout: Layout;
}

/** How far beside a block a pointer still means it, in pixels. */
const SLOP = 3;

/** The link of a row. */
export function linkOf({ links, pair }: Pick<View, 'links' | 'pair'>, row: number): Link | undefined {
  return links[row] ?? pair;
}

/** The columns of a row; none until they are known. */
export function columnsOf(view: Pick<View, 'links' | 'pair' | 'columns'>, row: number): readonly Column[] {
  const link = linkOf(view, row);
  return (link && view.columns.get(link)) ?? [];
}

/** My reservations in a row, as they are drawn. */
export function blocksIn({ own, state: { window }, width }: Sight, row: number): Block[] {
  return blocksOf(own[row] ?? [], window, (window.end - window.start) / width);
}

/** The parts of a view that a pointer meets. */
export type Sight = Pick<View, 'rows' | 'own' | 'width' | 'layout' | 'clock' | 'now'> & {
  state: Pick<TimelineState, 'window'>;
};

/** What lies at a point: a row, an instant, and one of my reservations with the grip there; undefined beside the rows. */
export function aimAt(sight: Sight, { x, y }: Point) {
  const { state, width, layout, rows, now } = sight;
  const row = rows[Math.floor(y / layout.row)];
  if (row === undefined) return undefined;
  const lane = Math.floor(((y % layout.row) - layout.top) / LANE);
  const place = (instant: number): number => placeOf(instant, state.window, width);
  const away = ({ start, end }: Period): number => Math.max(place(start) - x, x - place(end));
  const near = blocksIn(sight, row).filter((one) => one.lane === lane && away(one) <= SLOP);
  const [block] = near.toSorted((one, other) => away(one) - away(other));
  const grip = block && block.lane < LANES ? gripAt(block.own[0], x, place, now) : undefined;
  return { row, instant: instantAt(x, state.window, width), block, grip };
}

/** The start that a click at an instant means: the nearest step; now where that, or the click, is before. */
export function clickedStart(instant: number, { state, clock, now }: Sight): number {
  return instant < now ? now : Math.max(now, nearestStep(instant, snapStep(state.window, 'click'), clock));
}

/** A period that is dragged; `own`: of one of my reservations. */
export type Dragged = (Mark & { own?: Own }) | undefined;

/** The period that is dragged from a point to another: a new one, or one of my reservations as it becomes. */
export function draggedMark(sight: Sight, from: Point, to: Point, mayChange: boolean): Dragged {
  const { state, width, clock, now } = sight;
  const aim = aimAt(sight, from);
  if (!aim) return undefined;
  const { row, instant, block, grip } = aim;
  const context = { clock, now, step: snapStep(state.window, 'drag') };
  const until = instantAt(to.x, state.window, width);
  const own = block?.own[0];
  if (own && grip && mayChange) return { row, own, ...grippedPeriod(own, grip, [instant, until], context) };
  const period = draggedPeriod(instant, until, context);
  return period && { row, ...period };
}
