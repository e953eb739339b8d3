import { randomInt } from 'node:crypto';
import { closeSync, existsSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommitUnknownError, StoreUnavailableError } from '../../allocator/store.ts';
import { Failure } from '../../contract/failure.ts';
import { closeFile } from '../../files/private.ts';
import { DatabaseFormatError } from '../sql.ts';

/**
 * Waits for other connections to let go, without holding up this process: waiting inside SQLite would stop everything
 * else in it. It asks again every few milliseconds, with jitter and never less often, so that a process which writes all
 * the time does not keep another out.
 *
 * @param patience how long to wait, in milliseconds
 */
export async function patiently(work: () => void, patience: number): Promise<void> {
  for (let waited = 0; ; ) {
    try {
      work();
      return;
    } catch (error) {
      if (!isBusy(error) || waited >= patience) throw error;
      const pause = 1 + randomInt(4);
      waited += pause;
      await sleep(pause);
    }
  }
}

/** What SQLite puts beside a file, and believes when it opens it: what was committed but is not in the file yet. */
const BESIDE = ['-wal', '-shm', '-journal'];

/**
 * Makes a database file that only its owner can read, or makes an existing one so. SQLite gives the files that it puts
 * beside it the same mode.
 *
 * @throws Failure `state_unusable` as `closeDatabase`
 * @throws StoreUnavailableError when it can't be made
 */
export function keepPrivate(path: string): void {
  try {
    if (!closeDatabase(path)) create(path);
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StoreUnavailableError(`The file ${path} can't be opened. ${why}`, { cause });
  }
}

/**
 * Closes a database file and those that SQLite puts beside it to others, before any of them is opened: a planted -wal
 * would replace what is in the file. No file is opened for that: closing it would drop the locks that this process has
 * on it.
 *
 * @returns whether the file is there
 * @throws Failure `state_unusable` when a symbolic link, another user's file or one that others can write to stands in
 *   the place of one of them (HOSTILE.md 51)
 */
export function closeDatabase(path: string): boolean {
  for (const end of BESIDE) closeFile(`${path}${end}`);
  return closeFile(path);
}

function create(path: string): void {
  try {
    closeSync(openSync(path, 'ax', 0o600));
  } catch (error) {
    // Another process may have been quicker.
    if (!existsSync(path)) throw error;
  }
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

const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_NOTADB = 26;
/** Busy, locked, out of memory, read-only, I/O error, full, can't open (https://sqlite.org/rescode.html). */
const UNAVAILABLE = new Set([5, 6, 7, 8, 10, 13, 14]);

function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined;
  // The low byte is the primary code; the rest says more about it.
  return Number(error.errcode) & 0xff;
}

/** Whether another connection has the file locked. */
export function isBusy(error: unknown): boolean {
  return resultCode(error) === 5 || resultCode(error) === 6;
}

/** What an error of SQLite means to those who store things: damaged, unavailable, or itself. */
export function storeError(error: unknown): unknown {
  const code = resultCode(error);
  if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB) {
    return new DatabaseFormatError('The database file is damaged, or is none.', { cause: error });
  }
  if (code !== undefined && UNAVAILABLE.has(code)) {
    return new StoreUnavailableError("The database can't be used at the moment.", { cause: error });
  }
  return error;
}

/**
 * What an error of `COMMIT` means: nothing was changed, or nobody knows.
 *
 * A transaction that is still open was not committed. On a full disk the last page of the transaction, which makes it
 * valid, was not written whole. After any other error, such as one of the disk's own (SQLITE_IOERR), all of it may stand
 * in the file, to be found when that is opened next.
 *
 * @param open whether the transaction is open all the same
 */
export function commitError(cause: unknown, open: boolean): unknown {
  const code = resultCode(cause);
  if (open || code === undefined || code === SQLITE_FULL) return storeError(cause);
  return new CommitUnknownError('The database failed while it made the change.', { cause });
}
