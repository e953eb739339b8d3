import type { AvailablePart } from '../../contract/availability.ts';
import type { Period } from '../../contract/phases.ts';
import { instantOf } from '../../contract/reservation-request.ts';
import { linkName } from '../../words/link-name.ts';
import type { Tick } from '../../words/time-axis.ts';
import { formatBandwidth } from '../values.ts';
import { folded } from './folded.ts';
import { escapeText, type Printer } from './output.ts';
import { columnAt, columnTicks, labelLine } from './time-axis.ts';

/** A link, with its capacity in Mbps, and what of it is free in each part of a window. */
export interface LinkAvailability {
  link: { site1: string; site2: string; bandwidth: number };
  /** Contiguous, in order: exact steps, or columns. */
  items: readonly AvailablePart[];
  /** The routes on which that is free, each with all its sites; undefined where one link connects the two. */
  routes?: readonly (readonly string[])[];
}

/** One link, or several over the same window. Times in milliseconds. */
export interface AvailabilityView {
  links: readonly LinkAvailability[];
  window: Period;
  /** The time zone of the axis. */
  zone: string;
  now: number;
}

/** The columns that are left of a chart's columns for its labels. */
const LABEL_COLUMNS = 10;
/** The widest chart: more columns are harder to read than useful. */
const MOST_COLUMNS = 200;
const FEWEST_COLUMNS = 20;
/** A narrower terminal breaks the lines. */
const FEWEST_DRAWN = 10;

/**
 * How many columns of time a chart has, which is what to ask the service for (`points`).
 *
 * @param width columns of the terminal
 * @example chartColumns(80) // 70
 */
export function chartColumns(width: number): number {
  return Math.max(FEWEST_COLUMNS, Math.min(width, MOST_COLUMNS) - LABEL_COLUMNS);
}

/** The characters of a chart. */
interface Glyphs {
  /** The top of what is free throughout, from none to eight eighths of a line. */
  tops: readonly string[];
  /** Free for part of a column. */
  partly: string;
  axis: { side: string; corner: string; line: string; tick: string; now: string; noVlan: string };
}

const GLYPHS: Glyphs = {
  tops: [...' ▁▂▃▄▅▆▇█'],
  partly: '░',
  axis: { side: '┤', corner: '└', line: '─', tick: '┬', now: '▲', noVlan: '×' },
};

const ASCII_GLYPHS: Glyphs = {
  tops: [...' ___====#'],
  partly: ':',
  axis: { side: '|', corner: '+', line: '-', tick: '+', now: '^', noVlan: 'x' },
};

/** The free part of one column of a chart. */
type Column = Pick<AvailablePart, 'bandwidth' | 'bandwidth_max' | 'vlans'>;

/**
 * Draws what is free of each link over time, for a terminal: filled up to what is free throughout a column,
 * shaded up to what is free for some of it. An average would hide both. A link has three lines, or five or
 * seven where the terminal is wide and tall. A legend names the fewest free VLANs and the zone; several links
 * have a title each, and their VLANs in it.
 *
 * @param width columns of the terminal; no line is longer
 * @returns lines, each with its line end
 */
export function availabilityChart(print: Printer, view: AvailabilityView, width: number): string {
  const glyphs = print.ascii ? ASCII_GLYPHS : GLYPHS;
  const { links, window } = view;
  const isAlone = links.length === 1;
  const sides = links.flatMap(({ link }) => [link.bandwidth, link.bandwidth / 2].map(formatBandwidth));
  const side = Math.max(LABEL_COLUMNS - 2, ...sides.map((text) => text.length));
  const count = Math.max(FEWEST_DRAWN, Math.min(width, MOST_COLUMNS) - side - 2);
  const lines = linesOf(links.length, width, print.rows ?? 0);
  const ticks = columnTicks(window, view, count);
  const marks = { noVlan: false, now: false };
  const charts = links.map(({ link, items }) => {
    const columns = columnsOf(items, window, count);
    const vlans = Math.min(...columns.map((column) => column.vlans));
    marks.noVlan ||= vlans === 0;
    const axis = axisOf(columns, ticks, view, glyphs);
    marks.now ||= axis.includes(glyphs.axis.now);
    const [name, about] = [escapeText(linkName(link)), vlansText(vlans)];
    const gap = name.length + 2 + about.length > width ? '\n' : '  ';
    const title = isAlone ? '' : `${print.paint.bold(name)}${gap}${print.paint.dim(about)}\n`;
    const rows = plot(columns, link.bandwidth, lines, glyphs).map((row, at) => {
      const label = at === 0 ? link.bandwidth : at === (lines - 1) / 2 ? link.bandwidth / 2 : undefined;
      const text = label === undefined ? '' : formatBandwidth(label);
      return `${text.padStart(side)} ${print.paint.dim(glyphs.axis.side)}${print.paint.green(row)}\n`;
    });
    const below = `${' '.repeat(side + 1)}${print.paint.dim(axis)}\n`;
    const labels = `${' '.repeat(side + 2)}${labelLine(ticks, window, count)}\n`;
    return { text: title + rows.join('') + below + labels, vlans };
  });
  const [only] = charts;
  const parts = [
    `${glyphs.tops.at(-1)} free throughout  ${glyphs.partly} for part of the column`,
    ...(marks.noVlan ? [`${glyphs.axis.noVlan} no VLAN free`] : []),
    ...(marks.now ? [`${glyphs.axis.now} now`] : []),
    ...(isAlone && only ? [vlansText(only.vlans)] : []),
    escapeText(view.zone),
    ...routesText(links).map(escapeText),
  ];
  const legend = wrapped(parts, width).replace(/[█░#:](?= f)/g, (glyph) => print.paint.green(glyph));
  return `${charts.map(({ text }) => text).join('\n')}${isAlone ? '' : '\n'}${legend}`;
}

/** The routes on which something is free, each as a part of a legend. */
export function routesText(links: readonly LinkAvailability[]): string[] {
  return links.flatMap(({ routes = [] }) => routes.map((sites) => `route ${sites.join(' – ')}`));
}

/** How many lines a link gets: as many as look well at this width and leave all links on the screen. */
function linesOf(links: number, width: number, rows: number): number {
  const fits = (lines: number): boolean => links * (lines + 4) + 4 <= rows;
  if (width >= 140 && rows >= 40 && fits(7)) return 7;
  return width >= 100 && rows >= 30 && fits(5) ? 5 : 3;
}

/** The free part of each column, whatever parts the window is given in. */
function columnsOf(items: readonly AvailablePart[], { start, end }: Period, count: number): Column[] {
  const parts = items.map((item) => ({
    ...item,
    start: instantOf(item.start_date),
    end: instantOf(item.end_date),
  }));
  let first = 0;
  return Array.from({ length: count }, (_, index) => {
    const from = start + Math.floor((index * (end - start)) / count);
    const until = Math.max(from + 1, start + Math.floor(((index + 1) * (end - start)) / count));
    while ((parts[first]?.end ?? Number.POSITIVE_INFINITY) <= from) first += 1;
    let column: Column | undefined;
    for (let at = first; (parts[at]?.start ?? Number.POSITIVE_INFINITY) < until; at += 1) {
      const { bandwidth = 0, bandwidth_max = 0, vlans = 0 } = parts[at] ?? {};
      column = {
        bandwidth: Math.min(column?.bandwidth ?? bandwidth, bandwidth),
        bandwidth_max: Math.max(column?.bandwidth_max ?? 0, bandwidth_max),
        vlans: Math.min(column?.vlans ?? vlans, vlans),
      };
    }
    return column ?? { bandwidth: 0, bandwidth_max: 0, vlans: 0 };
  });
}

/** The lines of a plot, the highest first. */
function plot(columns: readonly Column[], capacity: number, lines: number, glyphs: Glyphs): string[] {
  // One division, so that the whole capacity is the whole height.
  const height = (mbps: number): number => (mbps * 8 * lines) / capacity;
  return Array.from({ length: lines }, (_, line) => {
    const below = 8 * (lines - 1 - line);
    const cells = columns.map(({ bandwidth, bandwidth_max }) => {
      // Rounded down, so that nothing looks free that is not; but a little is never drawn as nothing.
      const level = bandwidth > 0 ? Math.max(1, Math.floor(height(bandwidth))) : 0;
      const eighths = Math.min(8, level - below);
      if (eighths > 0) return glyphs.tops[eighths];
      const isPartly = height(bandwidth_max) - below >= 4 || (below === 0 && bandwidth_max > 0);
      return isPartly ? glyphs.partly : ' ';
    });
    return cells.join('').trimEnd();
  });
}

function axisOf(
  columns: readonly Column[],
  ticks: readonly Tick[],
  { window, now }: AvailabilityView,
  { axis }: Glyphs,
): string {
  const marked = new Set(ticks.map(({ at }) => columnAt(at, window, columns.length)));
  const cells = columns.map(({ vlans }, at) => {
    if (vlans === 0) return axis.noVlan;
    return marked.has(at) ? axis.tick : axis.line;
  });
  if (now > window.start && now < window.end) cells[columnAt(now, window, columns.length)] = axis.now;
  return axis.corner + cells.join('');
}

function vlansText(vlans: number): string {
  return `${vlans} ${vlans === 1 ? 'VLAN' : 'VLANs'}`;
}

/** Parts of a legend on as few lines as they fit on; one that is too long is cut at its blanks. */
function wrapped(parts: readonly string[], width: number): string {
  const lines: string[] = [];
  const fitting = parts.flatMap((part) =>
    part.length < width ? [part] : part.split('  ').flatMap((piece) => folded(piece, width - 1)),
  );
  for (const part of fitting) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 3 + part.length <= width) lines[lines.length - 1] += `   ${part}`;
    else lines.push(` ${part}`);
  }
  return lines.map((line) => `${line}\n`).join('');
}
