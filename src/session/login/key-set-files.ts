import { createHash } from 'node:crypto';
import { join } from 'node:path';
import * as v from 'valibot';
import { Failure } from '../../contract/failure.ts';
import { readJson } from '../../contract/json.ts';
import { privateFolder } from '../../files/private.ts';
import { readPrivateFile, writePrivateFile } from '../../files/whole.ts';
import { readKeySet } from '../../tokens/key-set.ts';
import type { KeySetStore } from '../../tokens/remote-key-set.ts';

const KeptKeySet = v.object({
  version: v.literal(1),
  url: v.string(),
  /** When it was fetched, in milliseconds. */
  at: v.number(),
  keys: v.array(v.unknown()),
});

/**
 * Key sets on disk, one private file for each address (CLI.md, "Files"). They are public, but a user who could
 * change them could make a forged reservation verify: a file or folder that others can write to is not used.
 *
 * A file that can't be read or written causes no failure: the keys are fetched.
 *
 * @param cacheFolder the cache folder
 * @returns the store of a key set, by its address
 */
export function keySetFiles(cacheFolder: string): (url: string) => KeySetStore {
  const folder = join(cacheFolder, 'key-sets');
  return (url) => {
    const path = join(folder, `${createHash('sha256').update(url).digest('hex').slice(0, 32)}.json`);
    return {
      read: () => orNothing(() => readKept(folder, path, url)),
      write: ({ document, at }) => {
        orNothing(() => {
          makeFolder(folder);
          writePrivateFile(path, `${JSON.stringify({ version: 1, url, at, keys: document.keys })}\n`);
        });
      },
    };
  };
}

function readKept(folder: string, path: string, url: string) {
  makeFolder(folder);
  const reading = readJson(readPrivateFile(path) ?? '');
  const result = v.safeParse(KeptKeySet, reading.ok ? reading.value : undefined);
  if (!result.success || result.output.url !== url) return undefined;
  return { document: readKeySet({ keys: result.output.keys }), at: result.output.at };
}

function makeFolder(folder: string): void {
  privateFolder(join(folder, '..'));
  privateFolder(folder);
}

function orNothing<Answer>(work: () => Answer): Answer | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
