import { type ConnectivityClient, createConnectivityClient } from '../client/connectivity.ts';
import type { Fetch } from '../client/exchange.ts';
import type { DeviceLogin, IssuedTokens } from '../client/identity.ts';
import { createPortalClient, type PortalClient } from '../client/portal.ts';
import type { Experiment, Project } from '../contract/directory.ts';
import { KEY_SET_PATH } from '../contract/routes.ts';
import type { KeySet } from '../tokens/key-set.ts';
import { remoteKeySet } from '../tokens/remote-key-set.ts';
import type { VerifiedToken } from '../tokens/verifier.ts';
import type { TokenKind, Trust } from '../tokens/verify.ts';
import { chooseOne } from './choice.ts';
import type { StoredCredentials } from './credentials.ts';
import type { Profile } from './profiles.ts';
import { type VerificationSource, verifyAny } from './verification.ts';

/** A login, where it is kept, and how to make or end it. */
export interface Login {
  startLogin(): Promise<DeviceLogin>;
  /** Keeps what a login gave. */
  keep(tokens: IssuedTokens): void;
  /** What is kept; undefined when nobody is logged in. */
  read(): StoredCredentials | undefined;
  /** Ends the session at the identity provider and forgets it. @returns what could not be done, as a sentence */
  end(): Promise<string | undefined>;
  /** Where credentials are kept. */
  readonly path: string;
}

/** A way to the services of a profile, with a user who is logged in. */
export interface Connection {
  fetch: Fetch;
  /** The user token; the same for as long as it lasts. */
  userToken: () => Promise<string>;
  /** Undefined where nobody logs in: at the built-in server. */
  login?: Login;
  /** Lets go of what was opened. */
  close: () => Promise<void>;
}

/** What a session is made of. */
export interface SessionOptions {
  profile: Profile;
  connection: Connection;
  /** Id or name given with the command, which goes before the profile's. */
  project?: string;
  experiment?: string;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Told what was chosen when nobody chose. */
  notice: (text: string) => void;
}

/** A profile's services, and the project and experiment that a command acts in. */
export class Session {
  readonly profile: Profile;
  readonly portal: PortalClient;
  readonly connectivity: ConnectivityClient;
  /** Whom to believe, for each kind of token: only the profile's own services. */
  readonly trust: Readonly<Record<TokenKind, Trust>>;
  /** Sends a request without a token, for public things such as key sets. */
  readonly fetch: Fetch;
  /** The user token; see {@link Connection}. */
  readonly userToken: () => Promise<string>;
  readonly login: Login | undefined;
  readonly #options: SessionOptions;
  #experiment: Promise<Experiment> | undefined;
  #experimentToken: Promise<string> | undefined;

  constructor(options: SessionOptions) {
    const { profile, connection, now } = options;
    const { fetch, userToken } = connection;
    this.#options = options;
    this.profile = profile;
    this.fetch = fetch;
    this.userToken = userToken;
    this.login = connection.login;
    this.portal = createPortalClient({ ...profile, fetch, userToken });
    this.trust = trustOf(profile, fetch, now);
    this.connectivity = createConnectivityClient({
      ...profile,
      fetch,
      userToken,
      experimentToken: () => this.experimentToken(),
      trust: this.trust.connectivity,
    });
  }

  /**
   * The project that `named` means, else that the command names, else the profile's, else the only active one.
   *
   * @throws Failure `usage` when it is not clear which
   */
  async project(named?: string): Promise<Project> {
    const { project, now, notice } = this.#options;
    const wanted = named ?? project ?? this.profile.project;
    return chooseOne('project', wanted, await this.portal.projects(), now(), notice);
  }

  /** The experiment, likewise. Without `named` it is asked for once. */
  async experiment(named?: string): Promise<Experiment> {
    if (named !== undefined) return this.#chooseExperiment(named);
    const { experiment } = this.#options;
    this.#experiment ??= this.#chooseExperiment(experiment ?? this.profile.experiment);
    return this.#experiment;
  }

  /** A token for the experiment; asked for once. */
  experimentToken(): Promise<string> {
    this.#experimentToken ??= this.experiment().then(({ id }) => this.portal.experimentToken(id));
    return this.#experimentToken;
  }

  /**
   * Verifies a token of any kind; see {@link verifyAny}.
   *
   * @throws TokenError with the reason
   */
  verify(token: string, source: VerificationSource): Promise<VerifiedToken> {
    const { now } = this.#options;
    const issuerKeys = (issuer: string) =>
      remoteKeySet({ url: issuer.replace(/\/+$/, '') + KEY_SET_PATH, fetch: this.fetch, now });
    return verifyAny(token, this.trust, source, issuerKeys);
  }

  async #chooseExperiment(wanted: string | undefined): Promise<Experiment> {
    const { now, notice } = this.#options;
    return chooseOne('experiment', wanted, await this.portal.experiments(), now(), notice);
  }
}

/** Trust in a profile's services and no others: each kind of token from the service that issues it. */
function trustOf(profile: Profile, fetch: Fetch, now: () => number): Record<TokenKind, Trust> {
  const from = (issuer: string): [string, KeySet] => [
    issuer,
    remoteKeySet({ url: issuer + KEY_SET_PATH, fetch, now }),
  ];
  const connectivity = from(profile.baseUrl);
  const portal = from(profile.portalUrl);
  const identity = from(profile.authUrl);
  const trust = (...issuers: [string, KeySet][]): Trust => ({ issuers: new Map(issuers), now });
  return {
    connectivity: trust(connectivity),
    project: trust(portal),
    experiment: trust(portal),
    // The spec has the portal issue user tokens; the identity provider may be an issuer of its own.
    user: trust(identity, portal),
    service: trust(connectivity, portal, identity),
  };
}
