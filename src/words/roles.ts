import { type Role, readRole } from '../contract/roles.ts';

const ALLOWS: Readonly<Record<Role, string>> = {
  lead: 'may book, change and delete',
  admin: 'may change and delete, not book',
  member: 'may not see its reservations',
  viewer: 'may look, not book',
};

/** How many leads are named at most. */
export const MOST_LEADS = 5;

/**
 * The sentence that says who could do what a role does not allow; an empty text where no role may.
 *
 * @param names of the leads of a project or an experiment; beyond {@link MOST_LEADS} they are "others"
 * @example leadsText(['anna', 'ben']) // 'Its leads are anna and ben.'
 */
export function leadsText(names: readonly string[]): string {
  const named = names.length > MOST_LEADS ? [...names.slice(0, MOST_LEADS), 'others'] : names;
  if (named.length < 2) return named.map((name) => `Its lead is ${name}.`).join('');
  return `Its leads are ${named.slice(0, -1).join(', ')} and ${named.at(-1)}.`;
}

/**
 * The part of a sentence that says what a role allows in an experiment; see `WHO_MAY`.
 *
 * @param role as a token or a record has it
 * @returns undefined for a role that is not known here
 */
export function roleAllows(role: string): string | undefined {
  const known = readRole(role);
  return known && ALLOWS[known];
}
