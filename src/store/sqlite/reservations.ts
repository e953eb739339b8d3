import type { ReservationStore } from '../../allocator/store.ts';
import { type LinkLocking, READ_LINK } from '../link-locking.ts';
import { reservationStore } from '../reservations.ts';
import type { SqliteDatabase } from './database.ts';
import { statementsOn } from './statements.ts';

/** The transaction itself is the lock: it began with `BEGIN IMMEDIATE`, so nobody else writes. */
export const SQLITE_LOCKING: LinkLocking = {
  lock: (sql, link) => sql.first(READ_LINK, link),
  tagsApart: true,
  async lockKeys() {
    // Nobody else writes.
  },
  letKeysGo: `
    DELETE FROM idempotency_key WHERE (created_by, experiment, key) IN (
      SELECT created_by, experiment, key FROM idempotency_key WHERE expires_ms <= $1 ORDER BY expires_ms LIMIT $2)`,
};

/** Reservations on SQLite. */
export function sqliteReservations(database: SqliteDatabase): ReservationStore {
  return reservationStore(statementsOn(database), SQLITE_LOCKING);
}
