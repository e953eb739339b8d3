import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import type { OptionDeclaration, OptionTable } from '../contract/flags.ts';
import type { Context, Outcome } from './context.ts';

/** The words after a command's name, and the text of its help. */
export interface CommandDeclaration {
  /** What the command does, a line for each sentence. Default: its summary. */
  about?: string;
  /** The words after its name in its usage. Default: made from the arguments and flags. */
  usage?: string;
  /** Its arguments as a usage has them, such as `<site1>` and `[id...]`: what each is, or the values that there are. */
  args?: Readonly<Record<string, string | { help: string; choices: readonly string[] }>>;
  /** Its flags, by the members of `flags` that hold their values. */
  options?: OptionTable;
  /** The members whose flags its help shows, where these are not all; `--help --all` shows the others too. */
  first?: readonly string[];
  /** Text of its help between the flags and the examples. */
  notes?: string;
  /** Lines of its help: commands, and comments before them. */
  examples?: readonly string[];
}

/** A command: each has a file that exports these two, or a few of a noun share one. */
export interface CommandFile {
  readonly command: CommandDeclaration;
  /** Runs it. @param args its arguments @param flags the values of its options */
  readonly run: (context: Context, args: readonly string[], flags: never) => Promise<Outcome> | Promise<void>;
}

/** Gives a command of commander the arguments, flags and help that a declaration says. */
export function declare(
  command: Command,
  { about, usage, args = {}, options = {}, first, notes, examples }: CommandDeclaration,
): void {
  if (about !== undefined) command.description(about);
  if (usage !== undefined) command.usage(usage);
  for (const [name, about] of Object.entries(args)) {
    const { help, choices = undefined } = typeof about === 'string' ? { help: about } : about;
    const argument = new Argument(name, help);
    command.addArgument(choices ? argument.choices(choices) : argument);
  }
  addOptions(command, options, first);
  const lines = examples && ['Examples:', ...examples.map((line) => (line === '' ? '' : `  ${line}`))];
  const texts = [notes, lines?.join('\n')].filter((text) => text !== undefined);
  if (texts.length > 0) command.addHelpText('after', `\n${texts.join('\n\n')}`);
}

/** A flag as it was declared. */
export class DeclaredOption extends Option {
  /** Whether only `--help --all` shows it. */
  isRare = false;
}

/** Adds declared flags to a command, in their order. @param first see {@link CommandDeclaration}; default: all */
export function addOptions(
  command: Command,
  options: OptionTable,
  first: readonly string[] = Object.keys(options),
): void {
  let heading: string | undefined;
  for (const [member, declared] of Object.entries(options)) {
    heading = declared.group ?? heading;
    const option = optionOf(declared);
    option.isRare = !first.includes(member);
    command.addOption(heading === undefined ? option : option.helpGroup(heading));
  }
}

function optionOf(declared: OptionDeclaration): DeclaredOption {
  const { flags, help, parse, choices, conflicts, defaultText, required = false } = declared;
  const option = new DeclaredOption(flags, help);
  option.makeOptionMandatory(required);
  if (choices) option.choices(choices);
  // It replaces the check that `choices` sets.
  if (parse)
    option.argParser<unknown>((text, before) => {
      try {
        return parse(text, before as never);
      } catch (error) {
        throw error instanceof RangeError ? new InvalidArgumentError(error.message) : error;
      }
    });
  if (conflicts) option.conflicts([...conflicts]);
  if ('default' in declared) option.default(declared.default, defaultText);
  return option;
}
