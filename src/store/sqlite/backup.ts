import { closeSync, linkSync, lstatSync, mkdtempSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { onDisk } from '../../files/on-disk.ts';
import { FORGET_HISTORY } from '../history.ts';
import { DatabaseFormatError } from '../sql.ts';

import { BUSY_TIMEOUT, denyOthers, loadSqlite, storeError } from './file.ts';
import { checkFormat, SERVER_FORMAT } from './format.ts';

/** A backup that was made. */
export interface Backup {
  /** The size of the file. */
  bytes: number;
  /** Reservations that were not deleted. */
  reservations: number;
}

/**
 * Copies a server's database, while the server writes, into a new file: the state of one instant, with every reservation
 * that was acknowledged before. It reads in one transaction, which holds up no writer; the copy is checked and on disk
 * before it has its name. Only its owner can read it: the signing keys are in it.
 *
 * @param source the server's file
 * @param target a file that is not there yet
 * @throws DatabaseFormatError when the source is damaged, another program's, or of another version
 * @throws StoreUnavailableError when it can't be read, or the target can't be written
 * @throws Failure `state_unusable` when others could have changed the source
 * @throws Error of the file system: the source does not exist, or the target does
 */
export function backUp(source: string, target: string): Backup {
  // Throws ENOENT, which names the file.
  lstatSync(source);
  denyOthers(source);
  // In a folder of its own, other users can't plant files beside it that SQLite would trust (THREATS.md 51).
  const folder = mkdtempSync(`${target}.`);
  const draft = join(folder, 'copy');
  try {
    closeSync(openSync(draft, 'wx', 0o600));
    withDatabase(source, true, (database) => {
      checkFormat(database, SERVER_FORMAT);
      // SQLite refuses to overwrite a file that is not empty.
      database.prepare('VACUUM INTO $file').run({ $file: draft });
    });
    const reservations = withDatabase(draft, false, check);
    onDisk(draft);
    // A link fails when the name is taken: it overwrites no file.
    linkSync(draft, target);
    onDisk(dirname(target));
    return { bytes: statSync(target).size, reservations };
  } catch (error) {
    throw storeError(error);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Makes the copy one of no history, and reads it once, so that a damaged one is found now. @returns how many reservations it holds */
function check(database: DatabaseSync): number {
  database.exec(FORGET_HISTORY);
  checkFormat(database, SERVER_FORMAT);
  const { integrity_check: result } = database.prepare('PRAGMA integrity_check(1)').get() ?? {};
  if (result !== 'ok') throw new DatabaseFormatError(`The copy is damaged: ${result}`);
  const [broken] = database.prepare('PRAGMA foreign_key_check').all();
  if (broken)
    throw new DatabaseFormatError(`The copy is damaged: a row of ${broken['table']} lacks another.`);
  const row = database.prepare('SELECT count(*) AS count FROM reservation WHERE deleted_ms IS NULL').get();
  return Number(row?.['count']);
}

function withDatabase<Answer>(
  path: string,
  readOnly: boolean,
  work: (database: DatabaseSync) => Answer,
): Answer {
  const { DatabaseSync: Sqlite } = loadSqlite();
  const database = new Sqlite(path, { readOnly, timeout: BUSY_TIMEOUT });
  try {
    return work(database);
  } finally {
    database.close();
  }
}
