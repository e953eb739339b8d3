import { DatabaseFormatError, type SqlReader, type SqlRow, type SqlStatements } from '../sql.ts';

/** "slic": one program at a time changes the schema of a database. */
const SCHEMA_LOCK = 0x736c6963;

/**
 * Applies the migrations that a database lacks, within a transaction. Of several programs that start at once, one does
 * it and the others wait.
 *
 * @param patience how long to wait for another program, in milliseconds
 * @throws DatabaseFormatError when a newer version of this program made the database, or it holds another program's tables
 */
export async function migrate(
  sql: SqlStatements,
  migrations: readonly string[],
  patience: number,
): Promise<void> {
  await sql.run(`SET LOCAL lock_timeout = ${patience}; SET LOCAL statement_timeout = ${patience}`);
  await sql.run('SELECT pg_advisory_xact_lock($1)', SCHEMA_LOCK);
  const version = await versionOf(sql);
  if (version > migrations.length) {
    throw new DatabaseFormatError(
      `The database has schema version ${version}; this program knows ${migrations.length}. Use a newer slices-conn.`,
    );
  }
  if (version === migrations.length) return;
  for (const migration of migrations.slice(version)) await sql.run(migration);
  await sql.run('UPDATE slices_conn_schema SET version = $1', migrations.length);
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
  throw new DatabaseFormatError(
    `The database has schema version ${version}; this program knows ${migrations.length}. Use the slices-conn that serves it.`,
  );
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
