import { promises } from 'node:fs';

/** The folders of files that the build puts beside the code: the interactive page of the API, the network's page, and licences. */
export type InstalledFolder = 'api-docs' | 'ui' | 'licences';

/**
 * Reads a file as installed with this package. In a single executable `embedded-files.ts` takes the place of this module.
 *
 * @param name a file's own name
 * @returns undefined where there is no such file
 */
export async function readInstalled(folder: InstalledFolder, name: string): Promise<Uint8Array | undefined> {
  return promises
    .readFile(new URL(`./${folder}/${name}`, import.meta.url))
    .catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
}
