import type { DatabaseSync } from 'node:sqlite';
import { DatabaseFormatError, otherVersion } from '../sql.ts';

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
    throw otherVersion(version, migrations.length, 'a newer slices-conn');
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
  throw otherVersion(version, migrations.length, 'the slices-conn that serves it');
}

/** The server's schema; see {@link DatabaseFormat}. */
export const SQLITE_MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE link (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- A reservation that was deleted stays as a tombstone, for the replicas that still hold it in memory.
  CREATE TABLE reservation (
    id TEXT PRIMARY KEY,
    link TEXT NOT NULL REFERENCES link (id),
    version INTEGER NOT NULL,
    reversed INTEGER NOT NULL,
    start_ms INTEGER NOT NULL,
    end_ms INTEGER NOT NULL,
    bandwidth INTEGER NOT NULL CHECK (bandwidth > 0),
    site1_s_tag INTEGER NOT NULL,
    site1_c_tag INTEGER NOT NULL,
    site2_s_tag INTEGER NOT NULL,
    site2_c_tag INTEGER NOT NULL,
    experiment TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    deleted_ms INTEGER,
    CHECK (start_ms < end_ms)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX reservation_changes ON reservation (link, version);
  CREATE INDEX reservation_live ON reservation (link, end_ms, start_ms) WHERE deleted_ms IS NULL;
  CREATE INDEX reservation_experiment ON reservation (experiment, id) WHERE deleted_ms IS NULL;

  -- Who holds a tag when. The guard below does not depend on any code of ours being right.
  CREATE TABLE tag_hold (
    link TEXT NOT NULL,
    place TEXT NOT NULL,
    tag INTEGER NOT NULL CHECK (tag BETWEEN 1 AND 4094),
    start_ms INTEGER NOT NULL,
    end_ms INTEGER NOT NULL,
    reservation TEXT NOT NULL REFERENCES reservation (id),
    PRIMARY KEY (link, place, tag, start_ms),
    CHECK (start_ms < end_ms)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX tag_hold_reservation ON tag_hold (reservation);

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

  CREATE TABLE person (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE project (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE experiment (
    id TEXT PRIMARY KEY,
    project TEXT NOT NULL REFERENCES project (id),
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    UNIQUE (project, name)
  ) STRICT, WITHOUT ROWID;

  -- A person's role in a project or an experiment.
  CREATE TABLE membership (
    person TEXT NOT NULL REFERENCES person (id),
    scope TEXT NOT NULL,
    role TEXT NOT NULL,
    PRIMARY KEY (person, scope)
  ) STRICT, WITHOUT ROWID;

  -- The private JWK that each issuer signs with.
  CREATE TABLE signing_key (
    issuer TEXT PRIMARY KEY,
    jwk TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- The identity provider's records, under hashes of codes and tokens.
  CREATE TABLE identity_record (
    model TEXT NOT NULL,
    key TEXT NOT NULL,
    payload TEXT NOT NULL,
    grant_key TEXT,
    user_code TEXT,
    decided INTEGER NOT NULL,
    consumed_ms INTEGER,
    grace_ms INTEGER,
    polled_ms INTEGER,
    expires_ms INTEGER NOT NULL,
    PRIMARY KEY (model, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX identity_record_grant ON identity_record (grant_key) WHERE grant_key IS NOT NULL;
  CREATE UNIQUE INDEX identity_record_user_code ON identity_record (user_code) WHERE user_code IS NOT NULL;
  CREATE INDEX identity_record_expiry ON identity_record (expires_ms);

  CREATE TABLE attempt (
    key TEXT PRIMARY KEY,
    began_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE shared_secret (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- Which reservation a request got, under the key that its client gave it. The row comes before the reservation's,
  -- in one transaction: the key may turn out to be taken.
  CREATE TABLE idempotency_key (
    created_by TEXT NOT NULL,
    experiment TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    reservation TEXT NOT NULL REFERENCES reservation (id) DEFERRABLE INITIALLY DEFERRED,
    expires_ms INTEGER NOT NULL,
    PRIMARY KEY (created_by, experiment, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotency_key_expiry ON idempotency_key (expires_ms);
  `,
  `
  -- Up to which version the link's deleted reservations may be gone.
  ALTER TABLE link ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX reservation_deleted ON reservation (link, version) WHERE deleted_ms IS NOT NULL;
  CREATE INDEX idempotency_key_reservation ON idempotency_key (reservation);

  -- Every decision: who, what, when, and why it was refused. See store/audit.ts.
  CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    link TEXT NOT NULL,
    version INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    action TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    actor TEXT NOT NULL,
    experiment TEXT NOT NULL,
    reservation TEXT,
    start_ms INTEGER NOT NULL,
    end_ms INTEGER NOT NULL,
    bandwidth INTEGER NOT NULL,
    tags TEXT,
    why TEXT
  ) STRICT;
  CREATE INDEX audit_age ON audit (at_ms);
  `,
  `
  -- An issuer's keys follow one another: from when on each signs, and until when at the latest a token is valid that it
  -- has signed. What the first ones have signed was not noted; no reservation, and so no token, outlasts every project.
  CREATE TABLE following_key (
    issuer TEXT NOT NULL,
    key_number INTEGER NOT NULL CHECK (key_number > 0),
    jwk TEXT NOT NULL,
    signs_ms INTEGER NOT NULL,
    expiry_ms INTEGER NOT NULL,
    PRIMARY KEY (issuer, key_number)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO following_key (issuer, key_number, jwk, signs_ms, expiry_ms)
    SELECT issuer, 1, jwk, 0, COALESCE((SELECT MAX(expires_ms) FROM project), 0) FROM signing_key;
  DROP TABLE signing_key;
  ALTER TABLE following_key RENAME TO signing_key;
  `,
  `
  -- Which trusted issuer an id of a project or an experiment belongs to.
  CREATE TABLE owner (
    id TEXT PRIMARY KEY,
    issuer TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- Refusals beyond many of one experiment are counted: how many a row stands for, and in which minute they were.
  ALTER TABLE audit ADD COLUMN times INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE audit ADD COLUMN minute_ms INTEGER;
  CREATE INDEX audit_refused ON audit (experiment, at_ms) WHERE accepted = 0;
  `,
  `
  -- Whose a login is, since users list their own ones; and when a token that is not rotated was used last.
  ALTER TABLE identity_record ADD COLUMN account TEXT;
  ALTER TABLE identity_record ADD COLUMN used_ms INTEGER;
  UPDATE identity_record SET account = payload ->> '$.accountId' WHERE model IN ('Grant', 'RefreshToken');
  CREATE INDEX identity_record_account ON identity_record (account) WHERE account IS NOT NULL;
  `,
  `
  -- The name that an experiment gave a reservation; and the items of a batch, whose key stands for all of them.
  ALTER TABLE reservation ADD COLUMN name TEXT;
  CREATE INDEX reservation_name ON reservation (experiment, name) WHERE name IS NOT NULL AND deleted_ms IS NULL;
  ALTER TABLE idempotency_key ADD COLUMN items TEXT;
  `,
  `
  -- Who is logged in to the page, by the hash of the browser's session id. Its tokens are encrypted with a key that is
  -- derived from the id itself. Each renewal of them makes a new version; turn counts who has set about it.
  CREATE TABLE page_session (
    key TEXT PRIMARY KEY,
    sealed TEXT NOT NULL,
    version INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX page_session_expiry ON page_session (expires_ms);
  `,
  `
  -- Whose share and number of reservations a reservation counts in: the project of its experiment. Null: the experiment.
  ALTER TABLE reservation ADD COLUMN tenant TEXT;
  -- Servers that limit the number make another one, by the tenant.
  DROP INDEX IF EXISTS reservation_unended;
  `,
];

/** The server's database: reservations, directory, keys, identity. Its `application_id` reads "slic". */
export const SERVER_FORMAT: DatabaseFormat = {
  applicationId: 0x736c6963,
  migrations: SQLITE_MIGRATIONS,
  journal: 'WAL',
};

/** The client's ledger; see `session/reservations/ledger.ts`. Its `application_id` reads "slil". */
export const LEDGER_FORMAT: DatabaseFormat = {
  applicationId: 0x736c696c,
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
      PRIMARY KEY (service, experiment, key),
      CHECK (outcome <> 'booked' OR reservation_id IS NOT NULL)
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX attempt_reservation ON attempt (service, reservation_id) WHERE reservation_id IS NOT NULL;
    `,
    `
    -- From when on a row is past, in milliseconds: its reservation has ended; at once where it was deleted, or never
    -- made. What is past is read only when it is asked for (THREATS.md 66).
    ALTER TABLE attempt ADD COLUMN past_ms INTEGER AS (
      CASE outcome
        WHEN 'booked' THEN coalesce(
          -- To the next whole second. Our own text always begins with a year; 'now' would be no fixed value.
          1000 + 1000 * unixepoch(iif(json_valid(reservation) AND reservation ->> '$.end_date' GLOB '[0-9]*',
            reservation ->> '$.end_date', NULL)),
          9000000000000000)
        WHEN 'unknown' THEN 9000000000000000
        ELSE 0
      END);
    CREATE INDEX attempt_past ON attempt (service, past_ms);
    `,
  ],
  journal: 'DELETE',
};
