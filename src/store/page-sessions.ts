import type { PageSessionStore } from '../server/ui/sessions.ts';
import { changed, type SqlDatabase } from './sql.ts';

/** Who is logged in to the page. Each change is one statement, so that replicas agree on who makes it. */
export function pageSessionStore(database: SqlDatabase): PageSessionStore {
  return {
    add: ({ key, sealed, expiresAt }) =>
      database.run(
        'INSERT INTO page_session (key, sealed, version, turn, expires_ms) VALUES ($1, $2, 1, 0, $3)',
        key,
        sealed,
        expiresAt,
      ),

    async find(key) {
      const row = await database.reader.first(
        'SELECT sealed, version, turn, expires_ms FROM page_session WHERE key = $1',
        key,
      );
      return (
        row && {
          key,
          sealed: String(row['sealed']),
          version: Number(row['version']),
          turn: Number(row['turn']),
          expiresAt: Number(row['expires_ms']),
        }
      );
    },

    claim: ({ key, version, turn }) =>
      changed(
        database,
        'UPDATE page_session SET turn = turn + 1 WHERE key = $1 AND version = $2 AND turn = $3 RETURNING key',
        key,
        version,
        turn,
      ),

    giveBack: async ({ key, version }) => {
      await database.run('UPDATE page_session SET turn = 0 WHERE key = $1 AND version = $2', key, version);
    },

    replace: ({ key, version, sealed, expiresAt }) =>
      changed(
        database,
        `UPDATE page_session SET sealed = $3, version = version + 1, turn = 0, expires_ms = $4
         WHERE key = $1 AND version = $2 RETURNING key`,
        key,
        version,
        sealed,
        expiresAt,
      ),

    remove: (key) => database.run('DELETE FROM page_session WHERE key = $1', key),
    sweep: (before) => database.run('DELETE FROM page_session WHERE expires_ms < $1', before),
  };
}
