import { Failure } from '../contract/failure.ts';
import { inTimes } from '../contract/said.ts';
import { type CommandLine, readCommandLine } from './completion/command-line.ts';
import { COMPLETE } from './completion/scripts.ts';
import { EXIT_CODE_OF, type ExitCode } from './exit-codes.ts';
import type { GlobalFlags } from './global-options.ts';
import { pathOf } from './help-layout.ts';
import type { Invocation } from './invocation.ts';
import { isDumb, openInvocation, Running } from './open-invocation.ts';
import { startedAs } from './print/as-started.ts';
import { reportFailure } from './print/failure-report.ts';
import { Refusal } from './print/offers.ts';
import { asciiText, jsonText, wantsColor } from './print/output.ts';
import { shellOf } from './print/shells.ts';
import { createCommandTree, NO_HELP, runCommandTree } from './program.ts';
import { Declined, numbered } from './questions.ts';
import type { ServerCommands } from './serve/server.ts';
import { type TimeContext, timesIn } from './times.ts';
import type { World } from './world.ts';

/**
 * Runs one command.
 *
 * @param args without the program's own name
 * @param server the commands of an operator
 * @returns the exit code (cli/README.md, "Exit codes"), after results and errors were printed
 */
export async function run(args: readonly string[], world: World, server: ServerCommands): Promise<number> {
  const { environment, terminal } = world;
  const { stdout, stderr } = terminal;
  if (args[0] === COMPLETE) {
    await answerShell(args.slice(args[1] === '--' ? 2 : 1), world, server);
    return 0;
  }
  const running = new Running();
  let invocation: Invocation | undefined;
  let isReported = false;
  // A request that was given up may end later than the command: the error object stays the last line.
  const write = (text: string): void => (isReported ? undefined : stderr.write(text));
  const beforeReport: World = { ...world, terminal: { ...terminal, stderr: { ...stderr, write } } };
  let help = '';
  const program = createCommandTree({
    version: environment.version,
    serverOptions: server.options,
    help: {
      columns: stdout.isTerminal ? stdout.columns : undefined,
      shell: shellOf(environment.variables),
      paints: (choice = 'auto') => wantsColor(choice, environment.variables, stdout.isTerminal),
      write: (text) => {
        help += text;
      },
      licences: environment.licences,
    },
    open: (flags) => {
      invocation = openInvocation(flags, args, beforeReport, running, server);
      return invocation;
    },
  });
  // Commander may have stopped at a wrong flag: --json, --debug and the services are read from all that was
  // typed.
  const typed = () => {
    const { command, services, given } = readCommandLine(program, args);
    return {
      command: pathOf(command),
      services,
      has: (flag: string) => given.some(({ long }) => long === flag),
    };
  };
  const printHelp = (): void => {
    if (help === '') return;
    const { has } = typed();
    const text = isDumb(world) ? asciiText(help, { spelled: true }) : help;
    const { version } = environment;
    stdout.write(has('--json') ? `${jsonText(has('--version') ? { version } : { help })}\n` : text);
  };
  const report = (error: unknown, times?: TimeContext): ExitCode => {
    isReported = true;
    const { command, services, has } = typed();
    const [json, debug] = [has('--json'), has('--debug')];
    const nothingChanged = running.sent.isNothing;
    return reportFailure(error, {
      stderr,
      json,
      debug,
      services,
      typed: args,
      command,
      started: startedAs(environment),
      times,
      nothingChanged,
    });
  };
  world.processes.onStop((stopped) => {
    running.progress?.stop();
    if (stopped instanceof Error) return report(running.sent.unwritten(stopped));
    // The line holds the terminal's own ^C, or a question without an answer.
    if (stderr.isTerminal) {
      stderr.write('\n');
      if (running.sent.isStopExpected) return EXIT_CODE_OF[stopped];
    }
    return report(running.sent.failure(stopped));
  });
  try {
    let work = (): Promise<void> => runCommandTree(program, args);
    for (;;) {
      try {
        await work();
        if (running.next) {
          await running.close();
          return await run(running.next, world, server);
        }
        printHelp();
        return running.exitCode;
      } catch (error) {
        if (error instanceof Declined) {
          invocation?.output.notice(error.message);
          return 0;
        }
        if (!invocation) await removeReadyFile(readCommandLine(program, args), world);
        // Where the profile can't be read, the failure says so, and its own text needs no zone.
        const times = await invocation?.times().catch(() => undefined);
        const exitCode = report(await explained(error, running, world), times);
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

/**
 * Removes the ready file of an earlier server where `serve` can't even be understood: a script that waits for the file must not
 * find that one.
 */
async function removeReadyFile({ command, values }: CommandLine, { files }: World): Promise<void> {
  const file = command.name() === 'serve' ? values.get('readyFile') : undefined;
  if (file !== undefined) await files.remove(file).catch(() => undefined);
}

/** A failure with what is known of the tokens that the command was given. */
async function explained(error: unknown, { taken }: Running, { clock }: World): Promise<unknown> {
  if (!(error instanceof Failure) || taken.size === 0) return error;
  const { tokenExplained } = await import('../session/login/given-tokens.ts');
  return tokenExplained(error, [...taken.values()], clock.now());
}

/**
 * Lets a person pick one of the offers of a refusal, which was printed.
 *
 * @returns a function that asks for the picked offer; undefined where none is picked, and without a person to
 *   ask
 */
async function picked(
  { offers, take }: Refusal,
  { ask, flags, output, times }: Invocation,
): Promise<(() => Promise<void>) | undefined> {
  if (!take || !ask || flags.json || flags.yes) return undefined;
  const offer = await numbered({ ask, output }, 'Which number? (Enter: none) ', offers);
  if (!offer) return undefined;
  return async () => {
    output.prompt(`Asking for ${inTimes(offer.label, timesIn(await times()))}.`);
    await take(offer);
  };
}

/** Answers a shell that completes a word: with candidates, or with nothing after any error. */
async function answerShell(words: readonly string[], world: World, server: ServerCommands): Promise<void> {
  const { environment, terminal } = world;
  const { stdout, stderr } = terminal;
  const running = new Running();
  const silent: World = {
    ...world,
    terminal: {
      ...terminal,
      progressLine: undefined,
      ask: undefined,
      stderr: { ...stderr, write: () => undefined },
    },
  };
  const open = (flags: GlobalFlags) => openInvocation(flags, words, silent, running, server);
  try {
    const [{ completionText, wantedAt }, { liveSource }] = await Promise.all([
      import('./completion/candidates.ts'),
      import('./completion/live-source.ts'),
    ]);
    const program = createCommandTree({
      version: environment.version,
      serverOptions: server.options,
      help: NO_HELP,
      open,
    });
    const wanted = wantedAt(program, words);
    stdout.write(await completionText(wanted, liveSource(open(wanted.services))));
  } catch {
    // A shell would print a message into the line that is being typed.
  } finally {
    await running.close();
  }
}
