import { formatBandwidth } from '../bandwidth.ts';
import type { AuditItem } from '../serve/server.ts';
import type { CardLine, Printer } from './output.ts';
import { escapeText } from './terminal-text.ts';

const HEAD = ['when (UTC)', 'what', 'outcome', 'link', 'bandwidth', 'period', 'reservation', 'by', 'why'];

/**
 * Decisions for people: a table, which a pipe always gets. On a terminal that is too narrow for it, each decision has
 * lines of its own, so that no id is cut.
 */
export function auditText(print: Printer, items: readonly AuditItem[]): string {
  const rows = items.map(rowOf);
  return print.fits(HEAD, rows) ? print.table(HEAD, rows) : items.map((item) => card(print, item)).join('');
}

function rowOf(item: AuditItem): string[] {
  const { action, link, reservation, by, why } = item;
  const asked = [linkText(link), formatBandwidth(item.bandwidth), periodText(item)];
  return [timeText(item.at), action, outcome(item), ...asked, reservation ?? '–', by, why ?? '–'];
}

function card(print: Printer, item: AuditItem): string {
  const { action, link, reservation, experiment, by, why } = item;
  const { paint } = print;
  const colour = item.granted ? paint.green : paint.red;
  const what = `${timeText(item.at)} UTC  ${colour(escapeText(`${action} ${outcome(item)}`))}`;
  const lines: CardLine[] = [
    ...(why === null ? [] : [['why', why] as const]),
    ['link', `${linkText(link)}, ${formatBandwidth(item.bandwidth)}`],
    ['period', periodText(item)],
    ['reservation', reservation ?? '–'],
    ['by', by],
    ['experiment', experiment],
  ];
  return print.card(what, lines);
}

function outcome({ granted, count }: AuditItem): string {
  if (granted) return 'granted';
  return count === 1 ? 'refused' : `refused ${count} times`;
}

function linkText(link: string): string {
  return link.replace('~', ' – ');
}

/** To the second: the millisecond is in JSON. */
function timeText(instant: string): string {
  return instant.slice(0, 19).replace('T', ' ');
}

/** Without the end's day where it equals the start's. */
function periodText({ start_date, end_date }: AuditItem): string {
  const [start, end] = [timeText(start_date), timeText(end_date)];
  return `${start} – ${start.slice(0, 10) === end.slice(0, 10) ? end.slice(11) : end}`;
}
