import { randomInt } from 'node:crypto';
import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { CommitUnknownError, DATABASE_UNUSABLE, StoreUnavailableError } from '../../allocator/store.ts';
import { Failure } from '../../contract/failure.ts';
import { systemReason } from '../../contract/foreign-errors.ts';
import { makePrivate } from '../../files/private.ts';
import { DatabaseFormatError } from '../sql.ts';

const [SQLITE_BUSY, SQLITE_LOCKED, SQLITE_CORRUPT, SQLITE_FULL, SQLITE_NOTADB] = [5, 6, 11, 13, 26];
/** Busy, locked, out of memory, read-only, I/O error, full, can't open (https://sqlite.org/rescode.html). */
const UNAVAILABLE = new Set([5, 6, 7, 8, 10, 13, 14]);

function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined;
  // The low byte is the primary code; the rest says more about it.
  return Number(error.errcode) & 0xff;
}

/** Whether another connection has the file locked. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === SQLITE_BUSY || code === SQLITE_LOCKED;
}

/** Turns an error of SQLite into the stores' own: damaged or unavailable; any other stays as it is. */
export function storeError(error: unknown): unknown {
  const code = resultCode(error);
  if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB) {
    return new DatabaseFormatError('The file is damaged, or is not a database.', { cause: error });
  }
  if (code !== undefined && UNAVAILABLE.has(code)) {
    return new StoreUnavailableError(DATABASE_UNUSABLE, { cause: error });
  }
  return error;
}

/**
 * Turns an error of `COMMIT` into the stores' own: nothing was changed, or that is unknown.
 *
 * A transaction that is still open was not committed. On a full disk the last page of the transaction, which makes it
 * valid, was not written whole. After any other error, such as one of the disk (SQLITE_IOERR), all of it may be in the
 * file, and count when it is opened next.
 *
 * @param open whether the transaction is still open
 */
export function commitError(cause: unknown, open: boolean): unknown {
  const code = resultCode(cause);
  if (open || code === undefined || code === SQLITE_FULL) return storeError(cause);
  return new CommitUnknownError('The database failed while it made the change.', { cause });
}

/** How long to wait while another process has the file locked, in milliseconds. */
export const BUSY_TIMEOUT = 5000;

/**
 * Runs `work` again while another connection has the file locked. Waiting inside SQLite would stop everything else in
 * this process. It tries every 1 to 4 ms and never less often, so that a process which writes all the time does not keep
 * another out.
 *
 * @param timeout how long to try, in milliseconds
 */
export async function retryWhileBusy(work: () => void, timeout = BUSY_TIMEOUT): Promise<void> {
  for (let waited = 0; ; ) {
    try {
      work();
      return;
    } catch (error) {
      if (!isBusy(error) || waited >= timeout) throw error;
      const pause = 1 + randomInt(4);
      waited += pause;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}

/** The files beside an open database in WAL mode: changes that are not in its own file yet, and locks. */
export const BESIDE_WAL: readonly string[] = ['-wal', '-shm'];
/** The files that SQLite keeps beside a database, and trusts when it opens it. */
const BESIDE = [...BESIDE_WAL, '-journal'];

/**
 * Creates a database file that only its owner can read, or restricts an existing one so. SQLite gives the files beside it
 * the same mode.
 *
 * @throws Failure `state_unusable` as `denyOthers`
 * @throws StoreUnavailableError when it can't be created
 */
export function createPrivate(path: string): void {
  try {
    if (!denyOthers(path)) create(path);
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    const why = systemReason(cause);
    throw new StoreUnavailableError(`The file ${path} can't be opened. ${why}`, { cause });
  }
}

/**
 * Denies other users access to a database file and the files beside it, before any of them is opened: a planted -wal would
 * replace what is in the file. It opens none of them: closing a file drops the locks that this process has on it.
 *
 * @returns whether the file is there
 * @throws Failure `state_unusable` when a symbolic link, another user's file or one that others can write to stands in
 *   the place of one of them (THREATS.md 51)
 */
export function denyOthers(path: string): boolean {
  for (const end of BESIDE) makePrivate(`${path}${end}`);
  return makePrivate(path);
}

function create(path: string): void {
  try {
    closeSync(openSync(path, 'ax', 0o600));
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!existsSync(path)) throw error;
  }
}

/** Which file stands at a path, by device and inode; empty where there is none. */
export function identityOf(path: string): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found ? `${found.dev} ${found.ino}` : '';
}

/**
 * Notes which files stand at these paths, by device and inode. While SQLite has a file open, its path may come to name
 * another: what is written then is gone when the file is closed.
 *
 * @returns a function that checks that they are the same. It throws StoreUnavailableError when one is not
 */
export function checkOfPlaces(paths: readonly string[]): () => void {
  const places = paths.map((path) => ({ path, identity: identityOf(path) }));
  return () => {
    const other = places.find(({ path, identity }) => identityOf(path) !== identity);
    if (!other) return;
    const cause = new Error(`The file ${other.path} was deleted, moved or replaced while it was in use.`);
    throw new StoreUnavailableError(DATABASE_UNUSABLE, { cause });
  };
}

/** SQLite as Node has it. Node 22 warns that SQLite is experimental; that one warning is not for users of a command line. */
export function loadSqlite(): typeof import('node:sqlite') {
  const { emitWarning } = process;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]): void => {
    if (String(warning).includes('SQLite is an experimental feature')) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    return process.getBuiltinModule('node:sqlite');
  } finally {
    process.emitWarning = emitWarning;
  }
}

/**
 * Runs `work` while no other work runs under the same file, in this process or another. The lock is a transaction on an
 * otherwise empty SQLite file, so the operating system releases it when its process ends, however it ends (THREATS.md 14). A
 * process also loses a POSIX lock when it closes another handle on the file, unless SQLite does: nothing else may open it
 * (THREATS.md 17).
 *
 * @param path a file for this lock only, created when it does not exist
 * @param timeout how long to wait for the lock, in milliseconds
 * @throws StoreUnavailableError when the lock is not free by then, or the file can't be created
 */
export async function underFileLock<Answer>(
  path: string,
  timeout: number,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const file = openLock(path);
  try {
    await retryWhileBusy(() => file.exec(LOCK), timeout).catch((error: unknown) => {
      throw storeError(error);
    });
    return await work();
  } finally {
    file.close();
  }
}

/**
 * Takes the lock of a file at once, or not at all; see {@link underFileLock}.
 *
 * @returns a function that gives it back; undefined while another has it
 * @throws StoreUnavailableError when the file can't be created
 */
export function takeFileLock(path: string): (() => void) | undefined {
  const file = openLock(path);
  try {
    file.exec(LOCK);
    return () => file.close();
  } catch (error) {
    file.close();
    if (isBusy(error)) return undefined;
    throw storeError(error);
  }
}

const LOCK = 'BEGIN EXCLUSIVE';

function openLock(path: string): DatabaseSync {
  const { DatabaseSync: Sqlite } = loadSqlite();
  createPrivate(path);
  try {
    return new Sqlite(path, { timeout: 0 });
  } catch (error) {
    throw storeError(error);
  }
}
