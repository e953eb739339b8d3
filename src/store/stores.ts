import type { ReservationStore } from '../allocator/store.ts';
import type { IdentityRecords } from '../server/identity/records.ts';
import type { KeyStore } from '../server/keys/key-ring.ts';
import type { OwnerStore } from '../server/ownership.ts';
import type { Directory } from '../server/portal/directory.ts';

/** All that a server keeps, in one database. */
export interface Stores {
  readonly reservations: ReservationStore;
  readonly directory: Directory;
  readonly identityRecords: IdentityRecords;
  readonly keys: KeyStore;
  readonly owners: OwnerStore;
  /** Asks the database one cheap question. @throws StoreUnavailableError when it is away, slow or locked */
  ping(): Promise<void>;
  /** Waits for what is under way and closes the database. */
  close(): Promise<void>;
}

/** The SQLite file in a server's data folder. */
export const SERVER_FILE = 'slices-conn.sqlite';

/** Whether a database is named by the address of a PostgreSQL server; else it is a SQLite file. */
export function isPostgres(database: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(database);
}
