import type { Locking, SqlDatabase } from './sql.ts';

/** How many rows are deleted in one transaction, so that others wait some tens of milliseconds for its lock. */
const AT_ONCE = 250;

/**
 * Deletes rows of the audit and of deleted reservations from before an instant, some hundreds at a time. The link's row keeps
 * the version up to which such rows may be gone, so that events from before it are not told.
 *
 * @param before milliseconds since the Unix epoch
 * @returns how many rows were deleted
 */
export async function deleteOldRows(
  database: SqlDatabase,
  locking: Locking,
  before: number,
): Promise<{ audit: number; deleted: number }> {
  const gone = { audit: 0, deleted: 0 };
  for (let rows = AT_ONCE; rows === AT_ONCE; gone.audit += rows) {
    const deleted = await database.all(
      `DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE at_ms < $before ORDER BY at_ms LIMIT $most)
       RETURNING seq`,
      { before, most: AT_ONCE },
    );
    rows = deleted.length;
  }
  for (const { id } of await database.reader.all<{ id: string }>('SELECT id FROM link ORDER BY id')) {
    for (let rows = AT_ONCE; rows === AT_ONCE; ) {
      const { hops, reservations } = await forgetDeleted(database, locking, id, before);
      rows = hops;
      gone.deleted += reservations;
    }
  }
  return gone;
}

/** Deletes what is kept of deleted reservations on one link; a reservation goes with the last of its hops. */
async function forgetDeleted(
  database: SqlDatabase,
  locking: Locking,
  link: string,
  before: number,
): Promise<{ hops: number; reservations: number }> {
  const old = (column: 'reservation' | 'version'): string =>
    `SELECT ${column} FROM hop WHERE link = $link AND deleted_ms < $before ORDER BY version LIMIT $most`;
  const given = { link, before, most: AT_ONCE };
  return database.transaction(async (sql) => {
    // All are sent at once: with the link's lock held, nothing waits for the way to the database and back. Whatever has a
    // deleted reservation has a row, so there is one to lock; and while it is locked, each finds the same rows.
    const [, , , reservations, hops] = await Promise.all([
      locking.lock(sql, link),
      // The clocks of two replicas differ: rows deleted now may be of an earlier version than those deleted before.
      sql.run(
        `UPDATE link SET forgotten = old.version FROM (SELECT max(version) AS version FROM (${old('version')}) AS rows) AS old
         WHERE id = $link AND forgotten < old.version`,
        given,
      ),
      sql.run(`DELETE FROM idempotency_key WHERE reservation IN (${old('reservation')})`, given),
      sql.all(
        `DELETE FROM reservation WHERE id IN (${old('reservation')})
           AND NOT EXISTS (SELECT 1 FROM hop WHERE hop.reservation = reservation.id AND link <> $link) RETURNING id`,
        given,
      ),
      sql.all(
        `DELETE FROM hop WHERE link = $link AND reservation IN (${old('reservation')}) RETURNING link`,
        given,
      ),
    ]);
    return { hops: hops.length, reservations: reservations.length };
  });
}
