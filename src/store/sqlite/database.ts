import type { DatabaseSync } from 'node:sqlite';
import { yieldToEventLoop } from '../../allocator/event-loop.ts';
import { notBegun, StoreUnavailableError } from '../../allocator/store.ts';
import { type Locking, READ_LINK, type ReadDatabase, type SqlDatabase, type SqlReader } from '../sql.ts';
import { commitError, storeError } from './errors.ts';
import {
  BESIDE_WAL,
  BUSY_TIMEOUT,
  checkOfPlaces,
  createPrivate,
  denyOthers,
  loadSqlite,
  retryWhileBusy,
} from './file.ts';
import { checkFormat, type DatabaseFormat, isNewFile, makeTables } from './format.ts';
import {
  awaitedSnapshot,
  awaitedTransaction,
  type Connection,
  connectionOn,
  type Prepared,
  readsOf,
  type SqliteReads,
  type SqliteSnapshot,
  type SqliteTransaction,
  snapshotOn,
} from './statements.ts';

/** Work that waits for the file, and how its caller is told. */
interface Waiting {
  work: (transaction: SqliteTransaction) => Promise<unknown>;
  /** Whether it must not see what others of its group have not committed, and so begins a group. */
  first: boolean;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** How many pieces of work share one commit at most. */
const GROUP_SIZE = 64;
/**
 * Of the connection that writes. A commit is on the disk when it returns: without a WAL that takes EXTRA, since FULL does
 * not sync the folder after the journal is removed, and a journal that a power cut brings back undoes the commit; with one
 * EXTRA is FULL (https://sqlite.org/pragma.html#pragma_synchronous). The log is brought into the file when it has
 * 16 MiB, since bookings write all over the indexes: the same pages again and again, each copied and waited for
 * once. As much of the file stays in memory, and so does what a savepoint or a statement might take back, for which
 * SQLite would write a temporary file: three writes in five.
 */
const SETTINGS = `
  PRAGMA synchronous = EXTRA;
  PRAGMA wal_autocheckpoint = 4096;
  PRAGMA cache_size = -16384;
  PRAGMA temp_store = MEMORY`;
/** How many connections that read are kept open between snapshots. */
const IDLE_READERS = 4;

/**
 * One SQLite file (allocator/README.md, "Storage"): `synchronous=EXTRA`, every transaction `BEGIN IMMEDIATE`, since a
 * deferred one that upgrades fails in spite of the busy timeout.
 *
 * Work of this process that waits for the file at the same time shares one transaction, and so one wait for the disk. Each
 * piece has a savepoint: failed work rolls back to its own, and the others stay. Each is answered after the commit. Reads
 * use another connection, and wait for no writer.
 */
export class SqliteDatabase {
  /** Whether the tables were made when it was opened. */
  readonly isNew: boolean;
  /** Sees what is committed, and waits for no writer. */
  readonly reader: SqlReader = {
    all: (sql, ...values) => this.#read((reads) => reads.all(sql, ...values)),
    arrays: (sql, ...values) => this.#read((reads) => reads.arrays(sql, ...values)),
    first: (sql, ...values) => this.#read((reads) => reads.first(sql, ...values)),
  };
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
  #waiting: Waiting[] = [];
  #working: Promise<void> | undefined;

  private constructor(
    database: DatabaseSync,
    {
      isNew,
      checkPlace,
      open,
    }: { isNew: boolean; checkPlace: () => void; open: (() => Connection) | undefined },
  ) {
    this.isNew = isNew;
    this.#writer = connectionOn(database);
    this.#checkPlace = checkPlace;
    this.#open = open;
    this.#reading = open?.();
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
          return connectionOn(connect(true));
        };
        return new SqliteDatabase(database, {
          isNew,
          checkPlace,
          open: format.journal === 'WAL' && isFile ? open : undefined,
        });
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
      const connection = new Sqlite(path, { readOnly: true, timeout: BUSY_TIMEOUT });
      database = connection;
      checkFormat(connection, format);
      return {
        snapshot: (work) =>
          snapshotOn(connectionOn(connection), (snapshot) =>
            work({ ...awaitedSnapshot(snapshot), history: '' }),
          ).catch((error: unknown) => {
            throw storeError(error);
          }),
        close: async () => connection.close(),
      };
    } catch (error) {
      database?.close();
      throw storeError(error);
    }
  }

  /**
   * Runs `work` in a write transaction; commits when it resolves, rolls its changes back when it rejects. Other work may
   * share the transaction.
   *
   * @throws CommitUnknownError when the disk failed while the commit was under way
   */
  transaction<Answer>(work: (transaction: SqliteTransaction) => Promise<Answer>): Promise<Answer> {
    return this.#enqueue(work);
  }

  async #read<Answer>(read: (reads: SqliteReads) => Answer): Promise<Answer> {
    const connection = this.#reading;
    if (!connection) return this.transaction(async (transaction) => read(transaction));
    try {
      return read(readsOf(connection.prepared));
    } catch (error) {
      throw storeError(error);
    }
  }

  /** Runs `work` on what was committed when its first statement ran, without holding up writers. */
  async snapshot<Answer>(work: (snapshot: SqliteSnapshot) => Promise<Answer>): Promise<Answer> {
    if (!this.#open) return this.#enqueue((transaction) => work(wholeIn(transaction)), true);
    let connection: Connection | undefined;
    try {
      connection = this.#idle.pop() ?? this.#open();
      const answer = await snapshotOn(connection, work);
      if (!this.#isClosed && this.#idle.length < IDLE_READERS) {
        this.#idle.push(connection);
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
    await this.#working;
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

  #enqueue<Answer>(
    work: (transaction: SqliteTransaction) => Promise<Answer>,
    first = false,
  ): Promise<Answer> {
    return new Promise<Answer>((resolve, reject) => {
      // Each answer goes to its own caller: the group need not know its type.
      this.#waiting.push({ work, first, resolve: (answer) => resolve(answer as Answer), reject });
      this.#working ??= this.#work();
    });
  }

  async #work(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Work that arrives in these rounds of the event loop joins the group: in the first, callers of the group before get
      // their answers, and in the second they ask again. With 16 connections groups are half as large again as after one.
      await yieldToEventLoop();
      await yieldToEventLoop();
      const next = this.#waiting.findIndex(({ first }, index) => first && index > 0);
      const group = this.#waiting.splice(0, next < 0 ? GROUP_SIZE : Math.min(next, GROUP_SIZE));
      try {
        const settle = await this.#commitTogether(group);
        for (const each of settle) each();
      } catch (cause) {
        const error = storeError(cause);
        for (const { reject } of group) reject(error);
        if (!(error instanceof StoreUnavailableError)) continue;
        // Work that arrived meanwhile has not begun, and would wait as long again.
        const waited = notBegun(error);
        for (const { reject } of this.#waiting.splice(0)) reject(waited);
      }
    }
    this.#working = undefined;
  }

  /** Runs work in one transaction. @returns functions that tell each caller, to be called after the commit */
  async #commitTogether(group: readonly Waiting[]): Promise<(() => void)[]> {
    const { database } = this.#writer;
    try {
      await retryWhileBusy(() => database.exec('BEGIN IMMEDIATE'));
      const settle: (() => void)[] = [];
      for (const [index, each] of group.entries()) {
        settle.push(await this.#runOne(each, index === 0 ? group.length : 0));
      }
      this.#checkPlace();
      await commit(database).catch((error: unknown) => {
        throw commitError(error, database.isTransaction);
      });
      return settle;
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
  }

  async #runOne({ work, resolve, reject }: Waiting, together: number): Promise<() => void> {
    const { database } = this.#writer;
    let isOver = false;
    // Work that fails may have begun other writes, which go on in slices: they would run after its rollback, in another's work.
    const execute = <Answer>(sql: string, run: (statement: Prepared) => Answer): Answer => {
      if (isOver) throw new RangeError('a statement came after its work was over');
      return this.#execute(sql, run);
    };
    database.exec('SAVEPOINT work');
    try {
      const answer = await work({
        together,
        run: (sql, ...values) => execute(sql, (statement) => statement.run(values)),
        all: (sql, ...values) => execute(sql, (statement) => statement.all(values)),
        arrays: (sql, ...values) => execute(sql, (statement) => statement.arrays(values)),
        first: (sql, ...values) => execute(sql, (statement) => statement.first(values)),
      }).finally(() => {
        isOver = true;
      });
      database.exec('RELEASE work');
      return () => resolve(answer);
    } catch (error) {
      // On a full disk SQLite rolls the whole transaction back by itself.
      if (!database.isTransaction) throw error;
      database.exec('ROLLBACK TO work; RELEASE work');
      return () => reject(error);
    }
  }

  /** Runs a statement. @throws as `storeError` says, so that the work can tell whether the database is to blame */
  #execute<Answer>(sql: string, execute: (statement: Prepared) => Answer): Answer {
    try {
      return execute(this.#writer.prepared(sql));
    } catch (error) {
      throw storeError(error);
    }
  }
}

/** Commits. Without a WAL it waits for readers; the transaction stays open meanwhile. */
function commit(database: DatabaseSync): Promise<void> {
  return retryWhileBusy(() => database.exec('COMMIT'));
}

/** A database in memory: the transaction itself is the snapshot. */
function wholeIn(transaction: SqliteTransaction): SqliteSnapshot {
  return {
    ...transaction,
    async *portions(sql, ...values) {
      yield transaction.arrays(sql, ...values);
    },
  };
}

/** A SQLite file in the form that the stores use for either engine. */
export function statementsOn(database: SqliteDatabase): SqlDatabase {
  // A file that is replaced is refused, so it has one history.
  const history = '';
  return {
    reader: database.reader,
    run: (sql, ...values) => database.transaction(async (transaction) => transaction.run(sql, ...values)),
    all: (sql, ...values) => database.transaction(async (transaction) => transaction.all(sql, ...values)),
    first: (sql, ...values) => database.transaction(async (transaction) => transaction.first(sql, ...values)),
    transaction: (work) =>
      database.transaction((transaction) => {
        const statements = awaitedTransaction(transaction);
        const { together } = transaction;
        return work({ ...statements, history, together, finish: statements.write });
      }),
    snapshot: (work) => database.snapshot((snapshot) => work({ ...awaitedSnapshot(snapshot), history })),
  };
}

/** The transaction is the lock: it began with `BEGIN IMMEDIATE`, so no other connection writes. */
export const SQLITE_LOCKING: Locking = {
  lock: (sql, link) => sql.first(READ_LINK, link),
  sharesCommits: true,
  async lockNames() {
    // No other connection writes.
  },
  deleteExpiredKeys: `
    DELETE FROM idempotency_key WHERE (created_by, experiment, key) IN (
      SELECT created_by, experiment, key FROM idempotency_key WHERE expires_ms <= $1 ORDER BY expires_ms LIMIT $2)`,
};
