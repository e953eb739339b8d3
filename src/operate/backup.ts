import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../contract/failure.ts';
import { systemReason } from '../contract/foreign-errors.ts';
import { dataFolder } from '../files/private.ts';
import { type Backup, backUp as copy } from '../store/sqlite/backup.ts';
import { SERVER_FILE } from '../store/stores.ts';
import type { BackupOptions } from './options.ts';

/**
 * Copies a server's SQLite database to a file, as it is at one instant, while the server runs (cli/README.md, "Commands",
 * serve).
 *
 * @param defaultFolder holds the data when no flag says where it is
 * @param file must not exist yet
 * @returns the size of the copy, and how many reservations it holds
 * @throws Failure `file_unusable` when there is no database, or the file exists or can't be written
 */
export async function backUp({ data }: BackupOptions, defaultFolder: string, file: string): Promise<Backup> {
  const folder = data ?? defaultFolder;
  const source = join(folder, SERVER_FILE);
  if (!existsSync(source)) {
    throw new Failure('file_unusable', `The file ${source} can't be read.`, {
      why: 'No server keeps its data there.',
    });
  }
  if (existsSync(file)) {
    throw new Failure('file_unusable', `The file ${file} can't be written.`, {
      why: 'It exists already. Move it away first.',
    });
  }
  try {
    dataFolder(folder);
    return copy(source, file);
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw new Failure('file_unusable', `The database ${source} can't be copied to ${file}.`, {
      why: systemReason(cause),
      cause,
    });
  }
}
