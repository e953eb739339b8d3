import { randomInt } from 'node:crypto';
import { chmodSync, closeSync, lstatSync, openSync } from 'node:fs';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { StoreUnavailableError } from '../../allocator/store.ts';
import { MIGRATIONS } from './migrations.ts';

/** A value that SQLite takes or gives. */
export type SqlValue = string | number | null;
/** A row as SQLite gives it. */
export type SqlRow = Record<string, unknown>;

/** A database that is newer than this program, or is not one of its own. */
export class DatabaseFormatError extends Error {
  override readonly name = 'DatabaseFormatError';
}

/** How long a writer waits for another process's transaction, in milliseconds. */
const BUSY_TIMEOUT = 5000;

/** Marks a file as this program's (`PRAGMA application_id`): "slic". */
const APPLICATION_ID = 0x736c6963;

/** The statements of one transaction. Parameters bind by name: `$1`, `$2`, … */
export interface SqliteTransaction {
  run(sql: string, ...values: SqlValue[]): void;
  all(sql: string, ...values: SqlValue[]): SqlRow[];
  first(sql: string, ...values: SqlValue[]): SqlRow | undefined;
}

/**
 * One SQLite file (DESIGN.md, "Storage"): WAL, `synchronous=FULL`, every transaction `BEGIN IMMEDIATE`, since a
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
   * @throws DatabaseFormatError when it was made by a newer version of this program
   * @throws StoreUnavailableError when it can't be opened or stays locked
   */
  static async open(path: string): Promise<SqliteDatabase> {
    const { DatabaseSync: Sqlite } = loadSqlite();
    try {
      if (path !== ':memory:') keepPrivate(path);
      // Waiting inside SQLite would stop everything else in this process, so it is done here.
      const database = new Sqlite(path, { timeout: 0, enableForeignKeyConstraints: true });
      const opened = new SqliteDatabase(database);
      try {
        await patiently(() => database.exec('PRAGMA synchronous = FULL'));
        await patiently(() => checkOwner(database));
        await patiently(() => database.exec('PRAGMA journal_mode = WAL'));
        await opened.transaction(async (transaction) => migrate(database, transaction));
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
      await patiently(() => this.#database.exec('BEGIN IMMEDIATE'));
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

/** Waits for other connections to let go, with a little jitter, and without holding up this process. */
async function patiently(work: () => void): Promise<void> {
  for (let waited = 0; ; ) {
    try {
      work();
      return;
    } catch (error) {
      if (!isBusy(error) || waited >= BUSY_TIMEOUT) throw error;
      const pause = 1 + (randomInt(10) * Math.min(waited, 100)) / 20;
      waited += pause;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}

/** Another program's file is left as it is. */
function checkOwner(database: DatabaseSync): void {
  // One statement: another process may be making the schema at this very moment.
  const { owner, tables } =
    database
      .prepare(
        `SELECT (SELECT application_id FROM pragma_application_id) AS owner,
                (SELECT count(*) FROM sqlite_schema) AS tables`,
      )
      .get() ?? {};
  if (owner === APPLICATION_ID || (owner === 0 && tables === 0)) return;
  throw new DatabaseFormatError('The file is a database of another program.');
}

/** The file holds signing keys. SQLite gives the files that it puts beside it the same mode. */
function keepPrivate(path: string): void {
  try {
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
      throw new Error('It is a symbolic link.');
    closeSync(openSync(path, 'a', 0o600));
    chmodSync(path, 0o600);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StoreUnavailableError(`The file ${path} can't be opened. ${why}`, { cause });
  }
}

async function migrate(database: DatabaseSync, transaction: SqliteTransaction): Promise<void> {
  const version = Number(transaction.first('PRAGMA user_version')?.['user_version'] ?? 0);
  if (version > MIGRATIONS.length) {
    throw new DatabaseFormatError(
      `The database has schema version ${version}; this program knows ${MIGRATIONS.length}. Use a newer slices-conn.`,
    );
  }
  for (const migration of MIGRATIONS.slice(version)) database.exec(migration);
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${MIGRATIONS.length}`);
}

function named(values: readonly SqlValue[]): Record<string, SqlValue> {
  return Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]));
}

/** Node 22 warns that SQLite is experimental; that one warning is not for users of a command line. */
function loadSqlite(): typeof import('node:sqlite') {
  const { emitWarning } = process;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]): void => {
    if (String(warning).includes('SQLite is an experimental feature')) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    return process.getBuiltinModule('node:sqlite');
  } finally {
    process.emitWarning = emitWarning;
  }
}

const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;
/** Busy, locked, out of memory, read-only, I/O error, full, can't open (https://sqlite.org/rescode.html). */
const UNAVAILABLE = new Set([5, 6, 7, 8, 10, 13, 14]);

function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined;
  // The low byte is the primary code; the rest says more about it.
  return Number(error.errcode) & 0xff;
}

function isBusy(error: unknown): boolean {
  return resultCode(error) === 5 || resultCode(error) === 6;
}

function storeError(error: unknown): unknown {
  const code = resultCode(error);
  if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB) {
    return new DatabaseFormatError('The database file is damaged, or is none.', { cause: error });
  }
  if (code !== undefined && UNAVAILABLE.has(code)) {
    return new StoreUnavailableError("The database can't be used at the moment.", { cause: error });
  }
  return error;
}
