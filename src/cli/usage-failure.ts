import type { Command, CommanderError } from 'commander';
import { type Changes, Failure, ownCommand } from '../contract/failure.ts';
import { refusedValue } from '../contract/foreign-errors.ts';
import { nearest } from '../session/choice.ts';
import { argumentsOf, type CommandLine, splitFlag } from './command-line.ts';
import { pathOf, topOf } from './help-layout.ts';
import { missingFailure } from './questions.ts';

/**
 * Commands and flags of other programs, such as the official client, and what is meant here: the first that exists where the word
 * was typed.
 */
const MEANT: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    ...{ create: ['reserve'], new: ['reserve'], get: ['show'], edit: ['update'], reservations: ['list'] },
    ...{ release: ['delete'], destroy: ['delete'], rename: ['update ID --name NAME'] },
    ...{ extend: ['update ID --extend DURATION'], 'list-resources': ['sites'], auth: ['login'] },
    ...{ 'auth logout': ['logout'], 'auth show': ['status'], 'auth status': ['status'], bi: ['reserve'] },
    ...{ 'bi list': ['list'], 'bi show': ['show'], 'bi destroy': ['delete'], 'bi list-resources': ['sites'] },
    ...{ 'bi extend': ['update ID --extend DURATION'], '--bw': ['--bandwidth'], '-b': ['--bandwidth'] },
    ...{ '--duration': ['--for', '--end +DURATION'], '-d': ['--for', '--end +DURATION'] },
    ...{ '--format': ['--json'], '--output': ['--json'], '-o': ['--json'] },
  }),
);

/** Commands, by their paths, that a later version is to have. */
const PLANNED: readonly string[] = [
  'slices-conn maintenance',
  'slices-conn configuration',
  'slices-conn serve topology',
];

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
  const failure = (says: string, fix?: string | Changes): Failure => new Failure('usage', says, { fix });
  const unknown = (what: string, wrong: string, known: readonly string[]): Failure => {
    if (PLANNED.includes(`${path} ${wrong}`))
      return failure(`${path} ${wrong} is planned; this version does not have it yet.`);
    const says = `${path} has no ${what} ${wrong}.`;
    const next = texts[texts.indexOf(wrong) + 1];
    const foreign = (MEANT.get(`${wrong} ${next}`) ?? MEANT.get(wrong))
      ?.map((each) => ({ each, word: each.split(' ')[0] ?? '' }))
      .find(({ word }) => known.includes(word));
    if (foreign) {
      // The words after it are those of the other program.
      const { each, word } = foreign;
      const fix = word.startsWith('-') ? undefined : `${path} ${word} --help`;
      return failure(`${says} Did you mean ${each}?`, fix);
    }
    const meant = nearest(wrong, known);
    if (meant === undefined) return failure(says);
    const right = texts.map((text) => {
      const { name, value } = splitFlag(text);
      return name === wrong ? [meant, ...(value === undefined ? [] : [value])].join('=') : text;
    });
    return failure(`${says} Did you mean ${meant}?`, ownCommand(...right));
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
  if (flagValue !== undefined) {
    const says = refusedValue(`${long} ${flagValue}`, fault);
    const option = command.options.find((one) => one.long === long);
    const meant = nearest(flagValue, option?.argChoices ?? []);
    if (!option || meant === undefined) return failure(says);
    return failure(`${says} Did you mean ${meant}?`, { [option.attributeName()]: meant });
  }
  const [, operand, choices = ''] =
    /^command-argument value '(.*)' is invalid for argument '\w+'\. (.*)$/s.exec(what) ?? [];
  if (operand !== undefined) return failure(refusedValue(`${path} ${operand}`, choices));
  switch (code) {
    case 'commander.optionMissingArgument':
      return failure(`${long} needs ${value}.`);
    case 'commander.conflictingOption': {
      const [one, other] = [...what.matchAll(/'(--[^\s']+)/g)].map(([, flag]) => flag);
      return failure(`${one} and ${other} can't be given together.`);
    }
    case 'commander.excessArguments': {
      const surplus = operands.slice(command.registeredArguments.length);
      return new Failure('usage', `${path} does not take ${surplus.join(' ')}.`, {
        why: surplus.some((word) => /^\d[\d.,]*\s*[a-z]/i.test(word))
          ? 'Bandwidth and duration are flags: --bandwidth 1G --for 2h.'
          : 'A value of several words stands in quotes.',
      });
    }
    case 'commander.missingArgument':
    case 'commander.missingMandatoryOptionValue':
      return missingFailure(path, missingParts(command, operands));
    default:
      return failure(`${what.charAt(0).toUpperCase()}${what.slice(1)}.`.replace(/\.\.$/, '.'));
  }
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
