import { type ConnectivityClient, createConnectivityClient } from '../client/connectivity.ts';
import { createPortalClient, type PortalClient } from '../client/portal.ts';
import { forIssuer, issuerName } from '../contract/addresses.ts';
import type { ConnectivityClaims } from '../contract/claims.ts';
import type { Experiment, Project } from '../contract/directory.ts';
import { formatDuration, MINUTE } from '../contract/durations.ts';
import { Failure, failureOrThrow, ownCommand } from '../contract/failure.ts';
import { KEY_SET_PATH } from '../contract/routes.ts';
import type { Secret } from '../contract/secret.ts';
import { type Send, sendFrom } from '../contract/sending.ts';
import { type RemoteKeySet, remoteKeySet } from '../tokens/remote-key-set.ts';
import { renewing } from '../tokens/shared-copy.ts';
import type { TokenStatus } from '../tokens/status-list.ts';
import { IAT_LEEWAY } from '../tokens/verify.ts';
import { chooseOne, type Picker } from './choice.ts';
import type { Connection } from './login/connection.ts';
import { type ExperimentAccess, Experiments, noPortal, portalToken } from './login/experiment-access.ts';
import { isSpent } from './login/login-tokens.ts';
import { type TrustByKind, trustIn, type VerificationSource } from './login/trust.ts';
import type { Profile } from './profiles/profiles.ts';
import { byStart, joinLedger, type ListedReservation } from './reservations/joined-list.ts';
import { hasPart, isCurrent, type KnownReservation, nameOf } from './reservations/known.ts';
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
  /** The user's experiments, and tokens for them. */
  readonly experiments: Experiments;
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
    this.portal = createPortalClient({
      ...{ projectsApiGroup, experimentsApiGroup },
      send,
      portalUrl: profile.portalUrl ?? profile.baseUrl,
      userToken: profile.portalUrl === undefined ? noPortal(profile) : userToken,
      withoutExperiments: {
        why: 'Give one in SLICES_CONN_EXPERIMENT_TOKEN or SLICES_CONN_EXPERIMENT_TOKEN_FILE, or let the official client slices give it.',
        fix: ownCommand('login', profile.baseUrl, '--with-slices'),
      },
    });
    this.experiments = new Experiments({ ...options, portal: this.portal });
    this.#serviceKeys = this.keysOf(profile.baseUrl);
    const keysOf = (issuer: string) => (issuer === profile.baseUrl ? this.#serviceKeys : this.keysOf(issuer));
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
    const { project, now, pick } = this.#options;
    const { project: own, chosenNames } = this.profile;
    const choice = { pick, chosenNames };
    return chooseOne('project', named ?? project ?? own, await this.portal.projects(), now(), choice);
  }

  /** The experiment as the portal knows it, chosen like {@link project}. Without `named` the portal is asked once. */
  async experiment(named?: string): Promise<Experiment> {
    const choose = async (wanted?: string) =>
      this.experiments.choose(wanted, await this.portal.experiments());
    if (named !== undefined) return choose(named);
    this.#experiment ??= choose(this.#options.experiment);
    return this.#experiment;
  }

  /** The experiment that the next command acts in, of those that the portal tells; no person is asked. @throws Failure as {@link experiment} */
  experimentIn(all: readonly Experiment[]): Promise<Experiment> {
    return this.experiments.choose(this.#options.experiment, all, {});
  }

  /** Whether the next command acts in the experiment with this id, without a flag that says so. */
  async isInUse(id: string): Promise<boolean> {
    const named = this.experiments.named(this.#options.experiment);
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
   * {@link Experiments.access}.
   *
   * @param wanted its id or name. Default: the command's
   */
  async access(wanted = this.#actsIn): Promise<ExperimentAccess> {
    const { now } = this.#options;
    let named = wanted;
    const known = this.#accesses.get(named);
    if (known) return known();
    const get = renewing(
      async () => {
        const access = await this.experiments.access(named);
        // The person is not asked again for the experiment.
        if (access.origin === 'portal') named = access.id;
        return access;
      },
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

  /**
   * The reservations that have a name, else those whose id ends in the text, else those that have it in the last section of their
   * id (cli/README.md, "Commands"): of the service's list, and of all that this machine asked the service for. Past ones count only where no other fits, so that
   * the short ids of a list stay good, and a name can be given again. Where the person has chosen an experiment, names are
   * those of its reservations.
   *
   * @throws Failure when the service's list can't be fetched, unless the ledger knows a reservation that fits
   */
  async reservationsWith(word: string): Promise<KnownReservation[]> {
    const current = (await this.#found(word, true)).filter(isCurrent);
    const fitting = current.length > 0 ? current : await this.#found(word, false);
    const named = fitting.filter((item) => nameOf(item) === word);
    const ending = fitting.filter(({ id }) => id.toLowerCase().endsWith(word.toLowerCase()));
    return [named, ending].find(({ length }) => length > 0) ?? fitting;
  }

  async #found(word: string, current: boolean): Promise<KnownReservation[]> {
    const { experiment: flag, connection, now } = this.#options;
    const isNamed = (item: ListedReservation): boolean => nameOf(item) === word;
    const fits = (item: ListedReservation): item is KnownReservation =>
      item.id !== null && (isNamed(item) || hasPart(item.id, word));
    // An unusable ledger is reported later, when the command writes to it.
    const entries = await this.ledger()
      .then((opened) => opened.entries({ text: word, now: current ? now() : undefined }))
      .catch(() => []);
    const fitting = joinLedger(undefined, entries, now()).items.filter(fits);
    const isChosen = (flag ?? connection.experimentToken ?? this.profile.experiment) !== undefined;
    const experiment = isChosen && fitting.some(isNamed) ? (await this.access()).id : undefined;
    const own = fitting.filter(
      (item) => experiment === undefined || !isNamed(item) || item.entry?.experiment === experiment,
    );
    const [first] = own;
    // Of several experiments, no list would leave one.
    if (new Set(own.map(({ entry }) => entry?.experiment)).size > 1) return own;
    if (first) await this.actFor(first.id);
    const { items } = await this.reservations.list({ current }).catch((error: unknown) => {
      if (first && error instanceof Failure) return { items: [] };
      throw error;
    });
    // What the service says of a reservation goes before what the ledger knew.
    const known = new Map<string, KnownReservation>();
    for (const item of [...own, ...items]) if (fits(item)) known.set(item.id, item);
    return [...known.values()].toSorted(byStart);
  }

  /** The experiment's reservations that have not ended, and the number of requests whose outcome is not known. */
  async currentReservations(): Promise<{ items: KnownReservation[]; unknown: number }> {
    const current = (await this.reservations.list({ current: true })).items.filter(isCurrent);
    const items = current.filter((item): item is KnownReservation => item.id !== null);
    return { items, unknown: current.length - items.length };
  }

  /** A token for a project: the kept one, or a new one from the portal. */
  projectToken(id: string): Promise<Secret> {
    return portalToken(id, this.connection.portalTokens, () => this.portal.projectToken(id));
  }

  /**
   * Whether a verified reservation still stands, as its issuer says; see `statusLists`.
   *
   * @param keys those that it was verified with, where they are not the issuer's published ones
   * @throws TokenError where the issuer can't be asked
   */
  async statusOf(
    { iss, iat, status }: ConnectivityClaims,
    { keys = forIssuer(this.trust('connectivity').issuers, iss) ?? this.keysOf(iss) }: VerificationSource,
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

  /** An issuer's published keys, and their copy on this machine. */
  keysOf(issuer: string): RemoteKeySet {
    const { connection, now, notice } = this.#options;
    const url = issuerName(issuer) + KEY_SET_PATH;
    const store = connection.keySets?.(url);
    return remoteKeySet({
      url,
      send: this.send,
      now,
      onStale: (address, age) => notice(staleKeys(address, age)),
      store,
    });
  }
}

/** The warning that keys are not fresh (THREATS.md 26). @param age milliseconds */
export function staleKeys(url: string, age: number): string {
  return `warning: The key set at ${url} can't be reached; a copy from ${Math.round(age / MINUTE)} min ago is used.`;
}
