import type { LinkVersion } from '../allocator/store.ts';

/** A value that a statement takes. A whole number fits 53 bits. */
export type SqlValue = string | number | null;
/** A row as a database gives it; whole numbers are numbers on either engine. */
export type SqlRow = Record<string, unknown>;
/** A row as the values of its columns, in their order. */
export type SqlValues = readonly unknown[];

/**
 * Statements that read. A parameter `$name` is the member of that name in `values`, which may have others. A `Row` is what the
 * statement selects: the tables say what a column holds, so nothing is checked again.
 */
export interface SqlReader {
  all<Row extends object = SqlRow>(sql: string, values?: object): Promise<Row[]>;
  /** As `all`, with rows that take less to make and to read. */
  arrays<Row extends SqlValues = SqlValues>(sql: string, values?: object): Promise<Row[]>;
  first<Row extends object = SqlRow>(sql: string, values?: object): Promise<Row | undefined>;
}

/** Statements that both engines understand. */
export interface SqlStatements extends SqlReader {
  run(sql: string, values?: object): Promise<void>;
}

/** Executes one statement. @returns its rows: objects, or arrays where that is asked for */
export type SqlQuery = <Row extends object>(sql: string, values: object, asArrays: boolean) => Promise<Row[]>;

/** The names of a statement's parameters, in the order of their places. */
export function parametersOf(sql: string): string[] {
  return [...sql.matchAll(/\$(\w+)/g)].map(([, name = '']) => name);
}

/** The value of a parameter. @throws RangeError where there is none, by a mistake of ours */
export function valueIn(values: object, name: string): unknown {
  const value: unknown = Reflect.get(values, name);
  if (value === undefined) throw new RangeError(`a statement has no value for $${name}`);
  return value;
}

/** The statements of an engine, by what executes one. */
export function statementsBy(query: SqlQuery): SqlStatements {
  const all = <Row extends object = SqlRow>(sql: string, values: object = {}): Promise<Row[]> =>
    query<Row>(sql, values, false);
  return {
    all,
    arrays: <Row extends SqlValues>(sql: string, values: object = {}) => query<Row>(sql, values, true),
    first: async <Row extends object>(sql: string, values?: object) => (await all<Row>(sql, values))[0],
    run: (sql, values) => all(sql, values).then(() => undefined),
  };
}

/** How rows are inserted into a table. */
export interface SqlInsert {
  /** The members of a row that it takes. */
  members: readonly string[];
  /** The statement for one row: a parameter for each member. */
  row: string;
  /** The statement for any number of rows on PostgreSQL: an array of values for each member. */
  rows: string;
}

/**
 * Makes the statements that insert into a table.
 *
 * @param columns each with its type as PostgreSQL calls it, and the member of a row that it takes unless that has the column's
 *   name: `id text, start_ms bigint start`
 * @param onConflict `ON CONFLICT …`, with `excluded` for the row that is not inserted
 */
export function insertInto(table: string, columns: string, onConflict = ''): SqlInsert {
  const typed = columns.split(/,\s*/).map((column) => column.split(' '));
  const members = typed.map(([name = '', , member = name]) => member);
  const values = members.map((member) => `$${member}`);
  const arrays = typed.map(([, type], index) => `${values[index]}::${type}[]`);
  const into = `INSERT INTO ${table} (${typed.map(([name]) => name).join(', ')})`;
  return {
    members,
    row: `${into} VALUES (${values.join(', ')}) ${onConflict}`,
    rows: `${into} SELECT * FROM unnest(${arrays.join(', ')}) ${onConflict}`,
  };
}

/** The statements of one transaction. */
export interface SqlTransaction extends SqlStatements {
  /** Inserts rows, in their order. */
  insert(into: SqlInsert, rows: readonly object[]): Promise<void>;
  /**
   * Ends the transaction with statements that have been sent: the commit may follow them at once, and this resolve before the
   * database has answered. A row that the database refuses fails the transaction.
   */
  finish(last: Promise<unknown>): Promise<void>;
}

/**
 * A database of either engine (allocator/README.md, "Storage"). Each statement on it is a transaction by itself; statements that
 * only read use its `reader`.
 *
 * @throws StoreUnavailableError from everything when the database is away, slow or locked: nothing was changed
 * @throws CommitUnknownError from everything but the reader and snapshots when it was lost after a change, or a commit,
 * had been sent
 */
export interface SqlDatabase extends SqlStatements {
  /** Sees what is committed, and waits for no writer. */
  readonly reader: SqlReader;
  /**
   * Runs `work` in one transaction; commits when it resolves, rolls back when it rejects. Its first statements may be sent
   * together with `BEGIN`, which only a read-only database refuses.
   */
  transaction<Answer>(work: (sql: SqlTransaction) => Promise<Answer>): Promise<Answer>;
  /** Runs `work` on what was committed when its first statement ran, without holding up any writer. */
  snapshot<Answer>(work: (sql: SqlSnapshot) => Promise<Answer>): Promise<Answer>;
}

/** Reads the rows that were committed at one instant. */
export interface SqlSnapshot extends SqlReader {
  /**
   * Names the database and its history. Within one history, what was committed stays. The name differs once the database
   * is another one: a standby that was promoted, and may lack what was committed last, or a restored copy.
   */
  readonly history: string;
}

/** A server's database, opened to be read only: it is not created. */
export interface ReadDatabase extends Pick<SqlDatabase, 'snapshot'> {
  close(): Promise<void>;
}

/** The database is damaged, of another version of this program, or another program's. */
export class DatabaseFormatError extends Error {
  /** The first word of `toString`. */
  override readonly name = 'DatabaseFormatError';
}

/** Runs a statement that returns something of a row that it has found or changed. @returns whether there was such a row */
export async function returnsRow(
  sql: Pick<SqlReader, 'first'>,
  statement: string,
  values: object,
): Promise<boolean> {
  return (await sql.first(statement, values)) !== undefined;
}

/** Reads a link's row. */
export const READ_LINK = 'SELECT id, version, forgotten FROM link WHERE id = $link';

/** The steps that the two engines do differently for reservations. */
export interface Locking {
  /**
   * Locks a link's row until the transaction ends, in a statement that reads nothing else, and then reads it; undefined where
   * there was no row to lock.
   */
  lock(sql: SqlStatements, link: string): Promise<LinkVersion | undefined>;
  /** Locks names until the transaction ends, in their order. */
  lockNames(sql: SqlStatements, names: readonly string[]): Promise<void>;
  /** Whether one transaction runs at a time, whatever its links. */
  hasOneWriter: boolean;
  /** Deletes idempotency keys that expired by `$now`, the oldest first and `$most` at most. */
  deleteExpiredKeys: string;
}
