import type { SqlDatabase, SqlRow, SqlStatements, SqlValue } from '../sql.ts';
import type { SqliteDatabase, SqliteTransaction } from './database.ts';

/** A SQLite file as the stores take either engine's database. */
export function statementsOn(database: SqliteDatabase): SqlDatabase {
  return {
    run: (sql: string, ...values: SqlValue[]): Promise<void> =>
      database.transaction(async (transaction) => transaction.run(sql, ...values)),
    all: (sql: string, ...values: SqlValue[]): Promise<SqlRow[]> =>
      database.transaction(async (transaction) => transaction.all(sql, ...values)),
    first: (sql: string, ...values: SqlValue[]): Promise<SqlRow | undefined> =>
      database.transaction(async (transaction) => transaction.first(sql, ...values)),
    transaction: (work) => database.transaction((transaction) => work(awaited(transaction))),
  };
}

function awaited(transaction: SqliteTransaction): SqlStatements {
  return {
    run: async (sql, ...values) => transaction.run(sql, ...values),
    all: async (sql, ...values) => transaction.all(sql, ...values),
    first: async (sql, ...values) => transaction.first(sql, ...values),
  };
}
