import { formatBandwidth } from '../../contract/amounts.ts';
import type { AvailablePart } from '../../contract/availability.ts';
import type { Period } from '../../contract/instants.ts';
import { instantOf } from '../../contract/reservation-request.ts';
import { linkName } from '../../words/links.ts';
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

/** How many lines a link has. */
const LINES = 3;

/** The characters of a chart: the top of what is free throughout, in eighths of a line; what is free for part of a column; its axis. */
const GLYPHS = {
  ...{ tops: ' ▁▂▃▄▅▆▇█', partly: '░' },
  ...{ side: '┤', corner: '└', line: '─', tick: '┬', now: '▲', noVlan: '×' },
};
const ASCII_GLYPHS: typeof GLYPHS = {
  ...{ tops: ' ___====#', partly: ':' },
  ...{ side: '|', corner: '+', line: '-', tick: '+', now: '^', noVlan: 'x' },
};

/** The free part of one column of a chart. */
type Column = Pick<AvailablePart, 'bandwidth' | 'bandwidth_max' | 'vlans'>;

/**
 * Draws what is free of each link over time, for a terminal: filled up to what is free throughout a column,
 * shaded up to what is free for some of it. An average would hide both. A legend names the fewest free VLANs and
 * the zone; several links have a title each, and their VLANs in it.
 *
 * @param width columns of the terminal; no line is longer
 * @returns lines, each with its line end
 */
export function availabilityChart(print: Printer, view: AvailabilityView, width: number): string {
  const glyphs = print.ascii ? ASCII_GLYPHS : GLYPHS;
  const { dim, bold, green } = print.paint;
  const { links, window, now } = view;
  const isAlone = links.length === 1;
  const sides = links.flatMap(({ link }) => [link.bandwidth, link.bandwidth / 2].map(formatBandwidth));
  const side = Math.max(LABEL_COLUMNS - 2, ...sides.map((text) => text.length));
  const count = Math.max(FEWEST_DRAWN, Math.min(width, MOST_COLUMNS) - side - 2);
  const ticks = columnTicks(window, view, count);
  const isNowShown = now > window.start && now < window.end;
  const vlans = links.map(({ items }) => Math.min(...items.map((item) => item.vlans)));
  const vlansText = (at: number): string => `${vlans[at]} ${vlans[at] === 1 ? 'VLAN' : 'VLANs'}`;
  const charts = links.map(({ link, items }, at) => {
    const columns = columnsOf(items, window, count);
    const [name, about] = [escapeText(linkName(link)), vlansText(at)];
    const gap = name.length + 2 + about.length > width ? '\n' : '  ';
    const title = isAlone ? '' : `${bold(name)}${gap}${dim(about)}\n`;
    const rows = plot(columns, link.bandwidth, glyphs).map((row, line) => {
      const label = [formatBandwidth(link.bandwidth), formatBandwidth(link.bandwidth / 2)][line] ?? '';
      return `${label.padStart(side)} ${dim(glyphs.side)}${green(row)}\n`;
    });
    const marked = new Set(ticks.map((tick) => columnAt(tick.at, window, count)));
    const axis = columns.map((column, index) =>
      column.vlans === 0 ? glyphs.noVlan : marked.has(index) ? glyphs.tick : glyphs.line,
    );
    if (isNowShown) axis[columnAt(now, window, count)] = glyphs.now;
    const below = `${' '.repeat(side + 1)}${dim(glyphs.corner + axis.join(''))}\n`;
    return `${title}${rows.join('')}${below}${' '.repeat(side + 2)}${labelLine(ticks, window, count)}\n`;
  });
  const parts = [
    `${glyphs.tops.at(-1)} free throughout`,
    `${glyphs.partly} for part of the column`,
    ...(vlans.includes(0) ? [`${glyphs.noVlan} no VLAN free`] : []),
    ...(isNowShown ? [`${glyphs.now} now`] : []),
    ...(isAlone ? [vlansText(0)] : []),
    escapeText(view.zone),
    ...routesText(links).map(escapeText),
  ];
  // Each part with the gap behind it, so that it stays whole where there is room.
  const lines = parts.flatMap((part) => (part.length < width ? `${part}  ` : folded(part, width - 1)));
  const legend = folded(lines.join('\n'), width + 1, /.+/g).map((line) => ` ${line.trimEnd()}\n`);
  const painted = legend.join('').replace(/[█░#:](?= f)/g, (glyph) => green(glyph));
  return `${charts.join('\n')}${isAlone ? '' : '\n'}${painted}`;
}

/** The routes on which something is free, each as a part of a legend. */
export function routesText(links: readonly LinkAvailability[]): string[] {
  return links.flatMap(({ routes = [] }) => routes.map((sites) => `route ${sites.join(' – ')}`));
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
function plot(columns: readonly Column[], capacity: number, { tops, partly }: typeof GLYPHS): string[] {
  // One division, so that the whole capacity is the whole height.
  const height = (mbps: number): number => (mbps * 8 * LINES) / capacity;
  return Array.from({ length: LINES }, (_, line) => {
    const below = 8 * (LINES - 1 - line);
    const cells = columns.map(({ bandwidth, bandwidth_max }) => {
      // Rounded down, so that nothing looks free that is not; but a little is never drawn as nothing.
      const level = bandwidth > 0 ? Math.max(1, Math.floor(height(bandwidth))) : 0;
      const eighths = Math.min(8, level - below);
      if (eighths > 0) return tops[eighths];
      const isPartly = height(bandwidth_max) - below >= 4 || (below === 0 && bandwidth_max > 0);
      return isPartly ? partly : ' ';
    });
    return cells.join('').trimEnd();
  });
}
