import type { ReservationStore } from '../../src/allocator/store.ts';
import { SqliteDatabase, type SqlRow, type SqlValue } from '../../src/store/sqlite/database.ts';
import { SERVER_FORMAT } from '../../src/store/sqlite/migrations.ts';
import { sqliteReservations } from '../../src/store/sqlite/reservations.ts';

/** A store on a database of its own, and a way past it to the rows. */
export interface OpenedStore {
  store: ReservationStore;
  /** What a statement finds, asked past the store. Parameters are `$1`, `$2`, … */
  rows(sql: string, ...values: SqlValue[]): Promise<SqlRow[]>;
  close(): Promise<void>;
}

/** Opens SQLite. @param path a file, or (default) a new database in memory */
export async function openSqlite(path = ':memory:'): Promise<OpenedStore> {
  const database = await SqliteDatabase.open(path, SERVER_FORMAT);
  return {
    store: sqliteReservations(database),
    rows: (sql, ...values) => database.transaction(async (transaction) => transaction.all(sql, ...values)),
    close: () => database.close(),
  };
}
