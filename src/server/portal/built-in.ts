import type { IdKind } from '../../contract/ids.ts';
import { ROLES } from '../../contract/roles.ts';
import type { InitialDirectory } from './directory.ts';

const DAY = 24 * 60 * 60 * 1000;

/** How long the built-in projects last from each start on, in milliseconds: 365 days. */
export const PROJECT_LIFETIME = 365 * DAY;
/** How long the built-in experiments last from each start on, in milliseconds: 90 days. */
export const EXPERIMENT_LIFETIME = 90 * DAY;

/**
 * What a reference server starts with (DESIGN.md, "The reference server"): a user for each role, named after it; a
 * project and an experiment, both named `demo`, that they share; and one of each named `other` that is not theirs.
 */
export function builtInDirectory(now: number, newId: (kind: IdKind) => string): InitialDirectory {
  const project = (name: string, open: boolean) => {
    const id = newId('project');
    const described = open ? 'Comes with the reference server.' : 'Nobody of the built-in users is in it.';
    const record = { name, description: described, createdAt: now };
    return {
      ...record,
      id,
      open,
      expiresAt: now + PROJECT_LIFETIME,
      experiment: {
        ...record,
        id: newId('experiment'),
        project: id,
        expiresAt: now + EXPERIMENT_LIFETIME,
      },
    };
  };
  return {
    people: ROLES.map((name) => ({ id: newId('user'), name })),
    projects: [project('demo', true), project('other', false)],
  };
}
