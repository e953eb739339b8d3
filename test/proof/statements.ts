import { POSTGRES_LOCKING, PostgresDatabase } from '../../src/store/postgres/database.ts';
import type { Locking, SqlDatabase } from '../../src/store/sql.ts';
import { SQLITE_LOCKING, SqliteDatabase } from '../../src/store/sqlite/database.ts';
import { SERVER_FORMAT } from '../../src/store/sqlite/format.ts';
import type { EngineName } from './place.ts';

/** A database as a store is made from it, so that a proof can step in between. */
export interface OpenedStatements {
  readonly engine: EngineName;
  readonly database: SqlDatabase;
  readonly locking: Locking;
  close(): Promise<void>;
}

/** SQLite in memory. */
export async function sqliteStatements(): Promise<OpenedStatements> {
  const database = await SqliteDatabase.open(':memory:', SERVER_FORMAT);
  return {
    engine: 'SQLite',
    database,
    locking: SQLITE_LOCKING,
    close: () => database.close(),
  };
}

/** @param url a database of PostgreSQL */
export async function postgresStatements(url: string): Promise<OpenedStatements> {
  const database = await PostgresDatabase.open(url);
  return { engine: 'PostgreSQL', database, locking: POSTGRES_LOCKING, close: () => database.close() };
}
