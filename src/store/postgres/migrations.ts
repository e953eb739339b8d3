import {
  DatabaseFormatError,
  otherVersion,
  type SqlReader,
  type SqlRow,
  type SqlStatements,
} from '../sql.ts';

/** "slic": one program at a time changes the schema of a database. */
const SCHEMA_LOCK = 0x736c6963;

/**
 * Applies the migrations that a database lacks, within a transaction. Of several programs that start at once, one does
 * it and the others wait.
 *
 * @param patience how long to wait for another program, in milliseconds
 * @returns the version that was found; 0 for a new database
 * @throws DatabaseFormatError when a newer version of this program made the database, or it holds another program's tables
 */
export async function migrate(
  sql: SqlStatements,
  migrations: readonly string[],
  patience: number,
): Promise<number> {
  await sql.run(`SET LOCAL lock_timeout = ${patience}; SET LOCAL statement_timeout = ${patience}`);
  await sql.run('SELECT pg_advisory_xact_lock($1)', SCHEMA_LOCK);
  const version = await versionOf(sql);
  if (version > migrations.length) {
    throw otherVersion(version, migrations.length, 'a newer slices-conn');
  }
  if (version === migrations.length) return version;
  for (const migration of migrations.slice(version)) await sql.run(migration);
  await sql.run('UPDATE slices_conn_schema SET version = $1', migrations.length);
  return version;
}

/**
 * Checks that a database which is only read is a server's, of this program's version.
 *
 * @throws DatabaseFormatError when it is another program's, or of another version
 */
export async function checkVersion(sql: SqlReader, migrations: readonly string[]): Promise<void> {
  if (!(Number((await tablesIn(sql))?.['ours']) > 0)) {
    throw new DatabaseFormatError('No server has kept its data there yet.');
  }
  const version = (await sql.first('SELECT version FROM slices_conn_schema'))?.['version'];
  if (version === migrations.length) return;
  throw otherVersion(version, migrations.length, 'the slices-conn that serves it');
}

function tablesIn(sql: SqlReader): Promise<SqlRow | undefined> {
  return sql.first(
    `SELECT count(*) AS tables, count(*) FILTER (WHERE relname = 'slices_conn_schema') AS ours
     FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
     WHERE nspname = current_schema() AND relkind IN ('r', 'p')`,
  );
}

async function versionOf(sql: SqlStatements): Promise<number> {
  const found = await tablesIn(sql);
  if (Number(found?.['ours']) > 0) {
    return Number((await sql.first('SELECT version FROM slices_conn_schema'))?.['version']);
  }
  if (Number(found?.['tables']) > 0) {
    throw new DatabaseFormatError('The database holds tables of another program. Give this one its own.');
  }
  await sql.run('CREATE TABLE slices_conn_schema (version INTEGER NOT NULL)');
  await sql.run('INSERT INTO slices_conn_schema (version) VALUES (0)');
  return 0;
}

/**
 * The server's schema on PostgreSQL 13 or newer, oldest first: migration n brings a database of version n to n + 1.
 * Never changed once released; a change is a new entry. Tables and columns are those of SQLite, so that one SQL text
 * serves both; the guard of the tags, which is on the reservations themselves, and the order of texts are this engine's
 * own.
 */
export const POSTGRES_MIGRATIONS: readonly string[] = [
  `
  CREATE EXTENSION IF NOT EXISTS btree_gist;

  CREATE TABLE link (
    id TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    -- Up to which version its deleted reservations may be gone.
    forgotten BIGINT NOT NULL DEFAULT 0
  );

  -- A reservation that was deleted stays as a tombstone, for the replicas that still hold it in memory. Ids are
  -- sorted byte by byte, as SQLite does, whatever the database's language.
  CREATE TABLE reservation (
    id TEXT COLLATE "C" PRIMARY KEY,
    link TEXT NOT NULL REFERENCES link (id),
    version BIGINT NOT NULL,
    reversed INTEGER NOT NULL,
    start_ms BIGINT NOT NULL,
    end_ms BIGINT NOT NULL,
    bandwidth BIGINT NOT NULL CHECK (bandwidth > 0),
    site1_s_tag INTEGER NOT NULL,
    site1_c_tag INTEGER NOT NULL,
    site2_s_tag INTEGER NOT NULL,
    site2_c_tag INTEGER NOT NULL,
    experiment TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    deleted_ms BIGINT,
    CHECK (start_ms < end_ms),
    CHECK (site1_s_tag BETWEEN 1 AND 4094 AND site1_c_tag BETWEEN 1 AND 4094
      AND site2_s_tag BETWEEN 1 AND 4094 AND site2_c_tag BETWEEN 1 AND 4094),
    -- Nobody holds a tag that another one holds, at each of the four places. The guard does not depend on any code of
    -- ours being right. What tells most apart comes first: the other way round, a row costs twice as much.
    CONSTRAINT site1_s_tag_held_once EXCLUDE USING gist (
      site1_s_tag WITH =, int8range(start_ms, end_ms) WITH &&, link WITH =
    ) WHERE (deleted_ms IS NULL),
    CONSTRAINT site1_c_tag_held_once EXCLUDE USING gist (
      site1_c_tag WITH =, int8range(start_ms, end_ms) WITH &&, link WITH =
    ) WHERE (deleted_ms IS NULL),
    CONSTRAINT site2_s_tag_held_once EXCLUDE USING gist (
      site2_s_tag WITH =, int8range(start_ms, end_ms) WITH &&, link WITH =
    ) WHERE (deleted_ms IS NULL),
    CONSTRAINT site2_c_tag_held_once EXCLUDE USING gist (
      site2_c_tag WITH =, int8range(start_ms, end_ms) WITH &&, link WITH =
    ) WHERE (deleted_ms IS NULL)
  );
  CREATE INDEX reservation_changes ON reservation (link, version);
  CREATE INDEX reservation_deleted ON reservation (link, version) WHERE deleted_ms IS NOT NULL;
  CREATE INDEX reservation_live ON reservation (link, end_ms, start_ms) WHERE deleted_ms IS NULL;
  CREATE INDEX reservation_experiment ON reservation (experiment, id) WHERE deleted_ms IS NULL;

  -- Who holds a tag when, to look at.
  CREATE VIEW tag_hold AS
    SELECT link, place, tag, start_ms, end_ms, id AS reservation
    FROM reservation CROSS JOIN LATERAL (VALUES
      ('site1_s_tag', site1_s_tag), ('site1_c_tag', site1_c_tag),
      ('site2_s_tag', site2_s_tag), ('site2_c_tag', site2_c_tag)
    ) AS held (place, tag)
    WHERE deleted_ms IS NULL;

  CREATE TABLE person (
    id TEXT COLLATE "C" PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
  );

  CREATE TABLE project (
    id TEXT COLLATE "C" PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL
  );

  CREATE TABLE experiment (
    id TEXT COLLATE "C" PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL REFERENCES project (id),
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    UNIQUE (project, name)
  );

  -- A person's role in a project or an experiment.
  CREATE TABLE membership (
    person TEXT COLLATE "C" NOT NULL REFERENCES person (id),
    scope TEXT COLLATE "C" NOT NULL,
    role TEXT NOT NULL,
    PRIMARY KEY (person, scope)
  );

  -- The private JWKs that each issuer signs with, one after the other: from when on, and until when at the latest a token
  -- is valid that the key has signed.
  CREATE TABLE signing_key (
    issuer TEXT NOT NULL,
    key_number BIGINT NOT NULL CHECK (key_number > 0),
    jwk TEXT NOT NULL,
    signs_ms BIGINT NOT NULL,
    expiry_ms BIGINT NOT NULL,
    PRIMARY KEY (issuer, key_number)
  );

  -- The identity provider's records, under hashes of codes and tokens.
  CREATE TABLE identity_record (
    model TEXT NOT NULL,
    key TEXT NOT NULL,
    payload TEXT NOT NULL,
    grant_key TEXT,
    user_code TEXT,
    decided INTEGER NOT NULL,
    consumed_ms BIGINT,
    grace_ms BIGINT,
    polled_ms BIGINT,
    expires_ms BIGINT NOT NULL,
    PRIMARY KEY (model, key)
  );
  CREATE INDEX identity_record_grant ON identity_record (grant_key) WHERE grant_key IS NOT NULL;
  CREATE UNIQUE INDEX identity_record_user_code ON identity_record (user_code) WHERE user_code IS NOT NULL;
  CREATE INDEX identity_record_expiry ON identity_record (expires_ms);

  CREATE TABLE attempt (
    key TEXT PRIMARY KEY,
    began_ms BIGINT NOT NULL,
    attempts BIGINT NOT NULL
  );

  CREATE TABLE shared_secret (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
  );

  -- Which reservation a request got, under the key that its client gave it. The row comes before the reservation's,
  -- in one transaction: the key may turn out to be taken.
  CREATE TABLE idempotency_key (
    created_by TEXT NOT NULL,
    experiment TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    reservation TEXT COLLATE "C" NOT NULL REFERENCES reservation (id) DEFERRABLE INITIALLY DEFERRED,
    expires_ms BIGINT NOT NULL,
    PRIMARY KEY (created_by, experiment, key)
  );
  CREATE INDEX idempotency_key_expiry ON idempotency_key (expires_ms);
  CREATE INDEX idempotency_key_reservation ON idempotency_key (reservation);

  -- Every decision: who, what, when, and why it was refused. See store/audit.ts.
  CREATE TABLE audit (
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    link TEXT NOT NULL,
    version BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    action TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    actor TEXT NOT NULL,
    experiment TEXT NOT NULL,
    reservation TEXT,
    start_ms BIGINT NOT NULL,
    end_ms BIGINT NOT NULL,
    bandwidth BIGINT NOT NULL,
    tags TEXT,
    why TEXT
  );
  CREATE INDEX audit_age ON audit (at_ms);
  `,
  `
  -- Which trusted issuer an id of a project or an experiment belongs to.
  CREATE TABLE owner (
    id TEXT COLLATE "C" PRIMARY KEY,
    issuer TEXT NOT NULL
  );
  `,
  `
  -- Refusals beyond many of one experiment are counted: how many a row stands for, and in which minute they were.
  ALTER TABLE audit ADD COLUMN times INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE audit ADD COLUMN minute_ms BIGINT;
  CREATE INDEX audit_refused ON audit (experiment, at_ms) WHERE accepted = 0;
  `,
  `
  -- Whose a login is, since users list their own ones; and when a token that is not rotated was used last.
  ALTER TABLE identity_record ADD COLUMN account TEXT;
  ALTER TABLE identity_record ADD COLUMN used_ms BIGINT;
  UPDATE identity_record SET account = payload::json ->> 'accountId' WHERE model IN ('Grant', 'RefreshToken');
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
    expires_ms BIGINT NOT NULL
  );
  CREATE INDEX page_session_expiry ON page_session (expires_ms);
  `,
  `
  -- Whose share and number of reservations a reservation counts in: the project of its experiment. Null: the experiment.
  ALTER TABLE reservation ADD COLUMN tenant TEXT;
  -- Servers that limit the number make another one, by the tenant.
  DROP INDEX IF EXISTS reservation_unended;
  `,
];
