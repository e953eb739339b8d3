import { formatBandwidth } from '../../contract/amounts.ts';
import type { Period } from '../../contract/instants.ts';
import { type TwoLineAxis, twoLineAxis } from '../../words/time-axis.ts';
import type { Block } from './blocks.ts';
import { barHeight, LANE, LANES } from './layout.ts';
import type { Mark } from './model.ts';
import { blocksIn, columnsOf, linkOf, type View } from './view.ts';
import { placeOf } from './windows.ts';

/** A canvas with its colours, and how many device pixels a CSS pixel has. */
export interface Paper {
  context: CanvasRenderingContext2D;
  /** The colours of timeline.css, by their names. */
  colour(name: string): string;
  scale: number;
}

const FONT = '12px system-ui, sans-serif';
const SPAN_FONT = '600 12px system-ui, sans-serif';
const BLOCK_FONT = '600 9px system-ui, sans-serif';
/** From this width on a block has its name, in pixels. */
const NAMED = 26;

type Rectangle = [x: number, y: number, width: number, height: number];

/** Gives a canvas a size in CSS pixels, and clears it. */
function begin({ context, scale }: Paper, width: number, height: number): void {
  const { canvas } = context;
  const size = [Math.round(width * scale), Math.round(height * scale)] as const;
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
}

/** The axis of a view. */
export function axisOf({ context }: Paper, { state, clock, width }: View): TwoLineAxis {
  context.font = SPAN_FONT;
  const measure = (label: string): number => context.measureText(label).width;
  return twoLineAxis(state.window, clock, { width, measure, gap: 8 });
}

/** Paints the dates. @param height of the canvas */
export function paintAxis(paper: Paper, { state, width }: View, axis: TwoLineAxis, height: number): void {
  const { context, colour } = paper;
  const { window } = state;
  begin(paper, width, height);
  const x = (instant: number): number => Math.round(placeOf(instant, window, width));
  context.textBaseline = 'alphabetic';
  context.fillStyle = colour('span');
  for (const { start } of axis.spans) if (start >= window.start) context.fillRect(x(start), 2, 1, height - 2);
  context.fillStyle = colour('full');
  context.font = SPAN_FONT;
  for (const { start, label } of axis.spans) context.fillText(label, Math.max(0, x(start)) + 3, 14);
  context.font = FONT;
  for (const { at, label } of axis.ticks) context.fillText(label, x(at) + 3, height - 7);
}

/**
 * Paints the rows that are on the screen, or near.
 *
 * @param dragged the period that is being dragged; the draft of the form is not drawn then
 * @param cursor where the keyboard is, while it is here
 */
export function paintRows(paper: Paper, view: View, axis: TwoLineAxis, dragged?: Mark, cursor?: Mark): void {
  const { context, colour, scale } = paper;
  const { state, rows, width, first, layout, now, mark: draft } = view;
  const { window } = state;
  const x = (instant: number): number => Math.round(placeOf(instant, window, width) * scale) / scale;
  const shown = rows.slice(first, view.last);
  const height = shown.length * layout.row;
  const placed = (at: number) => ({ view, x, y: at * layout.row + layout.top });
  const strip = (fill: string, left: number, wide: number): void => {
    context.fillStyle = fill;
    for (let y = layout.top; y < height; y += layout.row) context.fillRect(left, y, wide, layout.plot);
  };
  const mark = ({ start, end }: Period, row: number, isCursor = false): void => {
    const at = shown.indexOf(row);
    const left = Math.max(-4, x(start));
    const wide = Math.min(width + 4, Math.max(left + 3, x(end))) - left;
    if (at >= 0) paintMark(paper, [left, at * layout.row + layout.top + 1, wide, layout.plot - 2], isCursor);
  };
  begin(paper, width, height);
  for (const [at, row] of shown.entries()) paintUse(paper, placed(at), row);
  for (const { at } of axis.ticks) strip(colour('grid'), x(at), 1);
  for (const { start } of axis.spans) if (start >= window.start) strip(colour('span'), x(start), 1);
  for (const [at, row] of shown.entries())
    for (const block of blocksIn(view, row)) paintBlock(paper, placed(at), block);
  strip(colour('over'), 0, Math.min(Math.max(0, x(now)), width));
  context.fillStyle = colour('now');
  context.fillRect(x(now) - 1, 0, 2, height);
  for (const row of dragged ? [dragged.row] : (draft?.rows ?? [])) mark(dragged ?? draft ?? window, row);
  if (cursor) mark(cursor, cursor.row, true);
}

/** Where a row is painted. */
type At = { view: View; x(instant: number): number; y: number };

/** Paints the use of a link as an area from the bottom: strong where it is in use throughout a column, weak where for part of it. */
function paintUse({ context, colour }: Paper, { view, x, y }: At, row: number): void {
  const { plot } = view.layout;
  const { bandwidth = 1 } = linkOf(view, row) ?? {};
  for (const { start, end, free, freeMax, vlans } of columnsOf(view, row)) {
    if (end <= view.state.window.start || start >= view.state.window.end) continue;
    const [left, right] = [Math.max(0, x(start)), Math.min(view.width, x(end))];
    const fill = (style: string | CanvasPattern, tall: number): void => {
      context.fillStyle = style;
      context.fillRect(left, y + plot - tall, right - left, tall);
    };
    fill(colour('free'), plot);
    fill(colour('part'), plot - barHeight(free, bandwidth, plot));
    fill(colour('used'), plot - barHeight(freeMax, bandwidth, plot));
    if (freeMax === 0) fill(colour('full'), plot);
    if (vlans === 0) fill(dotted(context, colour('none')), plot);
  }
}

/** A pattern of dots. */
function dotted(context: CanvasRenderingContext2D, colour: string): CanvasPattern | string {
  const tile = new OffscreenCanvas(6, 6);
  const paper = tile.getContext('2d');
  if (!paper) return colour;
  paper.fillStyle = colour;
  for (const at of [0, 3]) paper.fillRect(at, at, 2, 2);
  return context.createPattern(tile, 'repeat') ?? colour;
}

/** Paints one of my reservations, or the number of further ones. */
function paintBlock({ context, colour }: Paper, { view, x, y }: At, { own, lane, start, end }: Block): void {
  const [{ name, bandwidth }] = own;
  const isNumber = lane === LANES;
  const left = Math.max(-4, x(start));
  const wide = Math.max(3, Math.min(view.width + 4, x(end)) - left);
  const top = y + lane * LANE;
  // A rim parts it from what lies behind it; around the one that is looked at it is strong.
  const isMarked = own.some(({ id }) => id === view.marked);
  context.fillStyle = colour(isMarked ? 'full' : 'free');
  context.fillRect(left - 1, top - (isMarked ? 1 : 0), wide + 1, LANE + (isMarked ? 1 : 0));
  context.fillStyle = colour(isNumber ? 'free' : 'mine');
  context.fillRect(left, top, wide - 1, LANE - 1);
  if (wide < NAMED) return;
  context.save();
  context.beginPath();
  context.rect(left, top, wide - 2, LANE);
  context.clip();
  context.font = BLOCK_FONT;
  context.textBaseline = 'middle';
  context.fillStyle = colour(isNumber ? 'mine' : 'on');
  const text = isNumber ? `+${own.length}` : (name ?? formatBandwidth(bandwidth));
  context.fillText(text, Math.max(0, left) + 3, top + LANE / 2);
  context.restore();
}

/** Frames a period: the draft, or with a dashed line the keyboard's cursor. */
function paintMark({ context, colour }: Paper, rectangle: Rectangle, isCursor: boolean): void {
  context.strokeStyle = colour('full');
  context.fillStyle = colour('full');
  context.lineWidth = 2;
  context.setLineDash(isCursor ? [4, 2] : []);
  context.strokeRect(...rectangle);
  context.globalAlpha = isCursor ? 0 : 0.2;
  context.fillRect(...rectangle);
  context.globalAlpha = 1;
}
