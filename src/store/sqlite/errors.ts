import { CommitUnknownError, DATABASE_UNUSABLE, StoreUnavailableError } from '../../allocator/store.ts';
import { DatabaseFormatError } from '../sql.ts';

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
