import type { DatabaseSync } from 'node:sqlite';
import { DatabaseFormatError } from '../sql.ts';
import { SERVER_FORMAT } from './migrations.ts';

/**
 * Checks that a file which is only read is a server's, of this program's version: a reader changes nothing, so it does
 * not bring an older one up to date.
 *
 * @throws DatabaseFormatError when it is another program's, or of another version
 */
export function checkFormat(database: DatabaseSync): void {
  const { applicationId, migrations } = SERVER_FORMAT;
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
