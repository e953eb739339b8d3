import type { DatabaseSync } from 'node:sqlite';
import { Line } from '../../allocator/line.ts';
import {
  type Locking,
  READ_LINK,
  type ReadDatabase,
  type SqlDatabase,
  type SqlQuery,
  type SqlReader,
  type SqlSnapshot,
  type SqlTransaction,
  statementsBy,
} from '../sql.ts';
import {
  BESIDE_WAL,
  BUSY_TIMEOUT,
  checkOfPlaces,
  commitError,
  createPrivate,
  denyOthers,
  loadSqlite,
  retryWhileBusy,
  storeError,
} from './file.ts';
import { checkFormat, type DatabaseFormat, isNewFile, makeTables } from './format.ts';
import { Connection, transactionBy } from './statements.ts';

/** The work of one transaction. */
type Work = (sql: SqlTransaction) => Promise<unknown>;

/**
 * Of the connection that writes. A commit is on the disk when it returns: without a WAL that takes EXTRA, since FULL does
 * not sync the folder after the journal is removed, and a journal that a power cut brings back undoes the commit; with one
 * EXTRA is FULL (https://sqlite.org/pragma.html#pragma_synchronous). The log is brought into the file when it has
 * 16 MiB, since bookings write all over the indexes: the same pages again and again, each copied and waited for
 * once. As much of the file stays in memory, and so does what a statement might take back, for which
 * SQLite would write a temporary file: three writes in five.
 */
const SETTINGS = `
  PRAGMA synchronous = EXTRA;
  PRAGMA wal_autocheckpoint = 4096;
  PRAGMA cache_size = -16384;
  PRAGMA temp_store = MEMORY`;
/** How many transactions that wait at the same time share a commit at most. */
const SHARING = 64;
/** How many connections that read are kept open between snapshots. */
const IDLE_READERS = 4;

/**
 * One SQLite file (allocator/README.md, "Storage"): `synchronous=EXTRA`, every transaction `BEGIN IMMEDIATE`, since a
 * deferred one that upgrades fails in spite of the busy timeout.
 *
 * Transactions of this process come one after the other. Reads use another connection, and wait for no writer.
 */
export class SqliteDatabase implements SqlDatabase {
  /** Whether the tables were made when it was opened. */
  readonly isNew: boolean;
  readonly reader: SqlReader;
  readonly #writer: Connection;
  /** Checks that its path still names the file. @throws StoreUnavailableError */
  readonly #checkPlace: () => void;
  /** Reads what is committed. A database in memory has one connection only, and so no reader. */
  readonly #reading: Connection | undefined;
  /** Opens another connection that reads. */
  readonly #open: (() => Connection) | undefined;
  /** Connections that read, between two snapshots: to open one takes longer than most questions. */
  readonly #idle: Connection[] = [];
  #isClosed = false;
  readonly #line: Line<Work, unknown>;
  readonly #alone = statementsBy((...given) => this.transaction(() => this.#writer.query(...given)));
  readonly all = this.#alone.all;
  readonly arrays = this.#alone.arrays;
  readonly first = this.#alone.first;
  readonly run = this.#alone.run;

  private constructor(
    database: DatabaseSync,
    isNew: boolean,
    checkPlace: () => void,
    open: (() => Connection) | undefined,
  ) {
    this.isNew = isNew;
    this.#writer = new Connection(database);
    this.#checkPlace = checkPlace;
    this.#open = open;
    // In memory a snapshot is a transaction, which sees nothing of others.
    this.#line = new Line(open ? SHARING : 1, (works) => this.#transact(works));
    this.#reading = open?.();
    this.reader = this.#reading ? statementsBy(this.#reading.query) : this;
  }

  /**
   * Opens a database, creating it where there is none.
   *
   * @param path a file, or `:memory:`
   * @throws DatabaseFormatError when another version of this program made it, it is damaged or another's
   * @throws StoreUnavailableError when it can't be opened or stays locked
   */
  static async open(path: string, format: DatabaseFormat): Promise<SqliteDatabase> {
    const { DatabaseSync: Sqlite } = loadSqlite();
    // `retryWhileBusy` waits for other processes' locks, not SQLite.
    const connect = (readOnly: boolean): DatabaseSync =>
      new Sqlite(path, { timeout: 0, enableForeignKeyConstraints: true, readOnly });
    const isFile = path !== ':memory:';
    try {
      if (isFile) createPrivate(path);
      const checkFile = checkOfPlaces(isFile ? [path] : []);
      const database = connect(false);
      try {
        await retryWhileBusy(() => database.exec(SETTINGS));
        let isNew = false;
        const look = (): void => {
          isNew = isNewFile(database, format);
        };
        await retryWhileBusy(look);
        await retryWhileBusy(() => database.exec(`PRAGMA journal_mode = ${format.journal}`));
        // Only the first read after that makes the files beside it.
        await retryWhileBusy(look);
        // A file that has its tables is not locked: other processes may be using it.
        if (isNew) {
          await retryWhileBusy(() => database.exec('BEGIN IMMEDIATE'));
          makeTables(database, format);
          await commit(database);
        }
        // By now SQLite has made the files beside it.
        const beside = format.journal === 'WAL' ? BESIDE_WAL : [];
        const checkPlace = checkOfPlaces(isFile ? ['', ...beside].map((end) => path + end) : []);
        checkFile();
        const open = (): Connection => {
          checkPlace();
          return new Connection(connect(true));
        };
        const hasReaders = format.journal === 'WAL' && isFile;
        return new SqliteDatabase(database, isNew, checkPlace, hasReaders ? open : undefined);
      } catch (error) {
        database.close();
        throw error;
      }
    } catch (error) {
      throw storeError(error);
    }
  }

  /**
   * Opens a file on a connection that can only read: it holds up no server that runs on the file.
   *
   * @throws DatabaseFormatError when it is damaged, another program's, or of another version
   * @throws StoreUnavailableError when it can't be read
   * @throws Failure `state_unusable` when other users could have changed it (THREATS.md 51)
   */
  static openToRead(path: string, format: DatabaseFormat): ReadDatabase {
    const { DatabaseSync: Sqlite } = loadSqlite();
    let database: DatabaseSync | undefined;
    try {
      denyOthers(path);
      database = new Sqlite(path, { readOnly: true, timeout: BUSY_TIMEOUT });
      checkFormat(database, format);
      const connection = new Connection(database);
      return {
        snapshot: (work) => connection.snapshot(work),
        close: async () => connection.database.close(),
      };
    } catch (error) {
      database?.close();
      throw storeError(error);
    }
  }

  /**
   * Runs `work` in a write transaction; commits when it resolves, rolls its changes back when it rejects.
   *
   * @throws CommitUnknownError when the disk failed while the commit was under way
   */
  transaction<Answer>(work: (sql: SqlTransaction) => Promise<Answer>): Promise<Answer> {
    // The line need not know the type of each answer.
    return this.#line.run(work) as Promise<Answer>;
  }

  async snapshot<Answer>(work: (sql: SqlSnapshot) => Promise<Answer>): Promise<Answer> {
    // In memory the transaction itself is the snapshot.
    if (!this.#open) return this.transaction((sql) => work({ ...sql, history: '' }));
    let connection: Connection | undefined;
    try {
      const used = this.#idle.pop() ?? this.#open();
      connection = used;
      const answer = await used.snapshot(work);
      if (!this.#isClosed && this.#idle.length < IDLE_READERS) {
        this.#idle.push(used);
        connection = undefined;
      }
      return answer;
    } catch (error) {
      throw storeError(error);
    } finally {
      connection?.database.close();
    }
  }

  /** Waits for what is under way and closes every connection, also where one fails to close. @throws the first error */
  async close(): Promise<void> {
    await this.#line.working;
    this.#isClosed = true;
    const failures: unknown[] = [];
    // The connection that writes is closed last: only it can bring the log into the file and remove it.
    for (const each of [this.#reading, ...this.#idle, this.#writer]) {
      try {
        if (each?.database.isOpen) each.database.close();
      } catch (error) {
        failures.push(storeError(error));
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Does works in one transaction, one after the other. */
  async #transact(works: readonly Work[]): Promise<unknown[]> {
    const { database } = this.#writer;
    try {
      await retryWhileBusy(() => database.exec('BEGIN IMMEDIATE'));
      const answers: unknown[] = [];
      for (const work of works) answers.push(await this.#guarded(work));
      this.#checkPlace();
      await commit(database).catch((error: unknown) => {
        throw commitError(error, database.isTransaction);
      });
      return answers;
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      throw storeError(error);
    }
  }

  /** Work that fails may have begun other writes, which go on in slices: they would run after its rollback, in another's work. */
  async #guarded(work: Work): Promise<unknown> {
    let isOver = false;
    const query: SqlQuery = async (...given) => {
      if (isOver) throw new RangeError('a statement came after its work was over');
      return this.#writer.query(...given);
    };
    return work(transactionBy(query)).finally(() => {
      isOver = true;
    });
  }
}

/** Commits. Without a WAL it waits for readers; the transaction stays open meanwhile. */
function commit(database: DatabaseSync): Promise<void> {
  return retryWhileBusy(() => database.exec('COMMIT'));
}

/** The transaction is the lock: it began with `BEGIN IMMEDIATE`, so no other connection writes. */
export const SQLITE_LOCKING: Locking = {
  lock: (sql, link) => sql.first(READ_LINK, { link }),
  hasOneWriter: true,
  async lockNames() {
    // No other connection writes.
  },
  deleteExpiredKeys: `
    DELETE FROM idempotency_key WHERE (created_by, experiment, key) IN (
      SELECT created_by, experiment, key FROM idempotency_key WHERE expires_ms <= $now ORDER BY expires_ms LIMIT $most)`,
};
