import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setImmediate as roundOfTheLoop } from 'node:timers/promises';
import type { SqlRow, SqlValue } from '../sql.ts';

/** Statements that find and change nothing. Parameters bind by name: `$1`, `$2`, … */
export interface SqliteReads {
  all(sql: string, ...values: SqlValue[]): SqlRow[];
  first(sql: string, ...values: SqlValue[]): SqlRow | undefined;
}

/** What was committed at one instant, as SQLite gives it. */
export interface SqliteSnapshot extends SqliteReads {
  /** The rows of a statement in portions, with a round of the event loop between them. */
  portions(sql: string, ...values: SqlValue[]): AsyncIterable<SqlRow[]>;
}

/** How many rows a portion has: some thirty milliseconds' worth. */
const PORTION = 5000;

/** Runs `work` on what was committed at one instant, on a connection that nobody else uses meanwhile. */
export async function snapshotOn<Answer>(
  connection: DatabaseSync,
  work: (snapshot: SqliteSnapshot) => Promise<Answer>,
): Promise<Answer> {
  connection.exec('BEGIN');
  try {
    return await work({
      all: (sql, ...values) => connection.prepare(sql).all(named(values)),
      first: (sql, ...values) => connection.prepare(sql).get(named(values)),
      portions: (sql, ...values) => portions(connection.prepare(sql), values),
    });
  } finally {
    connection.exec('ROLLBACK');
  }
}

async function* portions(statement: StatementSync, values: readonly SqlValue[]): AsyncGenerator<SqlRow[]> {
  let portion: SqlRow[] = [];
  for (const row of statement.iterate(named(values))) {
    portion.push(row);
    if (portion.length < PORTION) continue;
    yield portion;
    portion = [];
    await roundOfTheLoop();
  }
  if (portion.length > 0) yield portion;
}

/** Values by the names that they have in a statement: `$1`, `$2`, … */
export function named(values: readonly SqlValue[]): Record<string, SqlValue> {
  return Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]));
}
