import type { CardLine, Printer } from './output.ts';
import { escapeText } from './terminal-text.ts';

/** A project or an experiment, as far as it is printed. */
interface Entry {
  id: string;
  name: string;
  description: string;
  role: string;
  expires_at: string;
  project_id?: string;
}

/** Projects or experiments for people; the chosen one, by id or name, is marked. */
export function directoryTable(
  print: Printer,
  noun: string,
  items: readonly Entry[],
  chosen: string | undefined,
): string {
  if (items.length === 0) return `You are in no ${noun}.\n`;
  return print.table(
    ['name', 'role', 'expires', 'id'],
    items.map(({ id, name, role, expires_at }) => [
      `${name}${chosen === id || chosen === name ? ' *' : ''}`,
      role,
      expires_at,
      id,
    ]),
  );
}

/** One project or experiment for people. */
export function directoryCard(print: Printer, title: string, entry: Entry): string {
  const { id, name, description, role, expires_at, project_id } = entry;
  const lines: CardLine[] = [
    ['id', id],
    ['role', role],
    ['expires', expires_at],
  ];
  if (project_id) lines.push(['project', project_id]);
  if (description) lines.push(['about', description]);
  return print.card(`${title} ${print.paint.bold(escapeText(name))}`, lines);
}
