import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyRow, RotateKeysSettings } from '../cli/invocation.ts';
import { Failure } from '../contract/failure.ts';
import { formatInstant } from '../contract/instants.ts';
import { dataFolder } from '../files/private.ts';
import { SERVICES } from '../server/keys/key-ring.ts';
import { rotateByHand } from '../server/keys/rotate-by-hand.ts';
import { openStores, SERVER_FILE, type Stores } from '../store/stores.ts';
import { databaseFailure } from './database-failure.ts';

/**
 * Rotates the signing keys in a server's database, whether or not servers run on it (CLI.md, "Commands", serve).
 *
 * @param defaultFolder where the data is when nothing else is said
 * @param now milliseconds since the Unix epoch
 * @throws Failure `file_unusable` or `network` for a database that can't be used, or has no keys yet
 */
export async function rotateKeys(
  { data, database, retireNow }: RotateKeysSettings,
  defaultFolder: string,
  now: () => number,
): Promise<KeyRow[]> {
  const where = database ?? join(data ?? defaultFolder, SERVER_FILE);
  // Nothing is made here: a database that is not there was meant to be another.
  if (database === undefined && !existsSync(where)) throw withoutKeys(`There is no database at ${where}.`);
  if (database === undefined) dataFolder(data ?? defaultFolder);
  const file = database === undefined ? where : undefined;
  const stores = await open(where, file);
  try {
    const rows: KeyRow[] = [];
    for (const service of SERVICES) {
      const keys = await rotateByHand(service, stores.keys, { retireNow, now: now() });
      for (const { publishedUntil, signsFrom, ...key } of keys) {
        rows.push({
          ...key,
          signs_from: formatInstant(signsFrom),
          published_until: publishedUntil === undefined ? null : formatInstant(publishedUntil),
        });
      }
    }
    if (rows.length === 0) throw withoutKeys('The database holds no keys.');
    return rows;
  } catch (cause) {
    throw databaseFailure(cause, file);
  } finally {
    await stores.close();
  }
}

async function open(where: string, file: string | undefined): Promise<Stores> {
  try {
    return await openStores(where);
  } catch (cause) {
    throw databaseFailure(cause, file);
  }
}

function withoutKeys(what: string): Failure {
  return new Failure('file_unusable', what, {
    why: 'A server makes the first keys when it starts.',
    fix: 'slices-conn serve',
  });
}
