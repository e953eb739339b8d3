import { formatBandwidth } from '../../contract/amounts.ts';
import type { Period } from '../../contract/instants.ts';
import { type Calendar, instantText } from '../../words/civil-time.ts';
import { linkName } from '../../words/links.ts';
import { element } from '../elements.ts';
import type { Link, Own } from '../service.ts';
import { type Line, tableLines, tableSegments, tableStep } from './lines.ts';
import type { TimelineState } from './model.ts';
import { isFree } from './pick.ts';
import type { TileSource } from './tiles.ts';
import { mostOf, ownText, stepText, windowText } from './words.ts';

/** Options of {@link createTable}. */
export interface TableOptions extends Pick<TileSource, 'links' | 'columns'> {
  /** The parts of the state that the table shows, as they are now. */
  parts(): Calendar & { state: Pick<TimelineState, 'window'>; zone: string; mayPick: boolean };
  /** The numbers of the rows that are shown. */
  rows(): readonly number[];
  /** My reservations in a row. */
  ownIn(row: number): readonly Own[];
  onPick(row: number, period: Period): void;
}

/** The same facts as the drawing has, in words. */
export interface TableView {
  /** Hidden until it is shown. */
  element: HTMLElement;
  /** Shows this row alone, or all. */
  select(row: number | undefined): void;
  /** Offers a row by itself for two sites without a link, or takes it away. */
  show(row: number, pair: Link | undefined): void;
  /** While it is shown: asks again, and puts the new table in place of the old one where anything differs. */
  fill(): void;
}

/** A row with its lines; undefined where they could not be loaded. */
interface LinkLines {
  row: number;
  link: Link;
  lines: readonly Line[] | undefined;
}

/** Makes the table of what is free, for one link or for all. */
export function createTable(options: TableOptions): TableView {
  const { links, columns, ownIn, onPick } = options;
  let request: AbortController | undefined;
  let shown = '';
  const load = async (rows: readonly number[], window: Period, signal: AbortSignal): Promise<LinkLines[]> => {
    const { clock, now } = options.parts();
    const segments = tableSegments(window, clock, now);
    const found: LinkLines[] = [];
    for (const row of rows) {
      const link = links[row];
      if (!link) continue;
      const asked = segments.map(({ points, ...part }) => columns(link, part, points, signal));
      const parts = await Promise.all(asked).catch(() => undefined);
      if (signal.aborted) return [];
      found.push({ row, link, lines: parts && tableLines(parts.flat(), ownIn(row)) });
    }
    return found;
  };
  const fill = async (): Promise<void> => {
    if (whole.hidden) return;
    request?.abort();
    request = new AbortController();
    const { signal } = request;
    const { zone, state } = options.parts();
    const { window } = state;
    const chosen = choice.value === '' ? options.rows() : [Number(choice.value)];
    const found = await load(chosen, window, signal);
    const { clock, now, mayPick } = options.parts();
    const text = JSON.stringify([found, window, zone, mayPick]);
    if (signal.aborted || text === shown) return;
    shown = text;
    place.replaceChildren(tableOf(found, window, { calendar: { clock, now }, zone, mayPick, onPick }));
  };
  const choice = element(
    'select',
    { onchange: () => void fill() },
    element('option', { value: '' }, 'All links'),
    ...links.map((link, index) => element('option', { value: `${index}` }, linkName(link))),
  );
  const place = element('div', {
    class: 'timeline-lines',
    ...{ role: 'region', tabindex: '0', 'aria-label': 'What is free, as a table' },
  });
  const whole = element(
    'div',
    { class: 'timeline-table', hidden: true },
    element('label', {}, 'Links ', choice),
    place,
  );
  return {
    element: whole,
    select(row) {
      choice.value = row === undefined ? '' : `${row}`;
      void fill();
    },
    show(row, pair) {
      const { value } = choice;
      choice.options[row + 1]?.remove();
      if (pair) choice.append(element('option', { value: `${row}` }, linkName(pair)));
      // What was chosen stays so, also the row of other two sites.
      choice.value = [...choice.options].some((one) => one.value === value) ? value : '';
    },
    fill: () => void fill(),
  };
}

/** The way that a table's times are written, and the effect of picking from it. */
interface TableContext extends Pick<TableOptions, 'onPick'> {
  calendar: Calendar;
  zone: string;
  mayPick: boolean;
}

const HEADS = ['From', 'To', 'Free throughout', 'At best', 'VLANs', 'Yours'];
const CLASSES = new Map([['From', 'from'], ...HEADS.slice(2, 5).map((head) => [head, 'number'] as const)]);

/** A body for each link, a row for each line. */
function tableOf(links: readonly LinkLines[], window: Period, context: TableContext): HTMLTableElement {
  const names = context.mayPick ? ['Book', ...HEADS] : HEADS;
  const across = { colspan: `${names.length}` };
  const bodies = links.map(({ row, link, lines }) => {
    const title = `${linkName(link)}, ${formatBandwidth(link.bandwidth)}`;
    const none = lines
      ? 'This time is over; its use is not kept.'
      : 'Could not be loaded; it is tried again.';
    const rows = lines?.length
      ? lines.map((line) => lineRow({ row, link }, line, context))
      : [element('tr', {}, element('td', across, none))];
    const head = element(
      'tr',
      {},
      element('th', { scope: 'rowgroup', ...across }, element('span', {}, title)),
    );
    return element('tbody', {}, head, ...rows);
  });
  const heads = names.map((head) => element('th', { scope: 'col', class: CLASSES.get(head) }, head));
  const rounded = `rounded to ${stepText(tableStep(window))}`;
  const caption = `What is free: ${windowText(window, context.calendar)}, times in ${context.zone}, ${rounded}`;
  return element(
    'table',
    {},
    element('caption', {}, caption),
    element('thead', {}, element('tr', {}, ...heads)),
    ...bodies,
  );
}

function lineRow(
  { row, link }: Pick<LinkLines, 'row' | 'link'>,
  line: Line,
  { calendar, mayPick, onPick }: TableContext,
): HTMLTableRowElement {
  const [from, to] = [instantText(line.start, calendar), instantText(line.end, calendar)];
  const facts = [formatBandwidth(line.free), formatBandwidth(line.freeMax), `${line.vlans}`];
  const label = `Pick ${linkName(link)}, ${from} to ${to}`;
  const pick = { type: 'button', 'aria-label': label, onclick: () => onPick(row, line) };
  const isBookable = isFree(line) && line.end > calendar.now;
  return element(
    'tr',
    { class: line.own.length > 0 ? 'mine' : undefined },
    ...(mayPick ? [element('td', {}, ...(isBookable ? [element('button', pick, 'Pick')] : []))] : []),
    element('th', { scope: 'row', class: 'from' }, from),
    element('td', {}, to),
    ...facts.map((text) => element('td', { class: 'number' }, text)),
    element('td', { class: 'own' }, ...ownCell(line)),
  );
}

/** One of my reservations by its name, several as a number that opens: with all their names a line is as long as many. */
function ownCell({ own, start }: Line): (Node | string)[] {
  if (own.length < 2) return own.map(ownText);
  const summary = element('summary', {}, `${own.length}, ${formatBandwidth(mostOf(own, start))}`);
  return [element('details', {}, summary, own.map(ownText).join('; '))];
}
