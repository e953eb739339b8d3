/** A value that a statement takes. A whole number fits 53 bits. */
export type SqlValue = string | number | null;
/** A row as a database gives it; whole numbers are numbers on either engine. */
export type SqlRow = Record<string, unknown>;

/** Statements on either engine. Parameters are `$1`, `$2`, …; what the engines spell differently is not written here. */
export interface SqlStatements {
  run(sql: string, ...values: SqlValue[]): Promise<void>;
  all(sql: string, ...values: SqlValue[]): Promise<SqlRow[]>;
  first(sql: string, ...values: SqlValue[]): Promise<SqlRow | undefined>;
}

/**
 * A database of either engine (DESIGN.md, "Storage"). A statement that is asked for here is a transaction by itself.
 *
 * @throws StoreUnavailableError from everything when the database is away, slow or locked
 */
export interface SqlDatabase extends SqlStatements {
  /** Runs `work` in one transaction; commits when it resolves, rolls back when it rejects. */
  transaction<Answer>(work: (sql: SqlStatements) => Promise<Answer>): Promise<Answer>;
}

/** A database that is newer than this program, is damaged, or is not one of its own. */
export class DatabaseFormatError extends Error {
  override readonly name = 'DatabaseFormatError';
}

/** Whether a database answers, and has the schema. @throws as {@link SqlDatabase} does */
export async function ping(sql: SqlStatements): Promise<void> {
  await sql.first('SELECT issuer FROM signing_key LIMIT 1');
}
