import type { Argument, Command, Option } from 'commander';
import {
  argumentsOf,
  type CommandLine,
  childOf,
  flagNamed,
  isFlag,
  isTyped,
  splitFlag,
  takes,
  takesValue,
} from '../command-line.ts';
import { GLOBAL_FLAGS } from '../global-options.ts';
import { HELP_TOPICS, LICENCES } from '../help-topics.ts';
import { escapeText } from '../print/output.ts';

/** A word that could be typed, and what it means. */
export interface Candidate {
  readonly value: string;
  /** Empty where the word needs no explanation. */
  readonly description: string;
}

/** The candidates for the word to complete, and where to find more. */
export interface Wanted {
  /** The part of the word that was typed. */
  readonly typed: string;
  /** The text before it in the same word: `--flag=`, and the names before the last one of a list. */
  readonly before: string;
  /** Candidates that the command definitions give. */
  readonly known: readonly Candidate[];
  /** Candidates that a file or a service knows, without those that the line has already. */
  readonly live?: {
    readonly kind: LiveKind;
    readonly without: readonly string[];
    /** The command's first argument, where the candidates depend on it. */
    readonly of?: string;
  };
  /** Whether the shell should add names of files. */
  readonly files: boolean;
}

/** The members of a {@link Wanted} beside the word itself. */
type Choice = Pick<Wanted, 'known' | 'live' | 'files'>;

const NOTHING: Choice = { known: [], files: false };

/**
 * Finds what the last word can be (cli/README.md, "Commands", completion): a command, a flag, or the value of
 * a flag or an argument, by commander's definitions.
 *
 * @param line the words before it @param word as far as it is typed, maybe empty
 * @example after `reserve be-gent1 ` the word is a site, but not be-gent1
 */
export function wantedAt(line: CommandLine, word: string): Wanted {
  const { open } = line;
  const whole = (choice: Choice): Wanted => ({ typed: word, before: '', ...choice });
  if (open && takes(open, word)) return ofList(whole(valuesOf(open.option, line)), open.option);
  if (isLiteral(line) || !word.startsWith('-')) return whole(operandsAt(line, word));
  const { name, value } = splitFlag(word);
  if (value === undefined) return whole({ ...NOTHING, known: flagsAt(line) });
  const option = flagNamed(line.command, name);
  const choice = option && takesValue(option) ? valuesOf(option, line) : NOTHING;
  return ofList({ typed: value, before: `${name}=`, ...choice }, option);
}

/** Of a list of sites, the last one is completed, and those before it are not wanted again. */
function ofList({ live, ...wanted }: Wanted, option: Option | undefined): Wanted {
  if (!live || !option || valueName(option) !== 'sites') return { ...wanted, live };
  const names = wanted.typed.split(',');
  const typed = names.pop() ?? '';
  const before = [wanted.before, ...names.map((name) => `${name},`)].join('');
  return { ...wanted, typed, before, live: { ...live, without: [...live.without, ...names] } };
}

/** Whether `--` was typed: every word after it is an argument. */
function isLiteral({ words }: CommandLine): boolean {
  return words.some(({ is }) => is === '--');
}

function operandsAt(line: CommandLine, word: string): Choice {
  const { command } = line;
  const [operands, literal] = [argumentsOf(line), isLiteral(line)];
  if (command.commands.length > 0) {
    return operands.length === 0 ? { ...NOTHING, known: commandsOf(command) } : NOTHING;
  }
  const place = command.registeredArguments;
  const argument = place[operands.length] ?? place.findLast(({ variadic }) => variadic);
  // Another program's command comes after `--`; before it, the flags of this one.
  if (argument && (literal || argument.name() !== 'command')) {
    const { argChoices } = argument;
    return argChoices ? choices(argChoices) : ofKind(kindOfArgument(command, argument), command, operands);
  }
  // Only a flag can follow, so flags are offered before the dash is typed.
  const own = word === '' && !literal ? flagsAt(line).filter(({ value }) => isOwn(command, value)) : [];
  return { ...NOTHING, known: own };
}

function valuesOf(option: Option, line: CommandLine): Choice {
  const { command } = line;
  const operands = argumentsOf(line);
  const kind = kindOfOption(option);
  if (kind === 'ends') return { ...NOTHING, live: { kind, without: [], of: operands[0] } };
  // A route passes neither of its ends.
  return option.argChoices
    ? choices(option.argChoices)
    : ofKind(kind, command, kind === 'sites' ? operands : []);
}

function choices(values: readonly string[]): Choice {
  return { ...NOTHING, known: values.map((value) => ({ value, description: '' })) };
}

/** @param named the arguments that the line has already */
function ofKind(kind: Kind | undefined, command: Command, named: readonly string[]): Choice {
  if (kind === undefined) return NOTHING;
  if (kind === 'topics') return topics(command, named);
  if (kind === 'reservations or files')
    return { known: [], files: true, live: { kind: 'reservations', without: named } };
  return kind === 'files' ? { known: [], files: true } : { ...NOTHING, live: { kind, without: named } };
}

/** The words after `help`: commands and their sub-commands; as the first word also the topics. */
function topics(command: Command, path: readonly string[]): Choice {
  let found = command.parent ?? undefined;
  for (const name of path) found = found && childOf(found, name);
  const beside = path.length === 0 ? [...HELP_TOPICS, LICENCES] : [];
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

/** The command's own flags and the global ones, except flags that were given and can't be repeated. */
function flagsAt(line: CommandLine): Candidate[] {
  const { command } = line;
  const help = command.createHelp();
  const options: Option[] = help.visibleOptions(command);
  for (let group = command.parent; group; group = group.parent) {
    options.push(
      ...help.visibleOptions(group).filter(({ helpGroupHeading }) => helpGroupHeading === GLOBAL_FLAGS),
    );
  }
  return options.flatMap((option) => {
    const value = option.long ?? option.short ?? '';
    if (isTyped(line, option.attributeName()) && !isRepeatable(option)) return [];
    return [{ value, description: option.description }];
  });
}

function isOwn({ options }: Command, flag: string): boolean {
  return isFlag(flag) && options.some(({ long }) => long === flag);
}

/** Values that a file or a service knows. */
type LiveKind = keyof CompletionSource;

/** The kind of a flag's or an argument's value, where commander has no choices for it. */
export type Kind = LiveKind | 'files' | 'topics' | 'reservations or files';

/**
 * The kind of each value, by the name that help gives it: a flag's own name, or else the word between its
 * brackets; an argument's name, after that of its group where the group decides. Other values have no
 * candidates: a time, a bandwidth, a new name.
 *
 * @example `--save <file>` is found as `file`, the argument of `experiment show [id]` as `experiment id`
 */
export const KIND_OF = {
  '--profile': 'profiles',
  '--experiment': 'experiments',
  '--project': 'projects',
  'profile name': 'profiles',
  'experiment id': 'experiments',
  'project id': 'projects',
  id: 'reservations',
  'id|file': 'reservations or files',
  end: 'ends',
  site1: 'sites',
  site2: 'sites',
  site: 'sites',
  sites: 'sites',
  file: 'files',
  command: 'files',
  'file|url': 'files',
  dir: 'files',
  topic: 'topics',
} as const satisfies Readonly<Record<string, Kind>>;

/** Flags that may be repeated. Variadic flags always may. */
const REPEATABLE: ReadonlySet<string | undefined> = new Set([
  '--claim',
  '--trust',
  '--ci-issuer',
  '--administrator',
]);

/** The kind of a flag's value; undefined for free text. */
export function kindOfOption(option: Option): Kind | undefined {
  return kindNamed(option.long ?? '') ?? kindNamed(valueName(option));
}

/** The kind of a command's argument; undefined for free text. */
export function kindOfArgument(command: Command, argument: Argument): Kind | undefined {
  const name = argument.name();
  return kindNamed(`${command.parent?.name()} ${name}`) ?? kindNamed(name);
}

/** Whether a flag can be given again. */
export function isRepeatable({ variadic, long }: Option): boolean {
  return variadic || REPEATABLE.has(long);
}

/** The word between the brackets of a flag that takes a value; empty for others. */
export function valueName({ flags }: Option): string {
  return /[<[]([^<[\]>]+?)(?:\.\.\.)?[[>\]]/.exec(flags)?.[1] ?? '';
}

function kindNamed(name: string): Kind | undefined {
  const kinds: Readonly<Record<string, Kind>> = KIND_OF;
  return Object.hasOwn(kinds, name) ? kinds[name] : undefined;
}

/** Gives candidates from files and services. Its methods print nothing and end within 1.5 s. */
export interface CompletionSource {
  /** Sites by name. */
  sites(): Promise<readonly Candidate[]>;
  /** Profiles by name. */
  profiles(): Promise<readonly Candidate[]>;
  /** The user's experiments, by name where the name is unique. */
  experiments(): Promise<readonly Candidate[]>;
  /** The user's projects, by name where the name is unique. */
  projects(): Promise<readonly Candidate[]>;
  /** The experiment's reservations, by id. */
  reservations(): Promise<readonly Candidate[]>;
  /**
   * The two sites of a reservation; all sites where it is not known here.
   *
   * @param reservation its id, its name, or the file of its token
   */
  ends(reservation: string | undefined): Promise<readonly Candidate[]>;
}

/**
 * A word that needs no quotes in any shell. Other users choose names: a name with other characters, such as
 * `$(…)` or a line end, is never offered.
 */
const PLAIN_WORD = /^[\p{L}\p{N}_][\p{L}\p{N}_@%+=:,./-]*$/u;

/** Whether a word needs no quotes in a shell, and has no invisible characters (THREATS.md 60). */
export function isPlainWord(word: string): boolean {
  return PLAIN_WORD.test(word) && escapeText(word) === word;
}

/**
 * The answer to a shell: a line `value<TAB>description` for each candidate, and at the end `:1` where names
 * of files are wanted too, else `:0`.
 */
export async function completionText(wanted: Wanted, source: CompletionSource): Promise<string> {
  const { typed, before, known, live, files } = wanted;
  const found = live ? await source[live.kind](live.of) : [];
  const candidates = [
    ...known.filter(({ value }) => value.startsWith(typed)),
    ...near(
      found.filter(({ value }) => isPlainWord(value) && !live?.without.includes(value)),
      typed,
    ),
  ];
  // A portal may list the same name twice; a shell would offer both.
  const once = [...new Map(candidates.map((each) => [each.value, each])).values()];
  const lines = once.map(({ value, description }) => `${before}${value}\t${escapeText(description)}\n`);
  return `${lines.join('')}${files ? ':1' : ':0'}\n`;
}

/**
 * The candidates that begin with the typed text, else the only one that contains it, so that `poznan` finds
 * `pl-poznan1`. Of several that only contain it none is offered: a shell would replace the typed text by
 * their common beginning.
 */
function near(candidates: readonly Candidate[], typed: string): readonly Candidate[] {
  const begun = candidates.filter(({ value }) => value.startsWith(typed));
  if (begun.length > 0 || typed.length < 3) return begun;
  const holding = candidates.filter(({ value }) => value.includes(typed));
  return holding.length === 1 ? holding : [];
}
