import { Command, CommanderError } from 'commander';
import { Failure } from '../contract/failure.ts';
import { addInstallOption, completionCommand } from './completion/command.ts';
import { readCommandLine } from './completion/command-line.ts';
import { experimentCommand } from './experiment/command.ts';
import { addGlobalOptions, type GlobalFlags } from './global-options.ts';
import { HELP_TOPICS, helpTopic } from './help-topics.ts';
import type { Action, Invocation, Invoke } from './invocation.ts';
import { loginCommand, logoutCommand, statusCommand } from './login/command.ts';
import { plannedIn } from './planned.ts';
import { profileCommand } from './profile/command.ts';
import { projectCommand } from './project/command.ts';
import { deleteCommand } from './reservation/delete/command.ts';
import { listCommand } from './reservation/list/command.ts';
import { reserveCommand } from './reservation/reserve/command.ts';
import { showCommand } from './reservation/show/command.ts';
import { updateCommand } from './reservation/update/command.ts';
import { serveCommand } from './serve/command.ts';
import type { ServerOptions } from './serve/server.ts';
import { sitesCommand } from './sites/command.ts';
import { tokenCommand } from './token/command.ts';
import { userCommand } from './user/command.ts';
import { verifyCommand } from './verify/command.ts';

/** What the help of every command ends with. */
export const GLOBAL_FLAGS_HINT = '\nGlobal flags, such as --json and --offline: slices-conn --help';

/** What the command tree needs. */
export interface ProgramOptions {
  version: string;
  /** The flags of `serve` and of the commands below it. */
  serverOptions: ServerOptions;
  /** Opens the invocation of an action. */
  open: (flags: GlobalFlags) => Invocation;
  /** Takes help texts. */
  write: (text: string) => void;
}

/** The whole command tree (CLI.md, "Commands"). */
export function createProgram({ version, serverOptions, open, write }: ProgramOptions): Command {
  const invoke: Invoke = <Flags>(load: () => Promise<Action<Flags>>) => {
    return async (...received: unknown[]) => {
      const command = received.at(-1);
      if (!(command instanceof Command)) throw new TypeError('commander gave no command');
      const act = await load();
      await act(open(command.optsWithGlobals<GlobalFlags>()), command.args, command.opts() as Flags);
    };
  };
  const program = new Command('slices-conn')
    .description(
      'Books network links between research sites, and proves each booking with a signed reservation.',
    )
    .version(`v${version}`, '--version', 'print the version')
    .helpCommand(false)
    .addHelpText(
      'after',
      `
Help topics: slices-conn help ${HELP_TOPICS.join(' | ')}

Examples:
  slices-conn --offline reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 2h
  slices-conn login && slices-conn list
  slices-conn verify link.jwt --json`,
    );
  for (const make of [
    reserveCommand,
    listCommand,
    showCommand,
    updateCommand,
    deleteCommand,
    verifyCommand,
    loginCommand,
    logoutCommand,
    statusCommand,
    userCommand,
    sitesCommand,
    experimentCommand,
    projectCommand,
    profileCommand,
    tokenCommand,
    (invoke: Invoke) => serveCommand(invoke, serverOptions),
    completionCommand,
  ]) {
    program.addCommand(make(invoke));
  }
  program.addCommand(helpCommand(program, write));
  addInstallOption(program, invoke);
  addGlobalOptions(program);
  prepare(program, write);
  return program;
}

function helpCommand(program: Command, write: (text: string) => void): Command {
  return new Command('help')
    .summary(`help on a command or a topic: ${HELP_TOPICS.join(', ')}`)
    .argument('[topic...]')
    .action((topics: string[]) => {
      const [topic] = topics;
      let found: Command | undefined = program;
      for (const name of topics) found = found?.commands.find((command) => command.name() === name);
      const planned = plannedIn({ command: program, operands: topics, unknown: [] });
      if (found) found.outputHelp();
      else if (planned !== undefined) throw notBuiltYet(planned);
      else write(helpTopic(topic ?? ''));
    });
}

/** Sets up every command: it throws instead of ending the process, and its help ends with the hint. */
function prepare(command: Command, write: (text: string) => void): void {
  command
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput({ writeOut: write, writeErr: write, outputError: () => undefined });
  const { parent } = command;
  if (parent) command.addHelpText('after', GLOBAL_FLAGS_HINT);
  for (const child of command.commands) prepare(child, write);
}

/**
 * Reads the arguments and runs the command that they name.
 *
 * @param args without the program's own name
 * @throws Failure, `usage` for what can't be understood
 */
export async function runProgram(program: Command, args: readonly string[]): Promise<void> {
  try {
    await program.parseAsync([...args], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // A command group without a command shows its help, as gh and kubectl do.
    if (error.exitCode === 0 || error.code === 'commander.help') return;
    const planned = plannedIn(readCommandLine(program, args));
    throw planned === undefined ? usage(error) : notBuiltYet(planned);
  }
}

function notBuiltYet(name: string): Failure {
  return new Failure('planned', `slices-conn ${name} is planned, and not built yet.`, {
    why: 'This version does not have it.',
    fix: 'slices-conn --help',
  });
}

/** Commander's message as a failure: its first line is the message, its suggestion the reason. */
function usage(error: CommanderError): Failure {
  const [what = '', ...rest] = error.message.replace(/^error: /, '').split('\n');
  const hint = rest
    .join(' ')
    .replace(/^\((.*)\)$/, '$1')
    .trim();
  return new Failure('usage', `${what.charAt(0).toUpperCase()}${what.slice(1)}.`.replace(/\.\.$/, '.'), {
    ...(hint === '' ? {} : { why: hint }),
    fix: 'slices-conn --help',
  });
}
