import { type ConnectivityClient, createConnectivityClient } from '../client/connectivity.ts';
import { createPortalClient, type PortalClient } from '../client/portal.ts';
import { forIssuer } from '../contract/addresses.ts';
import type { ConnectivityClaims } from '../contract/claims.ts';
import type { Experiment, Project } from '../contract/directory.ts';
import { formatDuration, MINUTE } from '../contract/durations.ts';
import { Failure, failureOrThrow, ownCommand } from '../contract/failure.ts';
import { Secret } from '../contract/secret.ts';
import { type Send, sendFrom } from '../contract/sending.ts';
import { type RemoteKeySet, remoteKeySet } from '../tokens/remote-key-set.ts';
import { renewing } from '../tokens/shared-copy.ts';
import type { TokenStatus } from '../tokens/status-list.ts';
import { IAT_LEEWAY, type VerifiedToken } from '../tokens/verify.ts';
import { chooseOne, type Picker } from './choice.ts';
import type { Connection } from './login/connection.ts';
import {
  accessExperiment,
  chooseExperiment,
  type ExperimentAccess,
  namedExperiment,
  noPortal,
  ofNamedProject,
  withTokenAdvice,
} from './login/experiment-access.ts';
import { isSpent } from './login/login-tokens.ts';
import { keySetUrl, type TrustByKind, trustIn, type VerificationSource, verifyAny } from './login/trust.ts';
import type { Profile } from './profiles/profiles.ts';
import { isCurrent, type KnownReservation, reservationsWith } from './reservations/known.ts';
import { Ledger, type LedgerDatabase, type LedgerEntry } from './reservations/ledger.ts';
import { Reservations } from './reservations/reservations.ts';

/** The needs of a session. */
interface SessionOptions {
  profile: Profile;
  connection: Connection;
  /** Opens the ledger's database; asked once, when it is first needed. */
  openLedger: () => Promise<LedgerDatabase>;
  /** Id or name given with the command, which goes before the profile's. */
  project?: string;
  experiment?: string;
  /** Chooses one of several active projects or experiments; absent without a terminal. */
  pick?: Picker;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Makes a new idempotency key, different each time. */
  newKey: () => string;
  /** Waits so many milliseconds. */
  sleep: (milliseconds: number) => Promise<void>;
  /** Takes notices for people, such as progress. */
  notice: (text: string) => void;
}

/** How far two clocks may be apart without a word, in milliseconds. */
const CLOCKS_EQUAL = MINUTE / 2;
/**
 * How far this machine's clock may be behind, in milliseconds: a token that was issued later than {@link IAT_LEEWAY} from
 * now is refused. The rest is for an answer that takes some seconds.
 */
const MOST_BEHIND = (IAT_LEEWAY - 5) * 1000;
/** How far it may be ahead, in milliseconds: tokens that last 15 min have a minute left then. */
const MOST_AHEAD = 14 * MINUTE;

/** The services of a profile, and the project and experiment that a command acts in. */
export class Session {
  readonly profile: Profile;
  readonly portal: PortalClient;
  readonly connectivity: ConnectivityClient;
  /** The same with the user token alone: administrators act on the reservations of every experiment. */
  readonly administration: ConnectivityClient;
  /** The experiment's reservations, each recorded in the ledger. */
  readonly reservations: Reservations;
  /** The trusted issuers of each kind of token: only the profile's own services. */
  readonly trust: TrustByKind;
  /** Sends a request without a token, for public data such as key sets. */
  readonly send: Send;
  /** The login, and where tokens come from. */
  readonly connection: Connection;
  readonly #options: SessionOptions;
  /** The connectivity service's keys. */
  readonly #serviceKeys: RemoteKeySet;
  #experiment: Promise<Experiment> | undefined;
  /** The experiment of commands that name none, or why there is none. */
  #inUse: Promise<Experiment | Failure> | undefined;
  /** By what was named. */
  readonly #accesses = new Map<string | undefined, () => Promise<ExperimentAccess>>();
  #actsIn: string | undefined;
  #ledger: Promise<LedgerDatabase> | undefined;

  constructor(options: SessionOptions) {
    const { profile, connection, now, newKey, sleep, notice } = options;
    const send = sendFrom(connection);
    const userToken = () => connection.userToken.get();
    this.#options = options;
    this.#actsIn = options.experiment;
    this.profile = profile;
    this.send = send;
    this.connection = connection;
    const [projectsApiGroup, experimentsApiGroup] = profile.apiGroups.split(',');
    const portal = createPortalClient({
      ...{ projectsApiGroup, experimentsApiGroup },
      send,
      portalUrl: profile.portalUrl ?? profile.baseUrl,
      userToken: profile.portalUrl === undefined ? noPortal(profile) : userToken,
    });
    this.portal = withTokenAdvice(portal, profile);
    this.#serviceKeys = this.#keysOf(profile.baseUrl);
    const keysOf = (issuer: string) =>
      issuer === profile.baseUrl ? this.#serviceKeys : this.#keysOf(issuer);
    this.trust = trustIn(profile, keysOf, now);
    const other = profile.tokenPlacement === 'user' ? 'experiment' : 'user';
    const service = {
      ...profile,
      ...{ send, userToken, trust: this.trust('connectivity') },
      placementFix: ownCommand('profile', 'set', profile.name, `tokenPlacement=${other}`),
      readYaml: async (text: string): Promise<unknown> => (await import('yaml')).parse(text),
    };
    this.administration = createConnectivityClient(service);
    const experimentToken = async () => (await this.access()).token;
    this.connectivity = createConnectivityClient({ ...service, experimentToken });
    this.reservations = new Reservations({
      connectivity: this.connectivity,
      ledger: () => this.ledger(),
      access: () => this.signedIn(),
      now,
      newKey,
      sleep,
      notice,
    });
  }

  /**
   * How far the service's clock is ahead of this machine's, in milliseconds, negative where it is behind; 0 up to 30 s, and
   * where the service does not tell. A warning says so where it is not 0. Asked before anything is booked: it costs no
   * request where the service's keys were fetched in the last ten minutes, and else the one that its answer needs.
   *
   * @param options `isLook`: nothing is to be booked. Then no clock is too wrong, and a service that is away is no failure
   * @throws Failure `usage` where the clocks are so far apart that the service's tokens would not verify here
   */
  async clockAhead({ isLook = false }: { isLook?: boolean } = {}): Promise<number> {
    // The command ends without a login, and then asks for nothing.
    const { userToken, login } = this.connection;
    if (userToken.origin === 'login' && !login?.read()) return 0;
    const found = this.#serviceKeys.clockAhead();
    const ahead = (await (isLook ? found.catch(() => undefined) : found)) ?? 0;
    if (Math.abs(ahead) <= CLOCKS_EQUAL) return 0;
    // To the minute, unless it is less than two.
    const unit = Math.abs(ahead) < 2 * MINUTE ? 1000 : MINUTE;
    const apart = formatDuration(Math.round(Math.abs(ahead) / unit) * unit);
    const said = `Your clock is ${apart} ${ahead > 0 ? 'behind' : 'ahead of'} the service's.`;
    if (!isLook && (ahead > MOST_BEHIND || ahead < -MOST_AHEAD)) {
      throw new Failure('usage', said, {
        why: "So the service's tokens can't be verified here, and times would not mean what you typed. Set the clock that is wrong, most likely this machine's. Nothing was changed.",
      });
    }
    this.#options.notice(`warning: ${said} The service's time counts.`);
    return ahead;
  }

  /**
   * The ledger: what this machine asked of a connectivity service.
   *
   * @param service its `{base_url}`. Default: the profile's
   * @throws Failure `state_unusable`
   */
  async ledger(service = this.profile.baseUrl): Promise<Ledger> {
    this.#ledger ??= this.#options.openLedger();
    return new Ledger(await this.#ledger, service);
  }

  /** The ledger's entry about a reservation; undefined without one, and where the ledger can't be used. @param service as of {@link ledger} */
  async noted(id: string, service?: string): Promise<LedgerEntry | undefined> {
    const ledger = this.ledger(service);
    return ledger.then((opened) => opened.about(id)).catch(() => undefined);
  }

  /**
   * The project: `named`, else the command's, else the profile's, else the only active one.
   *
   * @throws Failure `not_found` for an unknown one, `usage` where one must be chosen
   */
  async project(named?: string): Promise<Project> {
    const { project, now } = this.#options;
    const wanted = named ?? project ?? this.profile.project;
    return chooseOne('project', wanted, await this.portal.projects(), now(), this.#choosing.choice);
  }

  /** The experiment as the portal knows it, chosen like {@link project}. Without `named` the portal is asked once. */
  async experiment(named?: string): Promise<Experiment> {
    if (named !== undefined) return this.#chooseExperiment(named);
    const { experiment } = this.#options;
    this.#experiment ??= this.#chooseExperiment(experiment);
    return this.#experiment;
  }

  /** The experiment that the next command acts in, of those that the portal tells; no person is asked. @throws Failure as {@link experiment} */
  experimentIn(all: readonly Experiment[]): Promise<Experiment> {
    const { chosenNames } = this.profile;
    return chooseExperiment(this.#options.experiment, all, { ...this.#choosing, choice: { chosenNames } });
  }

  /**
   * Those of some experiments that are of the project that the command names; all where it names none.
   *
   * @throws Failure `not_found` for an unknown project
   */
  async ofNamedProject(experiments: readonly Experiment[]): Promise<readonly Experiment[]> {
    return (await ofNamedProject(experiments, this.#choosing)).items;
  }

  /** Whether the next command acts in the experiment with this id, without a flag that says so. */
  async isInUse(id: string): Promise<boolean> {
    const named = namedExperiment({ ...this.#choosing, wanted: this.#options.experiment });
    const { experimentToken, experimentTokenFrom } = this.connection;
    // A program that gives tokens by name is asked by that name again, and there may be no portal to ask.
    if (named === id || experimentToken || (experimentTokenFrom && named !== undefined)) return true;
    this.#inUse ??= this.portal
      .experiments()
      .then((all) => this.experimentIn(all))
      .catch(failureOrThrow);
    const inUse = await this.#inUse;
    return !(inUse instanceof Failure) && inUse.id === id;
  }

  /**
   * The experiment that a command acts in, with a token for it; fetched once, and again when the token is almost over. See
   * {@link accessExperiment}.
   */
  async access(): Promise<ExperimentAccess> {
    const { now } = this.#options;
    let named = this.#actsIn;
    const known = this.#accesses.get(named);
    if (known) return known();
    const get = renewing(
      async () => {
        const access = await this.accessTo(named);
        // The person is not asked again for the experiment.
        if (access.origin === 'portal') named = access.id;
        return access;
      },
      now,
      // The call that fetches a token uses it without this check, however short it lasts.
      ({ token }) => !isSpent(token, now()),
    );
    this.#accesses.set(named, get);
    return get();
  }

  /**
   * See {@link access}, with the user token beside it, so that both are there before a time is computed from the clock. Programs
   * that give them run side by side. A failure is the user token's, where that fails too.
   */
  async signedIn(): Promise<ExperimentAccess> {
    const access = this.access().catch(failureOrThrow);
    await this.connection.userToken.get();
    const found = await access;
    if (found instanceof Failure) throw found;
    return found;
  }

  /**
   * Chooses the experiment of a reservation for {@link access} from now on, where the ledger knows it. A flag, a token in the
   * environment, and the name that a profile has for its token command go before it: such a command may not know ids.
   */
  async actFor(id: string): Promise<void> {
    const { connection, profile } = this;
    const { experiment } = this.#options;
    const byName = connection.experimentTokenFrom !== undefined && profile.experiment !== undefined;
    if (experiment !== undefined || connection.experimentToken || byName) return;
    // An unusable ledger is reported later, when the command writes to it.
    this.#actsIn = (await this.noted(id))?.experiment || undefined;
  }

  /** From now on {@link access} is to this experiment. */
  actIn(experiment: string): void {
    this.#actsIn = experiment;
  }

  /** The known reservations with this name, or with this text in the last section of their id; see {@link reservationsWith}. */
  async reservationsWith(word: string): Promise<KnownReservation[]> {
    const { experiment, connection } = this.#options;
    const isChosen = (experiment ?? connection.experimentToken ?? this.profile.experiment) !== undefined;
    return reservationsWith(word, {
      chosen: async () => (isChosen ? (await this.access()).id : undefined),
      ledger: () => this.ledger(),
      list: (filter) => this.reservations.list(filter),
      actFor: (id) => this.actFor(id),
      now: this.#options.now,
    });
  }

  /** The experiment's reservations that have not ended, and the number of requests whose outcome is not known. */
  async currentReservations(): Promise<{ items: KnownReservation[]; unknown: number }> {
    const current = (await this.reservations.list({ current: true })).items.filter(isCurrent);
    const items = current.filter((item): item is KnownReservation => item.id !== null);
    return { items, unknown: current.length - items.length };
  }

  /** An experiment with a token for it, fetched at each call. @param wanted its id or name */
  async accessTo(wanted: string | undefined): Promise<ExperimentAccess> {
    return accessExperiment({ ...this.#choosing, wanted, connection: this.connection });
  }

  /** A token for a project: the kept one, or a new one from the portal. */
  async projectToken(id: string): Promise<Secret> {
    const { portalTokens } = this.connection;
    const kept = portalTokens?.read(id);
    if (kept) return kept;
    const token = new Secret(await this.portal.projectToken(id));
    await portalTokens?.keep(id, token);
    return token;
  }

  /**
   * Verifies a token of any kind; see {@link verifyAny}.
   *
   * @param trust the trusted issuers. Default: the profile's services
   * @throws TokenError with the reason
   */
  verify(token: string, source: VerificationSource, trust = this.trust): Promise<VerifiedToken> {
    return verifyAny(token, trust, source, (issuer) => this.#keysOf(issuer));
  }

  /**
   * Whether a verified reservation still stands, as its issuer says; see `statusLists`.
   *
   * @param keys those that it was verified with, where they are not the issuer's published ones
   * @throws TokenError where the issuer can't be asked
   */
  async statusOf(
    { iss, iat, status }: ConnectivityClaims,
    { keys = forIssuer(this.trust('connectivity').issuers, iss) ?? this.#keysOf(iss) }: VerificationSource,
  ): Promise<TokenStatus | undefined> {
    const { statusLists } = await import('../tokens/status-list.ts');
    const asked = statusLists({ send: this.send, now: this.#options.now });
    return asked({ iss, iat, status }, { issuers: new Map([[iss, keys]]) });
  }

  /** Closes the ledger. */
  async close(): Promise<void> {
    const opened = await this.#ledger?.catch(() => undefined);
    await opened?.close();
  }

  #keysOf(issuer: string): RemoteKeySet {
    const { connection, now, notice } = this.#options;
    const url = keySetUrl(issuer);
    const store = connection.keySets?.(url);
    return remoteKeySet({
      url,
      send: this.send,
      now,
      onStale: (address, age) => notice(staleKeys(address, age)),
      store,
    });
  }

  async #chooseExperiment(wanted: string | undefined): Promise<Experiment> {
    return chooseExperiment(wanted, await this.portal.experiments(), this.#choosing);
  }

  /** What an experiment is chosen by. */
  get #choosing() {
    const { profile, portal } = this;
    const { project, now, pick } = this.#options;
    return { project, profile, portal, now, choice: { pick, chosenNames: profile.chosenNames } };
  }
}

/** The warning that keys are not fresh (THREATS.md 26). @param age milliseconds */
export function staleKeys(url: string, age: number): string {
  return `warning: The key set at ${url} can't be reached; a copy from ${Math.round(age / MINUTE)} min ago is used.`;
}
