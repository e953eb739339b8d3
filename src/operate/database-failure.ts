import { StoreUnavailableError } from '../allocator/store.ts';
import { Failure } from '../contract/failure.ts';
import { DatabaseFormatError } from '../store/sql.ts';

/**
 * What a database that can't be used means to who typed the command: `network` where a server is away, `file_unusable`
 * otherwise. Any other error is given back as it is: it is a bug, and not the database's. The driver's words name the
 * server and the user, never the password.
 *
 * @param file where it is, if it is SQLite's
 */
export function databaseFailure(cause: unknown, file: string | undefined): unknown {
  if (!(cause instanceof Error) || cause instanceof Failure) return cause;
  const unavailable = cause instanceof StoreUnavailableError;
  if (!unavailable && !(cause instanceof DatabaseFormatError) && !isOfSystem(cause)) return cause;
  const reason = unavailable && cause.cause instanceof Error ? cause.cause.message : cause.message;
  const what = file === undefined ? 'The database' : `The database ${file}`;
  return new Failure(unavailable && !file ? 'network' : 'file_unusable', `${what} can't be used.`, {
    why: reason || cause.message,
    ...(file ? {} : { fix: 'psql "$DATABASE_URL" -c "SELECT version()"' }),
    cause,
  });
}

/** Whether an error was told by the system, by SQLite or by PostgreSQL. */
function isOfSystem(cause: Error): boolean {
  return ['syscall', 'errcode', 'severity'].some((name) => name in cause);
}
