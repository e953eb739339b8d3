import type { DatabaseSync } from 'node:sqlite';
import { Slices } from '../../allocator/event-loop.ts';
import type {
  SqlInsert,
  SqlReader,
  SqlRow,
  SqlSnapshot,
  SqlStatements,
  SqlValue,
  SqlValues,
} from '../sql.ts';

/** Statements that read. SQLite answers at once; parameters are `$1`, `$2`, … */
export interface SqliteReads {
  all(sql: string, ...values: SqlValue[]): SqlRow[];
  arrays(sql: string, ...values: SqlValue[]): SqlValues[];
  first(sql: string, ...values: SqlValue[]): SqlRow | undefined;
}

/** The statements of one transaction. */
export interface SqliteTransaction extends SqliteReads {
  /** See `SqlTransaction.together`. */
  readonly together: number;
  run(sql: string, ...values: SqlValue[]): void;
}

/** A snapshot of one instant's committed rows, as SQLite gives it. */
export interface SqliteSnapshot extends SqliteReads {
  /** The rows of a statement in portions, with a round of the event loop now and then. */
  portions(sql: string, ...values: SqlValue[]): AsyncIterable<SqlValues[]>;
}

/** A connection with the statements that were prepared on it: to prepare one takes longer than most questions. */
export interface Connection {
  database: DatabaseSync;
  prepared(sql: string): Prepared;
}

/** A connection on which each statement is prepared once. */
export function connectionOn(database: DatabaseSync): Connection {
  const known = new Map<string, Prepared>();
  return {
    database,
    prepared(sql) {
      const statement = known.get(sql) ?? prepare(database, sql);
      known.set(sql, statement);
      return statement;
    },
  };
}

/** The statements of a connection that read. */
export function readsOf(prepared: Connection['prepared']): SqliteReads {
  return {
    all: (sql, ...values) => prepared(sql).all(values),
    arrays: (sql, ...values) => prepared(sql).arrays(values),
    first: (sql, ...values) => prepared(sql).first(values),
  };
}

/** How many rows a portion has: so few that they are gone before memory is given to what lasts. */
const PORTION = 250;

/** Runs `work` on what was committed at one instant, on a connection that has nothing else to do. */
export async function snapshotOn<Answer>(
  { database, prepared }: Connection,
  work: (snapshot: SqliteSnapshot) => Promise<Answer>,
): Promise<Answer> {
  database.exec('BEGIN');
  try {
    return await work({
      ...readsOf(prepared),
      portions: (sql, ...values) => portions(prepared(sql), values),
    });
  } finally {
    database.exec('ROLLBACK');
  }
}

async function* portions(statement: Prepared, values: readonly SqlValue[]): AsyncGenerator<SqlValues[]> {
  let portion: SqlValues[] = [];
  const slices = new Slices();
  for (const row of statement.iterate(values)) {
    portion.push(asArray(row));
    if (portion.length < PORTION) continue;
    yield portion;
    portion = [];
    if (slices.isOver) await slices.next();
  }
  if (portion.length > 0) yield portion;
}

/** A statement that is prepared. Its values are in the order of their numbers: the first is that of `$1`. */
export interface Prepared {
  run(values: readonly SqlValue[]): void;
  all(values: readonly SqlValue[]): SqlRow[];
  first(values: readonly SqlValue[]): SqlRow | undefined;
  /** The rows as arrays. From then on the statement gives arrays only. */
  arrays(values: readonly SqlValue[]): SqlValues[];
  /** The same, read one by one. */
  iterate(values: readonly SqlValue[]): Iterable<object>;
}

/**
 * Prepares a statement. Values bind by place: by name, Node takes four times as long, longer than SQLite for most rows.
 * Node 22 knows places only as `?`, so each `$1`, `$2`, … becomes one, and a value that is named twice is given twice.
 */
function prepare(database: DatabaseSync, sql: string): Prepared {
  const places: number[] = [];
  const text = sql.replaceAll(/\$(\d+)/g, (_, number: string) => {
    places.push(Number(number) - 1);
    return '?';
  });
  const statement = database.prepare(text);
  const inOrder = places.every((place, index) => place === index);
  const placed = (values: readonly SqlValue[]): readonly SqlValue[] =>
    inOrder ? values : places.map((place) => values[place] ?? null);
  return {
    run: (values) => void statement.run(...placed(values)),
    all: (values) => statement.all(...placed(values)),
    first: (values) => statement.get(...placed(values)),
    arrays: (values) => {
      statement.setReturnArrays(true);
      return statement.all(...placed(values)).map(asArray);
    },
    iterate: (values) => {
      statement.setReturnArrays(true);
      return statement.iterate(...placed(values));
    },
  };
}

/** A row of a statement that gives arrays, whose type does not say so. */
function asArray(row: object): SqlValues {
  return Array.isArray(row) ? row : Object.values(row);
}

/** A snapshot in the form that the stores use for either engine. */
export function awaitedSnapshot(snapshot: SqliteSnapshot): Omit<SqlSnapshot, 'history'> {
  return { ...reads(snapshot), portions: (sql, ...values) => snapshot.portions(sql, ...values) };
}

function reads(sqlite: SqliteReads): SqlReader {
  return {
    all: async (sql, ...values) => sqlite.all(sql, ...values),
    arrays: async (sql, ...values) => sqlite.arrays(sql, ...values),
    first: async (sql, ...values) => sqlite.first(sql, ...values),
  };
}

/** A transaction in the form that the stores use for either engine. */
export function awaitedTransaction(transaction: SqliteTransaction): SqlStatements {
  return {
    ...reads(transaction),
    run: async (sql, ...values) => transaction.run(sql, ...values),
    // SQLite runs in this process: one prepared statement a row takes microseconds.
    write: async (...writes) => {
      const slices = new Slices();
      for (const each of writes) {
        if ('change' in each) {
          transaction.run(each.change, ...each.values);
          continue;
        }
        const insert = insertOf(each.insert);
        for (const row of each.rows) {
          if (slices.isOver) await slices.next();
          transaction.run(insert, ...row);
        }
      }
      // The commit of many rows takes as long as a slice.
      if (slices.count > 1) await slices.next();
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
