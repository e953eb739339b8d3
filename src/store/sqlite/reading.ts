import type { DatabaseSync } from 'node:sqlite';
import type { ReadDatabase } from '../sql.ts';
import { closeDatabase, loadSqlite, storeError } from './engine.ts';
import { checkFormat } from './format-check.ts';
import { snapshotOn } from './snapshot.ts';
import { awaitedSnapshot } from './statements.ts';

/** How long to wait where a server that starts or ends has the file to itself, in milliseconds. */
const BUSY_TIMEOUT = 5000;

/**
 * Opens a server's file on a connection that can only read: a server that runs on it is not held up.
 *
 * @throws DatabaseFormatError when it is damaged, another program's, or of another version
 * @throws StoreUnavailableError when it can't be read
 * @throws Failure `state_unusable` when others could have changed it (HOSTILE.md 51)
 */
export function openSqliteToRead(path: string): ReadDatabase {
  const database = connect(path);
  return {
    async snapshot(work) {
      try {
        return await snapshotOn(database, (snapshot) => work(awaitedSnapshot(snapshot)));
      } catch (error) {
        throw storeError(error);
      }
    },
    close: async () => database.close(),
  };
}

function connect(path: string): DatabaseSync {
  const { DatabaseSync: Sqlite } = loadSqlite();
  let database: DatabaseSync | undefined;
  try {
    closeDatabase(path);
    database = new Sqlite(path, { readOnly: true, timeout: BUSY_TIMEOUT });
    checkFormat(database);
    return database;
  } catch (error) {
    database?.close();
    throw storeError(error);
  }
}
