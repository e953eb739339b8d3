import type { AuditEntry } from '../allocator/store.ts';
import type { SqlInsert, SqlValue } from './sql.ts';

/** One row for each decision: who, what, when, and why it was refused. Rows of one link are in order by `seq`. */
export const AUDIT: SqlInsert = {
  into: 'audit',
  columns: {
    link: 'text',
    version: 'bigint',
    at_ms: 'bigint',
    action: 'text',
    granted: 'integer',
    actor: 'text',
    experiment: 'text',
    reservation: 'text',
    start_ms: 'bigint',
    end_ms: 'bigint',
    bandwidth: 'bigint',
    tags: 'text',
    why: 'text',
  },
};

/**
 * The rows of a group of decisions. A granted one carries the version of the link that it made, a refused one the version
 * that it was decided on: read in the order of `seq`, they are the link's whole history.
 *
 * @param before the link's version before the first of them
 */
export function auditRows(link: string, before: number, entries: readonly AuditEntry[]): SqlValue[][] {
  let version = before;
  return entries.map(({ at, action, by, experiment, reservation, demand, tags, why }) => {
    if (tags) version += 1;
    const { start, end, bandwidth } = demand;
    const asked = [start, end, bandwidth];
    const outcome = tags ? 1 : 0;
    const held = tags && JSON.stringify(tags);
    return [link, version, at, action, outcome, by, experiment, reservation, ...asked, held, why];
  });
}
