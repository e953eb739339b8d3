import { type Locking, READ_LINK } from '../locking.ts';

/** Row locks and advisory locks, which last until the transaction ends. */
export const POSTGRES_LOCKING: Locking = {
  /**
   * Locks the row in a statement that reads nothing else. At READ COMMITTED a statement sees what was committed before
   * it began: a statement that waited for the lock and read the row too would read it as it was before the wait.
   */
  async lock(sql, link) {
    // Both are sent at once; the server starts the second once the first has the lock.
    const [, row] = await Promise.all([
      sql.first('SELECT id FROM link WHERE id = $1 FOR UPDATE', link),
      sql.first(READ_LINK, link),
    ]);
    return row;
  },
  tagsApart: false,
  async lockNames(sql, names) {
    await Promise.all(
      names.map((name) => sql.run('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', name)),
    );
  },
  // SKIP LOCKED leaves the keys that another transaction inserts or deletes to it. A WITH that locks runs once; a
  // subquery might run again, and delete more.
  deleteExpiredKeys: `
    WITH gone AS MATERIALIZED (
      SELECT created_by, experiment, key FROM idempotency_key WHERE expires_ms <= $1
      ORDER BY expires_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
    DELETE FROM idempotency_key USING gone
    WHERE idempotency_key.created_by = gone.created_by AND idempotency_key.experiment = gone.experiment
      AND idempotency_key.key = gone.key`,
};
