import type { Command, CommanderError } from 'commander';
import { Failure, ownCommand, shellWord } from '../contract/failure.ts';
import { refusedValue } from '../contract/foreign-errors.ts';
import { nearest } from '../session/choice.ts';
import { missingFailure } from './advice.ts';
import { argumentsOf, type CommandLine, splitFlag, takesValue } from './command-line.ts';
import { pathOf, topOf } from './help-layout.ts';

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
  { texts }: CommandLine,
  known: readonly string[],
): { meant: string; words: string[] } | undefined {
  const at = texts.findIndex((text) => splitFlag(text).name === wrong);
  const { value: attached } = splitFlag(texts[at] ?? '');
  const rest = texts.slice(at + 1);
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
  return { meant, words: [...texts.slice(0, at), ...filled, ...rest] };
}

/**
 * Commander's message as a failure. The next step is the typed command with the word that was meant, else the help of the
 * command.
 */
export function usageFailure({ message, code }: CommanderError, line: CommandLine): Failure {
  const { command, words, texts } = line;
  const path = pathOf(command);
  const operands = argumentsOf(line);
  // A word after an unknown flag may be that flag's value.
  const first = words.find(({ is }) => is === 'argument' || is === 'unknown flag');
  const flag = words.find(({ is }) => is === 'unknown flag');
  const help = `${path} --help`;
  const unknown = (what: string, wrong: string, known: readonly string[]): Failure => {
    const says = `${path} has no ${what} ${wrong}.`;
    const other = meantBy(wrong, line, known);
    if (other)
      return new Failure('usage', `${says} Did you mean ${other.meant}?`, {
        fix: ownCommand(...other.words),
      });
    const near = nearest(wrong, known);
    if (near === undefined) return new Failure('usage', says, { fix: help });
    const right = texts.map((text) => {
      const { name, value } = splitFlag(text);
      return name === wrong ? [near, ...(value === undefined ? [] : [value])].join('=') : text;
    });
    return new Failure('usage', `${says} Did you mean ${near}?`, { fix: ownCommand(...right) });
  };
  const names = command.commands.map((child) => child.name());
  // Flags after it are unknown without it.
  if (names.length > 0 && first?.is === 'argument') return unknown('command', first.text, names);
  // A misspelt flag that is required is missing too, but that does not help.
  if (flag) return unknown('flag', splitFlag(flag.text).name, flagNames(command));
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
      const [right, part] = unquoted(command, texts, surplus) ?? [];
      const facts = right
        ? { why: `Put a value of several words in quotes: ${part}`, fix: ownCommand(...right) }
        : { fix: help };
      return new Failure('usage', `${path} does not take ${surplus.join(' ')}.`, facts);
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
  const valued = command.options.filter(takesValue);
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
