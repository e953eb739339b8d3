import { instantOf } from '../../client/reservation-request.ts';
import type { ListedReservation } from '../../session/reservations/joined-list.ts';
import { shortIds } from '../../session/reservations/known.ts';
import { shortEnd, shortTime, type TimeContext } from '../times.ts';
import { formatBandwidth } from '../values.ts';
import type { NamedExperiment } from './cards.ts';
import { escapeText, type Printer } from './output.ts';

/** A listed reservation, and its experiment. */
export interface ListedIn {
  item: ListedReservation;
  experiment: NamedExperiment;
}

/** What a table of reservations needs besides them. */
export interface TableContext {
  /** All experiments that were asked about. */
  experiments: readonly NamedExperiment[];
  times: TimeContext;
  /** The ids of all reservations that are known, shown or not: short ids tell them apart. */
  known: readonly (string | null)[];
}

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
  link: string;
  bandwidth: string;
  from: string;
  until: string;
  experiment: string;
}

/**
 * Reservations for people, the first to start first. On a terminal with short ids, states in colour, and a line above
 * that names the experiment and the time zone: as a table, without weekdays where that is too wide, or with two lines for
 * each where that is too wide too. Elsewhere full ids and one row a line.
 */
export function reservationTable(print: Printer, listed: readonly ListedIn[], context: TableContext): string {
  const { experiments, times, known } = context;
  const sorted = listed.toSorted((one, other) => startOf(one) - startOf(other));
  if (!print.isTerminal) {
    const head = ['id', 'state', 'link', 'bandwidth', `from (${times.zone})`, 'until', 'experiment'];
    return print.table(
      head,
      sorted.map((one) => cells(rowOf(one, times, (id) => id))),
    );
  }
  const short = shortIds(known.filter((id) => id !== null));
  const rows = (brevity: Brevity): Row[] =>
    sorted.map((one) => rowOf(one, times, (id) => short.get(id) ?? id, brevity));
  const isOfSeveral = experiments.length > 1;
  const caption = `${captionOf(print, context)}\n`;
  const columns = isOfSeveral ? 7 : 6;
  const head = ['id', 'state', 'link', 'bandwidth', 'from', 'until', 'experiment'].slice(0, columns);
  for (const shown of [rows({}), rows({ withoutWeekday: true, shortEnd: true })]) {
    const table = shown.map((row) => cells(row).slice(0, columns));
    if (!print.fits(head, table)) continue;
    const style = (text: string, column: number, at: number): string =>
      painted(print, text, column, shown[at]);
    return caption + print.table(head, table, style);
  }
  return caption + stacked(print, rows({ shortEnd: true }), isOfSeveral);
}

/** The line above all reservations of a list: their experiment, and the time zone. */
export function captionOf({ paint }: Printer, { experiments, times }: TableContext): string {
  const [only, another] = experiments;
  const where = another
    ? `${experiments.length} experiments`
    : `Experiment ${only?.name ?? only?.id ?? UNKNOWN}`;
  return `${paint.dim(escapeText(`${where}, times in ${times.zone}`))}\n`;
}

function cells({ id, state, link, bandwidth, from, until, experiment }: Row): string[] {
  return [id, state, link, bandwidth, from, until, experiment];
}

function rowOf(
  { item, experiment }: ListedIn,
  times: TimeContext,
  idText: (id: string) => string,
  { withoutWeekday = false, ...brevity }: Brevity = {},
): Row {
  const { id, state, reservation, requested } = item;
  const known = reservation ?? requested;
  const [start, end] = [instantOf(known?.start_date ?? ''), instantOf(known?.end_date ?? '')];
  const timeText = (instant: number): string => shortTime(instant, times, withoutWeekday);
  const isShort = brevity.shortEnd && !Number.isNaN(start);
  return {
    state,
    id: id === null ? UNKNOWN : idText(id),
    link: known ? `${known.site1} – ${known.site2}` : UNKNOWN,
    bandwidth: known?.bandwidth == null ? UNKNOWN : formatBandwidth(known.bandwidth),
    from: Number.isNaN(start) ? (known ? 'at once' : UNKNOWN) : timeText(start),
    until: Number.isNaN(end)
      ? UNKNOWN
      : isShort
        ? shortEnd(start, end, times, withoutWeekday)
        : timeText(end),
    experiment: experiment.name ?? experiment.id ?? UNKNOWN,
  };
}

/** When it starts, in milliseconds; after all others where that is not known. */
export function startOf({ item: { reservation, requested } }: ListedIn): number {
  const start = instantOf(reservation?.start_date ?? requested?.start_date ?? '');
  return Number.isNaN(start) ? Number.MAX_SAFE_INTEGER : start;
}

/** How each state is painted. */
export const STATE_COLORS = {
  active: 'green',
  scheduled: 'cyan',
  ended: 'dim',
  deleted: 'dim',
  unknown: 'yellow',
} as const satisfies Record<ListedReservation['state'], string>;

/** The columns with a colour of their own. */
const [ID, STATE] = [0, 1];

function painted({ paint }: Printer, text: string, column: number, row: Row | undefined): string {
  const color = STATE_COLORS[row?.state ?? 'scheduled'];
  if (color === 'dim') return paint.dim(text);
  if (column === ID) return paint.bold(text);
  return column === STATE ? paint[color](text) : text;
}

/** Two lines for each reservation: id, state, link, and its experiment where there are several; bandwidth and period. */
function stacked(print: Printer, rows: readonly Row[], isOfSeveral: boolean): string {
  const widest = (texts: readonly string[]): number => Math.max(...texts.map(({ length }) => length));
  const first = widest(rows.map(({ id }) => id));
  const second = widest(rows.flatMap(({ state, bandwidth }) => [state, bandwidth]));
  const lines = rows.flatMap((row) => {
    const { id, state, link, bandwidth, from, until, experiment } = row;
    return [
      [id, state, isOfSeveral ? `${link}  ${experiment}` : link],
      ['', bandwidth, `${from} – ${until}`],
    ].map((texts, line) =>
      texts
        .map((text, column) => {
          const escaped = escapeText(text);
          const shown = painted(print, escaped, line === 0 ? column : Number.NaN, row);
          const width = [first, second][column] ?? 0;
          return `${shown}${' '.repeat(Math.max(0, width - escaped.length))}`;
        })
        .join('  '),
    );
  });
  return lines.map((line) => `${line}\n`).join('');
}
