import { formatBandwidth } from '../../contract/amounts.ts';
import type { ListedReservation } from '../../session/reservations/joined-list.ts';
import { knownRequest, nameOf, shortIds } from '../../session/reservations/known.ts';
import { linkName, viaName } from '../../words/links.ts';
import type { Span } from '../period.ts';
import { shortEnd, shortTime, type TimeContext } from '../times.ts';
import type { NamedExperiment } from './cards.ts';
import { folded } from './folded.ts';
import { escapeText, type Printer } from './output.ts';

/** A listed reservation, and its experiment. */
export interface ListedIn {
  item: ListedReservation;
  experiment: NamedExperiment;
}

/** The context of a table of reservations. */
export interface TableContext {
  /** All experiments that were asked about. */
  experiments: readonly NamedExperiment[];
  times: TimeContext;
  /** The ids of all reservations that are known, shown or not: short ids tell them apart. */
  known: readonly (string | null)[];
  /** The period that is asked about. Default: all time. */
  span?: Span;
}

/** The most columns in which a word stays whole. */
const MOST_COLUMNS = 200;
/** Printed where a value is not known. */
const UNKNOWN = '–';

/** How times are shortened where there is little room. */
interface Brevity {
  withoutWeekday?: boolean;
  /** An end on the day of its start is a time of day. */
  shortEnd?: boolean;
}

/** One reservation as text. */
interface Row {
  state: ListedReservation['state'];
  id: string;
  name: string;
  link: string;
  /** The sites between its ends; empty where there are none. */
  via: string;
  bandwidth: string;
  from: string;
  until: string;
  experiment: string;
}

/**
 * Reservations for people, in the order given. On a terminal with short ids, states in colour, and a
 * line above that names the experiment and the time zone: as a table, without weekdays where that is too
 * wide, or with two lines for each where that is too wide too. Elsewhere full ids and one row a line.
 */
export function reservationTable(print: Printer, listed: readonly ListedIn[], context: TableContext): string {
  const { experiments, times, known } = context;
  if (!print.isTerminal) {
    const columns = columnsOf(listed, true);
    return print.table(
      columns.map((column) => (column === 'from' ? `from (${times.zone})` : column)),
      listed.map((one) =>
        cells(
          rowOf(one, times, (id) => id),
          columns,
        ),
      ),
    );
  }
  const short = shortIds(known.filter((id) => id !== null));
  const rows = (brevity: Brevity): Row[] =>
    listed.map((one) => rowOf(one, times, (id) => short.get(id) ?? id, brevity));
  const isOfSeveral = experiments.length > 1;
  const caption = `${captionOf(print, context)}\n`;
  const columns = columnsOf(listed, isOfSeveral);
  for (const shown of [rows({}), rows({ withoutWeekday: true, shortEnd: true })]) {
    const table = shown.map((row) => cells(row, columns));
    if (!print.fits(columns, table)) continue;
    const style = (text: string, column: number, at: number): string =>
      painted(print, text, columns[column], shown[at]);
    return caption + print.table(columns, table, style);
  }
  return caption + stacked(print, rows({ shortEnd: true }), columns);
}

/** The line above all reservations of a list: their experiment, and the time zone. */
export function captionOf(
  { paint, isTerminal, columns }: Printer,
  { experiments, times }: TableContext,
): string {
  const [only, another] = experiments;
  const where = another
    ? `${experiments.length} experiments`
    : `Experiment ${only?.name ?? only?.id ?? UNKNOWN}`;
  const caption = escapeText(`${where}, times in ${times.zone}`);
  const lines = isTerminal ? folded(caption, columns ?? Number.POSITIVE_INFINITY) : [caption];
  return lines.map((line) => `${paint.dim(line)}\n`).join('');
}

/** The columns of a table, as its head names them: names and the sites on the way only where a reservation has some. */
function columnsOf(listed: readonly ListedIn[], withExperiment: boolean): (keyof Row)[] {
  const isNamed = listed.some(({ item }) => nameOf(item) !== undefined);
  const beside = withExperiment ? (['experiment'] as const) : [];
  const named = isNamed ? (['name'] as const) : [];
  const routed = listed.some(({ item }) => item.reservation?.via) ? (['via'] as const) : [];
  return ['id', ...named, 'state', 'link', ...routed, 'bandwidth', 'from', 'until', ...beside];
}

function cells(row: Row, columns: readonly (keyof Row)[]): string[] {
  return columns.map((column) => row[column]);
}

function rowOf(
  { item, experiment }: ListedIn,
  times: TimeContext,
  idText: (id: string) => string,
  { withoutWeekday = false, ...brevity }: Brevity = {},
): Row {
  const { id, state } = item;
  const known = knownRequest(item);
  const timeText = (instant: number): string => shortTime(instant, times, withoutWeekday);
  return {
    state,
    id: id === null ? UNKNOWN : idText(id),
    name: nameOf(item) ?? UNKNOWN,
    link: known ? linkName(known) : UNKNOWN,
    via: item.reservation ? viaName(item.reservation) : '',
    bandwidth: known?.bandwidth == null ? UNKNOWN : formatBandwidth(known.bandwidth),
    from: known ? (known.start === 'now' ? 'at once' : timeText(known.start)) : UNKNOWN,
    until: known
      ? brevity.shortEnd && known.start !== 'now'
        ? shortEnd(known.start, known.end, times, withoutWeekday)
        : timeText(known.end)
      : UNKNOWN,
    experiment: experiment.name ?? experiment.id ?? UNKNOWN,
  };
}

/** How each state is painted. */
export const STATE_COLORS = {
  active: 'green',
  scheduled: 'cyan',
  ended: 'dim',
  deleted: 'dim',
  unknown: 'yellow',
} as const satisfies Record<ListedReservation['state'], string>;

function painted(
  { paint }: Printer,
  text: string,
  column: keyof Row | undefined,
  row: Row | undefined,
): string {
  const color = STATE_COLORS[row?.state ?? 'scheduled'];
  if (color === 'dim') return paint.dim(text);
  if (column === 'id') return paint.bold(text);
  return column === 'state' ? paint[color](text) : text;
}

/** Two lines for each reservation, and more where they are too long: id, state, link, name and experiment; bandwidth and period. */
function stacked(print: Printer, rows: readonly Row[], columns: readonly (keyof Row)[]): string {
  const head = ['id', 'state', 'link'] as const;
  const widest = (...texts: readonly string[]): number => Math.max(...texts.map(({ length }) => length));
  const second = rows.flatMap(({ state, bandwidth }) => [state, bandwidth]);
  const beside = widest('id', ...rows.map(({ id }) => id)) + widest('state', ...second) + 4;
  const room = (print.columns ?? Number.POSITIVE_INFINITY) - beside;
  // A name may be longer than a narrow terminal has room for.
  const piece = new RegExp(`.{1,${Math.max(8, Math.min(room, MOST_COLUMNS))}}`, 'gu');
  const lines = rows.flatMap((row) => {
    const about = (['link', 'name', 'experiment'] as const)
      .filter((column) => columns.includes(column) && row[column] !== UNKNOWN)
      .map((column) => row[column]);
    const parts = [
      [row.id, row.state, about.join('  ')],
      ['', row.bandwidth, `${row.from} – ${row.until}`],
      ...(row.via === '' ? [] : [['', 'via', row.via]]),
    ];
    return parts.flatMap(([id = '', what = '', text = ''], part) =>
      folded(text, room)
        .flatMap((line) => line.match(piece) ?? [])
        .map((line, at) => ({
          row,
          named: part + at === 0,
          cells: at === 0 ? [id, what, line] : ['', '', line],
        })),
    );
  });
  const cells = lines.map((line) => line.cells);
  return print.table(head, cells, (text, column, at) =>
    painted(print, text, lines[at]?.named ? head[column] : undefined, lines[at]?.row),
  );
}
