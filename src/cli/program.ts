import { Command, CommanderError } from 'commander';
import { Failure } from '../contract/failure.ts';
import { addOptions, type CommandFile, declare } from './command.ts';
import { type CommandLine, childOf, readCommandLine } from './command-line.ts';
import { COMMANDS, type CommandEntry, HIDDEN } from './commands.ts';
import { SHELLS } from './completion/scripts.ts';
import type { Environment } from './context.ts';
import { GLOBAL_OPTIONS, type GlobalFlags } from './global-options.ts';
import { formatHelp, laidOut, pathOf, topOf } from './help-layout.ts';
import { HELP_TOPICS, helpTopic, LICENCES, licencesText } from './help-topics.ts';
import { type TextStream, wantsColor } from './print/output.ts';
import { shellOf } from './print/shells.ts';
import type { ServerCommands } from './serve/server.ts';

/** The end of every command's help. */
export const GLOBAL_FLAGS_HINT = '\nGlobal flags, such as --json and --offline: slices-conn help flags';

/** What the command tree takes of its surroundings. */
export interface TreeSurroundings {
  env: Pick<Environment, 'version' | 'variables' | 'licences'>;
  server: Pick<ServerCommands, 'options'>;
  terminal: { stdout: Pick<TextStream, 'isTerminal' | 'columns'> };
}

/** What a {@link CommandTree} does. */
interface TreeActions {
  /** Runs a command. @param command has its arguments and flags */
  act: (run: CommandFile['run'], command: Command) => Promise<void>;
  /** Prints help. */
  write: (text: string) => void;
}

/** Other names that people know from other programs. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  list: ['ls'],
  delete: ['rm', 'cancel'],
  remove: ['rm'],
  reserve: ['book'],
};

/**
 * The whole command tree (cli/README.md, "Commands"). All commands have their names and summaries; arguments, flags and help
 * of one are in its file, which is loaded when the command is run or its help is printed.
 */
export class CommandTree {
  /** The program, with its commands below it. */
  readonly program: Command;
  readonly #around: TreeSurroundings;
  readonly #actions: TreeActions;
  readonly #unloaded = new Map<Command, () => Promise<void>>();
  /** The names of the commands that run where their group is named alone. */
  readonly #usual = new Map<Command, string>();

  /** Nothing is loaded yet. */
  constructor(around: TreeSurroundings, actions: TreeActions) {
    this.#around = around;
    this.#actions = actions;
    const program = new Command('slices-conn')
      .usage('<command> [flags]')
      .description(
        'Books network links between research sites, and proves each booking with a signed reservation.',
      )
      .version(`v${around.env.version}`, '--version', 'print the version')
      .helpOption('-h, --help', 'help on a command')
      .helpCommand(false);
    this.program = program;
    const more = [...HELP_TOPICS, LICENCES].join('|');
    declare(program, {
      examples: [
        'slices-conn --offline reserve be-gent1 pl-poznan1 --bandwidth 1G --start-now --for 2h',
        'slices-conn --offline list',
        'slices-conn login',
      ],
    });
    program.addHelpText('after', `\nMore: slices-conn <command> --help, and slices-conn help ${more}`);
    for (const [heading, commands] of Object.entries(COMMANDS)) {
      for (const [name, entry] of Object.entries(commands)) this.#add(program, name, entry, heading);
    }
    program.addCommand(this.#helpCommand());
    for (const [name, entry] of Object.entries(HIDDEN)) this.#add(program, name, entry);
    this.#addInstallOption();
    addOptions(program, GLOBAL_OPTIONS);
    program.hook('preAction', (_program, command) => checkPaths(command));
    this.#setUp(program);
  }

  /**
   * Loads the command that the words name.
   *
   * @param words without the program's own name; they need not be all
   * @returns the words as that command takes them
   */
  async load(words: readonly string[]): Promise<CommandLine> {
    for (;;) {
      const line = readCommandLine(this.program, words);
      // With its flags known, what follows may be a command below it.
      const usual = childOf(line.command, this.#usual.get(line.command) ?? '');
      if (usual) await this.#loadOne(usual);
      if (!(await this.#loadOne(line.command))) return line;
    }
  }

  /** Loads all commands. */
  async loadAll(): Promise<void> {
    for (const command of [...this.#unloaded.keys()]) await this.#loadOne(command);
  }

  /**
   * Reads the arguments and runs the command that they name.
   *
   * @param args without the program's own name
   * @throws Failure, `usage` for what can't be understood
   */
  async run(args: readonly string[]): Promise<void> {
    await this.load(args);
    try {
      await this.program.parseAsync([...args], { from: 'user' });
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      // A command group without a command shows its help, as gh and kubectl do.
      if (error.exitCode === 0 || error.code === 'commander.help') return;
      const { usageFailure } = await import('./usage-failure.ts');
      throw usageFailure(error, readCommandLine(this.program, args));
    }
  }

  #add(
    parent: Command,
    name: string,
    { summary, load, commands = {}, usual, ...more }: CommandEntry,
    heading?: string,
  ): void {
    const command = new Command(name).aliases(ALSO[name] ?? []).summary(summary);
    if (heading !== undefined) command.helpGroup(heading);
    const isHidden = parent === this.program && heading === undefined;
    parent.addCommand(command, { hidden: isHidden, isDefault: name === this.#usual.get(parent) });
    if (usual !== undefined) this.#usual.set(command, usual);
    for (const [below, entry] of Object.entries(commands)) this.#add(command, below, entry);
    if (load) {
      this.#unloaded.set(command, async () => {
        const file = await load(this.#around.server.options);
        this.#declare(command, { ...file.command, ...more });
        // Commands below it have flags with the names of its own.
        if (command.commands.length > 0) command.enablePositionalOptions();
        command.hook('preAction', () => takeFlagsOfGroup(command));
        command.action(() => this.#actions.act(file.run, command));
      });
    } else this.#declare(command, more);
  }

  #declare(command: Command, declaration: CommandFile['command']): void {
    declare(command, declaration);
    command.addHelpText('after', GLOBAL_FLAGS_HINT);
    this.#setUp(command);
  }

  async #loadOne(command: Command): Promise<boolean> {
    const load = this.#unloaded.get(command);
    this.#unloaded.delete(command);
    await load?.();
    return load !== undefined;
  }

  /** Sets up a command: it throws in place of ending the process. */
  #setUp(command: Command): void {
    command
      .exitOverride()
      .allowExcessArguments(false)
      .showSuggestionAfterError(false)
      .configureHelp({ formatHelp })
      .configureOutput({ writeOut: this.#print, writeErr: this.#print, outputError: () => undefined });
  }

  readonly #print = (text: string): void => {
    const { env, terminal } = this.#around;
    const { isTerminal, columns } = terminal.stdout;
    const { color } = this.program.opts<GlobalFlags>();
    this.#actions.write(
      laidOut(text, {
        columns: isTerminal ? columns : undefined,
        bold: wantsColor(color, env.variables, isTerminal),
        shell: shellOf(env.variables),
      }),
    );
  };

  #helpCommand(): Command {
    const command = new Command('help')
      .summary('help on a command or a topic')
      .argument('[topic...]', 'a command, or one of the topics')
      .helpGroup('Setup:')
      .action(async (topics: string[]) => {
        const [topic] = topics;
        await this.load(topics);
        let found: Command | undefined = this.program;
        for (const name of topics) found = found && childOf(found, name);
        if (found) found.outputHelp();
        else if (topic === LICENCES) this.#actions.write(await licencesText(this.#around.env.licences));
        else this.#print(helpTopic(topic ?? '', this.program));
      });
    this.#declare(command, {});
    return command;
  }

  /** Adds the top level's `--install-completion [SHELL]`, as the official client has it (cli/README.md, "Commands"). */
  #addInstallOption(): void {
    const { program } = this;
    const act = async (): Promise<void> =>
      this.#actions.act((await import('./completion/completion.ts')).install, program);
    addOptions(program, {
      installCompletion: {
        flags: '--install-completion [shell]',
        help: 'set up completion of words for your shell, by default $SHELL',
        choices: SHELLS,
      },
    });
    // Only then: with an action of its own the top level would take a misspelt command for an argument.
    program.on('option:install-completion', () => program.action(act));
  }
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
  const why = 'It got an empty text.';
  for (const option of [...command.options, ...topOf(command).options]) {
    if (flags[option.attributeName()] !== '' || !isPath(option.flags)) continue;
    throw new Failure('usage', `${option.long} needs ${option.flags.split(' ').at(-1)}.`, { why });
  }
  for (const [at, argument] of command.registeredArguments.entries()) {
    if (command.args[at] !== '' || !isPath(argument.name())) continue;
    throw new Failure('usage', `${path} needs <${argument.name()}>.`, { why });
  }
}

/**
 * Moves flags from `serve` to its sub-command. Commander gives a flag that both have to `serve`, even when it was typed
 * after the sub-command.
 *
 * @throws Failure `usage` for a flag that only `serve` has
 */
function takeFlagsOfGroup(command: Command): void {
  const { parent: group } = command;
  for (const option of group?.parent ? group.options : []) {
    const name = option.attributeName();
    if (group?.getOptionValueSource(name) !== 'cli') continue;
    if (!command.options.some(({ long }) => long === option.long)) {
      const path = pathOf(command);
      throw new Failure('usage', `${path.replace('slices-conn ', '')} has no flag ${option.long}.`);
    }
    command.setOptionValueWithSource(name, group.getOptionValue(name), 'cli');
  }
}
