import { storeError } from './errors.ts';
import { createPrivate, loadSqlite, retryWhileBusy } from './file.ts';

/** The last turn at each lock file in this process: a file is never open twice in one process. */
const turns = new Map<string, Promise<unknown>>();

/**
 * Runs `work` while no other process runs work under the same file. The lock is a transaction on an otherwise empty
 * SQLite file, so the operating system releases it when its process ends, however it ends (HOSTILE.md 14). A process also
 * loses a POSIX lock when it closes another handle on the file: nothing else may open it (HOSTILE.md 17).
 *
 * @param path a file for this lock only, created when it does not exist
 * @param timeout how long to wait for another process, in milliseconds
 * @throws StoreUnavailableError when another process still has the lock by then, or the file can't be created
 */
export async function underFileLock<Answer>(
  path: string,
  timeout: number,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const turn = (turns.get(path) ?? Promise.resolve()).then(() => locked(path, timeout, work));
  const settled = turn.catch(() => undefined);
  turns.set(path, settled);
  settled.then(() => {
    if (turns.get(path) === settled) turns.delete(path);
  });
  return turn;
}

async function locked<Answer>(path: string, timeout: number, work: () => Promise<Answer>): Promise<Answer> {
  const { DatabaseSync } = loadSqlite();
  createPrivate(path);
  const file = orStoreError(() => new DatabaseSync(path, { timeout: 0 }));
  try {
    await retryWhileBusy(() => file.exec('BEGIN EXCLUSIVE'), timeout).catch((error: unknown) => {
      throw storeError(error);
    });
    return await work();
  } finally {
    file.close();
  }
}

function orStoreError<Answer>(work: () => Answer): Answer {
  try {
    return work();
  } catch (error) {
    throw storeError(error);
  }
}
