import { readdirSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { homeFolder } from '../files/home.ts';
import { cacheFolder, privateFolder } from '../files/private.ts';
import { foldersFor, type Variables } from '../session/profiles/folders.ts';

/**
 * Lets Node.js keep the compiled code of what is loaded from now on in this user's cache folder. Only this user can change what
 * is there (THREATS.md 51), and Node.js checks that code and source belong together (THREATS.md 107). `NODE_COMPILE_CACHE`
 * names another place, and `NODE_DISABLE_COMPILE_CACHE=1` is for none, as for every program of Node.js.
 */
export function keepCompiled(env: Variables): void {
  if (env['NODE_COMPILE_CACHE'] || env['NODE_DISABLE_COMPILE_CACHE'] === '1') return;
  try {
    const folder = cacheFolder(join(privateFolder(foldersFor(env, homeFolder()).cache), 'compiled'));
    for (const name of readdirSync(folder)) cacheFolder(join(folder, name));
    // Node.js makes a folder for itself there.
    const umask = process.umask(0o077);
    enableCompileCache(folder);
    process.umask(umask);
  } catch {
    // Without a folder the program only starts later.
  }
}
