import type { IdentityClient } from '../client/identity.ts';
import { createTransport } from '../client/transport.ts';
import { Failure } from '../contract/failure.ts';
import { Credentials } from './credentials.ts';
import type { Profile } from './profiles.ts';
import type { Connection } from './session.ts';
import { loginToken } from './user-token.ts';

/** What a connection over the network is made of. */
export interface NetworkConnectionOptions {
  /** Where credentials are kept. */
  stateFolder: string;
  /** How long to wait for a reply, in milliseconds. */
  timeout: number;
  /** Certificates to trust besides the usual ones, in PEM. */
  certificates?: string;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** The way to a profile's services over the network, with the login that is kept for it. */
export function connectOverNetwork(profile: Profile, options: NetworkConnectionOptions): Connection {
  const { stateFolder, timeout, certificates, now } = options;
  const transport = createTransport({
    origins: new Set([profile.baseUrl, profile.portalUrl, profile.authUrl].map((url) => new URL(url).origin)),
    timeout,
    insecure: profile.insecure,
    ...(certificates === undefined ? {} : { certificates }),
  });
  const credentials = new Credentials(stateFolder);
  let opened: Promise<IdentityClient> | undefined;
  const identity = () => (opened ??= openIdentity());
  // Loaded for a login or a refresh only.
  const openIdentity = async (): Promise<IdentityClient> => {
    const { createIdentityClient } = await import('../client/identity.ts');
    return createIdentityClient({ ...profile, fetch: transport.fetch, now });
  };

  return {
    fetch: transport.fetch,
    userToken: () => loginToken({ profile, credentials, identity, now }),
    login: {
      path: credentials.path,
      startLogin: async () => (await identity()).startLogin(profile.scope),
      read: () => credentials.read(profile),
      keep: ({ accessToken, refreshToken, expiresAt }) =>
        credentials.write(profile, {
          accessToken,
          issuedAt: now(),
          ...(refreshToken === undefined ? {} : { refreshToken }),
          ...(expiresAt === undefined ? {} : { expiresAt }),
        }),
      end: async () => {
        const stored = credentials.read(profile);
        if (!stored) return 'You were not logged in.';
        // Forgotten first: whatever the network does, this machine keeps nothing.
        credentials.write(profile, undefined);
        if (stored.refreshToken === undefined) return undefined;
        return revoked(await identity().catch(asFailure), stored.refreshToken);
      },
    },
    close: transport.close,
  };
}

async function revoked(identity: IdentityClient | Failure, token: string): Promise<string | undefined> {
  const result = identity instanceof Failure ? identity : await identity.revoke(token).catch(asFailure);
  if (result === true) return undefined;
  const why = result instanceof Failure ? result.message : 'The identity provider offers no revocation.';
  return `The session could not be ended at the identity provider, where it lasts until it expires. ${why}`;
}

function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  throw error;
}
