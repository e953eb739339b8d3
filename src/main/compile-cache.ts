import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { homeFolder } from '../files/home.ts';
import { cacheFolder, privateFolder } from '../files/private.ts';
import { type Folders, foldersFor } from '../session/profiles/folders.ts';

/** Where this program keeps things, for this user and this environment. */
export const folders: Folders = foldersFor(process.env, homeFolder());

/**
 * Keeps compiled code in a private folder: Node runs whatever it finds there (HOSTILE.md 51). What is loaded before this
 * is compiled at every start.
 */
export function useCompileCache(): void {
  const umask = process.umask(0o077);
  try {
    privateFolder(folders.cache);
    enableCompileCache(cacheFolder(join(folders.cache, 'compiled')));
  } catch {
    // Without the cache everything works, only slower.
  } finally {
    process.umask(umask);
  }
}
