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
