import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { DatabaseFormatError, type SqlRow, type SqlValue } from '../sql.ts';
import { keepPrivate, loadSqlite, patiently, storeError } from './engine.ts';

/** How long a writer waits for another process's transaction, in milliseconds. */
const BUSY_TIMEOUT = 5000;

/** What a file of this program holds. */
export interface DatabaseFormat {
  /** Marks the file as one of this kind (`PRAGMA application_id`). */
  applicationId: number;
  /**
   * The schema's history, oldest first: migration n brings a database of version n to version n + 1. Never changed once
   * released; a change is a new entry.
   */
  migrations: readonly string[];
  /** `WAL` for a server's file; `DELETE` where it may lie on a network's home folder, which can't do WAL. */
  journal: 'WAL' | 'DELETE';
}

/** The statements of one transaction. Parameters bind by name: `$1`, `$2`, … */
export interface SqliteTransaction {
  run(sql: string, ...values: SqlValue[]): void;
  all(sql: string, ...values: SqlValue[]): SqlRow[];
  first(sql: string, ...values: SqlValue[]): SqlRow | undefined;
}

/**
 * One SQLite file (DESIGN.md, "Storage"): `synchronous=FULL`, every transaction `BEGIN IMMEDIATE`, since a
 * deferred one that upgrades fails in spite of the busy timeout. Transactions of this process run one after the
 * other, so that one that awaits can't mix with another on the same connection.
 */
export class SqliteDatabase {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /**
   * Opens a database, creating it where there is none, and applies the migrations that it lacks.
   *
   * @param path a file, or `:memory:`
   * @throws DatabaseFormatError when it was made by a newer version of this program, is damaged or is another's
   * @throws StoreUnavailableError when it can't be opened or stays locked
   */
  static async open(path: string, format: DatabaseFormat): Promise<SqliteDatabase> {
    const { DatabaseSync: Sqlite } = loadSqlite();
    try {
      if (path !== ':memory:') keepPrivate(path);
      // Who waits for another process's lock does so in `patiently`, not inside SQLite.
      const database = new Sqlite(path, { timeout: 0, enableForeignKeyConstraints: true });
      const opened = new SqliteDatabase(database);
      try {
        await patiently(() => database.exec('PRAGMA synchronous = FULL'), BUSY_TIMEOUT);
        await patiently(() => checkOwner(database, format), BUSY_TIMEOUT);
        await patiently(() => database.exec(`PRAGMA journal_mode = ${format.journal}`), BUSY_TIMEOUT);
        await opened.transaction(async (transaction) => migrate(database, format, transaction));
        return opened;
      } catch (error) {
        database.close();
        throw error;
      }
    } catch (error) {
      throw storeError(error);
    }
  }

  /** Runs `work` in one write transaction; commits when it resolves, rolls back when it rejects. */
  async transaction<Answer>(work: (transaction: SqliteTransaction) => Promise<Answer>): Promise<Answer> {
    const turn = this.#queue.then(() => this.#run(work));
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  /** Waits for what is under way and closes the file. */
  async close(): Promise<void> {
    await this.#queue;
    if (this.#database.isOpen) this.#database.close();
  }

  async #run<Answer>(work: (transaction: SqliteTransaction) => Promise<Answer>): Promise<Answer> {
    try {
      await patiently(() => this.#database.exec('BEGIN IMMEDIATE'), BUSY_TIMEOUT);
      const answer = await work({
        run: (sql, ...values) => void this.#prepare(sql).run(named(values)),
        all: (sql, ...values) => this.#prepare(sql).all(named(values)),
        first: (sql, ...values) => this.#prepare(sql).get(named(values)),
      });
      this.#database.exec('COMMIT');
      return answer;
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw storeError(error);
    }
  }

  #prepare(sql: string): StatementSync {
    const statement = this.#statements.get(sql) ?? this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

/** Another program's file is left as it is. */
function checkOwner(database: DatabaseSync, { applicationId }: DatabaseFormat): void {
  // One statement: another process may be making the schema at this very moment.
  const { owner, tables } =
    database
      .prepare(
        `SELECT (SELECT application_id FROM pragma_application_id) AS owner,
                (SELECT count(*) FROM sqlite_schema) AS tables`,
      )
      .get() ?? {};
  if (owner === applicationId || (owner === 0 && tables === 0)) return;
  throw new DatabaseFormatError('The file is a database of another program.');
}

async function migrate(
  database: DatabaseSync,
  { applicationId, migrations }: DatabaseFormat,
  transaction: SqliteTransaction,
): Promise<void> {
  const version = Number(transaction.first('PRAGMA user_version')?.['user_version'] ?? 0);
  if (version > migrations.length) {
    throw new DatabaseFormatError(
      `The database has schema version ${version}; this program knows ${migrations.length}. Use a newer slices-conn.`,
    );
  }
  for (const migration of migrations.slice(version)) database.exec(migration);
  database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${migrations.length}`);
}

function named(values: readonly SqlValue[]): Record<string, SqlValue> {
  return Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]));
}
