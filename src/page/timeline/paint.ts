import type { Period } from '../../contract/instants.ts';
import type { TwoLineAxis } from '../../words/time-axis.ts';
import type { Column, Own } from '../service.ts';
import { barHeight, LANE, type Layout } from './layout.ts';
import type { Mark } from './model.ts';
import { placeOf } from './windows.ts';

/** The colours of a drawing, as canvas takes them. */
export interface Colours {
  /** The background. */
  free: string;
  /** In use throughout a column; in stripes, in use for part of it. */
  used: string;
  /** Nothing is left. */
  full: string;
  mine: string;
  /** No VLAN is left: lines over all of it. */
  none: string;
  now: string;
  grid: string;
  /** Where days, months or years begin. */
  span: string;
  text: string;
  soft: string;
  /** Laid over the time that has passed. */
  over: string;
  pick: string;
  focus: string;
}

/** The drawing of one link. */
export interface Row {
  /** Parts of the link's use, to be drawn in this order; the columns of each are of equal length. */
  parts: readonly (readonly Column[])[];
  /** Mbps. */
  capacity: number;
  /** The longest first. */
  own: readonly Own[];
  isSelected: boolean;
}

/** All that a drawing is made of. */
export interface Scene {
  window: Period;
  layout: Layout;
  axis: TwoLineAxis;
  /** The rows that are on the screen, and the number of the first one. */
  rows: readonly Row[];
  firstRow: number;
  now: number;
  /** The id of my reservation that is looked at. */
  marked: string | undefined;
  /** The draft of the form in each row, or the period that is being dragged. */
  marks: readonly Mark[];
  /** Where the keyboard is, while it is here. */
  cursor: Mark | undefined;
}

const FONT = '12px system-ui, sans-serif';
const SPAN_FONT = '600 12px system-ui, sans-serif';
/** From this width on a bar is parted from others, in pixels. */
const PARTED = 6;

/** Draws scenes on a canvas. What was drawn of columns is kept as a picture, a pixel wide for each, and stretched. */
export class Painter {
  readonly #context: CanvasRenderingContext2D;
  #colours: Colours;
  #pictures = new WeakMap<readonly Column[], HTMLCanvasElement>();
  #scale = 0;
  #plot = 0;
  readonly #widths = new Map<string, number>();

  constructor(context: CanvasRenderingContext2D, colours: Colours) {
    this.#context = context;
    this.#colours = colours;
  }

  /** From now on other colours. */
  set colours(colours: Colours) {
    this.#colours = colours;
    this.#pictures = new WeakMap();
  }

  /** The width of a label of the axis in CSS pixels. */
  measure(label: string): number {
    const known = this.#widths.get(label);
    if (known !== undefined) return known;
    this.#context.font = SPAN_FONT;
    const { width } = this.#context.measureText(label);
    if (this.#widths.size > 2000) this.#widths.clear();
    this.#widths.set(label, width);
    return width;
  }

  /** @param scale device pixels in a CSS pixel */
  draw(scene: Scene, scale: number): void {
    const context = this.#context;
    const { window, layout, axis, rows, firstRow, now } = scene;
    const { width, row, plot } = layout;
    if (scale !== this.#scale || plot !== this.#plot) this.#pictures = new WeakMap();
    [this.#scale, this.#plot] = [scale, plot];
    const colours = this.#colours;
    const x = (instant: number): number => Math.round(placeOf(instant, window, width) * scale) / scale;
    const top = layout.axis + firstRow * row;
    const bottom = top + rows.length * row;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, context.canvas.height / scale);
    context.imageSmoothingEnabled = false;
    for (const [index, one] of rows.entries()) this.#row(one, top + index * row, scene, x);
    const over = Math.min(x(now), width);
    if (over > 0) {
      context.fillStyle = colours.over;
      context.fillRect(0, top, over, bottom - top);
    }
    this.#axis(axis, { ...scene, bottom }, x);
    if (now >= window.start && now < window.end) {
      context.fillStyle = colours.now;
      context.fillRect(x(now) - 1, layout.axis - 8, 2, bottom - layout.axis + 8);
    }
    // Labels that stand above their plots have nothing behind them.
    if (layout.top > 10) {
      for (let y = top; y < bottom; y += row) context.clearRect(0, y, width, layout.top - 2);
    }
    for (const mark of scene.marks) this.#mark(mark, scene, x, { colour: colours.pick });
    if (scene.cursor) this.#mark(scene.cursor, scene, x, { colour: colours.focus, isDashed: true });
  }

  #row(
    { parts, capacity, own, isSelected }: Row,
    at: number,
    { window, layout: { width, top, plot, lane }, marked }: Scene,
    x: (instant: number) => number,
  ): void {
    const context = this.#context;
    const colours = this.#colours;
    const y = at + top;
    for (const columns of parts) {
      const [first, last] = [columns[0], columns.at(-1)];
      if (!first || !last || last.end <= window.start || first.start >= window.end) continue;
      const picture = this.#picture(columns, capacity);
      // Of a part that reaches far out of the canvas only the columns in view are stretched.
      const length = (last.end - first.start) / columns.length;
      const from = Math.max(0, Math.floor((window.start - first.start) / length));
      const until = Math.min(columns.length, Math.ceil((window.end - first.start) / length));
      const [left, right] = [x(first.start + from * length), x(first.start + until * length)];
      if (right <= left) continue;
      context.drawImage(picture, from, 0, until - from, picture.height, left, y, right - left, plot);
    }
    for (const one of own) {
      if (one.end <= window.start || one.start >= window.end) continue;
      const left = Math.max(-4, x(one.start));
      const right = Math.max(left + 2, Math.min(width + 4, x(one.end)));
      // A gap parts it from those beside it and below it, where there is room for one.
      if (right - left >= PARTED) context.clearRect(left - 1, at + lane, right - left + 2, LANE);
      context.fillStyle = colours.mine;
      context.fillRect(left, at + lane, right - left, LANE);
      if (one.id !== marked) continue;
      context.strokeStyle = colours.focus;
      context.lineWidth = 3;
      context.strokeRect(left - 1.5, at + lane - 1.5, right - left + 3, LANE + 3);
    }
    if (isSelected) {
      context.strokeStyle = colours.pick;
      context.lineWidth = 1;
      context.strokeRect(0.5, y - 1.5, width - 1, plot + 3);
    }
  }

  /** Columns as a picture: filled up to what is in use throughout, in stripes up to what is in use for some of it. */
  #picture(columns: readonly Column[], capacity: number): HTMLCanvasElement {
    const known = this.#pictures.get(columns);
    if (known) return known;
    const picture = document.createElement('canvas');
    const height = Math.round(this.#plot * this.#scale);
    [picture.width, picture.height] = [columns.length, height];
    const context = picture.getContext('2d');
    if (context)
      paintColumns(context, columns, { capacity, height, colours: this.#colours, line: this.#scale });
    this.#pictures.set(columns, picture);
    return picture;
  }

  #axis(
    { spans, ticks }: TwoLineAxis,
    { window, layout, bottom }: Scene & { bottom: number },
    x: (instant: number) => number,
  ): void {
    const context = this.#context;
    const colours = this.#colours;
    context.textBaseline = 'alphabetic';
    context.fillStyle = colours.grid;
    for (const { at } of ticks) context.fillRect(x(at), layout.axis - 5, 1, bottom - layout.axis + 5);
    context.fillStyle = colours.span;
    for (const { start } of spans) {
      if (start >= window.start) context.fillRect(x(start), 4, 1, bottom - 4);
    }
    context.font = FONT;
    context.fillStyle = colours.soft;
    for (const { at, label } of ticks) if (label !== '') context.fillText(label, x(at) + 3, layout.axis - 9);
    context.font = SPAN_FONT;
    context.fillStyle = colours.text;
    for (const { start, label } of spans) {
      if (label !== '') context.fillText(label, Math.max(0, x(start)) + 3, 15);
    }
  }

  #mark(
    mark: Mark,
    { layout: { axis, row, top, plot, width } }: Scene,
    x: (instant: number) => number,
    { colour, isDashed = false }: { colour: string; isDashed?: boolean },
  ): void {
    const context = this.#context;
    const left = Math.max(-4, x(mark.start));
    const right = Math.min(width + 4, Math.max(left + 3, x(mark.end)));
    const y = axis + mark.row * row + top - 2;
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineWidth = 2;
    if (isDashed) context.setLineDash([4, 2]);
    context.strokeRect(left, y, right - left, plot + 4);
    context.setLineDash([]);
    if (isDashed) return;
    context.globalAlpha = 0.25;
    context.fillRect(left, y, right - left, plot + 4);
    context.globalAlpha = 1;
  }
}

/** Paints columns a pixel wide each, as the command line's chart does: an average would hide both. */
function paintColumns(
  context: CanvasRenderingContext2D,
  columns: readonly Column[],
  { capacity, height, colours, line }: { capacity: number; height: number; colours: Colours; line: number },
): void {
  context.fillStyle = colours.free;
  context.fillRect(0, 0, columns.length, height);
  const paint = (colour: string, tall: (column: Column) => number): void => {
    context.fillStyle = colour;
    for (const [at, column] of columns.entries()) {
      const pixels = tall(column);
      if (pixels > 0) context.fillRect(at, height - pixels, 1, pixels);
    }
  };
  const inUse = (free: number): number => height - barHeight(free, capacity, height);
  paint(colours.used, ({ free }) => inUse(free));
  context.fillStyle = colours.free;
  const stripe = 2 * Math.round(line);
  for (let y = 0; y < height; y += 2 * stripe) context.fillRect(0, y, columns.length, stripe);
  paint(colours.used, ({ freeMax }) => inUse(freeMax));
  paint(colours.full, ({ freeMax }) => (freeMax === 0 ? height : 0));
  context.fillStyle = colours.none;
  for (const [at, { vlans }] of columns.entries()) {
    if (vlans > 0) continue;
    for (let y = stripe; y < height; y += 3 * stripe) context.fillRect(at, y, 1, stripe);
  }
}
