import { join } from 'node:path';
import { StoreUnavailableError } from '../allocator/store.ts';
import { traced } from '../client/exchange.ts';
import { Failure } from '../contract/failure.ts';
import { Secret } from '../contract/secret.ts';
import { sendFrom } from '../contract/sending.ts';
import { privateFolder, unusableFile } from '../files/private.ts';
import { createReferenceServer, type ReferenceServer } from '../reference-server.ts';
import type { Connection, NetworkConnectionOptions } from '../session/login/connection.ts';
import { remembered } from '../session/login/login-tokens.ts';
import type { Profile } from '../session/profiles/profiles.ts';
import { DatabaseFormatError } from '../store/sql.ts';

/**
 * The built-in server as a function in this process, opened with the first request that needs it
 * (contract/README.md, "The reference server"): no socket, no login; the user is the lead.
 */
export function connectOffline(
  profile: Profile,
  { stateFolder, trace, now }: Pick<NetworkConnectionOptions, 'stateFolder' | 'trace' | 'now'>,
): Connection {
  let server: Promise<ReferenceServer> | undefined;
  const opened = () => (server ??= open(profile, stateFolder));
  const send = sendFrom({ fetch: async (request) => (await opened()).fetch(request) });
  const userToken = { origin: 'offline', where: profile.baseUrl, get: () => opened().then(signIn) } as const;
  return {
    send: trace ? traced(send, trace) : send,
    userToken: remembered(userToken, now),
    close: async () => (await server)?.close(),
  };
}

async function open(profile: Profile, stateFolder: string): Promise<ReferenceServer> {
  const folder = privateFolder(join(privateFolder(stateFolder), 'offline'));
  const database = join(folder, 'reservations.sqlite');
  try {
    return await createReferenceServer({ baseUrl: profile.baseUrl, database });
  } catch (cause) {
    if (isPassing(cause)) throw unavailable(cause);
    if (cause instanceof DatabaseFormatError || cause instanceof StoreUnavailableError) {
      throw unusableFile(database, cause);
    }
    throw cause;
  }
}

/** Signs in as the lead. This is the first request, so a failure says that nothing was changed. */
async function signIn(server: ReferenceServer): Promise<Secret> {
  try {
    return new Secret(await server.signIn('lead'));
  } catch (cause) {
    throw isPassing(cause) ? unavailable(cause) : cause;
  }
}

function unavailable({ cause }: StoreUnavailableError): Failure {
  const why = cause instanceof Error ? `${cause.message}. Nothing was changed.` : 'Nothing was changed.';
  return new Failure('unavailable', "The built-in server's database can't be used at the moment.", {
    why,
    retryable: true,
    cause,
  });
}

/** Locked by another process, or on a full disk, as opposed to a file that can't be opened at all. */
function isPassing(error: unknown): error is StoreUnavailableError {
  return error instanceof StoreUnavailableError && error.cause instanceof Error && 'errcode' in error.cause;
}
