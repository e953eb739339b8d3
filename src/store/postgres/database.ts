import { randomUUID } from 'node:crypto';
import { type ClientBase, Pool, type PoolClient, types } from 'pg';
import {
  CommitUnknownError,
  DATABASE_UNUSABLE,
  type LinkVersion,
  RolledBackError,
  StoreUnavailableError,
} from '../../allocator/store.ts';
import { Failure } from '../../contract/failure.ts';
import { beginHistory } from '../history.ts';
import {
  DatabaseFormatError,
  type Locking,
  READ_LINK,
  type ReadDatabase,
  type SqlDatabase,
  type SqlSnapshot,
  type SqlTransaction,
  statementsBy,
  valueIn,
} from '../sql.ts';
import { readConnection } from './connection.ts';
import { Histories, READ_PLACE } from './history.ts';
import { commitError, Lease, queryOn, storeError } from './statements.ts';
import { hasTables, makeTables } from './tables.ts';

/** How long a transaction may take in all, in milliseconds; then its connection is closed. */
const TRANSACTION_TIMEOUT = 9000;
/** The same for the tables of a new database. */
const TABLES_TIMEOUT = 60_000;
/** The server's and the pool's own limits, in milliseconds, within {@link TRANSACTION_TIMEOUT}. */
const TIMEOUTS = {
  connectionTimeoutMillis: 4000,
  lock_timeout: 5000,
  statement_timeout: 6000,
  // When the server does not answer, the connection is closed: the driver would wait for the answer otherwise.
  query_timeout: 8000,
  // A process that hangs in a transaction loses its link's lock.
  idle_in_transaction_session_timeout: 10_000,
} as const;

/** The same for reading the audit: years of decisions take long, and a person who pages through them takes longer. */
const READING_TIMEOUT = 600_000;
const READING_LIMITS = {
  ...TIMEOUTS,
  statement_timeout: 590_000,
  query_timeout: 595_000,
  idle_in_transaction_session_timeout: READING_TIMEOUT,
} as const;

/** For how many seconds a connection is used: so a promoted standby is noticed where the former primary lives on. */
const CONNECTION_LIFETIME_S = 60;
/** Connections of one process. Requests for one link share one: they wait in the link's queue. */
const CONNECTIONS = 10;

/** How a database is opened. */
interface OpenOptions {
  /** Told when the database turns out to be another one, or of another timeline: the names of both. */
  onNewHistory?: (from: string, to: string) => void;
}

/** int8: the driver returns text for it; our values (milliseconds, versions, counts) fit a number. */
const INT8 = types.builtins.INT8;

/**
 * A PostgreSQL database that any number of replicas share (allocator/README.md, "Storage"): READ COMMITTED, never SERIALIZABLE.
 * When it is away or slow, a call throws StoreUnavailableError within 10 s; the next call tries again.
 */
export class PostgresDatabase implements SqlDatabase {
  readonly reader = statementsBy((...given) =>
    this.#connected(TRANSACTION_TIMEOUT, (client) => queryOn(client)(...given)),
  );
  readonly #alone = statementsBy((...given) =>
    this.#connected(TRANSACTION_TIMEOUT, async (client, lease) => {
      lease.committing();
      try {
        return await queryOn(client)(...given);
      } catch (error) {
        throw error instanceof StoreUnavailableError ? commitError(error.cause) : error;
      }
    }),
  );
  readonly all = this.#alone.all;
  readonly arrays = this.#alone.arrays;
  readonly first = this.#alone.first;
  readonly run = this.#alone.run;
  readonly #pool: Pool;
  /** How long a snapshot may take, in milliseconds. */
  readonly #timeout: number;
  readonly #histories: Histories;
  /** Whether the tables were made when it was opened. */
  isNew = false;
  /** The history that was begun last; undefined before it has its tables, and where it is only read. */
  #begun: string | undefined;
  #closing: Promise<void> | undefined;

  private constructor(url: string, { onNewHistory = () => undefined }: OpenOptions, isOnlyRead = false) {
    this.#timeout = isOnlyRead ? READING_TIMEOUT : TRANSACTION_TIMEOUT;
    const { needsPrimary, config } = readConnection(url);
    this.#histories = new Histories(onNewHistory);
    this.#pool = new Pool({
      ...(isOnlyRead ? READING_LIMITS : TIMEOUTS),
      ...config,
      onConnect: async (client) => {
        // For what is only read once, a standby will do.
        if (isOnlyRead && !needsPrimary) return;
        this.#histories.enter(client, (await client.query(READ_PLACE)).rows[0]);
        const isOther = this.#begun !== undefined && this.#begun !== this.history;
        if (isOther) await this.#begin(client);
      },
      fallback_application_name: 'slices-conn',
      max: CONNECTIONS,
      maxLifetimeSeconds: CONNECTION_LIFETIME_S,
      keepAlive: true,
      // Statements that do not depend on each other's answers go out together.
      pipeline: true,
      types: {
        getTypeParser: (oid, format) => (oid === INT8 ? Number : types.getTypeParser(oid, format)),
      },
    });
    // The pool has removed an idle connection that broke; a connection in use fails its statement.
    this.#pool.on('error', () => undefined);
    this.#pool.on('connect', (client) => void client.on('error', () => undefined));
  }

  /**
   * Connects, and makes the tables of an empty database.
   *
   * @param url `postgres://user@host/database`, see {@link readConnection}
   * @throws Failure as {@link readConnection} does, and `usage` behind a pooler that takes sessions apart
   * @throws DatabaseFormatError when another version of this program made it, or it is another program's
   * @throws StoreUnavailableError when it can't be reached, does not let us in, or is a standby
   */
  static async open(url: string, options: OpenOptions = {}): Promise<PostgresDatabase> {
    return new PostgresDatabase(url, options).#opened(async (database) => {
      database.isNew = await database.transaction((sql) => makeTables(sql, TABLES_TIMEOUT), TABLES_TIMEOUT);
      await database.#connected(TRANSACTION_TIMEOUT, (client) => database.#begin(client));
    });
  }

  /**
   * Connects to read snapshots only, with the time limits that reading years of decisions needs.
   *
   * @throws DatabaseFormatError when it is not a server's, or of another version
   * @throws StoreUnavailableError when it can't be reached, or does not let us in
   */
  static async openToRead(url: string): Promise<ReadDatabase> {
    return new PostgresDatabase(url, {}, true).#opened(async (database) => {
      const isServers = await database.snapshot((sql) => hasTables(sql));
      if (!isServers) throw new DatabaseFormatError('No server has kept its data there yet.');
    });
  }

  /** Itself once it is ready; it is closed where that fails. */
  async #opened(ready: (database: PostgresDatabase) => Promise<void>): Promise<PostgresDatabase> {
    try {
      await this.#refusePooler();
      await ready(this);
      return this;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /**
   * Refuses a pooler between this program and PostgreSQL that gives each transaction another session, such as PgBouncer
   * with `pool_mode = transaction`: prepared statements would be missing, or be another client's. A pooler is there where
   * the session's process is not the one that was announced. A setting of one session is then looked for in a second one,
   * which has a transaction open and so would hold the session that the first one had.
   */
  async #refusePooler(): Promise<void> {
    let one: PoolClient | undefined;
    let other: PoolClient | undefined;
    let isMarked = false;
    try {
      one = await this.#pool.connect();
      const { rows } = await one.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      if (!('processID' in one) || one.processID === rows[0]?.pid) return;
      other = await this.#pool.connect();
      const mark = randomUUID();
      isMarked = true;
      await one.query("SELECT set_config('slices_conn.session', $1, false)", [mark]);
      await other.query('BEGIN');
      const isShared = (await markOf(other)) === mark;
      await other.query('ROLLBACK');
      if (isShared || (await markOf(one)) !== mark) throw behindPooler();
    } catch (error) {
      if (error instanceof Error && POOLERS_REFUSAL.test(error.message)) throw behindPooler(error);
      throw error instanceof Failure ? error : storeError(error);
    } finally {
      one?.release(isMarked);
      other?.release(true);
    }
  }

  /**
   * Begins a history where the database is of another one. Its name has the table's file too: tables that are restored in place
   * of others get another.
   */
  async #begin(client: ClientBase): Promise<void> {
    const sql = statementsBy(queryOn(client));
    await sql.run('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
    try {
      const { history } = this;
      const file = await sql.first("SELECT pg_relation_filenode('link') AS file");
      const name = `${history} ${file?.['file']}`;
      await beginHistory(sql, name, 'floor(extract(epoch FROM clock_timestamp()))::bigint');
      await sql.run('COMMIT');
      this.#begun = history;
    } catch (error) {
      await sql.run('ROLLBACK');
      throw error;
    }
  }

  /** See `Stores.history`. */
  get history(): string {
    return this.#histories.name;
  }

  /** Says in a sentence what a loss of the primary would lose; undefined where a standby has all that is confirmed. */
  async failoverLoses(): Promise<string | undefined> {
    const row = await this.reader.first(
      `SELECT current_setting('synchronous_standby_names') AS standbys, current_setting('synchronous_commit') AS commits`,
    );
    const { standbys, commits } = row ?? {};
    const risk = 'a failover to a standby loses what was confirmed last.';
    if (commits === 'off')
      return 'synchronous_commit is off: a crash of the database loses what was confirmed last.';
    if (commits === 'local') return `synchronous_commit is local: ${risk}`;
    return standbys === '' ? `synchronous_standby_names is empty: ${risk}` : undefined;
  }

  async snapshot<Answer>(work: (sql: SqlSnapshot) => Promise<Answer>): Promise<Answer> {
    return this.#connected(this.#timeout, async (client, lease) => {
      const query = queryOn(client);
      const sql = statementsBy(async (...given) => {
        // A long read may take long in all; each of its statements has its own time limit.
        lease.resume();
        return query(...given);
      });
      await sql.run('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      try {
        return await work({ ...sql, history: this.#histories.of(client) });
      } finally {
        await sql.run('ROLLBACK');
      }
    });
  }

  /**
   * Runs `work` in one transaction; commits when it resolves, rolls back when it rejects.
   *
   * @throws CommitUnknownError when the connection was lost while the commit was under way
   */
  async transaction<Answer>(
    work: (sql: SqlTransaction) => Promise<Answer>,
    timeout = TRANSACTION_TIMEOUT,
  ): Promise<Answer> {
    return this.#connected(timeout, async (client, lease) => {
      const sql = statementsBy(queryOn(client, timeout));
      // BEGIN is not awaited here. It fails only when the connection is lost, or the database is read-only.
      const begun = sql.run('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
      let finishing: Promise<unknown> | undefined;
      const finish = async (last: Promise<unknown>): Promise<void> => {
        finishing = last;
        finishing.catch(() => undefined);
      };
      // One statement, however many rows there are.
      const insert: SqlTransaction['insert'] = (into, rows) => {
        if (rows.length === 0) return Promise.resolve();
        const columns = into.members.map((name) => [name, rows.map((row) => valueIn(row, name))]);
        return sql.run(into.rows, Object.fromEntries(columns));
      };
      let answer: Answer;
      const history = this.#histories.of(client);
      try {
        [answer] = await Promise.all([work({ ...sql, insert, finish }), begun]);
        // A promoted standby was seen meanwhile: this one's commits are lost.
        if (history !== this.history) throw new StoreUnavailableError(DATABASE_UNUSABLE);
      } catch (error) {
        await sql.run('ROLLBACK');
        throw error;
      }
      lease.committing();
      await commit(client, finishing);
      return answer;
    });
  }

  /** Waits for what is under way and closes the connections. */
  async close(): Promise<void> {
    this.#closing ??= this.#pool.end();
    await this.#closing;
  }

  /** Runs `work` on a connection, for `timeout` milliseconds at most; a lost connection is not used again. */
  async #connected<Answer>(
    timeout: number,
    work: (client: PoolClient, lease: Lease) => Promise<Answer>,
  ): Promise<Answer> {
    const lease = new Lease(timeout);
    let client: PoolClient | undefined;
    try {
      const connecting = this.#connect();
      // A connection that comes too late goes back to the pool.
      connecting.then(
        (connected) => lease.isOver && connected.release(),
        () => undefined,
      );
      client = await Promise.race([connecting, lease.over]);
      const answer = await Promise.race([work(client, lease), lease.over]);
      client.release();
      return answer;
    } catch (error) {
      client?.release(error instanceof StoreUnavailableError);
      throw error;
    } finally {
      lease.end();
    }
  }

  async #connect(): Promise<PoolClient> {
    try {
      for (;;) {
        const client = await this.#pool.connect();
        if (this.#histories.of(client) === this.history) return client;
        client.release(true);
      }
    } catch (error) {
      throw storeError(error);
    }
  }
}

/**
 * Commits right behind the last statement, without waiting for its answer. When that statement fails, the server rolls
 * back: it is all or nothing either way.
 *
 * @throws CommitUnknownError also where it is done and the database warns of it
 */
async function commit(client: PoolClient, finishing: Promise<unknown> | undefined): Promise<void> {
  let isWarned = false;
  const warn = ({ code = '' }: { code?: string | undefined }): void => {
    isWarned ||= code.startsWith('01');
  };
  client.on('notice', warn);
  const [ended, written] = await Promise.allSettled([client.query('COMMIT'), finishing]);
  client.off('notice', warn);
  if (ended.status === 'rejected') throw commitError(ended.reason);
  if (written.status === 'rejected') {
    throw new RolledBackError('The transaction was rolled back.', { cause: written.reason });
  }
  // A statement failed, and `work` did not pass its error on: the server answers COMMIT with ROLLBACK.
  if (ended.value.command !== 'COMMIT') throw new Error('the transaction had failed and was rolled back');
  // An administrator has ended the wait for the standby (pg_cancel_backend), so a failover would lose it.
  if (isWarned) throw new CommitUnknownError('The database made the change without its standby.');
}

/** The setting by which a session is recognised; null where it has none. */
async function markOf(session: ClientBase): Promise<unknown> {
  return (await session.query("SELECT current_setting('slices_conn.session', true) AS mark")).rows[0]?.mark;
}

/** PgBouncer's refusals: of the limits that this program asks for, unless it ignores them, and of a transaction. */
const POOLERS_REFUSAL = /unsupported startup parameter|statement pooling mode/;

function behindPooler(cause?: unknown): Failure {
  return new Failure('usage', 'The address of the database is that of a connection pooler.', {
    why: 'A pooler such as PgBouncer with pool_mode = transaction gives each transaction another session, so prepared statements and time limits are lost. This server keeps a pool of its own: give it the address of PostgreSQL itself, or a pool with pool_mode = session.',
    cause,
  });
}

/** Row locks and advisory locks, which last until the transaction ends. */
export const POSTGRES_LOCKING: Locking = {
  /**
   * Locks the row in a statement that reads nothing else. At READ COMMITTED a statement sees what was committed before
   * it began: a statement that waited for the lock and read the row too would read it as it was before the wait.
   */
  async lock(sql, link) {
    // Both are sent at once; the server starts the second once the first has the lock.
    const [locked, row] = await Promise.all([
      sql.first('SELECT id FROM link WHERE id = $link FOR UPDATE', { link }),
      sql.first<LinkVersion>(READ_LINK, { link }),
    ]);
    // The second sees a row that was made after the first had looked, and that is not locked.
    return locked && row;
  },
  hasOneWriter: false,
  async lockNames(sql, names) {
    await Promise.all(
      names.map((name) => sql.run('SELECT pg_advisory_xact_lock(hashtextextended($name, 0))', { name })),
    );
  },
  // SKIP LOCKED leaves the keys that another transaction inserts or deletes to it. A WITH that locks runs once; a
  // subquery might run again, and delete more.
  deleteExpiredKeys: `
    WITH gone AS MATERIALIZED (
      SELECT created_by, experiment, key FROM idempotency_key WHERE expires_ms <= $now
      ORDER BY expires_ms LIMIT $most FOR UPDATE SKIP LOCKED)
    DELETE FROM idempotency_key USING gone
    WHERE idempotency_key.created_by = gone.created_by AND idempotency_key.experiment = gone.experiment
      AND idempotency_key.key = gone.key`,
};
