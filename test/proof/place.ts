import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Client, types } from 'pg';
import type { SqlRow } from '../../src/store/sql.ts';
import type { Rows } from '../allocator/sweep.ts';

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
    return { engine: 'SQLite', folder, database, rows: sqliteRows(database), close };
  }
  return { engine: 'PostgreSQL', folder, database: postgres, rows: postgresRows(postgres), close };
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
  return async (sql, ...values) => {
    const client = new Client({
      connectionString,
      application_name: 'proof',
      types: {
        getTypeParser: (oid, format) => (oid === INT8 ? Number : types.getTypeParser(oid, format)),
      },
    });
    await client.connect();
    try {
      return (await client.query<SqlRow>(sql, [...values])).rows;
    } finally {
      await client.end();
    }
  };
}
