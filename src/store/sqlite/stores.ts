import { directoryStore } from '../directory.ts';
import { identityRecordStore } from '../identity-records.ts';
import { ownerStore } from '../owners.ts';
import { signingKeyStore } from '../signing-keys.ts';
import { ping } from '../sql.ts';
import type { Stores } from '../stores.ts';
import { SqliteDatabase } from './database.ts';
import { SERVER_FORMAT } from './migrations.ts';
import { sqliteReservations } from './reservations.ts';
import { statementsOn } from './statements.ts';

/** Opens a server's stores on SQLite. @param path a file, or `:memory:` @throws as `SqliteDatabase.open` does */
export async function openSqliteStores(path: string): Promise<Stores> {
  const database = await SqliteDatabase.open(path, SERVER_FORMAT);
  const sql = statementsOn(database);
  return {
    reservations: sqliteReservations(database),
    directory: directoryStore(sql),
    identityRecords: identityRecordStore(sql),
    keys: signingKeyStore(sql),
    owners: ownerStore(sql),
    ping: () => ping(sql),
    close: () => database.close(),
  };
}
