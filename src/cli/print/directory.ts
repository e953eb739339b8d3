import type { CardLine, Printer } from './output.ts';
import { escapeText } from './terminal-text.ts';

/** The printed members of a project or an experiment; an empty string means that the portal did not send it. */
interface Entry {
  id: string;
  name: string;
  description: string;
  role: string;
  expires_at: string;
  project_id?: string;
}

/** Printed in place of a missing member. */
const UNKNOWN = '–';

/** A project or an experiment for programs. Missing members are null, except the description, which can be empty. */
export function directoryItem(entry: Entry): Readonly<Record<string, unknown>> {
  const known = Object.entries(entry).map(([name, value]) => [
    name,
    value === '' && name !== 'description' ? null : value,
  ]);
  return Object.fromEntries(known);
}

/** Projects or experiments for people; the chosen one, by id or name, is marked. */
export function directoryTable(
  print: Printer,
  noun: string,
  items: readonly Entry[],
  chosen: string | undefined,
): string {
  if (items.length === 0) return `You are not in any ${noun}.\n`;
  return print.table(
    ['name', 'role', 'expires', 'id'],
    items.map(({ id, name, role, expires_at }) => [
      `${name || UNKNOWN}${chosen === id || (chosen === name && name !== '') ? ' *' : ''}`,
      role || UNKNOWN,
      expires_at || UNKNOWN,
      id,
    ]),
  );
}

/** One project or experiment for people. */
export function directoryCard(print: Printer, title: string, entry: Entry): string {
  const { id, name, description, role, expires_at, project_id } = entry;
  const lines: CardLine[] = [
    ['id', id],
    ['role', role || UNKNOWN],
    ['expires', expires_at || UNKNOWN],
  ];
  if (project_id) lines.push(['project', project_id]);
  if (description) lines.push(['about', description]);
  return print.card(`${title} ${print.paint.bold(escapeText(name || UNKNOWN))}`, lines);
}
