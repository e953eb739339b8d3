import { Writable } from 'node:stream';
import { type ClientBase, DatabaseError, type QueryConfig } from 'pg';
import { CommitUnknownError, DATABASE_UNUSABLE, StoreUnavailableError } from '../../allocator/store.ts';
import { isObject } from '../../contract/json.ts';
import { parametersOf, type SqlQuery, valueIn } from '../sql.ts';

/** Statements on one connection. @param limit how long each may take, in milliseconds. Default: as the connection says */
export function queryOn(client: ClientBase, limit?: number): SqlQuery {
  const together = gathering(client);
  const send = async <Row extends object>(config: QueryConfig): Promise<Row[]> => {
    try {
      together();
      return (await client.query<Row>(config)).rows;
    } catch (error) {
      throw storeError(error);
    }
  };
  // A mistake of ours throws at once: as a rejection it would be behind the commit, see `SqlTransaction.finish`.
  return (sql, values, asArrays) => {
    const { name, text, names } = preparedOf(sql);
    const given = names.map((each) => storable(valueIn(values, each)));
    return send({
      text,
      // Several statements in one text, as the tables are, can't be prepared; they take no values.
      ...(given.length > 0 && { name, values: given }),
      ...(asArrays && { rowMode: 'array' }),
      ...(limit !== undefined && { query_timeout: limit }),
    });
  };
}

/**
 * Sends statements that do not wait for each other in one packet: that costs some microseconds a statement, where a packet
 * each costs both sides a tenth of a millisecond. The stream is not part of the driver's documented API: without it,
 * statements are sent one by one.
 */
function gathering(client: ClientBase): () => void {
  const connection: unknown = 'connection' in client ? client.connection : undefined;
  const stream: unknown = isObject(connection) ? connection['stream'] : undefined;
  if (!(stream instanceof Writable)) return () => undefined;
  let held = false;
  return () => {
    if (held) return;
    held = true;
    stream.cork();
    process.nextTick(() => {
      held = false;
      stream.uncork();
    });
  };
}

/** A statement as PostgreSQL takes it, with the names of its parameters in the order of their numbers. */
interface Prepared {
  /** A statement under a name is planned once for each connection. There are some dozens of them. */
  name: string;
  text: string;
  names: string[];
}

const PREPARED = new Map<string, Prepared>();

function preparedOf(sql: string): Prepared {
  const known = PREPARED.get(sql);
  if (known) return known;
  const names = [...new Set(parametersOf(sql))];
  const text = sql.replaceAll(/\$(\w+)/g, (_, name) => `$${names.indexOf(name) + 1}`);
  const prepared = { name: `s${PREPARED.size}`, text, names };
  PREPARED.set(sql, prepared);
  return prepared;
}

/** Replaces NUL, which PostgreSQL can't store in a text, by U+FFFD. */
function storable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(storable);
  return typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value;
}

/** The time limit of one use of a connection. */
export class Lease {
  /** Rejects when the time is over. */
  readonly over: Promise<never>;
  /** Whether the time is over. */
  isOver = false;
  readonly #alarm: NodeJS.Timeout;
  #committing = false;

  /** @param timeout milliseconds */
  constructor(timeout: number) {
    const { promise, reject } = Promise.withResolvers<never>();
    this.over = promise;
    promise.catch(() => undefined);
    this.#alarm = setTimeout(() => {
      this.isOver = true;
      reject(this.#late());
    }, timeout);
  }

  /** Starts the time again, for another statement. */
  resume(): void {
    this.#alarm.refresh();
  }

  /** From now on, running out of time leaves it unknown whether the change was made. */
  committing(): void {
    this.#committing = true;
  }

  /** Stops the clock. */
  end(): void {
    clearTimeout(this.#alarm);
  }

  #late(): StoreUnavailableError {
    return this.#committing
      ? new CommitUnknownError('The database did not say in time whether it made the change.')
      : new StoreUnavailableError("The database can't be reached in time.");
  }
}

/**
 * SQLSTATE classes of a database that can't serve at the moment (https://www.postgresql.org/docs/current/errcodes-appendix.html):
 * connection, authorization, transaction state (ended by a timeout), rollback (a deadlock), resources, intervention
 * (statement timeout, shutdown), system.
 */
const UNAVAILABLE_CLASSES: ReadonlySet<string> = new Set(['08', '28', '40', '53', '57', '58']);
/** Of other classes: no such database, idle for too long in a transaction, a lock's timeout, a standby. */
const UNAVAILABLE: ReadonlySet<string> = new Set(['3D000', '25P03', '25P04', '55P03', '25006']);

/** Classes of errors after which the server may have committed. */
const MAYBE_COMMITTED_CLASSES: ReadonlySet<string> = new Set(['08', '57', '58', 'XX']);
/** Of another class: statement completion unknown. */
const COMPLETION_UNKNOWN = '40003';

/** The driver's message when the server does not offer TLS. */
const WITHOUT_TLS = 'The server does not support SSL connections';

/** Turns an error of the driver into the stores' own: unavailable; any other stays as it is. */
export function storeError(cause: unknown): unknown {
  if (cause instanceof StoreUnavailableError) return cause;
  if (cause instanceof DatabaseError) {
    const { code = '' } = cause;
    if (!UNAVAILABLE.has(code) && !UNAVAILABLE_CLASSES.has(code.slice(0, 2))) return cause;
    return new StoreUnavailableError(DATABASE_UNUSABLE, { cause });
  }
  if (cause instanceof Error && cause.message === WITHOUT_TLS) {
    return new StoreUnavailableError(
      'The database does not offer TLS. On a private network, add ?sslmode=disable to its address.',
    );
  }
  // The error is not the server's, so it is the connection's.
  return new StoreUnavailableError("The database can't be reached.", { cause });
}

/**
 * Turns an error of `COMMIT`, or of a statement that is a transaction by itself, into the stores' own: nothing was changed,
 * or that is unknown.
 */
export function commitError(cause: unknown): unknown {
  if (cause instanceof DatabaseError) {
    const { code = '' } = cause;
    const said = code !== COMPLETION_UNKNOWN && !MAYBE_COMMITTED_CLASSES.has(code.slice(0, 2));
    if (said) return storeError(cause);
  }
  return new CommitUnknownError('The database was lost while it made the change.', { cause });
}
