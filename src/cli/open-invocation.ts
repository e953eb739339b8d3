import { Failure } from '../contract/failure.ts';
import type { Secret } from '../contract/secret.ts';
import { sendFrom } from '../contract/sending.ts';
import type { Connection } from '../session/login/connection.ts';
import type { TakenToken } from '../session/login/given-tokens.ts';
import type { TokenSource } from '../session/login/token-source.ts';
import { OFFLINE } from '../session/profiles/profile-keys.ts';
import type { Profile, Profiles } from '../session/profiles/profiles.ts';
import type { Session } from '../session/session.ts';
import { adviceOnTime } from '../words/time-advice.ts';
import { withServices } from './advice.ts';
import { type GlobalFlags, wantedProfile } from './global-options.ts';
import type { Invocation, KeptTrust } from './invocation.ts';
import { asStarted, startedAs } from './print/as-started.ts';
import { escapeText, Output, wantsColor } from './print/output.ts';
import { Progress } from './print/progress.ts';
import { pickerFor } from './questions.ts';
import { SentChanges } from './sent-changes.ts';
import type { ServerCommands } from './serve/server.ts';
import { chooseZone, type TimeContext } from './times.ts';
import type { Files, World } from './world.ts';

/** How long to wait for a reply unless `--timeout` says otherwise, in seconds. */
const DEFAULT_TIMEOUT = 30;

/** The words for what another command is using. */
const [BUILT_IN, LEDGER] = ["the built-in server's data", 'the list of what this machine asked for'];

/** The connections that a command has opened, the requests that it has sent, and its exit code. */
export class Running {
  /** Its requests that change something. */
  readonly sent = new SentChanges();
  /** Its exit code, unless it fails. */
  exitCode = 0;
  /** What it shows while it waits. */
  progress: Progress | undefined;
  /** The command line to run in its place, once its action is done. */
  next: readonly string[] | undefined;
  /** The tokens that it asked for, each as it was given last. */
  readonly taken = new Map<TakenToken['kind'], TakenToken>();
  readonly #opened: { close(): Promise<void> }[] = [];

  /** Takes a session or connection, to be closed when the command ends. */
  opened(one: { close(): Promise<void> }): void {
    this.#opened.push(one);
  }

  /** Closes all. A connection that does not close changes nothing: its work is done. */
  async close(): Promise<void> {
    this.progress?.stop();
    await Promise.allSettled(this.#opened.splice(0).map(async (one) => one.close()));
  }
}

/** The parts that an invocation is made of. */
interface Opening {
  flags: GlobalFlags;
  world: World;
  running: Running;
  progress: Progress;
  output: Output;
  ask: Invocation['ask'];
  /** Opens the profiles for a change, under the lock. */
  profiles: () => Promise<Profiles>;
}

/**
 * Makes the invocation of an action.
 *
 * @param typed the whole command line, without the program's own name
 * @param running gets what the command opens and sends
 * @param server the commands of an operator
 */
export function openInvocation(
  flags: GlobalFlags,
  typed: readonly string[],
  world: World,
  running: Running,
  server: ServerCommands,
): Invocation {
  const { clock, environment, terminal, files, network, processes } = world;
  const isSilent = flags.json === true || flags.quiet === true;
  const progress = new Progress({ open: isSilent ? undefined : terminal.progressLine, now: clock.now });
  running.progress = progress;
  const output = outputFor(flags, world);
  const { ask: askPerson } = terminal;
  const ask: Invocation['ask'] =
    askPerson && flags.input !== false
      ? (question) => progress.aside(() => askPerson(escapeText(question)))
      : undefined;
  const profiles = async (): Promise<Profiles> => {
    const { Profiles } = await import('../session/profiles/profiles.ts');
    return new Profiles(environment.folders.config, environment.variables, progress.locks(files.underLock));
  };
  const opening: Opening = { flags, world, running, progress, output, ask, profiles };
  /** The warnings that were printed: a command that goes on for hours would repeat them at every look. */
  const warned = new Set<string>();
  const notice = (text: string): void => {
    if (!text.startsWith('warning:') || !warned.has(text)) output.notice(text);
    warned.add(text);
  };
  let zone: ReturnType<typeof zoneFor> | undefined;
  const typedDurations = new Map<number, number>();
  return {
    ...{ environment, files, server, flags, typed, output, ask, profiles },
    now: clock.now,
    sleep: clock.sleep,
    openBrowser: terminal.openBrowser,
    stdinIsTerminal: terminal.stdinIsTerminal,
    newKey: network.newKey,
    processes: {
      ...processes,
      async start(command, environment) {
        const started = await processes.start(command, environment);
        // The terminal is the command's.
        void progress.aside(() => started.ended);
        return started;
      },
    },
    advised: (command) => asStarted(startedAs(environment), withServices(flags, command)),
    waitFor: (what, work) => progress.during(what, work),
    async times() {
      zone ??= zoneFor(flags, world, output);
      return { ...(await zone), now: clock.now(), typedDurations, advice: adviceOnTime };
    },
    exitWith(exitCode) {
      running.exitCode = exitCode;
    },
    continueWith(next) {
      running.next = next;
    },
    ifStopped: (facts) => running.sent.settle(facts),
    session: (named) => openSession(opening, named ?? wantedProfile(flags), notice),
    async connectTo(profile) {
      const connection = await connect(opening, profile);
      running.opened(connection);
      return connection;
    },
    keptTrust: () => keptTrust(opening),
  };
}

/** Whether all of stdout is ASCII. */
export function isDumb({ environment }: Pick<World, 'environment'>): boolean {
  return environment.variables['TERM'] === 'dumb';
}

function outputFor(flags: GlobalFlags, world: World): Output {
  const { stdout, stderr } = world.terminal;
  const { variables } = world.environment;
  const choice = flags.color ?? 'auto';
  return new Output({
    stdout,
    stderr,
    json: flags.json === true,
    quiet: flags.quiet === true,
    color: {
      stdout: wantsColor(choice, variables, stdout.isTerminal),
      stderr: wantsColor(choice, variables, stderr.isTerminal),
    },
    ascii: isDumb(world),
    started: startedAs(world.environment),
  });
}

/** @param notice takes a warning or notice of the session, for people */
async function openSession(
  opening: Opening,
  wanted: string | undefined,
  notice: (text: string) => void,
): Promise<Session> {
  const { flags, world, running, progress, output, ask } = opening;
  const { clock, environment, files, network } = world;
  const [{ Session }, profiles] = await Promise.all([
    import('../session/session.ts'),
    readProfiles(environment),
  ]);
  const profile = await profiles.resolve(wanted);
  const connection = await connect(opening, profile);
  const keep: Parameters<typeof pickerFor>[2] = async (noun, chosen) =>
    (await opening.profiles()).choose(profile.name, noun, chosen);
  const session = new Session({
    profile,
    connection,
    openLedger: async () => {
      const ledger = await progress.during(LEDGER, files.openLedger);
      return { ...ledger, transaction: (work) => progress.during(LEDGER, () => ledger.transaction(work)) };
    },
    newKey: network.newKey,
    sleep: (milliseconds) => progress.during('the next attempt', () => clock.sleep(milliseconds)),
    now: clock.now,
    notice,
    pick: ask && pickerFor({ ask, flags, output }, profile.name, keep),
    project: flags.project,
    experiment: flags.experiment,
  });
  running.opened(session);
  running.opened(connection);
  return session;
}

/** Opens the way to the services of a profile. */
async function connect(opening: Opening, profile: Profile): Promise<Connection> {
  const { flags, world, progress, output } = opening;
  const { files, network } = world;
  const certificates = await certificatesFor(flags, profile, files);
  const connection = await network.connect(profile, {
    timeout: (flags.timeout ?? DEFAULT_TIMEOUT) * 1000,
    underLock: progress.locks(files.underLock),
    certificates,
    experiment: flags.experiment,
    project: flags.project,
    trace: flags.debug ? (line) => output.prompt(line) : undefined,
  });
  return watched(connection, opening, profile.name === OFFLINE);
}

/** The same connection; its waits are shown, and its requests that change something are remembered. */
function watched(connection: Connection, { progress, running }: Opening, isOffline: boolean): Connection {
  /** While a token is waited for, that is shown, with the program that gives it. */
  const awaited = (source: TokenSource, what: TakenToken['kind']): TokenSource => {
    const from = source.origin === 'command' ? ` of ${escapeText(source.where)}` : '';
    const name = isOffline ? BUILT_IN : `the ${what} token${from}`;
    const get = async (): Promise<Secret> => {
      running.taken.set(what, { kind: what, source });
      const token = await progress.during(name, () => source.get());
      running.taken.set(what, { kind: what, source, token });
      return token;
    };
    return { ...source, get };
  };
  const { userToken, experimentToken, experimentTokenFrom } = connection;
  const send = running.sent.watched(sendFrom(connection));
  return {
    ...connection,
    fetch: undefined,
    send: progress.watched(send, isOffline ? BUILT_IN : undefined),
    userToken: awaited(userToken, 'user'),
    experimentToken: experimentToken && awaited(experimentToken, 'experiment'),
    experimentTokenFrom:
      experimentTokenFrom && ((filled) => awaited(experimentTokenFrom(filled), 'experiment')),
  };
}

async function keptTrust({ flags, world, output }: Opening): Promise<KeptTrust> {
  const { environment, clock } = world;
  const [profiles, { keptKeys, keySetFiles, trustIn, union }, { staleKeys }] = await Promise.all([
    readProfiles(environment),
    import('../session/login/trust.ts'),
    import('../session/session.ts'),
  ]);
  const { now } = clock;
  const chosen = await profiles.resolve(flags.profile);
  const names = flags.profile === undefined ? profiles.names() : [];
  const others = await Promise.all(
    names.map((name) =>
      profiles.resolve(name).catch((error: unknown) => {
        // One that is not complete has no keys either.
        if (error instanceof Failure) return undefined;
        throw error;
      }),
    ),
  );
  const stored = keySetFiles(environment.folders.cache);
  const onStale = (url: string, age: number): void => output.notice(staleKeys(url, age));
  const keysOf = (issuer: string) => keptKeys(issuer, { stored, now, onStale });
  const trusted = [chosen, ...others].flatMap((profile) => (profile ? [trustIn(profile, keysOf, now)] : []));
  return { trust: trusted.reduce(union), keysOf };
}

/** The profiles of this machine, to read only: a change needs a lock. */
async function readProfiles({ folders, variables }: World['environment']): Promise<Profiles> {
  const { Profiles } = await import('../session/profiles/profiles.ts');
  return new Profiles(folders.config, variables);
}

/** The time zone of --tz, else of the profile, of TZ, of the machine. A notice names a TZ that is no zone. */
async function zoneFor(
  flags: GlobalFlags,
  { environment, clock }: World,
  output: Output,
): Promise<Omit<TimeContext, 'now'>> {
  const profiles = await readProfiles(environment);
  const chosen = flags.tz ?? profiles.zone(flags.profile ?? wantedProfile(flags));
  const zone = chooseZone({ chosen, variable: environment.variables['TZ'], system: clock.localZone });
  if (zone.faultyZone !== undefined && !output.json) {
    output.notice(`TZ is ${JSON.stringify(zone.faultyZone)}, which is not a time zone: times are in UTC.`);
  }
  return zone;
}

/** The certificates of --ca-file, else of the profile. They are checked even where no request needs them. */
async function certificatesFor(
  flags: GlobalFlags,
  profile: Profile,
  files: Files,
): Promise<string | undefined> {
  const path = flags.caFile ?? profile.caFile;
  if (path === undefined) return undefined;
  const { readCertificates } = await import('./ca-file.ts');
  return readCertificates(files, path);
}
