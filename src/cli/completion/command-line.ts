import type { Command, Option } from 'commander';
import type { ServiceFlags } from '../advice.ts';

/** A command line that is still being typed, up to the word to complete. */
export interface CommandLine {
  /** The command that the words name so far. */
  readonly command: Command;
  /** The arguments of the command. */
  readonly operands: readonly string[];
  /** The flags that were given. */
  readonly given: readonly Option[];
  /** Unknown flags, and how many arguments were typed before each. */
  readonly unknown: readonly { readonly name: string; readonly after: number }[];
  /** The flag whose value can come next. */
  readonly open: OpenFlag | undefined;
  /** Whether `--` was typed: every word after it is an operand. */
  readonly literal: boolean;
  /** The values of flags, by the names of their members. */
  readonly values: ReadonlyMap<string, string>;
  /** The flags that choose services, project and experiment. */
  readonly services: ServiceFlags;
}

/** A flag that takes a value. `owed`: the next word is its value, even if it looks like a flag. */
interface OpenFlag {
  readonly option: Option;
  readonly owed: boolean;
}

/**
 * Reads the words before the one to complete, as commander does: global flags may be anywhere, a command's
 * own flags come after it, and the word after a flag with a value is that value. Words that commander would
 * refuse are skipped.
 *
 * @param words without the program's own name
 */
export function readCommandLine(program: Command, words: readonly string[]): CommandLine {
  const operands: string[] = [];
  const given: Option[] = [];
  const unknown: { name: string; after: number }[] = [];
  const values = new Map<string, string>();
  let command = program;
  let open: OpenFlag | undefined;
  /** A command's own flag whose value is still to come after a flag of the top level. */
  let waiting: OpenFlag | undefined;
  let literal = false;
  for (const word of words) {
    const isTop = !literal && isFlag(word) && flagNamed(program, splitFlag(word).name) !== undefined;
    const isOwn = open !== undefined && !program.options.includes(open.option);
    if (open && takes(open, word) && !(isTop && isOwn)) {
      const { option } = open;
      values.set(option.attributeName(), word);
      open = option.variadic ? { option, owed: false } : waiting;
      waiting = undefined;
      continue;
    }
    if (isTop && isOwn) waiting = open;
    open = undefined;
    if (literal || !isFlag(word)) {
      const child = operands.length === 0 ? childOf(command, word) : undefined;
      if (child) command = child;
      else operands.push(word);
    } else if (word === '--') {
      literal = true;
    } else {
      const { name, value } = splitFlag(word);
      const option = flagNamed(command, name);
      if (!option) {
        unknown.push({ name, after: operands.length });
        continue;
      }
      given.push(option);
      if (value !== undefined) values.set(option.attributeName(), value);
      else if (takesValue(option)) open = { option, owed: option.required };
      if (isTop && !open) [open, waiting] = [waiting, undefined];
    }
  }
  return { command, operands, given, unknown, open, literal, values, services: servicesOf(values, given) };
}

/** Whether a word is a flag; `-` alone is standard input. */
export function isFlag(word: string): boolean {
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

function servicesOf(values: ReadonlyMap<string, string>, given: readonly Option[]): ServiceFlags {
  return {
    profile: values.get('profile'),
    experiment: values.get('experiment'),
    project: values.get('project'),
    caFile: values.get('caFile'),
    offline: given.some(({ long }) => long === '--offline') || undefined,
  };
}
