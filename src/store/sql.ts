/** A value that a statement takes. A whole number fits 53 bits. */
export type SqlValue = string | number | null;
/** A row as a database gives it; whole numbers are numbers on either engine. */
export type SqlRow = Record<string, unknown>;

/** Statements that find and change nothing. Parameters are `$1`, `$2`, … */
export interface SqlReader {
  all(sql: string, ...values: SqlValue[]): Promise<SqlRow[]>;
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

/** Statements on either engine; what the engines spell differently is not written here. */
export interface SqlStatements extends SqlReader {
  run(sql: string, ...values: SqlValue[]): Promise<void>;
  /** Makes several changes at once, as one statement where the engine can: none sees what another has changed. */
  write(...writes: readonly SqlWrite[]): Promise<void>;
}

/** The statements of one transaction. */
export interface SqlTransaction extends SqlStatements {
  /**
   * As `write`, but the only change that the transaction makes, and its last statement: it may be on its way with the
   * commit, and resolve before it is answered. What is refused fails the transaction.
   */
  finish(...writes: readonly SqlWrite[]): Promise<void>;
}

/**
 * A database of either engine (DESIGN.md, "Storage"). A statement that is asked for here is a transaction by itself; what
 * only reads is asked of its `reader`.
 *
 * @throws StoreUnavailableError from everything when the database is away, slow or locked: nothing was changed
 * @throws CommitUnknownError from everything but the reader and snapshots when it was lost after a change, or a commit,
 * had been sent
 */
export interface SqlDatabase extends SqlStatements {
  /** Sees what is committed, and waits for no writer. */
  readonly reader: SqlReader;
  /**
   * Runs `work` in one transaction; commits when it resolves, rolls back when it rejects. What it asks for at once may
   * go out together with the transaction's beginning, which a database refuses only when it takes no changes at all.
   */
  transaction<Answer>(work: (sql: SqlTransaction) => Promise<Answer>): Promise<Answer>;
  /**
   * Runs `work` on what was committed at one instant, without holding up any writer.
   *
   * @param work is given the rows of a query in portions, with time for others in between
   */
  snapshot<Answer>(work: (sql: SqlSnapshot) => Promise<Answer>): Promise<Answer>;
}

/** What was committed at one instant. */
export interface SqlSnapshot extends SqlReader {
  /** The rows that a statement finds, in portions. */
  portions(sql: string, ...values: SqlValue[]): AsyncIterable<SqlRow[]>;
}

/** A server's database that is only read, and never made or brought up to date. */
export interface ReadDatabase extends Pick<SqlDatabase, 'snapshot'> {
  close(): Promise<void>;
}

/** A database that is newer than this program, is damaged, or is not one of its own. */
export class DatabaseFormatError extends Error {
  override readonly name = 'DatabaseFormatError';
}

/** Whether a database answers, and has the schema. @throws as {@link SqlDatabase} does */
export async function ping(sql: SqlStatements): Promise<void> {
  await sql.first('SELECT issuer FROM signing_key LIMIT 1');
}
