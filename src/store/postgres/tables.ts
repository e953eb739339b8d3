import { TAG_PLACES } from '../../allocator/demand.ts';
import { OtherVersionError, SCHEMA_VERSION, serverTables } from '../schema.ts';
import { DatabaseFormatError, type SqlReader, type SqlStatements } from '../sql.ts';

/** "slcs": one program at a time changes the schema of a database. */
const SCHEMA_LOCK = 0x736c6373;

/**
 * Makes the tables of an empty database, within a transaction. Of several programs that start at once, one does
 * it and the others wait.
 *
 * @param timeout how long to wait for another program, in milliseconds
 * @returns whether the database was empty
 * @throws DatabaseFormatError when another version of this program made the database, or another program
 */
export async function makeTables(sql: SqlStatements, timeout: number): Promise<boolean> {
  await sql.run(`SET LOCAL lock_timeout = ${timeout}; SET LOCAL statement_timeout = ${timeout}`);
  await sql.run('SELECT pg_advisory_xact_lock($lock)', { lock: SCHEMA_LOCK });
  const isEmpty = !(await hasTables(sql));
  if (isEmpty) await sql.run(TABLES);
  return isEmpty;
}

/**
 * Whether a database has the tables of a server; false for an empty one.
 *
 * @throws DatabaseFormatError when it is another program's, or of another version
 */
export async function hasTables(sql: SqlReader): Promise<boolean> {
  const found = await sql.first(
    `SELECT count(*) AS tables, count(*) FILTER (WHERE relname = 'slices_conn_version') AS ours
     FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
     WHERE nspname = current_schema() AND relkind IN ('r', 'p')`,
  );
  if (Number(found?.['ours']) > 0) {
    const row = await sql.first('SELECT version FROM slices_conn_version');
    const version = Number(row?.['version']);
    if (version !== SCHEMA_VERSION) throw new OtherVersionError(version, SCHEMA_VERSION);
    return true;
  }
  if (Number(found?.['tables']) > 0) {
    throw new DatabaseFormatError('The database holds tables of another program. Give this one its own.');
  }
  return false;
}

/**
 * A tag is held once at a place: over time and tags, each hold is a box one tag high, and no two boxes of a link may meet.
 * Numbers up to 2^53 are exact in a box. As a box, a row costs three fifths of what it does as a number and a range, and
 * no more when there are many; the link comes second, because a link alone tells few rows apart, and as an expression, so that no
 * query finds the rows of a link by it.
 */
const HELD_ONCE = TAG_PLACES.map(
  (place) => `
    CHECK (${place} BETWEEN 1 AND 4094),
    CONSTRAINT ${place}_held_once EXCLUDE USING gist (
      box(point(start_ms, 2 * ${place}), point(end_ms - 1, 2 * ${place} + 1)) WITH &&, (link || '') WITH =
    ) WHERE (deleted_ms IS NULL)`,
);

/**
 * The server's schema on PostgreSQL 13 or newer. The guard of the tags is on the hops themselves, and does not
 * depend on any code of ours being right.
 */
const TABLES = `
  CREATE EXTENSION IF NOT EXISTS btree_gist;
  CREATE TABLE slices_conn_version (version INTEGER NOT NULL);
  INSERT INTO slices_conn_version (version) VALUES (${SCHEMA_VERSION});
  ${serverTables({
    bigint: 'BIGINT',
    id: 'TEXT COLLATE "C"',
    sequence: 'BIGINT GENERATED ALWAYS AS IDENTITY',
    table: '',
    sequenceTable: '',
    tagGuard: `,${HELD_ONCE.join(',')}`,
  })}
  `;
