import type { Argument, Command, Option } from 'commander';
import {
  argumentsOf,
  type CommandLine,
  childOf,
  flagNamed,
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

/** What files and services know: sites and profiles by name, reservations by name or id, and the others by name where it is unique. */
type LiveKind = 'sites' | 'profiles' | 'experiments' | 'projects' | 'reservations';

/** Gives candidates from files and services. Its functions print nothing and end within 1.5 s. */
export type CompletionSource = Readonly<Record<LiveKind, () => Promise<readonly Candidate[]>>>;

/**
 * The kind of each value, by the name that help gives it: a flag's own name, or else the word between its
 * brackets; an argument's name, after that of its group where the group decides. Other values have no
 * candidates: a time, a bandwidth, a new name.
 *
 * @example `--save <file>` is found as `file`, the argument of `experiment show [id]` as `experiment id`
 */
export const KIND_OF: ReadonlyMap<string, Kind> = new Map([
  ['--profile', 'profiles'],
  ['--experiment', 'experiments'],
  ['--project', 'projects'],
  ['profile name', 'profiles'],
  ['experiment id', 'experiments'],
  ['project id', 'projects'],
  ['id', 'reservations'],
  ['id|file', 'reservations or files'],
  ...['site1', 'site2', 'site', 'end', 'sites'].map((name) => [name, 'sites'] as const),
  ...['file', 'command', 'file|url', 'dir'].map((name) => [name, 'files'] as const),
  ['topic', 'topics'],
]);
type Kind = LiveKind | 'files' | 'topics' | 'reservations or files';

/** Flags that may be repeated. Variadic flags always may. */
const REPEATABLE: readonly unknown[] = ['--claim', '--trust', '--ci-issuer', '--administrator'];

/** The names by which {@link KIND_OF} may have the value of a flag, or an argument of a command; the first counts. */
export function namesOf(place: Option | Argument, command: Command): readonly string[] {
  // The word between the brackets of a flag that takes a value.
  if ('flags' in place)
    return [place.long ?? '', /[<[]([^<[\]>]+?)(?:\.\.\.)?[[>\]]/.exec(place.flags)?.[1] ?? ''];
  return [`${command.parent?.name()} ${place.name()}`, place.name()];
}

/**
 * The answer to a shell about the last word (cli/README.md, "Commands", completion): a command, a flag, or the value of a flag
 * or an argument, by commander's definitions. It has a line `value<TAB>description` for each candidate, and at the end `:1`
 * where names of files are wanted too, else `:0`.
 *
 * @param line the words before it @param word as far as it is typed, maybe empty
 * @example after `reserve be-gent1 ` the word is a site, but not be-gent1
 */
export async function completionText(
  line: CommandLine,
  word: string,
  source: CompletionSource,
): Promise<string> {
  const { command, open } = line;
  const operands = argumentsOf(line);
  const isLiteral = line.words.some(({ is }) => is === '--');
  let [typed, before] = [word, ''];
  let place: Option | Argument | undefined;
  let known: readonly Candidate[] = [];
  if (open && takes(open, word)) place = open.option;
  else if (!isLiteral && word.startsWith('-')) {
    const { name, value } = splitFlag(word);
    const option = flagNamed(command, name);
    if (value === undefined) known = flagsAt(line);
    else {
      [typed, before] = [value, `${name}=`];
      if (option && takesValue(option)) place = option;
    }
  } else if (command.commands.length > 0) {
    if (operands.length === 0) known = commandsOf(command);
  } else {
    const all = command.registeredArguments;
    place = all[operands.length] ?? all.findLast(({ variadic }) => variadic);
    // Another program's command comes after `--`; before it, the flags of this one.
    if (!isLiteral && place?.name() === 'command') place = undefined;
    // Only a flag can follow, so flags are offered before the dash is typed.
    if (!place && word === '' && !isLiteral) {
      known = flagsAt(line).filter(({ value }) => command.options.some(({ long }) => long === value));
    }
  }
  const names = place && !place.argChoices ? namesOf(place, command) : [];
  const kind = names.map((name) => KIND_OF.get(name)).find((found) => found !== undefined);
  if (place?.argChoices) known = place.argChoices.map((value) => ({ value, description: '' }));
  if (kind === 'topics') known = topics(command, operands);
  // A route passes neither of its ends.
  const without: string[] = place && 'flags' in place && kind !== 'sites' ? [] : [...operands];
  if (names[1] === 'sites') {
    // Of a list of sites, the last one is completed, and those before it are not wanted again.
    const listed = typed.split(',');
    typed = listed.pop() ?? '';
    before += listed.map((name) => `${name},`).join('');
    without.push(...listed);
  }
  const hasFiles = kind === 'files' || kind === 'reservations or files';
  const live = kind === 'reservations or files' ? 'reservations' : kind;
  const found = live === undefined || live === 'files' || live === 'topics' ? [] : await source[live]();
  const candidates = [
    ...known.filter(({ value }) => value.startsWith(typed)),
    ...near(
      found.filter(({ value }) => isPlainWord(value) && !without.includes(value)),
      typed,
    ),
  ];
  // A portal may list the same name twice; a shell would offer both.
  const once = [...new Map(candidates.map((each) => [each.value, each])).values()];
  const lines = once.map(({ value, description }) => `${before}${value}\t${escapeText(description)}\n`);
  return `${lines.join('')}${hasFiles ? ':1' : ':0'}\n`;
}

/** The words after `help`: commands and their sub-commands; as the first word also the topics. */
function topics(command: Command, path: readonly string[]): readonly Candidate[] {
  let found = command.parent ?? undefined;
  for (const name of path) found = found && childOf(found, name);
  const beside = path.length === 0 ? [...HELP_TOPICS, LICENCES] : [];
  const more = beside.map((value) => ({ value, description: 'help topic' }));
  return [...(found ? commandsOf(found) : []), ...more];
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
  return options
    .filter((option) => {
      const isRepeatable = option.variadic || REPEATABLE.includes(option.long);
      return isRepeatable || !isTyped(line, option.attributeName());
    })
    .map(({ long, short, description }) => ({ value: long ?? short ?? '', description }));
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
