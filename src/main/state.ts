import { join } from 'node:path';
import { Failure, moveAway } from '../contract/failure.ts';
import { privateFolder } from '../files/private.ts';
import type { LedgerDatabase } from '../session/reservations/ledger.ts';

/**
 * Opens the ledger's database.
 *
 * @param stateFolder made if it does not exist
 * @throws Failure `state_unusable`
 */
export async function openLedger(stateFolder: string): Promise<LedgerDatabase> {
  const [{ SqliteDatabase }, { LEDGER_FORMAT }] = await Promise.all([
    import('../store/sqlite/database.ts'),
    import('../store/sqlite/migrations.ts'),
  ]);
  const path = join(privateFolder(stateFolder), 'ledger.sqlite');
  const unusable = (cause: unknown): never => {
    if (cause instanceof Failure) throw cause;
    throw new Failure('state_unusable', `The ledger ${path} can't be used.`, {
      why: `${cause instanceof Error ? cause.message : String(cause)} Repair it, or move it away.`,
      fix: moveAway(path),
      cause,
    });
  };
  const database = await SqliteDatabase.open(path, LEDGER_FORMAT).catch(unusable);
  return {
    transaction: (work) => database.transaction(work).catch(unusable),
    close: () => database.close(),
  };
}

/** How long a command waits for another command that refreshes the login, in milliseconds. A refresh takes less. */
const LOCK_TIMEOUT = 90_000;

/**
 * Runs work while no other process runs work under the same lock file.
 *
 * @throws Failure `timeout` when another process keeps the lock for 90 s, `state_unusable` when the file can't be used
 */
export async function underLock<Answer>(file: string, work: () => Promise<Answer>): Promise<Answer> {
  const [{ underFileLock }, { StoreUnavailableError }] = await Promise.all([
    import('../store/sqlite/file.ts'),
    import('../allocator/store.ts'),
  ]);
  try {
    return await underFileLock(file, LOCK_TIMEOUT, work);
  } catch (cause) {
    if (!(cause instanceof StoreUnavailableError)) throw cause;
    // Only an error of SQLite itself is about a lock.
    if (!(cause.cause instanceof Error && 'errcode' in cause.cause)) {
      throw new Failure('state_unusable', cause.message, { cause });
    }
    throw new Failure('timeout', 'Another slices-conn command holds this lock.', {
      why: `${file}: ${cause.message}`,
      retryable: true,
      cause,
    });
  }
}
