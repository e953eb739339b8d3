import { isAbsolute, join } from 'node:path';

/** Environment variables by name. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** Where this program keeps things (cli/README.md, "Files"). */
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
 * The folders, by `SLICES_CONN_{CONFIG,STATE,CACHE}_DIR`, else by the XDG variables, else below the home
 * folder. A relative XDG path counts as unset, as its specification asks.
 *
 * @param home the user's home folder
 */
export function foldersFor(env: Variables, home: string): Folders {
  const folder = (own: string, xdg: string, fallback: string[]): string => {
    const base = env[xdg];
    return env[own] || join(base && isAbsolute(base) ? base : join(home, ...fallback), NAME);
  };
  return {
    config: folder('SLICES_CONN_CONFIG_DIR', 'XDG_CONFIG_HOME', ['.config']),
    state: folder('SLICES_CONN_STATE_DIR', 'XDG_STATE_HOME', ['.local', 'state']),
    cache: folder('SLICES_CONN_CACHE_DIR', 'XDG_CACHE_HOME', ['.cache']),
  };
}
