import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, DatabaseError, types } from 'pg';
import type { SqlRow } from '../../src/store/sql.ts';
import { isPostgres } from '../../src/store/stores.ts';
import type { Rows } from '../allocator/sweep.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import type { Finding } from './report.ts';

/** The two engines, by name. */
export type EngineName = 'SQLite' | 'PostgreSQL';

/** Where a proof keeps its data, and a way to it past everything of ours. */
export interface Place {
  readonly engine: EngineName;
  /** A folder that is removed at the end; SQLite's file is in it. */
  readonly folder: string;
  /** The SQLite file, or the address of a PostgreSQL database. */
  readonly database: string;
  /** Asks on a connection of its own, which only reads. */
  readonly rows: Rows;
  close(): void;
}

/** Makes an empty place. @param postgres the address of an empty PostgreSQL database; without it SQLite is meant */
export function newPlace(postgres?: string): Place {
  const folder = mkdtempSync(join(tmpdir(), 'slices-conn-proof-'));
  const close = (): void => rmSync(folder, { recursive: true, force: true });
  if (postgres === undefined) {
    // As `serve --data` names it.
    const database = join(folder, 'slices-conn.sqlite');
    return { engine: 'SQLite', folder, database, rows: rowsOf(database), close };
  }
  return { engine: 'PostgreSQL', folder, database: postgres, rows: rowsOf(postgres), close };
}

/** A way to a database past everything of ours. @param database a SQLite file, or the address of a PostgreSQL database */
export function rowsOf(database: string): Rows {
  return isPostgres(database) ? postgresRows(database) : sqliteRows(database);
}

/** Asks a SQLite file as it would be found after a crash: a copy of it and its log, taken while nothing is under way. */
export function rowsAfterCrash(file: string): Rows {
  return async (sql, ...values) => {
    const folder = mkdtempSync(join(tmpdir(), 'slices-conn-crash-'));
    const copy = join(folder, 'copy.sqlite');
    try {
      for (const end of ['', '-wal']) copyFileSync(`${file}${end}`, `${copy}${end}`);
      // Only who may write takes over what the log holds.
      new DatabaseSync(copy).exec('PRAGMA user_version');
      return await sqliteRows(copy)(sql, ...values);
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
}

/** The deadlocks that PostgreSQL had to end, by its own count. Its processes tell it as they end, or a second later. */
export async function deadlocks({ engine, rows }: Place): Promise<Finding[]> {
  if (engine === 'SQLite') return [];
  const [row] = await rows('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()');
  const count = Number(row?.['deadlocks']);
  return count === 0 ? [] : [{ kind: 'wrong', what: `PostgreSQL had to end ${count} deadlocks` }];
}

function sqliteRows(file: string): Rows {
  return async (sql, ...values) => {
    const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
    try {
      const named = Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]));
      return database.prepare(sql).all(named);
    } finally {
      database.close();
    }
  };
}

function postgresRows(connectionString: string): Rows {
  const INT8 = types.builtins.INT8;
  const getTypeParser: typeof types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 ? Number : types.getTypeParser(oid, format);
  const ask: Rows = async (sql, ...values) => {
    const client = new Client({ connectionString, application_name: 'proof', types: { getTypeParser } });
    // A connection that breaks fails its query.
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query<SqlRow>(sql, [...values])).rows;
    } finally {
      await client.end();
    }
  };
  return async (...asked) => {
    for (const limit = performance.now() + PATIENCE; ; ) {
      try {
        return await ask(...asked);
      } catch (error) {
        if (!isAway(error) || performance.now() > limit) throw error;
        await sleep(50);
      }
    }
  };
}

/** Whether the database says that it is about to end or not yet there, or says nothing. */
function isAway(error: unknown): boolean {
  return !(error instanceof DatabaseError) || (error.code ?? '').startsWith('57P');
}
