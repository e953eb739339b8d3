import { existsSync } from 'node:fs';
import { Failure, ownCommand } from '../contract/failure.ts';
import { formatInstant } from '../contract/instants.ts';
import { dataFolder } from '../files/private.ts';
import { type KeyStatus, rotateByHand, SERVICES } from '../server/keys/key-ring.ts';
import { openStores } from '../store/stores.ts';
import { databaseFailure, dataPlace } from './database.ts';
import type { RotateKeysOptions } from './options.ts';

/** A signing key of a service, as `--json` shows it. Instants are RFC 3339 in UTC with milliseconds. */
export type KeyRow = Awaited<ReturnType<typeof rotateKeys>>[number];

/**
 * Rotates the signing keys in a server's database, while servers run on it or not (cli/README.md, "Commands", serve).
 *
 * @param context `defaultFolder` holds the data when no flag says where it is; `now` is in milliseconds since the Unix
 *   epoch; `confirm` is called before keys in use are removed, and throws to prevent that
 * @returns the keys after that, as `--json` shows them
 * @throws Failure `file_unusable` or `network` for a database that can't be used, or has no keys yet
 */
export async function rotateKeys(
  options: RotateKeysOptions,
  context: { defaultFolder: string; now: () => number; confirm: () => Promise<void> },
) {
  const place = dataPlace(options, context.defaultFolder);
  const { folder, file } = place;
  const { retireNow = false } = options;
  // Nothing is made here: a missing database means that another one was meant.
  if (file !== undefined && !existsSync(file)) throw withoutKeys(`There is no database at ${file}.`, options);
  if (retireNow) await context.confirm();
  if (folder !== undefined) dataFolder(folder);
  const stores = await openStores(place.database).catch((cause: unknown) => {
    throw databaseFailure(cause, place);
  });
  try {
    const now = context.now();
    const statuses: KeyStatus[] = [];
    for (const service of SERVICES) {
      statuses.push(...(await rotateByHand(service, stores.keys, { retireNow, now })));
    }
    if (statuses.length === 0) throw withoutKeys('The database holds no keys.', options);
    return statuses.map(({ publishedUntil, signsFrom, ...key }) => ({
      ...key,
      signs_from: formatInstant(signsFrom),
      published_until: publishedUntil === undefined ? null : formatInstant(publishedUntil),
    }));
  } catch (cause) {
    throw databaseFailure(cause, place);
  } finally {
    await stores.close();
  }
}

function withoutKeys(what: string, { data, database }: RotateKeysOptions): Failure {
  const where = data ? ['--data', data] : database ? ['--database', database] : [];
  return new Failure('file_unusable', what, {
    why: 'A server makes the first keys when it starts.',
    fix: ownCommand('serve', ...where),
  });
}
