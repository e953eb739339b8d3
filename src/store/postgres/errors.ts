import { DatabaseError } from 'pg';
import { CommitUnknownError, DATABASE_UNUSABLE, StoreUnavailableError } from '../../allocator/store.ts';

/**
 * SQLSTATE classes of a database that can't serve at the moment (https://www.postgresql.org/docs/current/errcodes-appendix.html):
 * connection, authorization, transaction state (ended by a timeout), rollback (a deadlock), resources, intervention
 * (statement timeout, shutdown), system.
 */
const UNAVAILABLE_CLASSES: ReadonlySet<string> = new Set(['08', '28', '40', '53', '57', '58']);
/** Of other classes: no such database, idle for too long in a transaction, a lock's timeout, a standby. */
const UNAVAILABLE: ReadonlySet<string> = new Set(['3D000', '25P03', '25P04', '55P03', '25006']);

/** Classes of errors after which the server may have committed. */
const MAYBE_COMMITTED_CLASSES: ReadonlySet<string> = new Set(['08', '57', '58', 'XX']);
/** Of another class: statement completion unknown. */
const COMPLETION_UNKNOWN = '40003';

/** The driver's message when the server does not offer TLS. */
const WITHOUT_TLS = 'The server does not support SSL connections';

/** Turns an error of the driver into the stores' own: unavailable; any other stays as it is. */
export function storeError(cause: unknown): unknown {
  if (cause instanceof StoreUnavailableError) return cause;
  if (cause instanceof DatabaseError) {
    const { code = '' } = cause;
    if (!UNAVAILABLE.has(code) && !UNAVAILABLE_CLASSES.has(code.slice(0, 2))) return cause;
    return new StoreUnavailableError(DATABASE_UNUSABLE, { cause });
  }
  if (cause instanceof Error && cause.message === WITHOUT_TLS) {
    return new StoreUnavailableError(
      'The database does not offer TLS. On a private network, add ?sslmode=disable to its address.',
    );
  }
  // The error is not the server's, so it is the connection's.
  return new StoreUnavailableError("The database can't be reached.", { cause });
}

/**
 * Turns an error of `COMMIT`, or of a statement that is a transaction by itself, into the stores' own: nothing was changed,
 * or that is unknown.
 */
export function commitError(cause: unknown): unknown {
  if (cause instanceof DatabaseError) {
    const { code = '' } = cause;
    const said = code !== COMPLETION_UNKNOWN && !MAYBE_COMMITTED_CLASSES.has(code.slice(0, 2));
    if (said) return storeError(cause);
  }
  return new CommitUnknownError('The database was lost while it made the change.', { cause });
}
