import { directoryStore } from '../directory.ts';
import { identityRecordStore } from '../identity-records.ts';
import { ownerStore } from '../owners.ts';
import { signingKeyStore } from '../signing-keys.ts';
import { ping } from '../sql.ts';
import type { Stores } from '../stores.ts';
import { PostgresDatabase } from './database.ts';
import { postgresReservations } from './reservations.ts';

/** Opens a server's stores on PostgreSQL. @throws as {@link PostgresDatabase.open} does */
export async function openPostgresStores(url: string): Promise<Stores> {
  const database = await PostgresDatabase.open(url);
  return {
    reservations: postgresReservations(database),
    directory: directoryStore(database),
    identityRecords: identityRecordStore(database),
    keys: signingKeyStore(database),
    owners: ownerStore(database),
    ping: () => ping(database),
    close: () => database.close(),
  };
}
