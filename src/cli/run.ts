import { sendFrom } from '../contract/sending.ts';
import type { TokenSource } from '../session/login/token-source.ts';
import { OFFLINE } from '../session/profiles/profile-keys.ts';
import type { Profile, Profiles } from '../session/profiles/profiles.ts';
import { readCommandLine } from './completion/command-line.ts';
import { COMPLETE } from './completion/scripts.ts';
import { EXIT_CODE_OF, type ExitCode } from './exit-codes.ts';
import { type GlobalFlags, wantedProfile } from './global-options.ts';
import type { Invocation } from './invocation.ts';
import { reportFailure } from './print/failure-report.ts';
import { Refusal } from './print/offers.ts';
import { asciiText, type ColorChoice, escapeText, jsonText, Output, wantsColor } from './print/output.ts';
import { Progress } from './print/progress.ts';
import { createProgram, NO_HELP, runProgram } from './program.ts';
import { Declined, numbered, pickerFor } from './questions.ts';
import { SentChanges } from './sent-changes.ts';
import { chooseZone, localTimes, type TimeContext } from './times.ts';
import type { UserFiles, World } from './world.ts';

/** How long to wait for a reply unless `--timeout` says otherwise, in seconds. */
const DEFAULT_TIMEOUT = 30;

/** What is waited for where another command is using it. */
const [BUILT_IN, LEDGER] = ["the built-in server's data", 'the list of what this machine asked for'];

/** What a command has opened and sent so far, and how it ends. */
class Running {
  /** Its requests that change something. */
  readonly sent = new SentChanges();
  /** Its exit code, unless it fails. */
  exitCode = 0;
  readonly #opened: { close(): Promise<void> }[] = [];

  /** Takes a session or connection, to be closed when the command ends. */
  opened(one: { close(): Promise<void> }): void {
    this.#opened.push(one);
  }

  /** Closes all. A connection that does not close changes nothing: what it was opened for is done. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#opened.splice(0).map(async (one) => one.close()));
  }
}

/**
 * Runs one command.
 *
 * @param args without the program's own name
 * @returns the exit code (cli/README.md, "Exit codes"), after results and errors were printed
 */
export async function run(args: readonly string[], world: World): Promise<number> {
  if (args[0] === COMPLETE) {
    await answerShell(args.slice(args[1] === '--' ? 2 : 1), world);
    return 0;
  }
  const running = new Running();
  let invocation: Invocation | undefined;
  let isReported = false;
  // A request that was given up may end later than the command: the error object stays the last line.
  const write = (text: string): void => (isReported ? undefined : world.stderr.write(text));
  const beforeReport: World = { ...world, stderr: { ...world.stderr, write } };
  let help = '';
  const program = createProgram({
    version: world.version,
    serverOptions: world.server.options,
    help: {
      columns: world.stdout.isTerminal ? world.stdout.columns : undefined,
      paints: (choice = 'auto') => wantsColor(choice, world.env, world.stdout.isTerminal),
      write: (text) => {
        help += text;
      },
    },
    open: (flags) => {
      invocation = openInvocation(flags, args, beforeReport, running);
      return invocation;
    },
  });
  // Commander may have stopped at a wrong flag: --json, --debug and the services are read from all that was typed.
  const typed = () => {
    const { services, given } = readCommandLine(program, args);
    return { services, has: (flag: string) => given.some(({ long }) => long === flag) };
  };
  const printHelp = (): void => {
    if (help === '') return;
    const { has } = typed();
    const text = isDumb(world) ? asciiText(help, { spelled: true }) : help;
    // The official client reads the line of --version, whatever else is typed.
    const isText = !has('--json') || has('--version');
    world.stdout.write(isText ? text : `${jsonText({ help })}\n`);
  };
  const report = (error: unknown, times?: TimeContext): ExitCode => {
    isReported = true;
    const { services, has } = typed();
    const [json, debug] = [has('--json'), has('--debug')];
    const nothingChanged = running.sent.isNothing;
    return reportFailure(error, {
      stderr: world.stderr,
      json,
      debug,
      services,
      typed: args,
      times,
      nothingChanged,
    });
  };
  world.onStop((stopped) => {
    if (stopped instanceof Error) return report(running.sent.unwritten(stopped));
    // The line holds the terminal's own ^C, or a question without an answer.
    if (world.stderr.isTerminal) {
      world.stderr.write('\n');
      if (running.sent.isStopExpected) return EXIT_CODE_OF[stopped];
    }
    return report(running.sent.failure(stopped));
  });
  try {
    let work = (): Promise<void> => runProgram(program, args);
    for (;;) {
      try {
        await work();
        printHelp();
        return running.exitCode;
      } catch (error) {
        if (error instanceof Declined) {
          invocation?.output.notice(error.message);
          return 0;
        }
        // Where the profile can't be read, the failure says so, and its own text needs no zone.
        const times = await invocation?.times().catch(() => undefined);
        const exitCode = report(error, times);
        if (!(error instanceof Refusal && invocation)) return exitCode;
        isReported = false;
        const next = await picked(error, invocation);
        isReported = !next;
        if (!next) return exitCode;
        work = next;
      }
    }
  } finally {
    await running.close();
  }
}

/** Whether all of stdout is ASCII. */
function isDumb({ env }: World): boolean {
  return env['TERM'] === 'dumb';
}

/**
 * Lets a person pick one of the offers of a refusal, which was printed.
 *
 * @returns what asks for the picked one; undefined where none is picked, and where nobody can be asked
 */
async function picked(
  { offers, take }: Refusal,
  { ask, flags, output, times }: Invocation,
): Promise<(() => Promise<void>) | undefined> {
  if (!take || !ask || flags.json || flags.yes) return undefined;
  const offer = await numbered({ ask, output }, 'Which number? (Enter: none) ', offers);
  if (!offer) return undefined;
  return async () => {
    output.prompt(`Asking for ${localTimes(await times())(offer.label)}.`);
    await take(offer);
  };
}

/** Answers a shell that completes a word: with candidates, or with nothing after any error. */
async function answerShell(words: readonly string[], world: World): Promise<void> {
  const running = new Running();
  const { progressLine: _progressLine, ask: _ask, ...rest } = world;
  const silent: World = { ...rest, stderr: { ...world.stderr, write: () => undefined } };
  const open = (flags: GlobalFlags) => openInvocation(flags, words, silent, running);
  try {
    const [{ completionText, wantedAt }, { liveSource }] = await Promise.all([
      import('./completion/candidates.ts'),
      import('./completion/live-source.ts'),
    ]);
    const program = createProgram({
      version: world.version,
      serverOptions: world.server.options,
      help: NO_HELP,
      open,
    });
    const wanted = wantedAt(program, words);
    world.stdout.write(await completionText(wanted, liveSource(open(wanted.services))));
  } catch {
    // A shell would print a message into the line that is being typed.
  } finally {
    await running.close();
  }
}

function openInvocation(
  flags: GlobalFlags,
  typed: readonly string[],
  world: World,
  running: Running,
): Invocation {
  const { env, stdout, stderr } = world;
  const color: ColorChoice = flags.color ?? 'auto';
  const isSilent = flags.json === true || flags.quiet === true;
  const progress = new Progress({ open: isSilent ? undefined : world.progressLine, now: world.now });
  const output = new Output({
    stdout: progress.before(stdout),
    stderr: progress.before(stderr),
    json: flags.json === true,
    quiet: flags.quiet === true,
    color: {
      stdout: wantsColor(color, env, stdout.isTerminal),
      stderr: wantsColor(color, env, stderr.isTerminal),
    },
    ascii: isDumb(world),
  });
  const { ask: askPerson } = world;
  const ask: Invocation['ask'] =
    askPerson && flags.input !== false
      ? (question) => progress.aside(() => askPerson(escapeText(question)))
      : undefined;
  const profilesToChange = async (): Promise<Profiles> => {
    const { Profiles } = await import('../session/profiles/profiles.ts');
    return new Profiles(world.folders.config, env, progress.locks(world.underLock));
  };
  /** The warnings that were printed. */
  const warned = new Set<string>();
  let zone: ReturnType<typeof zoneFor> | undefined;
  return {
    ...world,
    flags,
    typed,
    output,
    waitFor: (what, work) => progress.during(what, work),
    profiles: profilesToChange,
    async times() {
      zone ??= zoneFor(flags, world, output);
      return { ...(await zone), now: world.now() };
    },
    ask,
    processes: {
      ...world.processes,
      async start(command, variables) {
        const started = await world.processes.start(command, variables);
        // The terminal is the command's.
        void progress.aside(() => started.ended);
        return started;
      },
    },
    exitWith(exitCode) {
      running.exitCode = exitCode;
    },
    ifStopped: (facts) => running.sent.settle(facts),
    async session(named) {
      const [{ Session }, { Profiles }] = await Promise.all([
        import('../session/session.ts'),
        import('../session/profiles/profiles.ts'),
      ]);
      const profiles = new Profiles(world.folders.config, env);
      const profile = await profiles.resolve(named ?? wantedProfile(flags));
      const certificates = await certificatesFor(flags, profile, world.files);
      const connection = await world.connect(profile, {
        timeout: (flags.timeout ?? DEFAULT_TIMEOUT) * 1000,
        underLock: progress.locks(world.underLock),
        certificates,
        ...(flags.debug ? { trace: (line) => output.prompt(line) } : {}),
      });
      const keep: Parameters<typeof pickerFor>[2] = async (noun, chosen) =>
        (await profilesToChange()).choose(profile.name, noun, chosen);
      const isOffline = profile.name === OFFLINE;
      /** The same source; while its token is waited for, that is shown, with the program that gives it. */
      const awaited = (source: TokenSource, what: string): TokenSource => {
        const from = source.origin === 'command' ? ` of ${escapeText(source.where)}` : '';
        const name = isOffline ? BUILT_IN : `the ${what} token${from}`;
        return { ...source, get: () => progress.during(name, () => source.get()) };
      };
      const { userToken, experimentToken, experimentTokenFrom } = connection;
      const session = new Session({
        profile,
        connection: {
          ...connection,
          fetch: undefined,
          send: progress.watched(
            running.sent.watched(sendFrom(connection)),
            isOffline ? BUILT_IN : undefined,
          ),
          userToken: awaited(userToken, 'user'),
          ...(experimentToken ? { experimentToken: awaited(experimentToken, 'experiment') } : {}),
          ...(experimentTokenFrom
            ? { experimentTokenFrom: (filled) => awaited(experimentTokenFrom(filled), 'experiment') }
            : {}),
        },
        openLedger: async () => {
          const ledger = await progress.during(LEDGER, world.openLedger);
          return {
            ...ledger,
            transaction: (work) => progress.during(LEDGER, () => ledger.transaction(work)),
          };
        },
        newKey: world.newKey,
        sleep: (milliseconds) => progress.during('the next attempt', () => world.sleep(milliseconds)),
        now: world.now,
        // A command that goes on for hours would repeat it at every look.
        notice: (text) => {
          if (!text.startsWith('warning:') || !warned.has(text)) output.notice(text);
          warned.add(text);
        },
        ...(ask ? { pick: pickerFor({ ask, flags, output }, profile.name, keep) } : {}),
        project: flags.project,
        experiment: flags.experiment,
      });
      running.opened(session);
      running.opened(connection);
      return session;
    },
    async keptTrust() {
      const [{ Profiles }, { keptKeys, keySetFiles, trustIn }, { staleKeys }] = await Promise.all([
        import('../session/profiles/profiles.ts'),
        import('../session/login/trust.ts'),
        import('../session/session.ts'),
      ]);
      const { now } = world;
      const profile = await new Profiles(world.folders.config, env).resolve(flags.profile);
      const stored = keySetFiles(world.folders.cache);
      const onStale = (url: string, age: number): void => output.notice(staleKeys(url, age));
      const keysOf = (issuer: string) => keptKeys(issuer, { stored, now, onStale });
      return { trust: trustIn(profile, keysOf, now), keysOf };
    },
  };
}

/** The time zone of --tz, else of the profile, else of TZ, else of the machine. A notice says when TZ is no zone. */
async function zoneFor(
  flags: GlobalFlags,
  { env, folders, localZone }: World,
  output: Output,
): Promise<Omit<TimeContext, 'now'>> {
  const { Profiles } = await import('../session/profiles/profiles.ts');
  const chosen = flags.tz ?? new Profiles(folders.config, env).zone(flags.profile ?? wantedProfile(flags));
  const zone = chooseZone({ chosen, variable: env['TZ'], system: localZone });
  if (zone.faultyZone !== undefined && !output.json) {
    output.notice(`TZ is ${JSON.stringify(zone.faultyZone)}, which is not a time zone: times are in UTC.`);
  }
  return zone;
}

/** The certificates of --ca-file, else of the profile. The file is checked even where no request will use it. */
async function certificatesFor(
  flags: GlobalFlags,
  profile: Profile,
  files: UserFiles,
): Promise<string | undefined> {
  const path = flags.caFile ?? profile.caFile;
  if (path === undefined) return undefined;
  const { readCertificates } = await import('./ca-file.ts');
  return readCertificates(files, path);
}
