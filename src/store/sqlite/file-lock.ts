import { keepPrivate, loadSqlite, patiently, storeError } from './engine.ts';

/** Those in this process who wait for a lock file, in line: a file is never open twice in one process. */
const lines = new Map<string, Promise<unknown>>();

/**
 * Runs `work` while no other process runs any under the same file. The lock is a transaction on an otherwise empty
 * SQLite file, so the operating system lets go of it the moment its holder ends, however it ends (HOSTILE.md 14).
 * A POSIX lock is also lost when its process closes another handle on the file: nothing else may open it
 * (HOSTILE.md 17).
 *
 * @param path a file of its own, made where there is none
 * @param patience how long to wait for another process, in milliseconds
 * @throws StoreUnavailableError when another process still has the lock by then, or the file can't be made
 */
export async function underFileLock<Answer>(
  path: string,
  patience: number,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const turn = (lines.get(path) ?? Promise.resolve()).then(() => locked(path, patience, work));
  const settled = turn.catch(() => undefined);
  lines.set(path, settled);
  settled.then(() => {
    if (lines.get(path) === settled) lines.delete(path);
  });
  return turn;
}

async function locked<Answer>(path: string, patience: number, work: () => Promise<Answer>): Promise<Answer> {
  const { DatabaseSync } = loadSqlite();
  keepPrivate(path);
  const file = orStoreError(() => new DatabaseSync(path, { timeout: 0 }));
  try {
    await patiently(() => file.exec('BEGIN EXCLUSIVE'), patience).catch((error: unknown) => {
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
