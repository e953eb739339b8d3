import { accessSync, constants, existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Files } from '../cli/context.ts';
import { Failure } from '../contract/failure.ts';
import { errorCode, systemReason } from '../contract/foreign-errors.ts';
import { readBounded, readBoundedStream, readBytes } from '../files/bounded.ts';
import { makeFolders, privateFolder, unusableFile } from '../files/private.ts';
import { removeFile, writeWhole } from '../files/whole.ts';
import type { LedgerDatabase } from '../session/reservations/ledger.ts';

/** The files of this machine. @param stateFolder the folder of the ledger; made when needed */
export function filesOn(stateFolder: string): Files {
  return {
    read: (path) =>
      guarded('read', path, () => (path === '-' ? readBoundedStream(process.stdin) : readBounded(path))),
    makeFolder: (path) => guarded('made', path, () => makeFolders(path)),
    remove: (path) => guarded('removed', path, () => removeFile(path)),
    checkAbsent: (path) =>
      guarded('written', path, () => {
        if (existsSync(path)) throw new Error('It exists already. Move it away first.');
      }),
    exists: async (path) => existsSync(path),
    checkWritable: (path) =>
      guarded('written', path, () => {
        accessSync(dirname(path), constants.W_OK);
        if (existsSync(path) && !statSync(path).isFile()) throw new Error('It is not a file.');
      }),
    writePrivate: (path, text) => guarded('written', path, () => writeWhole(path, text, 0o600)),
    writePublic: (path, text) => guarded('written', path, () => writeWhole(path, text, 0o644)),
    contentBelow: (folder, path) =>
      guarded('read', join(folder, path), () => {
        const place = placeBelow(folder, path, { make: false });
        return place !== undefined && existsSync(place) ? readBounded(place).toString() : undefined;
      }),
    writeBelow: (folder, path, text, isPrivate) =>
      guarded('written', join(folder, path), () => {
        const place = placeBelow(folder, path, { make: true });
        if (place !== undefined) writeWhole(place, text, isPrivate ? 0o600 : 0o644);
      }),
    readStartup: (path) =>
      guarded('read', path, () => statSync(path, { throwIfNoEntry: false }) && readBytes(path)),
    writeStartup: (path, content) => guarded('written', path, () => replace(targetOf(path), content)),
    privatePath: async (name) => join(privateFolder(join(privateFolder(stateFolder), 'run')), name),
    openLedger: () => openLedger(stateFolder),
    underLock,
  };
}

/**
 * Where an absolute path is below a folder, which the person has named and which may be a link itself.
 *
 * @param make whether to make folders that are missing
 * @returns undefined where a folder on the way is missing
 * @throws Error for a symbolic link on the way or in the file's place, and for a path that leads out
 */
function placeBelow(folder: string, path: string, { make }: { make: boolean }): string | undefined {
  const names = path.split('/').filter((name) => name !== '');
  if (names.some((name) => name === '.' || name === '..'))
    throw new Error('The path leads out of the folder.');
  if (make) makeFolders(folder, 0o777);
  if (!existsSync(folder)) return undefined;
  let place = realpathSync(folder);
  for (const [index, name] of names.entries()) {
    place = join(place, name);
    const isFile = index === names.length - 1;
    const found = lstatSync(place, { throwIfNoEntry: false });
    if (!found && isFile) return place;
    if (!found && !make) return undefined;
    if (!found) makeFolders(place, 0o755);
    else if (found.isSymbolicLink()) throw new Error(`${place} is a symbolic link, which is never followed.`);
    else if (isFile ? !found.isFile() : !found.isDirectory()) {
      throw new Error(`${place} is not a ${isFile ? 'file' : 'folder'}.`);
    }
  }
  return place;
}

/** Works on a file. @param done completes "The file can't be …". @throws Failure `file_unusable` */
async function guarded<Result>(
  done: string,
  path: string,
  act: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await act();
  } catch (cause) {
    const isFolder = done === 'written' && errorCode(cause) === 'ENOENT';
    const why = isFolder ? `There is no folder ${dirname(path)}.` : systemReason(cause);
    throw new Failure('file_unusable', `The file ${path} can't be ${done}.`, { why, cause });
  }
}

/** The end of a chain of symbolic links, which need not exist. Writing fails at a circle. */
function targetOf(file: string, links = 0): string {
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (!found?.isSymbolicLink() || links > 40) return file;
  return targetOf(resolve(realpathSync(dirname(file)), readlinkSync(file)), links + 1);
}

function replace(file: string, content: Uint8Array): void {
  // Shells run this file, so other users must not be able to write to it, whatever the umask.
  makeFolders(dirname(file), 0o755);
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0o644;
  writeWhole(file, content, mode & 0o7777);
}

/** Opens the ledger's database. @throws Failure `state_unusable` */
async function openLedger(stateFolder: string): Promise<LedgerDatabase> {
  const [{ SqliteDatabase }, { LEDGER_FORMAT }] = await Promise.all([
    import('../store/sqlite/database.ts'),
    import('../store/sqlite/format.ts'),
  ]);
  const path = join(privateFolder(stateFolder), 'ledger.sqlite');
  const unusable = (cause: unknown): never => {
    if (cause instanceof Failure) throw cause;
    throw unusableFile(path, cause);
  };
  const database = await SqliteDatabase.open(path, LEDGER_FORMAT).catch(unusable);
  return {
    transaction: (work) => database.transaction(work).catch(unusable),
    close: () => database.close(),
  };
}

/** The longest wait for a command that refreshes the login, in milliseconds. A refresh takes less. */
const LOCK_TIMEOUT = 90_000;

/**
 * Runs work while no other process runs work under the same lock file.
 *
 * @throws Failure `timeout` when another process keeps the lock for 90 s, `state_unusable` when the file
 *   can't be used
 */
async function underLock<Answer>(file: string, work: () => Promise<Answer>): Promise<Answer> {
  const [{ isBusy, underFileLock }, { StoreUnavailableError }] = await Promise.all([
    import('../store/sqlite/file.ts'),
    import('../allocator/store.ts'),
  ]);
  try {
    return await underFileLock(file, LOCK_TIMEOUT, work);
  } catch (cause) {
    if (!(cause instanceof StoreUnavailableError)) throw cause;
    if (!isBusy(cause.cause)) throw unusableFile(file, cause);
    throw new Failure('timeout', 'Another slices-conn command holds this lock.', {
      why: `${file}: ${cause.message}`,
      retryable: true,
      cause,
    });
  }
}
