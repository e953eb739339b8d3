import { formatBandwidth } from '../../contract/bandwidth.ts';
import type { Column, Link, Own, Window } from '../service.ts';
import { type Clock, floorToStep, lengthOfStep, nextStep, type Step } from './civil-time.ts';
import { isFree } from './pick.ts';
import { knownFrom } from './tiles.ts';
import { type Calendar, instantText, linkText, periodText } from './words.ts';

/** The lengths of a line of the table, the shortest first. */
const STEPS: readonly Step[] = [
  ...[15, 60, 360].map((count): Step => ({ unit: 'minute', count })),
  { unit: 'day', count: 1 },
  { unit: 'week', count: 1 },
];
/** The most lines of a link. */
const MOST_LINES = 60;
const HOUR = 3_600_000;

/** Parts of a window of equal length each, as they are asked for. */
export interface Segment extends Window {
  points: number;
}

/**
 * The parts of a window that a table has as lines: whole hours, days or weeks on the zone's clock, from where the use of
 * links is known on. They come in segments of equal lengths, as days differ where clocks change.
 */
export function tableSegments({ start, end }: Window, clock: Clock, now: number): Segment[] {
  const from = Math.max(start, Math.ceil(knownFrom(now) / HOUR) * HOUR);
  const step = STEPS.find((one) => (end - start) / lengthOfStep(one) <= MOST_LINES) ?? STEPS.at(-1);
  if (!step || from >= end) return [];
  const segments: Segment[] = [];
  let at = from === start ? floorToStep(from, step, clock) : from;
  while (at < end) {
    const next = nextStep(at, step, clock);
    const last = segments.at(-1);
    if (last && (last.end - last.start) / last.points === next - at) {
      last.end = next;
      last.points += 1;
    } else segments.push({ start: at, end: next, points: 1 });
    at = next;
  }
  return segments;
}

/** A line: a time in which the same is free, and my reservations in it. */
export interface Line extends Column {
  own: readonly Own[];
}

/** Columns as lines: neighbours with the same facts and the same reservations are one. */
export function tableLines(columns: readonly Column[], own: readonly Own[]): Line[] {
  const lines: Line[] = [];
  for (const column of columns) {
    const mine = own.filter(({ start, end }) => start < column.end && end > column.start);
    const last = lines.at(-1);
    const isSame =
      last?.free === column.free &&
      last.freeMax === column.freeMax &&
      last.vlans === column.vlans &&
      last.own.length === mine.length &&
      last.own.every((one, index) => one.id === mine[index]?.id);
    if (isSame) last.end = column.end;
    else lines.push({ ...column, own: mine });
  }
  return lines;
}

/** A link with its lines; undefined where they could not be loaded. */
export interface LinkLines {
  link: Link;
  lines: readonly Line[] | undefined;
}

/** An element with a text or with others in it. */
export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  content: string | readonly Node[] = '',
  attributes: Readonly<Record<string, string>> = {},
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (typeof content === 'string') element.textContent = content;
  else element.append(...content);
  return element;
}

/** The table of what is free, with a body for each link. */
export function tableOf(
  links: readonly LinkLines[],
  window: Window,
  { calendar, zone, onPick }: { calendar: Calendar; zone: string; onPick(link: Link, period: Window): void },
): HTMLTableElement {
  const heads = ['From', 'To', 'Free throughout', 'At best', 'VLANs', 'Yours', 'Book'];
  const bodies = links.map(({ link, lines }) => {
    const title = `${linkText(link)}, ${formatBandwidth(link.bandwidth)}`;
    const rows = lines?.map((line) => lineRow(link, line, { calendar, onPick })) ?? [
      make('tr', [make('td', 'Could not be loaded. It is tried again.', { colspan: '7' })]),
    ];
    if (lines?.length === 0)
      rows.push(make('tr', [make('td', 'Over; its use is not kept.', { colspan: '7' })]));
    const head = make('tr', [make('th', title, { scope: 'rowgroup', colspan: '7' })]);
    return make('tbody', [head, ...rows]);
  });
  return make('table', [
    make('caption', `What is free of the links, ${periodText(window, calendar)}; times in ${zone}`),
    make('thead', [
      make(
        'tr',
        heads.map((head) => make('th', head, { scope: 'col' })),
      ),
    ]),
    ...bodies,
  ]);
}

function lineRow(
  link: Link,
  line: Line,
  { calendar, onPick }: { calendar: Calendar; onPick(link: Link, period: Window): void },
): HTMLTableRowElement {
  const [from, to] = [instantText(line.start, calendar), instantText(line.end, calendar)];
  const mine = line.own.map(
    ({ id, name, bandwidth }) => `${name ?? `…${id.slice(-6)}`}, ${formatBandwidth(bandwidth)}`,
  );
  const cells = [
    to,
    formatBandwidth(line.free),
    formatBandwidth(line.freeMax),
    `${line.vlans}`,
    mine.join('; '),
  ];
  const row = make('tr', [make('th', from, { scope: 'row' }), ...cells.map((text) => make('td', text))]);
  if (mine.length > 0) row.className = 'mine';
  const isBookable = isFree(line) && line.end > calendar.now;
  const button = make('button', 'Pick', {
    type: 'button',
    'aria-label': `Pick ${linkText(link)}, ${from} to ${to}`,
  });
  button.addEventListener('click', () => onPick(link, line));
  row.append(make('td', isBookable ? [button] : ''));
  return row;
}
