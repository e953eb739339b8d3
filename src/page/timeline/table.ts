import { formatBandwidth } from '../../contract/bandwidth.ts';
import type { Link, Window } from '../service.ts';
import type { Line } from './lines.ts';
import { isFree } from './pick.ts';
import { type Calendar, instantText, linkText, windowText } from './words.ts';

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
    make('caption', `What is free: ${windowText(window, calendar)}, times in ${zone}`),
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
