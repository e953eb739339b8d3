import { Failure } from '../contract/failure.ts';
import { formatInstant } from '../contract/instants.ts';
import { type KeyStatus, rotateByHand, SERVICES } from '../server/keys/key-ring.ts';
import { openStores } from '../store/stores.ts';
import { databaseFailure, existingData } from './database.ts';
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
  const place = existingData(options, context.defaultFolder);
  const { retireNow = false } = options;
  if (retireNow) await context.confirm();
  const stores = await openStores(place.database).catch((cause: unknown) => {
    throw databaseFailure(cause, place);
  });
  try {
    const now = context.now();
    const statuses: KeyStatus[] = [];
    for (const service of SERVICES) {
      statuses.push(...(await rotateByHand(service, stores.keys, { retireNow, now })));
    }
    if (statuses.length === 0) {
      throw new Failure('file_unusable', 'The database holds no keys.', {
        why: 'A server makes the first keys when it starts.',
      });
    }
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
