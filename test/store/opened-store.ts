import type { ReservationStore } from '../../src/allocator/store.ts';
import { POSTGRES_LOCKING, PostgresDatabase } from '../../src/store/postgres/database.ts';
import { reservationStore } from '../../src/store/reservations.ts';
import type { Locking, SqlReader, SqlRow, SqlValue } from '../../src/store/sql.ts';
import { SQLITE_LOCKING, SqliteDatabase } from '../../src/store/sqlite/database.ts';
import { SERVER_FORMAT } from '../../src/store/sqlite/format.ts';
import { isPostgres } from '../../src/store/stores.ts';

/** A store on a database of its own, and a way past it to the rows. */
export interface OpenedStore {
  store: ReservationStore;
  /** What a statement finds, asked past the store. Parameters are `$1`, `$2`, … */
  rows(sql: string, ...values: SqlValue[]): Promise<SqlRow[]>;
  close(): Promise<void>;
}

/** What statements with numbered parameters find. */
export function rowsOf(database: SqlReader): OpenedStore['rows'] {
  return (sql, ...values) => database.all(sql, ['', ...values]);
}

/** Opens SQLite. @param path a file, or (default) a new database in memory */
export async function openSqlite(path = ':memory:'): Promise<OpenedStore> {
  return openedOn(await SqliteDatabase.open(path, SERVER_FORMAT), SQLITE_LOCKING);
}

/** Opens PostgreSQL. */
export async function openPostgres(url: string): Promise<OpenedStore> {
  return openedOn(await PostgresDatabase.open(url), POSTGRES_LOCKING);
}

function openedOn(database: SqliteDatabase | PostgresDatabase, locking: Locking): OpenedStore {
  return {
    store: reservationStore(database, locking),
    rows: rowsOf(database),
    close: () => database.close(),
  };
}

/** Opens the engine that a path or an address stands for. */
export async function openEither(database: string): Promise<OpenedStore> {
  return isPostgres(database) ? openPostgres(database) : openSqlite(database);
}
