import type { SqlRow, SqlStatements } from './sql.ts';

/** Reads a link's row. */
export const READ_LINK = 'SELECT version, forgotten FROM link WHERE id = $1';

/** What the engines do differently for reservations. */
export interface Locking {
  /**
   * Locks a link's row until the transaction ends, in a statement that reads nothing else, and then reads it: `version`
   * and `forgotten`; undefined when there is no such row.
   */
  lock(sql: SqlStatements, link: string): Promise<SqlRow | undefined>;
  /** Locks names until the transaction ends. They are sorted, so that no two transactions wait for each other. */
  lockNames(sql: SqlStatements, names: readonly string[]): Promise<void>;
  /** Whether the engine guards tags by the rows of `tag_hold`; else it guards the reservations' own rows. */
  tagsApart: boolean;
  /** Deletes idempotency keys that expired by `$1`, the oldest first and `$2` at most. */
  deleteExpiredKeys: string;
}

/** Locks a link's row, inserting it where there is none. @returns `version` and `forgotten` */
export async function lockLink(
  sql: SqlStatements,
  locking: Locking,
  link: string,
): Promise<SqlRow | undefined> {
  const row = await locking.lock(sql, link);
  if (row) return row;
  // Of two at once, the second waits here for the first.
  await sql.run('INSERT INTO link (id, version) VALUES ($1, 0) ON CONFLICT (id) DO NOTHING', link);
  return locking.lock(sql, link);
}
