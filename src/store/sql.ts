/** A value that a statement takes. A whole number fits 53 bits. */
export type SqlValue = string | number | null;
/** A row as a database gives it; whole numbers are numbers on either engine. */
export type SqlRow = Record<string, unknown>;
/** A row as the values of its columns, in their order. */
export type SqlValues = readonly unknown[];

/** Statements that read. Parameters are `$1`, `$2`, … */
export interface SqlReader {
  all(sql: string, ...values: SqlValue[]): Promise<SqlRow[]>;
  /** As `all`, with rows that take less to make and to read. A statement that is run so is never run as by `all`. */
  arrays(sql: string, ...values: SqlValue[]): Promise<SqlValues[]>;
  first(sql: string, ...values: SqlValue[]): Promise<SqlRow | undefined>;
}

/** How rows are inserted into one table. */
export interface SqlInsert {
  into: string;
  /** The columns and their types, as PostgreSQL calls them. */
  columns: Readonly<Record<string, 'text' | 'integer' | 'bigint'>>;
  /** `ON CONFLICT …`, with `excluded` for the row that is not inserted. */
  onConflict?: string;
}

/** Rows to insert, each with a value for every column, in their order; or a statement that changes rows. */
export type SqlWrite =
  | { insert: SqlInsert; rows: readonly (readonly SqlValue[])[] }
  | { change: string; values: readonly SqlValue[] };

/** Statements that both engines understand. */
export interface SqlStatements extends SqlReader {
  run(sql: string, ...values: SqlValue[]): Promise<void>;
  /** Makes several changes at once, as one statement where the engine can: no change sees the others. */
  write(...writes: readonly SqlWrite[]): Promise<void>;
}

/** A connection's view of the database's history. */
interface OfHistory {
  /**
   * Names the database and its history. Within one history, what was committed stays. The name differs once the database
   * is another one: a standby that was promoted, and may lack what was committed last, or a restored copy.
   */
  readonly history: string;
}

/** The statements of one transaction. */
export interface SqlTransaction extends SqlStatements, OfHistory {
  /** How many pieces of work share the transaction, where this one is the first of them; else 0. */
  readonly together: number;
  /**
   * As `write`, for the only change of the transaction and its last statement: it may be sent together with the commit,
   * and resolve before the database has answered. A row that the database refuses fails the transaction.
   */
  finish(...writes: readonly SqlWrite[]): Promise<void>;
}

/**
 * A database of either engine (allocator/README.md, "Storage"). Each statement on it is a transaction by itself; statements that
 * only read use its `reader`.
 *
 * @throws StoreUnavailableError from everything when the database is away, slow or locked: nothing was changed
 * @throws CommitUnknownError from everything but the reader and snapshots when it was lost after a change, or a commit,
 * had been sent
 */
export interface SqlDatabase extends Pick<SqlStatements, 'run' | 'all' | 'first'> {
  /** Sees what is committed, and waits for no writer. */
  readonly reader: SqlReader;
  /**
   * Runs `work` in one transaction; commits when it resolves, rolls back when it rejects. Its first statements may be sent
   * together with `BEGIN`, which only a read-only database refuses.
   */
  transaction<Answer>(work: (sql: SqlTransaction) => Promise<Answer>): Promise<Answer>;
  /**
   * Runs `work` on what was committed when its first statement ran, without holding up any writer.
   *
   * @param work is given the rows of a query in portions, with time for others in between
   */
  snapshot<Answer>(work: (sql: SqlSnapshot) => Promise<Answer>): Promise<Answer>;
}

/** Reads the rows that were committed at one instant. */
export interface SqlSnapshot extends SqlReader, OfHistory {
  /** The rows that a statement finds, in portions. */
  portions(sql: string, ...values: SqlValue[]): AsyncIterable<SqlValues[]>;
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

/** Runs a statement that returns something of the row it has changed. @returns whether there was such a row */
export async function changed(
  sql: Pick<SqlStatements, 'first'>,
  statement: string,
  ...values: SqlValue[]
): Promise<boolean> {
  return (await sql.first(statement, ...values)) !== undefined;
}

/** Reads a link's row. */
export const READ_LINK = 'SELECT version, forgotten FROM link WHERE id = $1';

/** The steps that the two engines do differently for reservations. */
export interface Locking {
  /**
   * Locks a link's row until the transaction ends, in a statement that reads nothing else, and then reads it: `version`
   * and `forgotten`; undefined where there was no row to lock.
   */
  lock(sql: SqlStatements, link: string): Promise<SqlRow | undefined>;
  /** Locks names until the transaction ends, in their order. */
  lockNames(sql: SqlStatements, names: readonly string[]): Promise<void>;
  /** Whether work that waits at the same time shares commits, whatever its links. */
  sharesCommits: boolean;
  /** Releases the tags of a reservation whose row is written next, so that others may take them in any order; where the engine guards them. */
  releaseTags?: string;
  /** Deletes idempotency keys that expired by `$1`, the oldest first and `$2` at most. */
  deleteExpiredKeys: string;
}

/** Makes the row of a link that has none. Of two at once, the second waits for the first. */
export const MAKE_LINK = 'INSERT INTO link (id, version) VALUES ($1, 0) ON CONFLICT (id) DO NOTHING';
