import { Failure } from '../contract/failure.ts';
import { inTimes } from '../contract/said.ts';
import {
  type CommandLine,
  isTyped,
  readCommandLine,
  retypedWords,
  servicesIn,
  valueIn,
} from './command-line.ts';
import { COMPLETE } from './completion/scripts.ts';
import type { Context, Outcome, Surroundings } from './context.ts';
import { EXIT_CODE_OF, type ExitCode } from './exit-codes.ts';
import type { GlobalFlags } from './global-options.ts';
import { isDumb, openContext, Running } from './open-context.ts';
import { startedAs } from './print/as-started.ts';
import { Refusal, reportFailure } from './print/failure-report.ts';
import { asciiText, jsonText } from './print/output.ts';
import { CommandTree } from './program.ts';
import { Declined, numbered } from './questions.ts';
import { type TimeContext, timesIn } from './times.ts';

/**
 * Runs one command.
 *
 * @param args without the program's own name
 * @returns the exit code (cli/README.md, "Exit codes"), after results and errors were printed
 */
export async function run(args: readonly string[], around: Surroundings): Promise<number> {
  const { env, terminal } = around;
  const { stdout, stderr } = terminal;
  if (args[0] === COMPLETE) {
    await answerShell(args.slice(args[1] === '--' ? 2 : 1), around);
    return 0;
  }
  const running = new Running();
  let context: Context | undefined;
  let outcome: NonNullable<Outcome> = 0;
  let isReported = false;
  // A request that was given up may end later than the command: the error object stays the last line.
  const write = (text: string): void => (isReported ? undefined : stderr.write(text));
  const beforeReport: Surroundings = { ...around, terminal: { ...terminal, stderr: { ...stderr, write } } };
  let help = '';
  const tree = new CommandTree(around, {
    write: (text) => {
      help += text;
    },
    async act(act, command) {
      context = openContext(command.optsWithGlobals<GlobalFlags>(), typed(), beforeReport, running);
      outcome = (await act(context, command.args, command.opts<never>())) ?? 0;
    },
  });
  // Commander may have stopped at a wrong flag: --json is read from all that was typed.
  const typed = (): CommandLine => readCommandLine(tree.program, args);
  const has = (member: string): boolean => isTyped(typed(), member);
  const printHelp = (): void => {
    if (help === '') return;
    const text = isDumb(around) ? asciiText(help, { spelled: true }) : help;
    const { version } = env;
    stdout.write(has('json') ? `${jsonText(has('version') ? { version } : { help })}\n` : text);
  };
  const report = (error: unknown, times?: TimeContext): ExitCode => {
    isReported = true;
    const [started, nothingChanged] = [startedAs(env), running.sent.isNothing];
    return reportFailure(error, { stderr, typed: typed(), started, times, nothingChanged });
  };
  around.processes.onStop((stopped) => {
    running.progress?.stop();
    if (stopped instanceof Error) return report(running.sent.unwritten(stopped));
    // The line holds the terminal's own ^C, or a question without an answer.
    if (stderr.isTerminal) {
      stderr.write('\n');
      if (running.sent.isStopExpected) return EXIT_CODE_OF[stopped];
    }
    return report(running.sent.failure(stopped));
  });
  /** Runs another command line in place of this one. */
  const goOn = async (words: readonly string[]): Promise<number> => {
    await running.close();
    return run(words, around);
  };
  try {
    await tree.run(args);
    if (typeof outcome !== 'number') return await goOn(outcome);
    printHelp();
    return outcome;
  } catch (error) {
    if (error instanceof Declined) {
      context?.output.notice(error.message);
      return 0;
    }
    if (!context) await removeReadyFile(typed(), around);
    // Where the profile can't be read, the failure says so, and its own text needs no zone.
    const times = await context?.clock.times().catch(() => undefined);
    const exitCode = report(await explained(error, running, around), times);
    if (!(error instanceof Refusal && context)) return exitCode;
    isReported = false;
    const words = await picked(error, context);
    isReported = true;
    return words ? await goOn(words) : exitCode;
  } finally {
    await running.close();
  }
}

/**
 * Removes the ready file of an earlier server where `serve` can't even be understood: a script that waits for the file must not
 * find that one.
 */
async function removeReadyFile(typed: CommandLine, { files }: Surroundings): Promise<void> {
  const file = typed.command.name() === 'serve' ? valueIn(typed, 'readyFile') : undefined;
  if (file !== undefined) await files.remove(file).catch(() => undefined);
}

/** A failure with what is known of the tokens that the command was given. */
async function explained(error: unknown, { taken }: Running, { clock }: Surroundings): Promise<unknown> {
  if (!(error instanceof Failure) || taken.size === 0) return error;
  const { tokenExplained } = await import('../session/login/given-tokens.ts');
  return tokenExplained(error, [...taken.values()], clock.now());
}

/**
 * Lets a person pick one of the offers of a refusal, which was printed.
 *
 * @returns the command that asks for it, with an idempotency key of its own; undefined where none is picked, and without a
 *   person to ask
 */
async function picked({ offers }: Refusal, context: Context): Promise<string[] | undefined> {
  const { terminal, flags, output, clock, typed } = context;
  if (!terminal.ask || flags.json || flags.yes || isTyped(typed, 'dryRun')) return undefined;
  const offer = await numbered(context, 'Which number? (Enter: none) ', offers);
  if (!offer) return undefined;
  output.prompt(`Asking for ${inTimes(offer.label, timesIn(await clock.times()))}.`);
  return retypedWords(typed, { ...offer.changes, idempotencyKey: undefined }, ...offer.more);
}

/** Answers a shell that completes a word: with candidates, or with nothing after any error. */
async function answerShell(words: readonly string[], around: Surroundings): Promise<void> {
  const running = new Running();
  try {
    const [{ completionText }, { liveSource }] = await Promise.all([
      import('./completion/candidates.ts'),
      import('./completion/live-source.ts'),
    ]);
    const tree = new CommandTree(around, { act: async () => undefined, write: () => undefined });
    const line = await tree.load(words.slice(0, -1));
    // Nobody is asked, and nothing is said beside the candidates.
    const flags = { ...servicesIn(line), quiet: true, input: false };
    const source = liveSource(openContext(flags, line, around, running));
    around.terminal.stdout.write(await completionText(line, words.at(-1) ?? '', source));
  } catch {
    // A shell would print a message into the line that is being typed.
  } finally {
    await running.close();
  }
}
