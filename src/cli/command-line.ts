import type { Command, Option } from 'commander';
import { type Changes, ownCommand } from '../contract/failure.ts';
import type { ServiceFlags } from './print/as-started.ts';

/** A word of a command line, and what it is. */
interface TypedWord {
  readonly text: string;
  readonly is: 'command' | 'argument' | 'flag' | 'unknown flag' | 'value' | '--';
  /** Of a flag and of its value: the member that holds the value. */
  readonly member?: string | undefined;
}

/** A command line, which may still be typed, as commander takes it. */
export interface CommandLine {
  /** The command that the words name so far. */
  readonly command: Command;
  readonly words: readonly TypedWord[];
  /** The same words, as they were typed. */
  readonly texts: readonly string[];
  /** The flag whose value can come next. */
  readonly open: OpenFlag | undefined;
}

/** A flag that takes a value. `owed`: the next word is its value, even if it looks like a flag. */
interface OpenFlag {
  readonly option: Option;
  readonly owed: boolean;
}

/**
 * Reads a command line as commander does: global flags may be anywhere, a command's own flags come after it, and the word
 * after a flag with a value is that value. Words that commander would refuse are read all the same.
 *
 * @param texts without the program's own name
 */
export function readCommandLine(program: Command, texts: readonly string[]): CommandLine {
  const words: TypedWord[] = [];
  let command = program;
  let open: OpenFlag | undefined;
  /** A command's own flag whose value is still to come after a flag of the top level. */
  let waiting: OpenFlag | undefined;
  let isLiteral = false;
  let isNamed = false;
  for (const text of texts) {
    const isTop = !isLiteral && isFlag(text) && flagNamed(program, splitFlag(text).name) !== undefined;
    const isOwn = open !== undefined && !program.options.includes(open.option);
    if (open && takes(open, text) && !(isTop && isOwn)) {
      const { option } = open;
      words.push({ text, is: 'value', member: option.attributeName() });
      open = option.variadic ? { option, owed: false } : waiting;
      waiting = undefined;
      continue;
    }
    if (isTop && isOwn) waiting = open;
    open = undefined;
    if (isLiteral || !isFlag(text)) {
      const child = isNamed ? undefined : childOf(command, text);
      if (child) command = child;
      else isNamed = true;
      words.push({ text, is: child ? 'command' : 'argument' });
    } else if (text === '--') {
      isLiteral = true;
      words.push({ text, is: '--' });
    } else {
      const { name, value } = splitFlag(text);
      const option = flagNamed(command, name);
      words.push({ text, is: option ? 'flag' : 'unknown flag', member: option?.attributeName() });
      if (!option) continue;
      if (value === undefined && takesValue(option)) open = { option, owed: option.required };
      if (isTop && !open) [open, waiting] = [waiting, undefined];
    }
  }
  return { command, words, texts, open };
}

/** The arguments of the command. */
export function argumentsOf({ words }: CommandLine): string[] {
  return words.flatMap(({ text, is }) => (is === 'argument' ? [text] : []));
}

/** Whether a flag was typed. @param member the member that holds its value */
export function isTyped({ words }: CommandLine, member: string): boolean {
  return words.some((word) => word.is === 'flag' && word.member === member);
}

/** The value of a flag that was typed, by the member that holds it. */
export function valueIn({ words }: CommandLine, member: string): string | undefined {
  const values = words
    .filter((word) => word.member === member)
    .map(({ is, text }) => (is === 'value' ? text : splitFlag(text).value));
  return values.findLast((value) => value !== undefined);
}

/**
 * The typed command with some of its flags changed. A typed flag keeps its place. A new one takes the place of the one that
 * is left out just before it; otherwise it stands at the end, before `--`.
 *
 * @param last arguments that stand at the very end
 * @example retyped(line, { for: undefined, end: '14:00' }) // of `reserve a b --for=2h`: 'slices-conn reserve a b --end 14:00'
 */
export function retyped(line: CommandLine, changes: Changes, ...last: readonly string[]): string {
  return ownCommand(...retypedWords(line, changes, ...last));
}

/** The words of {@link retyped}, without the program's own name. */
export function retypedWords(line: CommandLine, changes: Changes, ...last: readonly string[]): string[] {
  let { words } = line;
  const firstOf = (isMeant: (word: TypedWord) => boolean): number | undefined => {
    const at = words.findIndex(isMeant);
    return at === -1 ? undefined : at;
  };
  let free: number | undefined;
  for (const [member, value] of Object.entries(changes)) {
    const at = firstOf((word) => word.member === member) ?? free;
    words = words.filter((word) => word.member !== member);
    free = value === undefined ? at : undefined;
    if (value === undefined) continue;
    const place = at ?? firstOf(({ is }) => is === '--') ?? words.length;
    const flag = `--${member.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    const option = flagNamed(line.command, flag);
    const values = value === true ? [] : [value].flat();
    const texts =
      option?.variadic || value === true ? [flag, ...values] : values.flatMap((one) => [flag, one]);
    words = words.toSpliced(place, 0, ...texts.map((text): TypedWord => ({ text, is: 'flag', member })));
  }
  return [...words.map(({ text }) => text), ...last];
}

/** The typed command with other names: its own, of arguments, and of flags whose value is a name or a list of names. */
export function renamed(line: CommandLine, names: ReadonlyMap<string, string>): string {
  const other = (text: string): string =>
    text
      .split(',')
      .map((name) => names.get(name) ?? name)
      .join(',');
  return ownCommand(
    ...line.words.map(({ text, is }) => {
      if (is === 'command' || is === 'argument' || is === 'value') return other(text);
      const { name, value } = splitFlag(text);
      return value === undefined ? text : `${name}=${other(value)}`;
    }),
  );
}

/** Whether a word is a flag; `-` alone is standard input. */
function isFlag(word: string): boolean {
  return word.length > 1 && word.startsWith('-');
}

/** Whether a flag must or may be followed by a value. */
export function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

/** Whether a word is the value of the flag before it. */
export function takes({ owed }: OpenFlag, word: string): boolean {
  return owed || !isFlag(word);
}

/** A word as `--flag` or `--flag=value`. */
export function splitFlag(word: string): { name: string; value: string | undefined } {
  const at = word.startsWith('--') ? word.indexOf('=') : -1;
  return at === -1
    ? { name: word, value: undefined }
    : { name: word.slice(0, at), value: word.slice(at + 1) };
}

/** A flag of a command, or of a command above it. */
export function flagNamed(command: Command, name: string): Option | undefined {
  const own = command.options.find(({ short, long }) => short === name || long === name);
  return own ?? (command.parent ? flagNamed(command.parent, name) : undefined);
}

/** A command of a group. */
export function childOf(command: Command, name: string): Command | undefined {
  return command.commands.find((child) => child.name() === name || child.aliases().includes(name));
}

/** The flags that choose services, project and experiment. */
export function servicesIn(line: CommandLine): ServiceFlags {
  return {
    profile: valueIn(line, 'profile'),
    experiment: valueIn(line, 'experiment'),
    project: valueIn(line, 'project'),
    caFile: valueIn(line, 'caFile'),
    offline: isTyped(line, 'offline') || undefined,
  };
}
