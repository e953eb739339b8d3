import type { DatabaseSync } from 'node:sqlite';
import { DatabaseFormatError } from '../sql.ts';

/** The format of a SQLite file of this program. */
export interface DatabaseFormat {
  /** Marks the file as one of this kind (`PRAGMA application_id`). */
  applicationId: number;
  /**
   * The schema's history, oldest first: migration n brings a database of version n to version n + 1. Never changed once
   * released; a change is a new entry.
   */
  migrations: readonly string[];
  /** `WAL` for a server's file; `DELETE` for a file in a home folder, which may be on a network: WAL does not work there. */
  journal: 'WAL' | 'DELETE';
}

/** @throws DatabaseFormatError when the file is another program's; it is left as it is */
export function checkOwner(database: DatabaseSync, { applicationId }: DatabaseFormat): void {
  // One statement, since another process may be making the schema meanwhile.
  const { owner, tables } =
    database
      .prepare(
        `SELECT (SELECT application_id FROM pragma_application_id) AS owner,
                (SELECT count(*) FROM sqlite_schema) AS tables`,
      )
      .get() ?? {};
  if (owner === applicationId || (owner === 0 && tables === 0)) return;
  throw new DatabaseFormatError('The file is a database of another program.');
}

/** The schema version of a file; 0 for a new one. */
export function versionOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0);
}

/**
 * Applies the migrations that a file lacks, within a transaction.
 *
 * @throws DatabaseFormatError when a newer version of this program made the file
 */
export function migrate(database: DatabaseSync, { applicationId, migrations }: DatabaseFormat): void {
  const version = versionOf(database);
  if (version > migrations.length) {
    throw new DatabaseFormatError(
      `The database has schema version ${version}; this program knows ${migrations.length}. Use a newer slices-conn.`,
    );
  }
  for (const migration of migrations.slice(version)) database.exec(migration);
  database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${migrations.length}`);
}

/**
 * Checks that a file which is only read is of this format and version. A reader does not bring an older one up to date.
 *
 * @throws DatabaseFormatError when it is another program's, or of another version
 */
export function checkVersion(database: DatabaseSync, { applicationId, migrations }: DatabaseFormat): void {
  const { owner, version } =
    database
      .prepare(
        `SELECT (SELECT application_id FROM pragma_application_id) AS owner,
                (SELECT user_version FROM pragma_user_version) AS version`,
      )
      .get() ?? {};
  if (owner !== applicationId) throw new DatabaseFormatError('The file is a database of another program.');
  if (version === migrations.length) return;
  throw new DatabaseFormatError(
    `The database has schema version ${version}; this program knows ${migrations.length}. Use the slices-conn that serves it.`,
  );
}
