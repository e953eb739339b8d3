import { STATUSES_IN_LIST } from '../contract/claims.ts';
import { returnsRow, type SqlStatements } from './sql.ts';

/** The row that says of which history a database is. Its table is the one of names and values; it is no secret. */
const NAME = 'history';

/** The history that a database says it is of; undefined where it is new, or a copy (sqlite/backup.ts). */
export const READ_HISTORY = `SELECT value FROM shared_secret WHERE name = '${NAME}'`;

/** Makes a copy of a database begin another history when a server opens it. */
export const FORGET_HISTORY = `DELETE FROM shared_secret WHERE name = '${NAME}'`;

/**
 * Begins another history of a database, unless it is of this one: a restored copy and a promoted standby may lack changes that were
 * confirmed, and tokens with their versions. So each link goes on from a version that was never given out: at the beginning of the
 * status list whose number is the time in seconds, since no link has 131,072 changes in a second; or of the next list, where
 * the clock was set back. It happens before any change of the new history.
 *
 * Histories that can't be told apart: the same file or folder with what it held before, as from a snapshot of a virtual machine.
 *
 * @param sql within a transaction
 * @param history names the place where the database is kept
 * @param seconds the engine's expression for the time
 */
export async function beginHistory(sql: SqlStatements, history: string, seconds: string): Promise<void> {
  // Of several servers that find it at once, the second waits for the first, and then finds nothing to do.
  const isBegun = await returnsRow(
    sql,
    `INSERT INTO shared_secret (name, value) VALUES ('${NAME}', $history)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE shared_secret.value <> excluded.value
     RETURNING name`,
    { history },
  );
  if (!isBegun) return;
  const size = STATUSES_IN_LIST;
  await sql.run(
    `UPDATE link SET version = CASE WHEN version < ${seconds} * ${size} THEN ${seconds} * ${size}
       ELSE (version / ${size} + 1) * ${size} END`,
  );
}
