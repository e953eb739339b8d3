import { DatabaseFormatError } from './sql.ts';

/** The words in which an engine declares what both have. */
interface Dialect {
  /** A whole number of up to 53 bits, such as milliseconds or a count. */
  bigint: string;
  /** A text that is sorted byte by byte, whatever the database's language. */
  id: string;
  /** A number that the engine gives to each new row, higher than those before. */
  sequence: string;
  /** Follows the columns of a table with a key of its own. */
  table: string;
  /** Follows the columns of a table that the engine numbers itself. */
  sequenceTable: string;
  /** Guards the four tags, within the table of hops. It starts with a comma. */
  tagGuard: string;
}

/**
 * The server's tables, the same on either engine, so that one SQL text serves both. The guard of the tags is each
 * engine's own.
 */
export function serverTables({ bigint, id, sequence, table, sequenceTable, tagGuard }: Dialect): string {
  return `
  CREATE TABLE link (
    id ${id} PRIMARY KEY,
    version ${bigint} NOT NULL,
    -- Up to which version the link's deleted reservations may be gone.
    forgotten ${bigint} NOT NULL DEFAULT 0
  )${table};

  -- A reservation that was deleted stays as a tombstone, so that events can tell of it.
  CREATE TABLE reservation (
    id ${id} PRIMARY KEY,
    site1 TEXT NOT NULL,
    site2 TEXT NOT NULL,
    start_ms ${bigint} NOT NULL,
    end_ms ${bigint} NOT NULL,
    bandwidth ${bigint} NOT NULL CHECK (bandwidth > 0),
    experiment TEXT NOT NULL,
    -- Whose share and number of reservations it counts in: the experiment's project, or the experiment.
    tenant TEXT NOT NULL,
    -- The name that the experiment gave it, and what it is for.
    name TEXT,
    description TEXT,
    created_by TEXT NOT NULL,
    created_ms ${bigint} NOT NULL,
    deleted_ms ${bigint},
    -- It as it is answered, in JSON: so a list is read as it is sent.
    answer TEXT NOT NULL,
    CHECK (start_ms < end_ms)
  )${table};
  CREATE INDEX reservation_experiment ON reservation (experiment, id) WHERE deleted_ms IS NULL;
  CREATE INDEX reservation_name ON reservation (experiment, name) WHERE name IS NOT NULL AND deleted_ms IS NULL;

  -- What a reservation holds of each link of its route, in order from site1 to site2. Period, bandwidth, tenant and deletion
  -- are the reservation's: they stand here for the guard of the tags, and so that a link is read without a join. It has a key
  -- of its own: what overlaps a period is found by an index and then read, ten times as fast as by the texts of a key.
  CREATE TABLE hop (
    reservation ${id} NOT NULL REFERENCES reservation (id) DEFERRABLE INITIALLY DEFERRED,
    position INTEGER NOT NULL,
    link ${id} NOT NULL REFERENCES link (id),
    version ${bigint} NOT NULL,
    -- The class of its length: see store/spans.ts.
    span INTEGER NOT NULL,
    start_ms ${bigint} NOT NULL,
    end_ms ${bigint} NOT NULL,
    bandwidth ${bigint} NOT NULL,
    site1_s_tag INTEGER NOT NULL,
    site1_c_tag INTEGER NOT NULL,
    site2_s_tag INTEGER NOT NULL,
    site2_c_tag INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    deleted_ms ${bigint},
    PRIMARY KEY (reservation, position),
    CHECK (start_ms < end_ms)${tagGuard}
  )${sequenceTable};
  CREATE INDEX hop_changes ON hop (link, version);
  CREATE INDEX hop_deleted ON hop (link, version) WHERE deleted_ms IS NOT NULL;
  CREATE INDEX hop_live ON hop (link, span, start_ms, end_ms) WHERE deleted_ms IS NULL;

  -- Which reservation a request got, under the key that its client gave it; the key of a batch stands for its items. The
  -- row comes before the reservation's, in one transaction: the key may turn out to be taken.
  CREATE TABLE idempotency_key (
    created_by TEXT NOT NULL,
    experiment TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    reservation ${id} NOT NULL REFERENCES reservation (id) DEFERRABLE INITIALLY DEFERRED,
    items TEXT,
    expires_ms ${bigint} NOT NULL,
    PRIMARY KEY (created_by, experiment, key)
  )${table};
  CREATE INDEX idempotency_key_expiry ON idempotency_key (expires_ms);
  CREATE INDEX idempotency_key_reservation ON idempotency_key (reservation);

  -- Every decision: who, what, when, and why it was refused. Refusals beyond many of one experiment are counted: how many
  -- a row stands for, and in which minute they were. See store/audit.ts.
  CREATE TABLE audit (
    seq ${sequence} PRIMARY KEY,
    link TEXT NOT NULL,
    version ${bigint} NOT NULL,
    at_ms ${bigint} NOT NULL,
    action TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    actor TEXT NOT NULL,
    experiment TEXT NOT NULL,
    reservation TEXT,
    start_ms ${bigint} NOT NULL,
    end_ms ${bigint} NOT NULL,
    bandwidth ${bigint} NOT NULL,
    tags TEXT,
    why TEXT,
    times INTEGER NOT NULL,
    minute_ms ${bigint}
  )${sequenceTable};
  CREATE INDEX audit_age ON audit (at_ms);
  CREATE INDEX audit_refused ON audit (experiment, at_ms) WHERE accepted = 0;

  CREATE TABLE person (
    id ${id} PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
  )${table};

  CREATE TABLE project (
    id ${id} PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL,
    created_ms ${bigint} NOT NULL,
    expires_ms ${bigint} NOT NULL
  )${table};

  CREATE TABLE experiment (
    id ${id} PRIMARY KEY,
    project ${id} NOT NULL REFERENCES project (id),
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    created_ms ${bigint} NOT NULL,
    expires_ms ${bigint} NOT NULL,
    UNIQUE (project, name)
  )${table};

  -- A person's role in a project or an experiment.
  CREATE TABLE membership (
    person ${id} NOT NULL REFERENCES person (id),
    scope ${id} NOT NULL,
    role TEXT NOT NULL,
    PRIMARY KEY (person, scope)
  )${table};

  -- Which trusted issuer an id of a project or an experiment belongs to.
  CREATE TABLE owner (
    id ${id} PRIMARY KEY,
    issuer TEXT NOT NULL
  )${table};

  -- The private JWKs that each issuer signs with, one after the other: from when on, and until when at the latest a token
  -- is valid that the key has signed.
  CREATE TABLE signing_key (
    issuer TEXT NOT NULL,
    key_number ${bigint} NOT NULL CHECK (key_number > 0),
    jwk TEXT NOT NULL,
    signs_ms ${bigint} NOT NULL,
    expiry_ms ${bigint} NOT NULL,
    PRIMARY KEY (issuer, key_number)
  )${table};

  -- The identity provider's records, under hashes of codes and tokens; whose a login is, since users list their own; and
  -- when a token that is not rotated was used last.
  CREATE TABLE identity_record (
    model TEXT NOT NULL,
    key TEXT NOT NULL,
    payload TEXT NOT NULL,
    account TEXT,
    grant_key TEXT,
    user_code TEXT,
    decided INTEGER NOT NULL,
    consumed_ms ${bigint},
    grace_ms ${bigint},
    polled_ms ${bigint},
    used_ms ${bigint},
    expires_ms ${bigint} NOT NULL,
    PRIMARY KEY (model, key)
  )${table};
  CREATE INDEX identity_record_grant ON identity_record (grant_key) WHERE grant_key IS NOT NULL;
  CREATE UNIQUE INDEX identity_record_user_code ON identity_record (user_code) WHERE user_code IS NOT NULL;
  CREATE INDEX identity_record_account ON identity_record (account) WHERE account IS NOT NULL;
  CREATE INDEX identity_record_expiry ON identity_record (expires_ms);

  -- Whose CI jobs act for whom, in which experiment: exact values of the claims of their ID tokens. The repository's id is
  -- that of its first job.
  CREATE TABLE ci_rule (
    id TEXT PRIMARY KEY,
    experiment ${id} NOT NULL REFERENCES experiment (id),
    person ${id} NOT NULL REFERENCES person (id),
    ci TEXT NOT NULL,
    issuer TEXT NOT NULL,
    repository TEXT NOT NULL,
    repository_id TEXT,
    ref TEXT,
    ref_type TEXT,
    environment TEXT,
    created_ms ${bigint} NOT NULL,
    expires_ms ${bigint} NOT NULL
  )${table};
  CREATE INDEX ci_rule_experiment ON ci_rule (experiment);
  CREATE INDEX ci_rule_repository ON ci_rule (issuer, repository);
  CREATE INDEX ci_rule_repository_id ON ci_rule (issuer, repository_id) WHERE repository_id IS NOT NULL;

  CREATE TABLE attempt (
    key TEXT PRIMARY KEY,
    began_ms ${bigint} NOT NULL,
    attempts ${bigint} NOT NULL
  )${table};

  CREATE TABLE shared_secret (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
  )${table};

  -- Who is logged in to the page, by the hash of the browser's session id. Its tokens are encrypted with a key that is
  -- derived from the id itself. Each renewal of them makes a new version; turn counts who has set about it.
  CREATE TABLE page_session (
    key TEXT PRIMARY KEY,
    sealed TEXT NOT NULL,
    version INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    expires_ms ${bigint} NOT NULL
  )${table};
  CREATE INDEX page_session_expiry ON page_session (expires_ms);
  `;
}

/** The version of {@link serverTables}: a database of another one is neither read nor changed. */
export const SCHEMA_VERSION = 4;

/** The database was made by a slices-conn with another schema. There is nothing that brings it up to date. */
export class OtherVersionError extends DatabaseFormatError {
  constructor(found: number, known: number) {
    super(`The database has schema version ${found}; this program knows ${known}.`);
  }
}
