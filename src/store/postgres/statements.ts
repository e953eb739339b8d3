import type { PoolClient } from 'pg';
import type { SqlInsert, SqlRow, SqlStatements, SqlValue } from '../sql.ts';
import { postgresError } from './errors.ts';
import type { Lease } from './lease.ts';

/** How many rows a portion has. */
const PORTION = 2000;

/** Statements on one connection. */
export function statementsOf(client: PoolClient): SqlStatements {
  const rows = async (text: string, values: readonly unknown[]): Promise<SqlRow[]> => {
    try {
      // Several statements in one text, as migrations are, can't be prepared; they take no values.
      const prepared = values.length > 0 ? { name: nameOf(text), values: values.map(storable) } : {};
      return (await client.query<SqlRow>({ text, ...prepared })).rows;
    } catch (error) {
      throw postgresError(error);
    }
  };
  return {
    run: async (sql, ...values) => void (await rows(sql, values)),
    all: (sql, ...values) => rows(sql, values),
    first: async (sql, ...values) => (await rows(sql, values))[0],
    insert: async (insert, values) => void (await rows(insertOf(insert), columnsOf(insert, values))),
  };
}

const NAMES = new Map<string, string>();

/** A statement under a name is planned once for each connection. There are some dozens of them. */
function nameOf(text: string): string {
  const known = NAMES.get(text) ?? `s${NAMES.size}`;
  NAMES.set(text, known);
  return known;
}

const INSERTS = new WeakMap<SqlInsert, string>();

/** One statement for any number of rows: each column is an array. */
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

function columnsOf({ columns }: SqlInsert, rows: readonly (readonly SqlValue[])[]): SqlValue[][] {
  return Object.keys(columns).map((_, index) => rows.map((row) => row[index] ?? null));
}

/** The rows of a statement, within a transaction, a portion at a time. @param lease begins anew with each */
export async function* portions(
  sql: SqlStatements,
  text: string,
  values: readonly SqlValue[],
  lease: Lease,
): AsyncGenerator<SqlRow[]> {
  await sql.run(`DECLARE portions NO SCROLL CURSOR FOR ${text}`, ...values);
  for (let rows: SqlRow[] = []; ; ) {
    rows = await sql.all(`FETCH ${PORTION} FROM portions`);
    // A long read may take long; one that stands still may not.
    lease.goOn();
    if (rows.length > 0) yield rows;
    if (rows.length < PORTION) return;
  }
}

/** PostgreSQL keeps no NUL in a text; the character that stands for what can't be shown takes its place. */
function storable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(storable);
  return typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value;
}
