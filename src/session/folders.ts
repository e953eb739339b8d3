import { chmodSync, existsSync, lstatSync, mkdirSync, type Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import { Failure } from '../contract/failure.ts';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where this program keeps things (CLI.md, "Files"). */
export interface Folders {
  /** Profiles and preferences. */
  config: string;
  /** Credentials, the ledger, and the offline server's data. */
  state: string;
  /** Public data only. */
  cache: string;
}

const NAME = 'slices-conn';

/**
 * The folders, by `SLICES_CONN_{CONFIG,STATE,CACHE}_DIR`, else by the XDG variables, else below the home folder. A
 * relative XDG path counts as unset, as its specification asks.
 *
 * @param home the user's home folder
 */
export function foldersFor(env: Environment, home: string): Folders {
  const folder = (own: string, xdg: string, fallback: string[]): string => {
    const base = env[xdg];
    return env[own] || join(base?.startsWith('/') ? base : join(home, ...fallback), NAME);
  };
  return {
    config: folder('SLICES_CONN_CONFIG_DIR', 'XDG_CONFIG_HOME', ['.config']),
    state: folder('SLICES_CONN_STATE_DIR', 'XDG_STATE_HOME', ['.local', 'state']),
    cache: folder('SLICES_CONN_CACHE_DIR', 'XDG_CACHE_HOME', ['.cache']),
  };
}

/**
 * Makes a folder that only its owner can enter, or makes an existing one so.
 *
 * @returns the path
 * @throws Failure `state_unusable` when a symbolic link or something else stands there, when it belongs to someone
 *   else, or when it can't be made
 */
export function privateFolder(path: string): string {
  try {
    makeFolders(path);
    const found = lstatSync(path);
    if (!found.isDirectory()) throw unusable(path, 'It is not a folder, or a symbolic link to one.');
    const user = process.getuid?.();
    if (user !== undefined && found.uid !== user) throw unusable(path, 'It belongs to another user.');
    if ((found.mode & 0o077) !== 0) chmodSync(path, 0o700);
    return path;
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw unusable(path, cause instanceof Error ? cause.message : String(cause));
  }
}

/**
 * Why a file must not be believed: it is none of this user's own (HOSTILE.md 16). Undefined where nothing speaks
 * against it.
 *
 * @param found what `lstat` says of it
 */
export function fileFault(found: Stats): string | undefined {
  if (!found.isFile()) return 'It is no file, or a symbolic link to one.';
  const user = process.getuid?.();
  return user !== undefined && found.uid !== user ? 'It belongs to another user.' : undefined;
}

/** Not mkdir's own recursion: it never ends below a folder such as /proc, where nothing can be made. */
function makeFolders(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeFolders(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have been quicker.
    if (!existsSync(path)) throw error;
  }
}

function unusable(path: string, why: string): Failure {
  return new Failure('state_unusable', `The folder ${path} can't be used.`, { why });
}
