import type { ReservationStore } from '../allocator/store.ts';
import type { IdentityRecords } from '../server/identity/records.ts';
import type { KeyStore } from '../server/keys/key-ring.ts';
import type { Directory } from '../server/portal/directory.ts';

/** All that a server keeps, in one database. */
export interface Stores {
  readonly reservations: ReservationStore;
  readonly directory: Directory;
  readonly identityRecords: IdentityRecords;
  readonly keys: KeyStore;
  /** Waits for what is under way and closes the database. */
  close(): Promise<void>;
}

/** Whether a database is named by the address of a PostgreSQL server; else it is a SQLite file. */
export function isPostgres(database: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(database);
}
