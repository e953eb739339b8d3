import { StoreUnavailableError } from './allocator/store.ts';
import { Failure } from './contract/failure.ts';
import { DatabaseFormatError } from './store/sql.ts';

/**
 * What a database that can't be used means to who typed the command: `network` where a server is away, `file_unusable`
 * otherwise; any other error is given back. The driver's words name the server and the user, never the password.
 *
 * @param isFile whether it is SQLite's
 */
export function databaseFailure(cause: unknown, isFile: boolean): unknown {
  if (!(cause instanceof Error) || cause instanceof Failure) return cause;
  if (!(cause instanceof StoreUnavailableError || cause instanceof DatabaseFormatError || 'code' in cause)) {
    return cause;
  }
  const away = cause instanceof StoreUnavailableError && !isFile;
  const reason = cause.cause instanceof Error ? cause.cause.message : cause.message;
  return new Failure(away ? 'network' : 'file_unusable', "The database can't be used.", {
    why: reason || cause.message,
    cause,
  });
}
