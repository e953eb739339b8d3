import { Writable } from 'node:stream';
import type { ClientBase, PoolClient, QueryConfig } from 'pg';
import { CommitUnknownError, StoreUnavailableError } from '../../allocator/store.ts';
import { isObject } from '../../contract/json.ts';
import type { SqlInsert, SqlRow, SqlStatements, SqlValue, SqlValues, SqlWrite } from '../sql.ts';
import { storeError } from './errors.ts';

/** How many rows a portion has. */
const PORTION = 2000;

/** Statements on one connection. @param limit how long each may take, in milliseconds. Default: as the connection says */
export function statementsOf(client: ClientBase, limit?: number): SqlStatements {
  const together = gathering(client);
  const limited = limit === undefined ? {} : { query_timeout: limit };
  const query = async <Row extends object>(
    text: string,
    values: readonly unknown[],
    send: (config: QueryConfig) => Promise<{ rows: Row[] }>,
  ): Promise<Row[]> => {
    try {
      // Several statements in one text, as the tables are, can't be prepared; they take no values.
      const prepared = values.length > 0 ? { name: nameOf(text), values: values.map(storable) } : {};
      together();
      return (await send({ text, ...prepared, ...limited })).rows;
    } catch (error) {
      throw storeError(error);
    }
  };
  const rows = (text: string, values: readonly unknown[]): Promise<SqlRow[]> =>
    query(text, values, (config) => client.query<SqlRow>(config));
  return {
    run: async (sql, ...values) => void (await rows(sql, values)),
    all: (sql, ...values) => rows(sql, values),
    arrays: (sql, ...values) =>
      query(sql, values, (config) => client.query<unknown[]>({ ...config, rowMode: 'array' })),
    first: async (sql, ...values) => (await rows(sql, values))[0],
    async write(...writes) {
      const parts = writes.filter((each) => 'change' in each || each.rows.length > 0).map(partOf);
      if (parts.length === 0) return;
      const values = parts.flatMap((part) => part.values);
      await rows(statementOf(parts), values);
    },
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

const NAMES = new Map<string, string>();

/** A statement under a name is planned once for each connection. There are some dozens of them. */
function nameOf(text: string): string {
  const known = NAMES.get(text) ?? `s${NAMES.size}`;
  NAMES.set(text, known);
  return known;
}

/** A part of a statement, its parameters counted from `$1`. */
interface Part {
  text: string;
  values: readonly unknown[];
}

const INSERTS = new WeakMap<SqlInsert, string>();

/** One text for any number of rows: each column is an array. */
function insertOf(insert: SqlInsert): string {
  const known = INSERTS.get(insert);
  if (known !== undefined) return known;
  const columns = Object.entries(insert.columns);
  const names = columns.map(([name]) => name).join(', ');
  const arrays = columns.map(([, type], index) => `$${index + 1}::${type}[]`).join(', ');
  const { onConflict = '' } = insert;
  const sql = `INSERT INTO ${insert.into} (${names}) SELECT * FROM unnest(${arrays}) ${onConflict}`;
  INSERTS.set(insert, sql);
  return sql;
}

function partOf(write: SqlWrite): Part {
  if ('change' in write) return { text: write.change, values: write.values };
  const { insert, rows } = write;
  const values = Object.keys(insert.columns).map((_, index) => rows.map((row) => row[index] ?? null));
  return { text: insertOf(insert), values };
}

const STATEMENTS = new Map<string, string>();

/** One statement of several parts; each counts its parameters on from those before it. */
function statementOf(parts: readonly Part[]): string {
  const name = parts.map(({ text }) => text).join('; ');
  const known = STATEMENTS.get(name);
  if (known !== undefined) return known;
  let before = 0;
  const texts = parts.map(({ text, values }, index) => {
    const offset = before;
    before += values.length;
    return `part${index} AS (${text.replaceAll(/\$(\d+)/g, (_, number) => `$${Number(number) + offset}`)})`;
  });
  const sql = `WITH ${texts.join(', ')} SELECT`;
  STATEMENTS.set(name, sql);
  return sql;
}

/** The rows of a statement, within a transaction, a portion at a time. @param lease its time starts again with each */
export async function* portions(
  client: PoolClient,
  text: string,
  values: readonly SqlValue[],
  lease: Lease,
): AsyncGenerator<SqlValues[]> {
  await statementsOf(client).run(`DECLARE portions NO SCROLL CURSOR FOR ${text}`, ...values);
  const fetch = { text: `FETCH ${PORTION} FROM portions`, rowMode: 'array' } as const;
  for (;;) {
    const { rows } = await client.query<unknown[]>(fetch).catch((error: unknown) => {
      throw storeError(error);
    });
    // A long read may take long in all; each portion has its own time limit.
    lease.resume();
    if (rows.length > 0) yield rows;
    if (rows.length < PORTION) return;
  }
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
