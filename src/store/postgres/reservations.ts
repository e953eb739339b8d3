import type { ReservationStore } from '../../allocator/store.ts';
import { type LinkLocking, READ_LINK } from '../link-locking.ts';
import { reservationStore } from '../reservations.ts';
import type { SqlDatabase } from '../sql.ts';

/** What of a link's lock is PostgreSQL's own. */
export const POSTGRES_LOCKING: LinkLocking = {
  /**
   * Locks the row in a statement that reads nothing else. At READ COMMITTED a statement sees what was committed before
   * it began: one that waits for the lock and reads in one would read what was there before the wait.
   */
  async lock(sql, link) {
    // Both are on their way at once: the second begins, and so sees, after the first has the lock.
    const [, row] = await Promise.all([
      sql.first('SELECT id FROM link WHERE id = $1 FOR UPDATE', link),
      sql.first(READ_LINK, link),
    ]);
    return row;
  },
  tagsApart: false,
  async lockKeys(sql, keys) {
    await Promise.all(
      keys.map((key) => sql.run('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', key)),
    );
  },
  // Keys that another transaction is letting go of, or is taking, are its own. A WITH that locks runs once; as a
  // subquery it might run again and let go of more.
  letKeysGo: `
    WITH gone AS MATERIALIZED (
      SELECT created_by, experiment, key FROM idempotency_key WHERE expires_ms <= $1
      ORDER BY expires_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
    DELETE FROM idempotency_key USING gone
    WHERE idempotency_key.created_by = gone.created_by AND idempotency_key.experiment = gone.experiment
      AND idempotency_key.key = gone.key`,
};

/** Reservations on PostgreSQL. */
export function postgresReservations(database: SqlDatabase): ReservationStore {
  return reservationStore(database, POSTGRES_LOCKING);
}
