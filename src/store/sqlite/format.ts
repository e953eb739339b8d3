import type { DatabaseSync } from 'node:sqlite';
import { OtherVersionError, SCHEMA_VERSION, serverTables } from '../schema.ts';
import { DatabaseFormatError } from '../sql.ts';

/** The format of a SQLite file of this program. */
export interface DatabaseFormat {
  /** Marks the file as one of this kind (`PRAGMA application_id`). */
  applicationId: number;
  /** Counted up with each change of the schema (`PRAGMA user_version`). */
  version: number;
  schema: string;
  /** `WAL` for a server's file; `DELETE` for a file in a home folder, which may be on a network: WAL does not work there. */
  journal: 'WAL' | 'DELETE';
}

/**
 * Checks that a file is a database of this format.
 *
 * @returns whether it is new, and has no tables yet
 * @throws DatabaseFormatError when the file is another program's, of another version, or of this one without its tables
 */
export function isNewFile(database: DatabaseSync, format: DatabaseFormat): boolean {
  // One statement, since another process may be making the schema meanwhile.
  const { owner, version, names } =
    database
      .prepare(
        `SELECT (SELECT application_id FROM pragma_application_id) AS owner,
                (SELECT user_version FROM pragma_user_version) AS version,
                (SELECT group_concat(name) FROM sqlite_schema) AS names`,
      )
      .get() ?? {};
  if (owner === 0 && names === null) return true;
  if (owner !== format.applicationId) {
    throw new DatabaseFormatError('The file is a database of another program.');
  }
  if (version !== format.version) throw new OtherVersionError(Number(version), format.version);
  const tables = [...format.schema.matchAll(/CREATE TABLE (\w+)/g)].map(([, name = '']) => name);
  const missing = tables.filter((name) => !String(names).split(',').includes(name));
  if (missing.length > 0) throw new DatabaseFormatError(`It lacks the table ${missing.join(', ')}.`);
  return false;
}

/**
 * Checks that a file which is only read is a database of this format.
 *
 * @throws DatabaseFormatError as {@link isNewFile} does, and when the file is new
 */
export function checkFormat(database: DatabaseSync, format: DatabaseFormat): void {
  if (isNewFile(database, format))
    throw new DatabaseFormatError('The file is a database of another program.');
}

/** Makes the tables of a new file, within a transaction. @throws DatabaseFormatError as {@link isNewFile} does */
export function makeTables(database: DatabaseSync, format: DatabaseFormat): void {
  if (!isNewFile(database, format)) return;
  const { applicationId, version, schema } = format;
  database.exec(`${schema}; PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version}`);
}

/** The server's database: reservations, directory, keys, identity. Its `application_id` reads "slcs". */
export const SERVER_FORMAT: DatabaseFormat = {
  applicationId: 0x736c6373,
  version: SCHEMA_VERSION,
  schema: serverTables({
    bigint: 'INTEGER',
    id: 'TEXT',
    sequence: 'INTEGER',
    table: ' STRICT, WITHOUT ROWID',
    sequenceTable: ' STRICT',
    tagGuard: '',
  }),
  journal: 'WAL',
};

/** The client's ledger; see `session/reservations/ledger.ts`. Its `application_id` reads "slcl". */
export const LEDGER_FORMAT: DatabaseFormat = {
  applicationId: 0x736c636c,
  version: 2,
  schema: `
    -- What this machine asked of a connectivity service, one row for each reservation or attempt at one.
    CREATE TABLE attempt (
      service TEXT NOT NULL,
      experiment TEXT NOT NULL,
      key TEXT NOT NULL,
      -- What was asked last: reserve, update or delete.
      asked TEXT NOT NULL CHECK (asked IN ('reserve', 'update', 'delete')),
      asked_ms INTEGER NOT NULL,
      -- When it was asked for first.
      began_ms INTEGER NOT NULL,
      -- As it was sent, in JSON.
      requested TEXT,
      -- A change that was sent and not answered yet.
      pending TEXT,
      outcome TEXT NOT NULL CHECK (outcome IN ('unknown', 'booked', 'refused', 'deleted')),
      -- What was asked before a change or deletion that is not answered yet, when, and its outcome.
      was_asked TEXT,
      was_asked_ms INTEGER,
      was TEXT,
      reservation_id TEXT,
      -- What the service answered last, in JSON, and the token that proves it.
      reservation TEXT,
      token TEXT,
      -- From when on the row is past, in milliseconds: its reservation has ended; at once where it was deleted, or never
      -- made. What is past is read only when it is asked for (THREATS.md 66).
      past_ms INTEGER AS (
        CASE outcome
          WHEN 'booked' THEN coalesce(
            -- To the next whole second. Our own text always begins with a year; 'now' would be no fixed value.
            1000 + 1000 * unixepoch(iif(json_valid(reservation) AND reservation ->> '$.end_date' GLOB '[0-9]*',
              reservation ->> '$.end_date', NULL)),
            9000000000000000)
          WHEN 'unknown' THEN 9000000000000000
          ELSE 0
        END),
      PRIMARY KEY (service, experiment, key),
      CHECK (outcome <> 'booked' OR reservation_id IS NOT NULL)
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX attempt_reservation ON attempt (service, reservation_id) WHERE reservation_id IS NOT NULL;
    CREATE INDEX attempt_past ON attempt (service, past_ms);
  `,
  journal: 'DELETE',
};
