import type { SqlDatabase, SqlInsert, SqlReader, SqlSnapshot, SqlStatements } from '../sql.ts';
import type { SqliteDatabase, SqliteTransaction } from './database.ts';
import type { SqliteReads, SqliteSnapshot } from './snapshot.ts';

/** A SQLite file as the stores take either engine's database. */
export function statementsOn(database: SqliteDatabase): SqlDatabase {
  const reader: SqlReader = {
    all: (sql, ...values) => database.read(sql, ...values),
    first: async (sql, ...values) => (await database.read(sql, ...values))[0],
  };
  return {
    reader,
    run: (sql, ...values) => database.transaction(async (transaction) => transaction.run(sql, ...values)),
    all: (sql, ...values) => database.transaction(async (transaction) => transaction.all(sql, ...values)),
    first: (sql, ...values) => database.transaction(async (transaction) => transaction.first(sql, ...values)),
    write: (...writes) => database.transaction((transaction) => awaited(transaction).write(...writes)),
    transaction: (work) =>
      database.transaction((transaction) => {
        const statements = awaited(transaction);
        return work({ ...statements, finish: statements.write });
      }),
    snapshot: (work) => database.snapshot((snapshot) => work(awaitedSnapshot(snapshot))),
  };
}

/** A snapshot as the stores take either engine's. */
export function awaitedSnapshot(snapshot: SqliteSnapshot): SqlSnapshot {
  return { ...reads(snapshot), portions: (sql, ...values) => snapshot.portions(sql, ...values) };
}

function reads(sqlite: SqliteReads): SqlReader {
  return {
    all: async (sql, ...values) => sqlite.all(sql, ...values),
    first: async (sql, ...values) => sqlite.first(sql, ...values),
  };
}

function awaited(transaction: SqliteTransaction): SqlStatements {
  return {
    ...reads(transaction),
    run: async (sql, ...values) => transaction.run(sql, ...values),
    // There is no way to a server that could be saved: a statement that is prepared already takes a row in microseconds.
    write: async (...writes) => {
      for (const each of writes) {
        if ('change' in each) transaction.run(each.change, ...each.values);
        else for (const row of each.rows) transaction.run(insertOf(each.insert), ...row);
      }
    },
  };
}

const INSERTS = new WeakMap<SqlInsert, string>();

function insertOf(insert: SqlInsert): string {
  const known = INSERTS.get(insert);
  if (known !== undefined) return known;
  const columns = Object.keys(insert.columns);
  const values = columns.map((_, index) => `$${index + 1}`).join(', ');
  const { onConflict = '' } = insert;
  const sql = `INSERT INTO ${insert.into} (${columns.join(', ')}) VALUES (${values}) ${onConflict}`;
  INSERTS.set(insert, sql);
  return sql;
}
