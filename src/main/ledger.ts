import { join } from 'node:path';
import { Failure } from '../contract/failure.ts';
import { moveAway } from '../contract/shell-word.ts';
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
    import('../store/sqlite/ledger-format.ts'),
  ]);
  const path = join(privateFolder(stateFolder), 'ledger.sqlite');
  const unusable = (cause: unknown): never => {
    if (cause instanceof Failure) throw cause;
    throw new Failure('state_unusable', `The ledger ${path} can't be used.`, {
      why: cause instanceof Error ? cause.message : String(cause),
      fix: `Repair it, or move it away: ${moveAway(path)}`,
      cause,
    });
  };
  const database = await SqliteDatabase.open(path, LEDGER_FORMAT).catch(unusable);
  return {
    transaction: (work) => database.transaction(work).catch(unusable),
    close: () => database.close(),
  };
}
