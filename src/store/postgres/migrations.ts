import { TAG_PLACES } from '../../allocator/demand.ts';
import { checkCurrent, checkNotNewer, serverTables, UNRELEASED, UnreleasedFormatError } from '../schema.ts';
import { DatabaseFormatError, type SqlReader, type SqlStatements } from '../sql.ts';

/** "slcs": one program at a time changes the schema of a database. */
const SCHEMA_LOCK = 0x736c6373;

/**
 * Applies the migrations that a database lacks, within a transaction. Of several programs that start at once, one does
 * it and the others wait.
 *
 * @param timeout how long to wait for another program, in milliseconds
 * @returns the version that was found; 0 for a new database
 * @throws DatabaseFormatError when a newer version of this program made the database, an unreleased one, or another
 *   program
 */
export async function migrate(
  sql: SqlStatements,
  migrations: readonly string[],
  timeout: number,
): Promise<number> {
  await sql.run(`SET LOCAL lock_timeout = ${timeout}; SET LOCAL statement_timeout = ${timeout}`);
  await sql.run('SELECT pg_advisory_xact_lock($1)', SCHEMA_LOCK);
  const version = await versionOf(sql);
  if (version === undefined) {
    await sql.run('CREATE TABLE slices_conn_version (version INTEGER NOT NULL)');
    await sql.run('INSERT INTO slices_conn_version (version) VALUES (0)');
  }
  const found = version ?? 0;
  checkNotNewer(found, migrations);
  if (found === migrations.length) return found;
  for (const migration of migrations.slice(found)) await sql.run(migration);
  await sql.run('UPDATE slices_conn_version SET version = $1', migrations.length);
  return found;
}

/**
 * Checks that a database which is only read is a server's, of this program's version.
 *
 * @throws DatabaseFormatError when it is another program's, or of another version
 */
export async function checkVersion(sql: SqlReader, migrations: readonly string[]): Promise<void> {
  const version = await versionOf(sql);
  if (version === undefined) throw new DatabaseFormatError('No server has kept its data there yet.');
  checkCurrent(version, migrations);
}

/** The schema version of a database; undefined for an empty one. @throws DatabaseFormatError for tables of others */
async function versionOf(sql: SqlReader): Promise<number | undefined> {
  const found = await sql.first(
    `SELECT count(*) AS tables, count(*) FILTER (WHERE relname = 'slices_conn_version') AS ours,
       count(*) FILTER (WHERE relname = 'slices_conn_schema') AS unreleased
     FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
     WHERE nspname = current_schema() AND relkind IN ('r', 'p')`,
  );
  if (Number(found?.['ours']) > 0) {
    return Number((await sql.first('SELECT version FROM slices_conn_version'))?.['version']);
  }
  if (Number(found?.['unreleased']) > 0) throw new UnreleasedFormatError();
  if (Number(found?.['tables']) > 0) {
    throw new DatabaseFormatError('The database holds tables of another program. Give this one its own.');
  }
  return undefined;
}

/**
 * A tag is held once at a place: over time and tags, each hold is a box one tag high, and no two boxes of a link may meet.
 * Numbers up to 2^53 are exact in a box. As a box, a row costs three fifths of what it does as a number and a range, and
 * no more when there are many; the link comes second, because a link alone tells few rows apart.
 */
const HELD_ONCE = TAG_PLACES.map(
  (place) => `
    CHECK (${place} BETWEEN 1 AND 4094),
    CONSTRAINT ${place}_held_once EXCLUDE USING gist (
      box(point(start_ms, 2 * ${place}), point(end_ms - 1, 2 * ${place} + 1)) WITH &&, link WITH =
    ) WHERE (deleted_ms IS NULL)`,
);

/**
 * The server's schema on PostgreSQL 13 or newer, oldest first: migration n brings a database of version n to n + 1.
 * Never changed once released; a change is a new entry. The guard of the tags is on the hops themselves, and does not
 * depend on any code of ours being right.
 */
export const POSTGRES_MIGRATIONS: readonly string[] = [
  // In version 1 a reservation had no hops.
  UNRELEASED,
  `
  CREATE EXTENSION IF NOT EXISTS btree_gist;
  ${serverTables({
    bigint: 'BIGINT',
    id: 'TEXT COLLATE "C"',
    sequence: 'BIGINT GENERATED ALWAYS AS IDENTITY',
    table: '',
    sequenceTable: '',
    tagGuard: `,${HELD_ONCE.join(',')}`,
  })}
  -- Who holds a tag when, to look at.
  CREATE VIEW tag_hold AS
    SELECT link, place, tag, start_ms, end_ms, reservation
    FROM hop CROSS JOIN LATERAL (VALUES
      ${TAG_PLACES.map((place) => `('${place}', ${place})`).join(', ')}
    ) AS held (place, tag)
    WHERE deleted_ms IS NULL;
  `,
];
