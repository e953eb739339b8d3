import { promises } from 'node:fs';
// By its namespace: the oldest Node.js that runs this package has no `getAssetKeys`, and needs none.
import * as sea from 'node:sea';

/** The folders of files that the build puts beside the code: the interactive page of the API, the network's page, and licences. */
type InstalledFolder = 'api-docs' | 'ui' | 'licences';

/**
 * Reads a file as installed with this package, or as the build has put it into a single executable (Node.js, "Single executable
 * applications", Assets).
 *
 * @param name a file's own name
 * @returns undefined where there is no such file
 */
export async function readInstalled(folder: InstalledFolder, name: string): Promise<Uint8Array | undefined> {
  const path = `${folder}/${name}`;
  if (sea.isSea()) return sea.getAssetKeys().includes(path) ? new Uint8Array(sea.getAsset(path)) : undefined;
  return promises.readFile(new URL(`./${path}`, import.meta.url)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}
