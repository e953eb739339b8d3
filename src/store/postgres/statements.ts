import { Writable } from 'node:stream';
import type { ClientBase } from 'pg';
import { CommitUnknownError, StoreUnavailableError } from '../../allocator/store.ts';
import { isObject } from '../../contract/json.ts';
import type { SqlInsert, SqlValue } from '../sql.ts';
import { storeError } from './errors.ts';

/** Executes one statement, with an array for each column of rows that it inserts; see `SqlQuery`. */
export type PostgresQuery = <Row extends object>(
  sql: string,
  values: readonly (SqlValue | readonly SqlValue[])[],
  asArrays: boolean,
) => Promise<Row[]>;

/** Statements on one connection. @param limit how long each may take, in milliseconds. Default: as the connection says */
export function queryOn(client: ClientBase, limit?: number): PostgresQuery {
  const together = gathering(client);
  return async <Row extends object>(
    text: string,
    values: readonly (SqlValue | readonly SqlValue[])[],
    asArrays: boolean,
  ) => {
    try {
      together();
      const { rows } = await client.query<Row>({
        text,
        // Several statements in one text, as the tables are, can't be prepared; they take no values.
        ...(values.length > 0 && { name: nameOf(text), values: values.map(storable) }),
        ...(asArrays && { rowMode: 'array' }),
        ...(limit !== undefined && { query_timeout: limit }),
      });
      return rows;
    } catch (error) {
      throw storeError(error);
    }
  };
}

/** Inserts rows by one statement, however many there are. */
export async function insertBy(
  query: PostgresQuery,
  { columns, rows: sql }: SqlInsert,
  rows: readonly (readonly SqlValue[])[],
): Promise<void> {
  if (rows.length === 0) return;
  const values = columns.map((_, index) => rows.map((row) => row[index] ?? null));
  await query(sql, values, false);
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

const NAMES = new Map<string, string>();

/** A statement under a name is planned once for each connection. There are some dozens of them. */
function nameOf(text: string): string {
  const known = NAMES.get(text) ?? `s${NAMES.size}`;
  NAMES.set(text, known);
  return known;
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

  /** Starts the time again: the database has answered. */
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
