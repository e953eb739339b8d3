import type { Secret } from '../contract/secret.ts';
import { sendFrom } from '../contract/sending.ts';
import type { Connection } from '../session/login/connection.ts';
import type { TakenToken } from '../session/login/given-tokens.ts';
import type { TokenSource } from '../session/login/token-source.ts';
import { OFFLINE } from '../session/profiles/profile-keys.ts';
import type { Session } from '../session/session.ts';
import { adviceOnTime } from '../words/typed-time.ts';
import type { CommandLine } from './command-line.ts';
import type { Context, Surroundings } from './context.ts';
import { type GlobalFlags, openProfiles, wantedProfile } from './global-options.ts';
import { startedAs } from './print/as-started.ts';
import { escapeText, Output, wantsColor } from './print/output.ts';
import { Progress } from './print/progress.ts';
import { pickerFor } from './questions.ts';
import { SentChanges } from './sent-changes.ts';
import { chooseZone, type TimeContext } from './times.ts';

/** How long to wait for a reply unless `--timeout` says otherwise, in seconds. */
const DEFAULT_TIMEOUT = 30;

/** The words for what another command is using. */
const [BUILT_IN, LEDGER] = ["the built-in server's data", 'the list of what this machine asked for'];

/** The connections that a command has opened, and the requests that it has sent. */
export class Running {
  /** Its requests that change something. */
  readonly sent = new SentChanges();
  /** The tokens that it asked for, each as it was given last. */
  readonly taken = new Map<TakenToken['kind'], TakenToken>();
  /** What it shows while it waits. */
  progress: Progress | undefined;
  /** Sessions and connections, to be closed when the command ends. */
  readonly opened: { close(): Promise<void> }[] = [];

  /** Closes all. A connection that does not close changes nothing: its work is done. */
  async close(): Promise<void> {
    this.progress?.stop();
    await Promise.allSettled(this.opened.splice(0).map(async (one) => one.close()));
  }
}

/**
 * Makes the context of a command.
 *
 * @param running gets what the command opens and sends
 */
export function openContext(
  flags: GlobalFlags,
  typed: CommandLine,
  around: Surroundings,
  running: Running,
): Context {
  const { clock, env, terminal, files, processes, server } = around;
  const isSilent = flags.json === true || flags.quiet === true;
  const progress = new Progress(isSilent ? undefined : terminal.progressLine, clock.now);
  running.progress = progress;
  const { ask, stdout, stderr } = terminal;
  const output = new Output({
    ...{ stdout, stderr, json: flags.json === true, quiet: flags.quiet === true },
    color: wantsColor(flags.color, env.variables, stdout.isTerminal),
    ascii: isDumb(around),
    started: { ...startedAs(env), services: flags },
    waiting: (what, work) => progress.during(what, work),
  });
  const typedDurations = new Map<number, number>();
  let zone: ReturnType<typeof zoneFor> | undefined;
  const context: Context = {
    ...{ env, output, flags, typed, server },
    clock: {
      now: clock.now,
      sleep: clock.sleep,
      async times() {
        zone ??= zoneFor(flags, around, output);
        return { ...(await zone), now: clock.now(), typedDurations, advice: adviceOnTime };
      },
    },
    terminal: {
      ...terminal,
      ask:
        ask && flags.input !== false
          ? (question) => progress.aside(() => ask(escapeText(question)))
          : undefined,
    },
    files: {
      ...files,
      underLock: progress.locks(files.underLock),
      async openLedger() {
        const ledger = await progress.during(LEDGER, files.openLedger);
        return { ...ledger, transaction: (work) => progress.during(LEDGER, () => ledger.transaction(work)) };
      },
    },
    processes: {
      ...processes,
      ifStopped: (facts) => running.sent.settle(facts),
      async start(command, environment) {
        const started = await processes.start(command, environment);
        // The terminal is the command's.
        void progress.aside(() => started.ended);
        return started;
      },
    },
    session: (named) => openSession(named ?? wantedProfile(flags)),
    async connect(profile) {
      const { caFile = profile.caFile } = flags;
      // They are checked even where no request needs them.
      const certificates =
        caFile === undefined
          ? undefined
          : await import('./ca-file.ts').then(({ readCertificates }) => readCertificates(files, caFile));
      const connection = await around.connect(profile, {
        timeout: (flags.timeout ?? DEFAULT_TIMEOUT) * 1000,
        underLock: context.files.underLock,
        certificates,
        experiment: flags.experiment,
        project: flags.project,
        trace: flags.debug ? (line) => output.prompt(line) : undefined,
      });
      running.opened.push(connection);
      return watched(connection, progress, running, profile.name === OFFLINE);
    },
  };
  /** The warnings that were printed: a command that goes on for hours would repeat them at every look. */
  const warned = new Set<string>();
  async function openSession(wanted: string | undefined): Promise<Session> {
    const [{ Session }, profiles] = await Promise.all([
      import('../session/session.ts'),
      openProfiles(around),
    ]);
    const profile = await profiles.resolve(wanted);
    const session = new Session({
      profile,
      connection: await context.connect(profile),
      openLedger: context.files.openLedger,
      newKey: env.newKey,
      sleep: (milliseconds) => progress.during('the next attempt', () => clock.sleep(milliseconds)),
      now: clock.now,
      notice(text) {
        if (!text.startsWith('warning:') || !warned.has(text)) output.notice(text);
        warned.add(text);
      },
      pick:
        context.terminal.ask &&
        pickerFor(context, profile.name, async (noun, chosen) =>
          (await openProfiles(context)).choose(profile.name, noun, chosen),
        ),
      project: flags.project,
      experiment: flags.experiment,
    });
    running.opened.push(session);
    return session;
  }
  return context;
}

/** Whether all of stdout is ASCII. */
export function isDumb({ env }: Pick<Surroundings, 'env'>): boolean {
  return env.variables['TERM'] === 'dumb';
}

/** The same connection; its waits are shown, and its requests that change something are remembered. */
function watched(
  connection: Connection,
  progress: Progress,
  running: Running,
  isOffline: boolean,
): Connection {
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

/** The time zone: the first of --tz, the profile, TZ and the machine that says one. A notice names a TZ that is no time zone. */
async function zoneFor(
  flags: GlobalFlags,
  around: Surroundings,
  output: Output,
): Promise<Omit<TimeContext, 'now'>> {
  const { env, clock } = around;
  const profiles = await openProfiles(around);
  const chosen = flags.tz ?? profiles.zone(flags.profile ?? wantedProfile(flags));
  const zone = chooseZone({ chosen, variable: env.variables['TZ'], system: clock.localZone });
  if (zone.faultyZone !== undefined && !output.json) {
    output.notice(`TZ is ${JSON.stringify(zone.faultyZone)}, which is not a time zone: times are in UTC.`);
  }
  return zone;
}
