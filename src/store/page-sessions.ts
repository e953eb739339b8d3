import type { PageSessionStore, StoredPageSession } from '../server/ui/sessions.ts';
import { returnsRow, type SqlDatabase } from './sql.ts';

/** Who is logged in to the page. Each change is one statement, so that replicas agree on who makes it. */
export function pageSessionStore(database: SqlDatabase): PageSessionStore {
  return {
    add: (session) =>
      database.run(
        'INSERT INTO page_session (key, sealed, version, turn, expires_ms) VALUES ($key, $sealed, 1, 0, $expiresAt)',
        session,
      ),

    find: (key) =>
      database.reader.first<StoredPageSession>(
        'SELECT key, sealed, version, turn, expires_ms AS "expiresAt" FROM page_session WHERE key = $key',
        { key },
      ),

    claim: (session) =>
      returnsRow(
        database,
        `UPDATE page_session SET turn = turn + 1 WHERE key = $key AND version = $version AND turn = $turn
         RETURNING key`,
        session,
      ),

    giveBack: (session) =>
      database.run('UPDATE page_session SET turn = 0 WHERE key = $key AND version = $version', session),

    replace: (session) =>
      returnsRow(
        database,
        `UPDATE page_session SET sealed = $sealed, version = version + 1, turn = 0, expires_ms = $expiresAt
         WHERE key = $key AND version = $version RETURNING key`,
        session,
      ),

    remove: (key) => database.run('DELETE FROM page_session WHERE key = $key', { key }),
    sweep: (before) => database.run('DELETE FROM page_session WHERE expires_ms < $before', { before }),
  };
}
