import { Command, CommanderError } from 'commander';
import { Failure, ownCommand, shellWord } from '../contract/failure.ts';
import { refusedValue } from '../contract/foreign-errors.ts';
import { availabilityCommand } from './availability/command.ts';
import { addInstallOption, completionCommand } from './completion/command.ts';
import { type CommandLine, childOf, readCommandLine } from './completion/command-line.ts';
import type { CommandAction, Context, Environment, Invoke, Outcome } from './context.ts';
import { experimentCommand, projectCommand } from './directory/command.ts';
import { addGlobalOptions, type GlobalFlags } from './global-options.ts';
import { formatHelp, type HelpPage, laidOut, pathOf } from './help-layout.ts';
import { HELP_TOPICS, helpTopic, LICENCES, licencesText } from './help-topics.ts';
import { loginCommand, logoutCommand, statusCommand } from './login/command.ts';
import { applyCommand, planCommand } from './plan/command.ts';
import type { ColorChoice } from './print/output.ts';
import type { AdviceShell } from './print/shells.ts';
import { probeCommand } from './probe/command.ts';
import { profileCommand } from './profile/command.ts';
import { deleteCommand } from './reservation/delete/command.ts';
import { listCommand } from './reservation/list/command.ts';
import { reserveCommand } from './reservation/reserve/command.ts';
import { guardianCommand, runCommand } from './reservation/run/command.ts';
import { showCommand } from './reservation/show/command.ts';
import { updateCommand } from './reservation/update/command.ts';
import { watchCommand } from './reservation/watch/command.ts';
import { serveCommand } from './serve/command.ts';
import type { ServerOptions } from './serve/server.ts';
import { sitesCommand } from './sites/command.ts';
import { tokenCommand } from './token/command.ts';
import { userCommand } from './user/command.ts';
import { verifyCommand } from './verify/command.ts';
import { vlanCommand } from './vlan/command.ts';

/** The end of every command's help. */
export const GLOBAL_FLAGS_HINT = '\nGlobal flags, such as --json and --offline: slices-conn help flags';

/** Options of {@link createCommandTree}. */
interface CommandTreeOptions {
  version: string;
  /** The flags of `serve` and of the commands below it. */
  serverOptions: ServerOptions;
  /** Opens the context of an action. */
  open: (flags: GlobalFlags) => Context;
  /** Takes what is left to do after an action. */
  done?: (outcome: Outcome) => void;
  help: HelpOutput;
}

/** Where help is printed. */
interface HelpOutput {
  /** Columns of the terminal; undefined without one. */
  columns: number | undefined;
  /** The shell that examples are typed in. */
  shell: AdviceShell;
  /** Whether it is coloured. @param choice the value of `--color` */
  paints: (choice?: ColorChoice) => boolean;
  write: (text: string) => void;
  /** Reads what the topic of the licences prints. */
  licences: Environment['licences'];
}

/** Help that is printed nowhere. */
export const NO_HELP: HelpOutput = {
  columns: undefined,
  shell: 'posix',
  paints: () => false,
  write: () => undefined,
  licences: async () => undefined,
};

/** Other names that people know from other programs. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  list: ['ls'],
  delete: ['rm', 'cancel'],
  remove: ['rm'],
  reserve: ['book'],
};

/**
 * Commands and flags of other programs, such as the official client, and what is meant here: the first that exists where the word
 * was typed. A word in capitals stands for the next one that was typed.
 */
const MEANT: Readonly<Record<string, readonly string[]>> = {
  ...{ create: ['reserve'], new: ['reserve'], edit: ['update'], get: ['show'], reservations: ['list'] },
  ...{ release: ['delete'], destroy: ['delete'], rename: ['update ID --name NAME'] },
  ...{ extend: ['update ID --extend DURATION'], 'list-resources': ['sites'] },
  ...{ bi: ['reserve'], 'bi create': ['reserve'], 'bi list': ['list'], 'bi show': ['show'] },
  ...{
    'bi destroy': ['delete'],
    'bi extend': ['update ID --extend DURATION'],
    'bi list-resources': ['sites'],
  },
  ...{
    auth: ['login'],
    'auth login': ['login'],
    'auth logout': ['logout'],
    'auth show': ['status'],
    'auth status': ['status'],
  },
  ...{ '--duration': ['--for', '--end +DURATION'], '-d': ['--for', '--end +DURATION'] },
  ...{ '--bw': ['--bandwidth'], '-b': ['--bandwidth'] },
  ...{ '--format json': ['--json'], '--output json': ['--json'], '-o json': ['--json'] },
};

/**
 * What is meant by a word of another program, as {@link MEANT} says it, and the typed command line with it. A value that was not
 * typed is left out with its flag.
 *
 * @param known the commands or flags that can stand in the word's place
 */
function meantBy(
  wrong: string,
  typed: readonly string[],
  known: readonly string[],
): { meant: string; words: string[] } | undefined {
  const at = typed.findIndex((word) => word === wrong || word.startsWith(`${wrong}=`));
  const [, attached] = typed[at]?.split('=') ?? [];
  const rest = typed.slice(at + 1);
  if (attached !== undefined) rest.unshift(attached);
  const two = MEANT[`${wrong} ${rest[0]}`];
  const meant = (two ?? MEANT[wrong])?.find((each) => known.includes(each.split(' ')[0] ?? ''));
  if (meant === undefined) return undefined;
  if (two) rest.shift();
  // What follows an unknown command of a group is for that command.
  else if (Object.keys(MEANT).some((key) => key.startsWith(`${wrong} `))) rest.length = 0;
  const filled: string[] = [];
  for (const word of meant.split(' ')) {
    const isValue = /[A-Z]$/.test(word);
    if (!isValue) filled.push(word);
    else if (rest[0] !== undefined && !rest[0].startsWith('-'))
      filled.push(word.replace(/[A-Z]+$/, rest.shift() ?? ''));
    else if (filled.at(-1)?.startsWith('--')) filled.pop();
  }
  if (attached !== undefined && attached === rest[0]) filled.push(`${filled.pop()}=${rest.shift()}`);
  return { meant, words: [...typed.slice(0, at), ...filled, ...rest] };
}

/** The whole command tree (cli/README.md, "Commands"). */
export function createCommandTree({
  version,
  serverOptions,
  open,
  done = () => undefined,
  help,
}: CommandTreeOptions): Command {
  const invoke: Invoke = <Flags>(load: () => Promise<CommandAction<Flags>>) => {
    return async (...received: unknown[]) => {
      const command = received.at(-1);
      if (!(command instanceof Command)) throw new TypeError('commander gave no command');
      const act = await load();
      done(
        (await act(open(command.optsWithGlobals<GlobalFlags>()), command.args, command.opts() as Flags)) ?? 0,
      );
    };
  };
  const page = (): HelpPage => ({
    columns: help.columns,
    bold: help.paints(program.opts<GlobalFlags>().color),
    shell: help.shell,
  });
  const print = (text: string): void => help.write(laidOut(text, page()));
  const program = new Command('slices-conn')
    .usage('<command> [flags]')
    .description(
      'Books network links between research sites, and proves each booking with a signed reservation.',
    )
    .version(`v${version}`, '--version', 'print the version')
    .helpOption('-h, --help', 'help on a command')
    .helpCommand(false)
    .addHelpText(
      'after',
      `
Examples:
  slices-conn --offline reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 2h
  slices-conn --offline list
  slices-conn login

More: slices-conn <command> --help, and slices-conn help ${[...HELP_TOPICS, LICENCES].join('|')}`,
    );
  for (const [group, commands] of Object.entries<((invoke: Invoke) => Command)[]>({
    'Reservations:': [
      reserveCommand,
      runCommand,
      listCommand,
      showCommand,
      updateCommand,
      deleteCommand,
      watchCommand,
      planCommand,
      applyCommand,
      availabilityCommand,
      sitesCommand,
      vlanCommand,
      probeCommand,
    ],
    'Login and experiments:': [
      loginCommand,
      logoutCommand,
      statusCommand,
      userCommand,
      experimentCommand,
      projectCommand,
    ],
    'Tokens:': [verifyCommand, tokenCommand],
    'Server:': [() => serveCommand(invoke, serverOptions)],
    'Setup:': [profileCommand, completionCommand, () => helpCommand(program, print, help)],
  })) {
    for (const make of commands) program.addCommand(make(invoke).helpGroup(group));
  }
  const whoAmI = new Command('whoami')
    .summary('show your name, id and roles, as user show does')
    .action(invoke(async () => (await import('./user/run.ts')).showUser));
  const versionCommand = new Command('version').summary('print the version').action(
    invoke(
      async () =>
        async ({ output }) =>
          output.result({ version }, () => `v${version}\n`),
    ),
  );
  for (const other of [whoAmI, versionCommand, guardianCommand(invoke)]) {
    program.addCommand(other, { hidden: true });
  }
  addInstallOption(program, invoke);
  addGlobalOptions(program);
  program.hook('preAction', (_program, command) => checkPaths(command));
  prepare(program, print);
  return program;
}

function helpCommand(
  program: Command,
  print: (text: string) => void,
  { write, licences }: HelpOutput,
): Command {
  return new Command('help')
    .summary('help on a command or a topic')
    .argument('[topic...]', 'a command, or one of the topics')
    .action(async (topics: string[]) => {
      const [topic] = topics;
      let found: Command | undefined = program;
      for (const name of topics) found = found && childOf(found, name);
      if (found) found.outputHelp();
      else if (topic === LICENCES) write(await licencesText(licences));
      else print(helpTopic(topic ?? '', program));
    });
}

/**
 * Checks that no path is an empty text, as an unset variable of a script makes it: `reserve --save ''` would find out when the
 * link is booked.
 *
 * @throws Failure `usage`
 */
function checkPaths(command: Command): void {
  const flags = command.optsWithGlobals<Readonly<Record<string, unknown>>>();
  const isPath = (usage: string): boolean => /\b(?:file|dir)\b(?=[|>]|$)/.test(usage);
  const path = pathOf(command);
  const fix = `${path} --help`;
  const why = 'It got an empty text.';
  for (const option of [...command.options, ...topOf(command).options]) {
    if (flags[option.attributeName()] !== '' || !isPath(option.flags)) continue;
    throw new Failure('usage', `${option.long} needs ${option.flags.split(' ').at(-1)}.`, { why, fix });
  }
  for (const [at, argument] of command.registeredArguments.entries()) {
    if (command.args[at] !== '' || !isPath(argument.name())) continue;
    throw new Failure('usage', `${path} needs <${argument.name()}>.`, { why, fix });
  }
}

/** Sets up every command: it throws in place of ending the process, and its help ends with the hint. */
function prepare(command: Command, print: (text: string) => void): void {
  const { parent } = command;
  command
    .aliases(ALSO[command.name()] ?? [])
    .exitOverride()
    .allowExcessArguments(false)
    .showSuggestionAfterError(false)
    .configureHelp({ formatHelp })
    .configureOutput({ writeOut: print, writeErr: print, outputError: () => undefined });
  if (parent) command.addHelpText('after', GLOBAL_FLAGS_HINT);
  for (const child of command.commands) prepare(child, print);
}

/**
 * Reads the arguments and runs the command that they name.
 *
 * @param args without the program's own name
 * @throws Failure, `usage` for what can't be understood
 */
export async function runCommandTree(program: Command, args: readonly string[]): Promise<void> {
  try {
    await program.parseAsync([...args], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // A command group without a command shows its help, as gh and kubectl do.
    if (error.exitCode === 0 || error.code === 'commander.help') return;
    throw await usage(error, readCommandLine(program, args), args);
  }
}

/**
 * Commander's message as a failure. The next step is the typed command with the word that was meant, else the help of the
 * command.
 */
async function usage(
  { message, code }: CommanderError,
  { command, operands, unknown: [flag] }: CommandLine,
  typed: readonly string[],
): Promise<Failure> {
  const path = pathOf(command);
  const [word] = operands;
  const help = `${path} --help`;
  const [{ nearest }, { missingFailure }] = await Promise.all([
    import('../session/choice.ts'),
    import('./advice.ts'),
  ]);
  const unknown = (what: string, wrong: string, known: readonly string[]): Failure => {
    const says = `${path} has no ${what} ${wrong}.`;
    const other = meantBy(wrong, typed, known);
    if (other)
      return new Failure('usage', `${says} Did you mean ${other.meant}?`, {
        fix: ownCommand(...other.words),
      });
    const near = nearest(wrong, known);
    if (near === undefined) return new Failure('usage', says, { fix: help });
    const words = typed.map((each) => (each === wrong ? near : each.replace(`${wrong}=`, `${near}=`)));
    return new Failure('usage', `${says} Did you mean ${near}?`, { fix: ownCommand(...words) });
  };
  const names = command.commands.map((child) => child.name());
  // Flags after it are unknown without it; a word after an unknown flag may be that flag's value.
  if (names.length > 0 && word !== undefined && flag?.after !== 0) return unknown('command', word, names);
  // A misspelt flag that is required is missing too, but that does not help.
  if (flag !== undefined) return unknown('flag', flag.name, flagNames(command));
  const what = message.replace(/^error: /, '');
  const [, named = ''] = /'(.*?)'/.exec(what) ?? [];
  const [long = '', value = ''] = named.split(' ');
  const [, flagValue, fault = ''] = / argument '(.*)' is invalid\. (.*)$/s.exec(what) ?? [];
  if (flagValue !== undefined)
    return new Failure('usage', refusedValue(`${long} ${flagValue}`, fault), { fix: help });
  const [, operand, choices = ''] =
    /^command-argument value '(.*)' is invalid for argument '\w+'\. (.*)$/s.exec(what) ?? [];
  if (operand !== undefined)
    return new Failure('usage', refusedValue(`${path} ${operand}`, choices), { fix: help });
  switch (code) {
    case 'commander.optionMissingArgument':
      return new Failure('usage', `${long} needs ${value}.`, { fix: help });
    case 'commander.excessArguments': {
      const surplus = operands.slice(command.registeredArguments.length);
      const quoted = unquoted(command, typed, surplus);
      if (quoted) {
        const [words, part] = quoted;
        return new Failure('usage', `${path} does not take ${surplus.join(' ')}.`, {
          why: `Put a value of several words in quotes: ${part}`,
          fix: ownCommand(...words),
        });
      }
      return new Failure('usage', `${path} does not take ${surplus.join(' ')}.`, { fix: help });
    }
    case 'commander.missingArgument':
    case 'commander.missingMandatoryOptionValue':
      return missingFailure(path, missingParts(command, operands));
    default:
      return new Failure('usage', `${what.charAt(0).toUpperCase()}${what.slice(1)}.`.replace(/\.\.$/, '.'), {
        fix: help,
      });
  }
}

/**
 * The typed words with a flag's value in quotes, where its last words were taken for arguments, and that flag with its value;
 * undefined where no flag stands before them.
 */
function unquoted(
  command: Command,
  typed: readonly string[],
  surplus: readonly string[],
): [string[], string] | undefined {
  const valued = command.options.filter(({ required, optional }) => required || optional);
  const at = typed.findIndex(
    (word, index) =>
      valued.some(({ long }) => long === word) &&
      surplus.every((each, next) => typed[index + 2 + next] === each),
  );
  const [flag = '', ...value] = typed.slice(at, at + 2 + surplus.length);
  if (at === -1 || value[0]?.startsWith('-')) return undefined;
  const part = [flag, value.join(' ')];
  const words = [...typed.slice(0, at), ...part, ...typed.slice(at + 2 + surplus.length)];
  return [words, part.map(shellWord).join(' ')];
}

/** The arguments and flags that a command needs and that were not typed: arguments first. */
function missingParts(command: Command, operands: readonly string[]): string[] {
  const missing = command.registeredArguments.slice(operands.length).filter(({ required }) => required);
  const unset = command.options.filter(
    (option) => option.mandatory && command.getOptionValue(option.attributeName()) === undefined,
  );
  return [
    ...missing.map((argument) => `<${argument.name()}${argument.variadic ? '...' : ''}>`),
    ...unset.map(({ flags }) => flags),
  ];
}

/** The flags that a command takes, global ones included; a group's own flags are not for the commands below it. */
function flagNames(command: Command): string[] {
  return [...new Set([command, topOf(command)])].flatMap(({ options }) =>
    options.flatMap(({ long }) => long ?? []),
  );
}

/** The command that all others are below. */
function topOf(command: Command): Command {
  return command.parent ? topOf(command.parent) : command;
}
