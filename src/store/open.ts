import type { ReadDatabase } from './sql.ts';
import { openSqliteToRead } from './sqlite/reading.ts';
import { openSqliteStores } from './sqlite/stores.ts';
import { isPostgres, type Stores } from './stores.ts';

/**
 * Opens a server's stores. PostgreSQL's driver is loaded only where it is asked for.
 *
 * @param database `postgres://…`, a SQLite file, or `:memory:`
 * @throws DatabaseFormatError, StoreUnavailableError when the database can't be used
 */
export async function openStores(database: string): Promise<Stores> {
  if (!isPostgres(database)) return openSqliteStores(database);
  const { openPostgresStores } = await import('./postgres/stores.ts');
  return openPostgresStores(database);
}

/**
 * Opens a server's database to read it only, whether or not servers run on it. None is held up.
 *
 * @param database `postgres://…`, or a SQLite file
 * @throws DatabaseFormatError when it is none, or of another version: a reader does not bring it up to date
 * @throws StoreUnavailableError when it can't be read
 */
export async function openToRead(database: string): Promise<ReadDatabase> {
  if (!isPostgres(database)) return openSqliteToRead(database);
  const { PostgresDatabase } = await import('./postgres/database.ts');
  return PostgresDatabase.openToRead(database);
}
