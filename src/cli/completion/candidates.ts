import type { Command, Option } from 'commander';
import { GLOBAL_FLAGS, type ServiceFlags } from '../global-options.ts';
import { HELP_TOPICS } from '../help-topics.ts';
import {
  type CommandLine,
  childOf,
  flagNamed,
  isFlag,
  readCommandLine,
  splitFlag,
  takes,
  takesValue,
} from './command-line.ts';
import { isRepeatable, type Kind, kindOfArgument, kindOfOption, type LiveKind } from './kinds.ts';

/** A word that could be typed, and what it means. */
export interface Candidate {
  readonly value: string;
  /** Empty where the word says it all. */
  readonly description: string;
}

/** What could stand in place of the word to complete. */
export interface Wanted {
  /** As much of it as was typed. */
  readonly typed: string;
  /** What stands before it in the same word: `--flag=`, or nothing. */
  readonly before: string;
  /** What the definitions of the commands know by themselves. */
  readonly known: readonly Candidate[];
  /** What only a file or a service knows, without what the line names already. */
  readonly live?: { readonly kind: LiveKind; readonly without: readonly string[] };
  /** Names of files, which the shell knows best. */
  readonly files: boolean;
  readonly services: ServiceFlags;
}

/** What a {@link Wanted} says beyond the word itself. */
type Choice = Pick<Wanted, 'known' | 'live' | 'files'>;

const NOTHING: Choice = { known: [], files: false };

/**
 * What is wanted in place of the last word (CLI.md, "Commands", completion): a command, a flag, or the value of a flag
 * or an argument, all by the definitions that commander has.
 *
 * @param words without the program's own name; the last is the one to complete, maybe empty
 * @example `reserve be-gent1 ` wants one of the sites, but not be-gent1
 */
export function wantedAt(program: Command, words: readonly string[]): Wanted {
  const word = words.at(-1) ?? '';
  const line = readCommandLine(program, words.slice(0, -1));
  const { services, open, literal } = line;
  const whole = (choice: Choice): Wanted => ({ typed: word, before: '', services, ...choice });
  if (open && takes(open, word)) return whole(valuesOf(open.option, line.command));
  if (literal || !word.startsWith('-')) return whole(operandsAt(line, word));
  const { name, value } = splitFlag(word);
  if (value === undefined) return whole({ ...NOTHING, known: flagsAt(line) });
  const option = flagNamed(line.command, name);
  const choice = option && takesValue(option) ? valuesOf(option, line.command) : NOTHING;
  return { typed: value, before: `${name}=`, services, ...choice };
}

function operandsAt(line: CommandLine, word: string): Choice {
  const { command, operands, literal } = line;
  if (command.commands.length > 0) {
    return operands.length === 0 ? { ...NOTHING, known: commandsOf(command) } : NOTHING;
  }
  const place = command.registeredArguments;
  const argument = place[operands.length] ?? place.findLast(({ variadic }) => variadic);
  if (argument) {
    const { argChoices } = argument;
    return argChoices ? choices(argChoices) : ofKind(kindOfArgument(command, argument), command, operands);
  }
  // Nothing but a flag can follow: then the dash need not be typed to see them.
  const own = word === '' && !literal ? flagsAt(line).filter(({ value }) => isOwn(command, value)) : [];
  return { ...NOTHING, known: own };
}

function valuesOf(option: Option, command: Command): Choice {
  return option.argChoices ? choices(option.argChoices) : ofKind(kindOfOption(option), command, []);
}

function choices(values: readonly string[]): Choice {
  return { ...NOTHING, known: values.map((value) => ({ value, description: '' })) };
}

/** @param named the arguments that the line has already */
function ofKind(kind: Kind | undefined, command: Command, named: readonly string[]): Choice {
  if (kind === undefined) return NOTHING;
  if (kind === 'topics') return topics(command, named);
  return kind === 'files' ? { known: [], files: true } : { ...NOTHING, live: { kind, without: named } };
}

/** `help token issue`: commands below commands, and beside the first of them the topics. */
function topics(command: Command, path: readonly string[]): Choice {
  let found = command.parent ?? undefined;
  for (const name of path) found = found && childOf(found, name);
  const beside = path.length === 0 ? HELP_TOPICS : [];
  return {
    ...NOTHING,
    known: [
      ...(found ? commandsOf(found) : []),
      ...beside.map((value) => ({ value, description: 'help topic' })),
    ],
  };
}

/** The commands that help shows, but not the `help` that commander gives to every group. */
function commandsOf(group: Command): Candidate[] {
  return group
    .createHelp()
    .visibleCommands(group)
    .filter((command) => group.commands.includes(command))
    .map((command) => ({ value: command.name(), description: command.summary() || command.description() }));
}

/** The command's own flags and the global ones, except those that were given and mean nothing when given twice. */
function flagsAt({ command, given }: CommandLine): Candidate[] {
  const help = command.createHelp();
  const options: Option[] = help.visibleOptions(command);
  for (let group = command.parent; group; group = group.parent) {
    options.push(
      ...help.visibleOptions(group).filter(({ helpGroupHeading }) => helpGroupHeading === GLOBAL_FLAGS),
    );
  }
  return options.flatMap((option) => {
    const value = option.long ?? option.short ?? '';
    if (given.includes(option) && !isRepeatable(option)) return [];
    return [{ value, description: option.description }];
  });
}

function isOwn({ options }: Command, flag: string): boolean {
  return isFlag(flag) && options.some(({ long }) => long === flag);
}
