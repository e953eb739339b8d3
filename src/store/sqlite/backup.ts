import { closeSync, linkSync, lstatSync, mkdtempSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { onDisk } from '../../files/whole.ts';
import { DatabaseFormatError } from '../sql.ts';
import { closeDatabase, loadSqlite, storeError } from './engine.ts';
import { checkFormat } from './format-check.ts';

/** What a backup holds. */
export interface Backup {
  /** How large the file is. */
  bytes: number;
  /** Reservations that were not deleted. */
  reservations: number;
}

/**
 * Copies a server's database, while it runs and writes, into a file of its own: the state of one instant, with every
 * reservation that was acknowledged before. It is read in one transaction, which holds no writer up, checked, and on
 * disk before it has its name. Only its owner can read it: the signing keys are in it.
 *
 * @param source the server's file
 * @param target a file that is not there yet
 * @throws DatabaseFormatError when the source is damaged, another program's, or of another version
 * @throws StoreUnavailableError when it can't be read, or the target can't be written
 * @throws Failure `state_unusable` when others could have changed the source
 * @throws Error of the file system: there is no source, or there is a target
 */
export function backUp(source: string, target: string): Backup {
  // One that is not there is said to be so.
  lstatSync(source);
  closeDatabase(source);
  // A folder of its own: nobody can plant the files beside it that SQLite would believe (HOSTILE.md 51).
  const folder = mkdtempSync(`${target}.`);
  const draft = join(folder, 'copy');
  try {
    closeSync(openSync(draft, 'wx', 0o600));
    copy(source, draft);
    const reservations = check(draft);
    onDisk(draft);
    // A name that is taken is not taken over, whoever was quicker.
    linkSync(draft, target);
    onDisk(dirname(target));
    return { bytes: statSync(target).size, reservations };
  } catch (error) {
    throw storeError(error);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function copy(source: string, draft: string): void {
  withDatabase(source, (database) => {
    checkFormat(database);
    // Into an empty file: what is there already is not overwritten by it.
    database.prepare('VACUUM INTO $file').run({ $file: draft });
  });
}

/** Reads all of it once: a copy that can't be used is found out now. */
function check(draft: string): number {
  return withDatabase(draft, (database) => {
    checkFormat(database);
    const { integrity_check: verdict } = database.prepare('PRAGMA integrity_check(1)').get() ?? {};
    if (verdict !== 'ok') throw new DatabaseFormatError(`The copy is damaged: ${verdict}`);
    const [broken] = database.prepare('PRAGMA foreign_key_check').all();
    if (broken)
      throw new DatabaseFormatError(`The copy is damaged: a row of ${broken['table']} lacks another.`);
    const row = database
      .prepare('SELECT count(*) AS count FROM reservation WHERE cancelled_ms IS NULL')
      .get();
    return Number(row?.['count']);
  });
}

function withDatabase<Answer>(path: string, work: (database: DatabaseSync) => Answer): Answer {
  const { DatabaseSync: Sqlite } = loadSqlite();
  const database = new Sqlite(path, { readOnly: true, timeout: 5000 });
  try {
    return work(database);
  } finally {
    database.close();
  }
}
