import { type Role, readRole } from '../contract/roles.ts';

const ALLOWS: Readonly<Record<Role, string>> = {
  lead: 'may book, change and delete links',
  admin: 'may change and delete links, not book',
  member: 'may not see its links',
  viewer: 'may look, not book',
};

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
