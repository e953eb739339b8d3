import { join } from 'node:path';
import { StoreUnavailableError } from './allocator/store.ts';
import type { Fetch } from './client/exchange.ts';
import { traced } from './client/trace.ts';
import { Failure } from './contract/failure.ts';
import { Secret } from './contract/secret.ts';
import { createReferenceServer, type ReferenceServer } from './reference-server.ts';
import type { Connection } from './session/connection.ts';
import { privateFolder } from './session/folders.ts';
import type { Profile } from './session/profiles.ts';
import { DatabaseFormatError } from './store/sql.ts';

/** What the built-in server is opened with. */
export interface OfflineConnectionOptions {
  /** The state folder, in which its data is. */
  stateFolder: string;
  /** Takes a line about each request and reply, without secrets. */
  trace?: (line: string) => void;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/**
 * The built-in server as a function in this process, opened with the first request that needs it (DESIGN.md,
 * `--offline`): no socket, no login; the user is the lead.
 */
export function connectOffline(profile: Profile, options: OfflineConnectionOptions): Connection {
  const { stateFolder, trace, now } = options;
  let server: Promise<ReferenceServer> | undefined;
  let token: Promise<Secret> | undefined;
  const opened = () => (server ??= open(profile, stateFolder));
  const fetch: Fetch = async (request) => (await opened()).fetch(request);
  return {
    fetch: trace ? traced(fetch, trace, now) : fetch,
    userToken: {
      origin: 'offline',
      where: profile.baseUrl,
      get: () => (token ??= opened().then(async (running) => new Secret(await running.signIn('lead')))),
    },
    close: async () => (await server)?.close(),
  };
}

async function open(profile: Profile, stateFolder: string): Promise<ReferenceServer> {
  const folder = privateFolder(join(privateFolder(stateFolder), 'offline'));
  const database = join(folder, 'reservations.sqlite');
  try {
    return await createReferenceServer({ baseUrl: profile.baseUrl, database });
  } catch (cause) {
    if (isPassing(cause)) {
      throw new Failure('unavailable', 'Another process has locked the built-in server’s database.', {
        why: 'Nothing was changed.',
        retryable: true,
        cause,
      });
    }
    if (cause instanceof DatabaseFormatError || cause instanceof StoreUnavailableError) {
      throw new Failure('state_unusable', `The file ${database} can't be used.`, {
        why: cause.message,
        fix: `Move it away, to start anew: mv ${database} ${database}.bad`,
        cause,
      });
    }
    throw cause;
  }
}

/** Locked by another process, as opposed to a file that can't be opened at all. */
function isPassing(error: unknown): boolean {
  return error instanceof StoreUnavailableError && error.cause instanceof Error && 'errcode' in error.cause;
}
