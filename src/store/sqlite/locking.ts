import { type Locking, READ_LINK } from '../locking.ts';

/** The transaction is the lock: it began with `BEGIN IMMEDIATE`, so no other connection writes. */
export const SQLITE_LOCKING: Locking = {
  lock: (sql, link) => sql.first(READ_LINK, link),
  tagsApart: true,
  async lockNames() {
    // No other connection writes.
  },
  deleteExpiredKeys: `
    DELETE FROM idempotency_key WHERE (created_by, experiment, key) IN (
      SELECT created_by, experiment, key FROM idempotency_key WHERE expires_ms <= $1 ORDER BY expires_ms LIMIT $2)`,
};
