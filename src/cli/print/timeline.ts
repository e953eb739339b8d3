import { bandwidthWord } from '../../contract/amounts.ts';
import type { Period } from '../../contract/instants.ts';
import type { ListedReservation } from '../../session/reservations/joined-list.ts';
import { knownPeriod, knownRequest, nameOf, shortIds } from '../../session/reservations/known.ts';
import { clockOf, clockText } from '../../words/civil-time.ts';
import { linkName } from '../../words/links.ts';
import type { Span } from '../period.ts';
import { escapeText, type Printer } from './output.ts';
import { captionOf, type ListedIn, STATE_COLORS, type TableContext } from './reservation-table.ts';
import { columnAt, columnTicks, labelLine } from './time-axis.ts';

type State = ListedReservation['state'];

/** The characters of a timeline: a bar of each state, where what has passed of an active one looks different; the ground; the present. */
const GLYPHS = {
  bars: { passed: '▓', active: '█', scheduled: '▒', ended: '░', deleted: '×', unknown: '?' },
  ...{ empty: '·', tick: '┊', now: '│', pointer: '▼', between: '–' },
};

const ASCII_GLYPHS: typeof GLYPHS = {
  bars: { passed: '=', active: '#', scheduled: '+', ended: '-', deleted: 'x', unknown: '?' },
  ...{ empty: '.', tick: ':', now: '|', pointer: 'v', between: ' - ' },
};

/** The order of the legend. */
const STATES: readonly State[] = ['active', 'scheduled', 'ended', 'deleted', 'unknown'];

/** The fewest columns of time beside short ids; with fewer, the ids are left out. */
const COMFORTABLE = 40;
/** The fewest columns of time; with fewer, the ids stand in place of the sites. */
const FEWEST_COLUMNS = 20;
/** The widest timeline. */
const MOST_COLUMNS = 200;

/** A reservation, and its period in milliseconds as far as it is known. */
interface Row {
  item: ListedReservation;
  period: Period | undefined;
}

/**
 * Reservations as bars over one time axis, in the order given, with the present marked. The axis reaches from the
 * first start to the last end, or over the period that the context asks for. Each state has a bar of its own; several experiments have a heading each. On a terminal a
 * row begins with its name or a short id, where there is room; elsewhere it ends with the full id.
 *
 * @param width columns of the terminal; no line is longer, but for full ids elsewhere
 */
export function timeline(
  print: Printer,
  listed: readonly ListedIn[],
  context: TableContext,
  width: number,
): string {
  const glyphs = print.ascii ? ASCII_GLYPHS : GLYPHS;
  const { experiments, times, known, span = {} } = context;
  const { now } = times;
  const { paint } = print;
  const rows = listed.map((one) => ({ ...one, period: knownPeriod(one.item) }));
  const window = windowOf(rows, now, span);
  const short = print.isTerminal ? shortIds(known.filter((id) => id !== null)) : undefined;
  const texts = rows.map(({ item }) => ({
    // A name is accepted wherever an id is.
    id: short ? escapeText(nameOf(item) ?? '') || (short.get(item.id ?? '') ?? item.id ?? '') : '',
    ...linkText(item, glyphs),
  }));
  const isNamed = rows.some(({ item }) => nameOf(item) !== undefined);
  const labels = labelsOf(texts, Math.min(width, MOST_COLUMNS), isNamed);
  const indent = labels[0]?.length ?? 0;
  const count = Math.max(FEWEST_COLUMNS, Math.min(width, MOST_COLUMNS) - indent);
  const ticks = columnTicks(window, times, count);
  const isShown = window.start <= now && now < window.end;
  const present = isShown ? columnAt(now, window, count) : undefined;
  const ground = Array.from({ length: count }, () => glyphs.empty);
  for (const { at } of ticks) ground[columnAt(at, window, count)] = glyphs.tick;
  if (present !== undefined) ground[present] = glyphs.now;

  const background = (from: number, until: number): string => paint.dim(ground.slice(from, until).join(''));
  const column = (instant: number): number =>
    columnAt(Math.min(Math.max(instant, window.start), window.end - 1), window, count);
  const barOf = ({ item: { state }, period }: Row): string => {
    if (!period || period.start >= window.end || period.end <= window.start) return background(0, count);
    const [first, last] = [column(period.start), column(period.end - 1)];
    const begun = now >= window.end ? count : column(now);
    const passed = state === 'active' ? Math.min(last + 1, Math.max(first, begun)) - first : 0;
    const bar = glyphs.bars.passed.repeat(passed) + glyphs.bars[state].repeat(last + 1 - first - passed);
    return background(0, first) + paint[STATE_COLORS[state]](bar) + background(last + 1, count);
  };
  const lineOf = (row: Row, label: string): string => {
    const id = print.isTerminal || row.item.id === null ? '' : `  ${row.item.id}`;
    return `${label}${barOf(row)}${escapeText(id)}\n`;
  };
  const isOfSeveral = experiments.length > 1;
  const groups = experiments.flatMap(({ id, name = id ?? '' }) => {
    const own = rows.flatMap((row, at) =>
      isOfSeveral && row.experiment.id !== id ? [] : [lineOf(row, labels[at] ?? '')],
    );
    return isOfSeveral && own.length > 0 ? [`${paint.bold(escapeText(name))}\n`, ...own] : own;
  });
  const pointer = present === undefined ? [] : [pointerLine(present, count, context, glyphs)];
  const head = [labelLine(ticks, window, count), ...pointer];
  return [
    captionOf(print, context),
    ...head.map((line) => `${' '.repeat(indent)}${line}\n`),
    ...groups,
    legendOf(rows, print, glyphs),
  ].join('');
}

/** The period that the axis shows: all of theirs, and now; from and until what was asked for, where that was. */
function windowOf(rows: readonly Row[], now: number, span: Span): Period {
  let [start, end] = [now, now + 1];
  for (const { period } of rows) {
    start = Math.min(start, period?.start ?? now);
    end = Math.max(end, period?.end ?? now);
  }
  return { start: span.start ?? start, end: span.end ?? end };
}

/** The texts beside a bar. */
interface LabelTexts {
  id: string;
  link: string;
  bandwidth: string;
}

function linkText(item: ListedReservation, { between }: typeof GLYPHS): Omit<LabelTexts, 'id'> {
  const known = knownRequest(item);
  if (!known) return { link: '?', bandwidth: '' };
  const { bandwidth } = known;
  const rate = bandwidth === undefined ? '' : bandwidthWord(bandwidth);
  // Before it is measured: what is escaped is longer.
  return { link: escapeText(linkName(known, between)), bandwidth: rate };
}

/**
 * The labels, of one length: id, link and bandwidth; without some of them where the bars need the room. A name stays: it
 * is what people gave.
 */
function labelsOf(texts: readonly LabelTexts[], width: number, isNamed: boolean): string[] {
  const columns = (members: readonly (keyof LabelTexts)[]): string[] => {
    const widths = members
      // Not spread: a list can be longer than arguments may be.
      .map((member) => [member, texts.reduce((most, one) => Math.max(most, one[member].length), 0)] as const)
      .filter(([, width]) => width > 0);
    return texts.map((one) => {
      const cells = widths.map(([member, width]) =>
        member === 'bandwidth' ? one[member].padStart(width) : one[member].padEnd(width),
      );
      return `${cells.join('  ')}   `;
    });
  };
  const room = (labels: readonly string[]): number => width - (labels[0]?.length ?? 0);
  const all = columns(['id', 'link', 'bandwidth']);
  if (room(all) >= COMFORTABLE) return all;
  const links = columns(isNamed ? ['id', 'link'] : ['link', 'bandwidth']);
  return room(links) >= FEWEST_COLUMNS ? links : columns(['id', 'bandwidth']);
}

/** The line that points to the present and tells the time, on the side where there is room. */
function pointerLine(
  present: number,
  count: number,
  { times }: TableContext,
  { pointer }: typeof GLYPHS,
): string {
  const text = `now ${clockText(times.now, clockOf(times.zone))}`;
  const isLeft = present + text.length + 2 > count;
  return isLeft ? `${text} ${pointer}`.padStart(present + 1) : `${' '.repeat(present)}${pointer} ${text}`;
}

/** Which bar means which state, of the states that are shown. */
function legendOf(rows: readonly Row[], { paint }: Printer, { bars }: typeof GLYPHS): string {
  const shown = STATES.filter((state) => rows.some(({ item, period }) => period && item.state === state));
  const parts = shown.map((state) => {
    const bar = state === 'active' ? bars.passed + bars.active : bars[state];
    return `${paint[STATE_COLORS[state]](bar)} ${state}`;
  });
  return parts.length === 0 ? '' : ` ${parts.join('   ')}\n`;
}
