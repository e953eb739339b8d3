import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { traced } from '../../client/exchange.ts';
import type { DeviceLogin, IssuedTokens } from '../../client/identity.ts';
import { createTransport, type NetworkTransport } from '../../client/transport.ts';
import { DEFAULT_PORT, isLoopback } from '../../contract/addresses.ts';
import { CI_CLIENT_ID } from '../../contract/ci-rules.ts';
import { Failure, type FailureFacts, failureOrThrow, shellWord } from '../../contract/failure.ts';
import { errorCode } from '../../contract/foreign-errors.ts';
import { LAST_INSTANT } from '../../contract/instants.ts';
import type { Send, Transport } from '../../contract/sending.ts';
import { claimedExpiry } from '../../tokens/claimed.ts';
import type { KeySetStore } from '../../tokens/remote-key-set.ts';
import { renewing } from '../../tokens/shared-copy.ts';
import type { Variables } from '../profiles/folders.ts';
import type { Profile, UnderLock } from '../profiles/profiles.ts';
import { Credentials, type StoredCredentials } from './credentials.ts';
import { jobIn, jobToken, loginInJob, shortCredentials, unsetInJob } from './job-login.ts';
import {
  keptToken,
  type LoginOptions,
  loginToken,
  type PortalTokens,
  portalTokens,
  remembered,
  storedFrom,
} from './login-tokens.ts';
import { exchangedToken, type MachineLogin, machineLogin } from './machine-login.ts';
import { commandToken, givenToken, noProvider, type Placeholders, type TokenSource } from './token-source.ts';
import { keySetFiles } from './trust.ts';

/** The result of a logout. */
interface EndedLogin {
  /** Why the session did not end at the identity provider, as a sentence. */
  problem?: string;
  /** When a copy of the access token expires at the latest, in milliseconds; absent when it has expired. */
  aliveUntil?: number;
}

/** A login, where it is kept, and how to make or end it. */
export interface Login {
  /** @throws Failure `state_unusable` where a login could not be kept, before a person is asked for anything */
  startLogin(): Promise<DeviceLogin>;
  /** Keeps what a login gave. */
  keep(tokens: IssuedTokens): Promise<void>;
  /** The stored login; undefined where there is none. */
  read(): StoredCredentials | undefined;
  /** Ends the session at the identity provider and forgets it. */
  end(): Promise<EndedLogin>;
  /** Where credentials are kept. */
  readonly path: string;
}

/** A way to the services of a profile, with a user who is logged in. */
export type Connection = Transport & {
  /** The user token; the same for as long as it lasts. */
  userToken: TokenSource;
  /** The source of an experiment token in the environment. */
  experimentToken?: TokenSource;
  /** Makes an experiment token by the profile's command. */
  experimentTokenFrom?: (placeholders: Placeholders) => TokenSource;
  /** Tokens that the portal gave before; undefined where none are kept. */
  portalTokens?: PortalTokens;
  /** Stores key sets on disk, by their addresses; undefined where they are not stored. */
  keySets?: (url: string) => KeySetStore;
  /** Forgets the tokens that the profile's commands gave. */
  forget?: () => void;
  /** Undefined for the built-in server, which needs no login, and for a profile without an identity provider. */
  login?: Login;
  /** Logs a machine in; undefined where {@link login} is. */
  machineLogin?: MachineLogin;
  /** Closes what was opened. */
  close: () => Promise<void>;
};

/** Options of {@link connectOverNetwork}. */
export interface NetworkConnectionOptions {
  /** Where credentials are kept, and public key sets. */
  stateFolder: string;
  cacheFolder: string;
  underLock: UnderLock;
  env: Variables;
  /** How long to wait for a reply, in milliseconds. */
  timeout: number;
  /** Ids or names of the experiment and the project that the command names, which go before the profile's. */
  experiment?: string;
  project?: string;
  /** Certificates to trust besides the usual ones, in PEM. */
  certificates?: string;
  /** Takes a line about each request and reply, without secrets. */
  trace?: (line: string) => void;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** How long this machine has been running, in seconds, whatever its clock says. */
  uptime: () => number;
  /** A number from 0 to 1, anew each time. */
  random: () => number;
  /** Waits so many milliseconds between two polls of a login, or rejects when the signal is aborted. */
  sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** The way to a profile's services over the network, with its stored login or the given tokens. */
export function connectOverNetwork(profile: Profile, options: NetworkConnectionOptions): Connection {
  const { stateFolder, cacheFolder, underLock, env, timeout, certificates, trace } = options;
  const { authUrl } = profile;
  const { now, uptime, random, sleep } = options;
  const unchecked = env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0';
  const opened: NetworkTransport[] = [];
  const open = (origins: ReadonlySet<string>, insecure: boolean | undefined): Send => {
    const transport = createTransport({ origins, timeout, insecure, unchecked, now, random, certificates });
    opened.push(transport);
    return transport.send;
  };
  const withTrace = (way: Send): Send => (trace ? traced(way, trace) : way);
  const commandTokens = join(stateFolder, 'commands');
  const forget = (): void => rmSync(commandTokens, { recursive: true, force: true });
  const reached = whenReached(open(originsOf(profile), profile.insecure), profile, env);
  const send = withTrace(async (request) => {
    const reply = await reached(request);
    // The program may give another token now: somebody else may have logged in there.
    if (reply.status === 401 || reply.status === 403) forget();
    return reply;
  });
  const credentials = new Credentials(stateFolder, profile, underLock);
  // Loaded for a login or a refresh only.
  const identityAs = (clientId: string) =>
    renewing(async () => {
      if (authUrl === undefined) throw noProvider(profile);
      const { createIdentityClient } = await import('../../client/identity.ts');
      return createIdentityClient({ ...profile, authUrl, clientId, send, now, sleep });
    });
  const own = { profile, credentials, identity: identityAs(profile.clientId), now };
  const machine = { profile, identity: identityAs(CI_CLIENT_ID), now };
  const login: TokenSource = {
    origin: 'login',
    where: credentials.path,
    get: () => loginToken(own),
  };
  const { userTokenCommand, experimentTokenCommand } = profile;
  // Its own variables say which user and experiment the official client means.
  const meant = Object.entries(env).filter(([name]) => /^SLICES_(?!CONN_)/.test(name));
  const fromCommand = (command: readonly string[], placeholders: Placeholders): TokenSource => {
    const source = commandToken(command, placeholders, env);
    const name = JSON.stringify([source.where, ...meant.toSorted()]);
    return keptToken(source, shortCredentials(commandTokens, name, { profile, underLock, now }), now);
  };
  const named = {
    experiment: options.experiment ?? profile.experiment,
    project: options.project ?? profile.project,
  };
  const refreshToken = givenToken(env, 'SLICES_CONN_REFRESH_TOKEN');
  const given =
    givenToken(env, 'SLICES_CONN_USER_TOKEN') ??
    (refreshToken || !userTokenCommand ? undefined : fromCommand(userTokenCommand, named));
  // A source that renews its token is asked for each request, the others once in a command.
  const job = jobIn(env, (address) => withTrace(open(new Set([new URL(address).origin]), false)));
  const ofJob = {
    profile: { ...profile, experiment: named.experiment },
    identity: machine.identity,
    credentialsOf: (name: string) =>
      shortCredentials(join(stateFolder, 'jobs'), name, { profile, underLock, now }),
    now,
  };
  const renewed = refreshToken
    ? exchangedToken(refreshToken, machine)
    : job
      ? jobToken(job, login, ofJob)
      : loginInJob(env, login, profile);
  const userToken = given ? remembered(given, now) : renewed;
  const experimentToken = givenToken(env, 'SLICES_CONN_EXPERIMENT_TOKEN');

  return {
    send,
    userToken,
    experimentToken: experimentToken && remembered(experimentToken, now),
    experimentTokenFrom:
      experimentTokenCommand &&
      ((placeholders) => remembered(fromCommand(experimentTokenCommand, placeholders), now)),
    keySets: keySetFiles(cacheFolder, () => now() - uptime() * 1000),
    // They belong to the user who is logged in, and the user token may be another user's.
    portalTokens: userToken.origin === login.origin ? portalTokens(credentials, now) : undefined,
    forget,
    machineLogin: authUrl === undefined ? undefined : machineLogin(machine),
    login: authUrl === undefined ? undefined : ownLogin(own),
    close: async () => {
      for (const { close } of opened) await close();
    },
  };
}

/** The login of a profile at its identity provider. */
function ownLogin({ profile, credentials, identity, now }: LoginOptions<'startLogin' | 'revoke'>): Login {
  return {
    path: credentials.path,
    startLogin: async () => {
      await credentials.change((current, takeRoom) => {
        takeRoom();
        return current;
      });
      return (await identity()).startLogin(profile.scope);
    },
    read: () => credentials.read(),
    keep: async (tokens) => void (await credentials.change(() => storedFrom(tokens, now()))),
    end: async () => {
      let ended: StoredCredentials | undefined;
      // Removed first, so that this machine keeps nothing even when the network fails.
      await credentials.change((current) => {
        ended = current;
        return undefined;
      });
      if (ended === undefined) return { problem: 'You were not logged in.' };
      const { accessToken, refreshToken, expiresAt = claimedExpiry(accessToken.reveal()) } = ended;
      const why = await identity()
        .then((client) => client.revoke({ accessToken, refreshToken }))
        .then((isOffered) => (isOffered ? undefined : 'The identity provider offers no revocation.'))
        .catch((error: unknown) => failureOrThrow(error).message);
      const problem =
        why &&
        `The session could not be ended at the identity provider, where it lasts until it expires. ${why}`;
      const isAlive = expiresAt !== undefined && expiresAt > now();
      return { problem, aliveUntil: isAlive ? Math.min(expiresAt, LAST_INSTANT) : undefined };
    },
  };
}

/** Where tokens may be sent: the profile's services, and the identity provider under its own name. */
function originsOf({ baseUrl, portalUrl, authUrl, issuer }: Profile): Set<string> {
  const addresses = [baseUrl, portalUrl, authUrl, issuer].filter((address) => address !== undefined);
  return new Set(addresses.map((address) => new URL(address).origin));
}

/** The same way; where nothing answers at an address of the profile, its failure says how to start the server, or sets the address. */
function whenReached(send: Send, profile: Profile, env: Variables): Send {
  const origins = originsOf(profile);
  return async (request) => {
    try {
      return await send(request);
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'network') throw error;
      const url = new URL(request.url);
      if (!origins.has(url.origin)) throw error;
      throw error.with(unsetInJob(env, url) ?? nextStepTo(url, profile.name, error.facts));
    }
  };
}

function nextStepTo(url: URL, profile: string, { why = '', cause }: FailureFacts): FailureFacts {
  const refused = errorCode(cause) === 'ECONNREFUSED';
  // `serve` listens there, without TLS, by itself; at any other port the address may be the fault.
  if (!isLoopback(url) || !refused || url.protocol !== 'http:' || url.port !== `${DEFAULT_PORT}`)
    return { fix: `slices-conn profile show ${shellWord(profile)}` };
  // A saved token is verified by its own service: --offline would have no more keys.
  const isOfToken = /\/\.well-known\/jwks|\/status\//.test(url.pathname);
  const or = isOfToken ? '.' : ', or use --offline, which needs none.';
  return {
    why: `${why} Start the server in another terminal${or}`,
    fix: 'slices-conn serve',
  };
}
