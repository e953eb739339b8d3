import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setImmediate as roundOfTheLoop } from 'node:timers/promises';
import { CommitUnknownError, StoreUnavailableError } from '../../allocator/store.ts';
import { DatabaseFormatError, type SqlRow, type SqlValue } from '../sql.ts';
import { commitError, keepPrivate, loadSqlite, patiently, storeError } from './engine.ts';
import { named, type SqliteReads, type SqliteSnapshot, snapshotOn } from './snapshot.ts';

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

/** The statements of one transaction. */
export interface SqliteTransaction extends SqliteReads {
  run(sql: string, ...values: SqlValue[]): void;
}

/** Work that waits for the file, with those who wait for it. */
interface Waiting {
  work: (transaction: SqliteTransaction) => Promise<unknown>;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** How many pieces of work share one commit at most. */
const GROUP_SIZE = 64;

/**
 * One SQLite file (DESIGN.md, "Storage"): `synchronous=FULL`, every transaction `BEGIN IMMEDIATE`, since a
 * deferred one that upgrades fails in spite of the busy timeout.
 *
 * Work of this process that waits for the file at the same time shares a transaction, and so the one wait for the disk:
 * each piece between savepoints of its own, so that what one leaves undone is undone for it alone. Nobody is answered
 * before the commit. Who only reads does so on another connection, and waits for no writer.
 */
export class SqliteDatabase {
  readonly #database: DatabaseSync;
  /** Reads what is committed; in memory there is one connection only, which must not be asked within a transaction. */
  readonly #reader: DatabaseSync | undefined;
  /** Opens another connection that reads. */
  readonly #open: (() => DatabaseSync) | undefined;
  readonly #statements = new Map<string, StatementSync>();
  readonly #reads = new Map<string, StatementSync>();
  #waiting: Waiting[] = [];
  #working: Promise<void> | undefined;

  private constructor(database: DatabaseSync, open: (() => DatabaseSync) | undefined) {
    this.#database = database;
    this.#open = open;
    this.#reader = open?.();
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
    // Who waits for another process's lock does so in `patiently`, not inside SQLite.
    const connect = (readOnly: boolean): DatabaseSync =>
      new Sqlite(path, { timeout: 0, enableForeignKeyConstraints: true, readOnly });
    try {
      if (path !== ':memory:') keepPrivate(path);
      const database = connect(false);
      try {
        await patiently(() => database.exec('PRAGMA synchronous = FULL'), BUSY_TIMEOUT);
        await patiently(() => checkOwner(database, format), BUSY_TIMEOUT);
        await patiently(() => database.exec(`PRAGMA journal_mode = ${format.journal}`), BUSY_TIMEOUT);
        let version = 0;
        await patiently(() => {
          version = versionOf(database);
        }, BUSY_TIMEOUT);
        // A file that is up to date is not locked: whoever uses it at this moment would have to be waited for.
        if (version !== format.migrations.length) {
          await patiently(() => database.exec('BEGIN IMMEDIATE'), BUSY_TIMEOUT);
          migrate(database, format);
          await commit(database);
        }
        return new SqliteDatabase(
          database,
          format.journal === 'WAL' && path !== ':memory:' ? () => connect(true) : undefined,
        );
      } catch (error) {
        database.close();
        throw error;
      }
    } catch (error) {
      throw storeError(error);
    }
  }

  /**
   * Runs `work` in a write transaction; commits when it resolves, undoes it when it rejects. It may share the
   * transaction with other work, which it can't tell.
   *
   * @throws CommitUnknownError when the disk failed while the commit was under way
   */
  transaction<Answer>(work: (transaction: SqliteTransaction) => Promise<Answer>): Promise<Answer> {
    return new Promise<Answer>((resolve, reject) => {
      // An answer goes to its own work: the group need not know of what kind it is.
      this.#waiting.push({ work, resolve: (answer) => resolve(answer as Answer), reject });
      this.#working ??= this.#work();
    });
  }

  /** What a statement finds of what is committed. */
  async read(sql: string, ...values: SqlValue[]): Promise<SqlRow[]> {
    if (!this.#reader) return this.transaction(async (transaction) => transaction.all(sql, ...values));
    try {
      return prepared(this.#reader, this.#reads, sql).all(named(values));
    } catch (error) {
      throw storeError(error);
    }
  }

  /** Runs `work` on what was committed at one instant; a file's writers are not held up by it. */
  async snapshot<Answer>(work: (snapshot: SqliteSnapshot) => Promise<Answer>): Promise<Answer> {
    if (!this.#open) return this.transaction((transaction) => work(wholeIn(transaction)));
    let connection: DatabaseSync | undefined;
    try {
      connection = this.#open();
      return await snapshotOn(connection, work);
    } catch (error) {
      throw storeError(error);
    } finally {
      connection?.close();
    }
  }

  /** Waits for what is under way and closes the file. */
  async close(): Promise<void> {
    await this.#working;
    for (const each of [this.#reader, this.#database]) if (each?.isOpen) each.close();
  }

  async #work(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Whoever else has work at this moment brings it.
      await roundOfTheLoop();
      const group = this.#waiting.splice(0, GROUP_SIZE);
      try {
        const settle = await this.#commitTogether(group);
        for (const each of settle) each();
      } catch (cause) {
        const error = storeError(cause);
        for (const { reject } of group) reject(error);
        if (!(error instanceof StoreUnavailableError)) continue;
        // Those who came meanwhile would wait as long again; nothing of theirs was begun.
        const waited =
          error instanceof CommitUnknownError
            ? new StoreUnavailableError("The database can't be used at the moment.", { cause: error.cause })
            : error;
        for (const { reject } of this.#waiting.splice(0)) reject(waited);
      }
    }
    this.#working = undefined;
  }

  /** Runs work in one transaction. @returns how each is to be told, once that is committed */
  async #commitTogether(group: readonly Waiting[]): Promise<(() => void)[]> {
    const database = this.#database;
    try {
      await patiently(() => database.exec('BEGIN IMMEDIATE'), BUSY_TIMEOUT);
      const settle: (() => void)[] = [];
      for (const each of group) settle.push(await this.#runOne(each));
      await commit(database).catch((error: unknown) => {
        throw commitError(error, database.isTransaction);
      });
      return settle;
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
  }

  async #runOne({ work, resolve, reject }: Waiting): Promise<() => void> {
    const database = this.#database;
    database.exec('SAVEPOINT work');
    try {
      const answer = await work({
        run: (sql, ...values) => void this.#execute(sql, (statement) => statement.run(named(values))),
        all: (sql, ...values) => this.#execute(sql, (statement) => statement.all(named(values))),
        first: (sql, ...values) => this.#execute(sql, (statement) => statement.get(named(values))),
      });
      database.exec('RELEASE work');
      return () => resolve(answer);
    } catch (error) {
      // A full disk undoes the whole transaction by itself; then nothing of it can be kept.
      if (!database.isTransaction) throw error;
      database.exec('ROLLBACK TO work; RELEASE work');
      return () => reject(error);
    }
  }

  /** Whoever asks for a statement learns from its failure whether the database is to blame. */
  #execute<Answer>(sql: string, execute: (statement: StatementSync) => Answer): Answer {
    try {
      return execute(prepared(this.#database, this.#statements, sql));
    } catch (error) {
      throw storeError(error);
    }
  }
}

/** Without a log, whoever reads at this moment is waited for; the transaction stays as it is meanwhile. */
function commit(database: DatabaseSync): Promise<void> {
  return patiently(() => database.exec('COMMIT'), BUSY_TIMEOUT);
}

function prepared(database: DatabaseSync, known: Map<string, StatementSync>, sql: string): StatementSync {
  const statement = known.get(sql) ?? database.prepare(sql);
  known.set(sql, statement);
  return statement;
}

/** In memory nobody else's request can come between. */
function wholeIn({ all, first }: SqliteTransaction): SqliteSnapshot {
  return {
    all,
    first,
    async *portions(sql, ...values) {
      yield all(sql, ...values);
    },
  };
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

function versionOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
}

function migrate(database: DatabaseSync, { applicationId, migrations }: DatabaseFormat): void {
  const version = versionOf(database);
  if (version > migrations.length) {
    throw new DatabaseFormatError(
      `The database has schema version ${version}; this program knows ${migrations.length}. Use a newer slices-conn.`,
    );
  }
  for (const migration of migrations.slice(version)) database.exec(migration);
  database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${migrations.length}`);
}
