import type { SqlRow, SqlStatements } from './sql.ts';

/** Reads a link's row. */
export const READ_LINK = 'SELECT version, forgotten FROM link WHERE id = $1';

/** What the engines do differently about reservations. */
export interface LinkLocking {
  /**
   * Locks a link's row until the transaction ends, in a statement that reads nothing else, and then reads it: `version`
   * and `forgotten`. Undefined when there is no such row.
   */
  lock(sql: SqlStatements, link: string): Promise<SqlRow | undefined>;
  /** Locks keys until the transaction ends. They come sorted, so that no two transactions wait for each other. */
  lockKeys(sql: SqlStatements, keys: readonly string[]): Promise<void>;
  /** Whether a table of its own says who holds a tag, for the engine's guard; else it guards the reservations' rows. */
  tagsApart: boolean;
  /** Deletes booking keys that expired by `$1`, the oldest first and `$2` at most. */
  letKeysGo: string;
}

/** Locks a link's row, which is made where there is none. @returns it */
export async function lockLink(
  sql: SqlStatements,
  locking: LinkLocking,
  link: string,
): Promise<SqlRow | undefined> {
  const row = await locking.lock(sql, link);
  if (row) return row;
  // Of two at once, the second waits here for the first.
  await sql.run('INSERT INTO link (id, version) VALUES ($1, 0) ON CONFLICT (id) DO NOTHING', link);
  return locking.lock(sql, link);
}
