import { dirname } from 'node:path';
import { Failure } from '../contract/failure.ts';
import { errorCode, systemReason } from '../contract/foreign-errors.ts';
import { type Backup, backUp as copy } from '../store/sqlite/backup.ts';
import { existingData } from './database.ts';
import type { BackupOptions } from './options.ts';

/**
 * Copies a server's SQLite database to a file, as it is at one instant, while the server runs (cli/README.md, "Commands",
 * serve).
 *
 * @param defaultFolder holds the data when no flag says where it is
 * @param target must not exist yet
 * @returns the size of the copy, and how many reservations it holds
 * @throws Failure `file_unusable` when there is no database, or the file exists or can't be written
 */
export async function backUp(
  { data }: BackupOptions,
  defaultFolder: string,
  target: string,
): Promise<Backup> {
  const { database } = existingData({ data }, defaultFolder);
  try {
    return copy(database, target);
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw new Failure('file_unusable', `The database ${database} can't be copied to ${target}.`, {
      why: errorCode(cause) === 'ENOENT' ? `There is no folder ${dirname(target)}.` : systemReason(cause),
      cause,
    });
  }
}
