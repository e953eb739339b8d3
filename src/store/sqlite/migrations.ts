import type { DatabaseSync } from 'node:sqlite';
import { checkCurrent, checkNotNewer, serverTables, UNRELEASED, UnreleasedFormatError } from '../schema.ts';
import { DatabaseFormatError } from '../sql.ts';

/** The format of a SQLite file of this program. */
export interface DatabaseFormat {
  /** Marks the file as one of this kind (`PRAGMA application_id`). */
  applicationId: number;
  /** Marked the files of this kind before the first release. */
  unreleasedId: number;
  /**
   * The schema's history, oldest first: migration n brings a database of version n to version n + 1. Never changed once
   * released; a change is a new entry.
   */
  migrations: readonly string[];
  /** `WAL` for a server's file; `DELETE` for a file in a home folder, which may be on a network: WAL does not work there. */
  journal: 'WAL' | 'DELETE';
}

/**
 * The schema version of a file that will be brought up to date; 0 for a new one.
 *
 * @throws DatabaseFormatError when the file is another program's, from before the first release, of a newer version, or of
 *   this one without its tables; it is left as it is
 */
export function versionOf(database: DatabaseSync, format: DatabaseFormat): number {
  const { version, isOurs, isNew } = markOf(database, format);
  if (!isOurs && !isNew) throw othersFile();
  checkNotNewer(version, format.migrations);
  return version;
}

/**
 * Checks that a file which is only read is a database of this format, at this program's version.
 *
 * @throws DatabaseFormatError when the file is new, another program's, or of another version
 */
export function checkFormat(database: DatabaseSync, format: DatabaseFormat): void {
  const { version, isOurs } = markOf(database, format);
  if (!isOurs) throw othersFile();
  checkCurrent(version, format.migrations);
}

/** How a file is marked. @throws DatabaseFormatError when it is from before the first release, or lacks a table of its version */
function markOf(
  database: DatabaseSync,
  format: DatabaseFormat,
): { version: number; isOurs: boolean; isNew: boolean } {
  // One statement, since another process may be making the schema meanwhile.
  const { owner, version, names } =
    database
      .prepare(
        `SELECT (SELECT application_id FROM pragma_application_id) AS owner,
                (SELECT user_version FROM pragma_user_version) AS version,
                (SELECT group_concat(name) FROM sqlite_schema) AS names`,
      )
      .get() ?? {};
  if (owner === format.unreleasedId) throw new UnreleasedFormatError();
  const isOurs = owner === format.applicationId;
  if (isOurs && version === format.migrations.length) {
    const tables = [...format.migrations.join('').matchAll(/CREATE TABLE (\w+)/g)].map(
      ([, name = '']) => name,
    );
    const missing = tables.filter((name) => !String(names).split(',').includes(name));
    if (missing.length > 0) throw new DatabaseFormatError(`It lacks the table ${missing.join(', ')}.`);
  }
  return {
    version: Number(version),
    isOurs,
    isNew: owner === 0 && names === null,
  };
}

function othersFile(): DatabaseFormatError {
  return new DatabaseFormatError('The file is a database of another program.');
}

/**
 * Applies the migrations that a file lacks, within a transaction.
 *
 * @throws DatabaseFormatError as {@link versionOf} does
 */
export function migrate(database: DatabaseSync, format: DatabaseFormat): void {
  const { applicationId, migrations } = format;
  for (const migration of migrations.slice(versionOf(database, format))) database.exec(migration);
  database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${migrations.length}`);
}

const SERVER_SCHEMA = `
  ${serverTables({
    bigint: 'INTEGER',
    id: 'TEXT',
    sequence: 'INTEGER',
    table: ' STRICT, WITHOUT ROWID',
    sequenceTable: ' STRICT',
    tagGuard: '',
  })}
  -- Who holds a tag when. The guard below does not depend on any code of ours being right.
  CREATE TABLE tag_hold (
    link TEXT NOT NULL,
    place TEXT NOT NULL,
    tag INTEGER NOT NULL CHECK (tag BETWEEN 1 AND 4094),
    start_ms INTEGER NOT NULL,
    end_ms INTEGER NOT NULL,
    -- Without a foreign key, which needs an index: four rows more for each booking. The hop knows its holds by their key.
    reservation TEXT NOT NULL,
    PRIMARY KEY (link, place, tag, start_ms),
    CHECK (start_ms < end_ms)
  ) STRICT, WITHOUT ROWID;

  -- Holds of one tag are disjoint, so the last one that starts before the new one ends is the only one to look at.
  CREATE TRIGGER tag_hold_insert BEFORE INSERT ON tag_hold
  WHEN NEW.start_ms < (
    SELECT end_ms FROM tag_hold
    WHERE link = NEW.link AND place = NEW.place AND tag = NEW.tag AND start_ms < NEW.end_ms
    ORDER BY start_ms DESC LIMIT 1
  )
  BEGIN
    SELECT RAISE(ABORT, 'a tag would be held twice');
  END;
  CREATE TRIGGER tag_hold_update BEFORE UPDATE ON tag_hold
  WHEN EXISTS (
    SELECT 1 FROM tag_hold
    WHERE link = NEW.link AND place = NEW.place AND tag = NEW.tag
      AND start_ms < NEW.end_ms AND end_ms > NEW.start_ms
      AND NOT (link = OLD.link AND place = OLD.place AND tag = OLD.tag AND start_ms = OLD.start_ms)
  )
  BEGIN
    SELECT RAISE(ABORT, 'a tag would be held twice');
  END;
  `;

/** The server's database: reservations, directory, keys, identity. Its `application_id` reads "slcs". */
export const SERVER_FORMAT: DatabaseFormat = {
  applicationId: 0x736c6373,
  unreleasedId: 0x736c6963,
  // In version 1 a reservation had no hops.
  migrations: [UNRELEASED, SERVER_SCHEMA],
  journal: 'WAL',
};

/** The client's ledger; see `session/reservations/ledger.ts`. Its `application_id` reads "slcl". */
export const LEDGER_FORMAT: DatabaseFormat = {
  applicationId: 0x736c636c,
  unreleasedId: 0x736c696c,
  migrations: [
    `
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
      -- The outcome before a change or deletion that is not answered yet.
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
    `
    -- What was asked before a change or deletion that is not answered yet, and when.
    ALTER TABLE attempt ADD COLUMN was_asked TEXT;
    ALTER TABLE attempt ADD COLUMN was_asked_ms INTEGER;
    `,
  ],
  journal: 'DELETE',
};
