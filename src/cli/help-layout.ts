import type { Command, Help, Option } from 'commander';
import { DeclaredOption } from './command.ts';
import { GLOBAL_FLAGS } from './global-options.ts';
import { continued, folded } from './print/folded.ts';
import type { AdviceShell } from './print/shells.ts';

/** The global flags that the top-level help shows, in its order; `slices-conn help flags` has all. */
const SHORT_LIST = ['--offline', '--json', '--yes', '--experiment', '--profile', '--help', '--version'];

/** A line of a list: what can be typed, and what it means. */
type Item = readonly [term: string, about: string];

/**
 * The help of a command: as gh has it, what can be typed, the commands in their groups, and the flags last.
 * Commander calls it in place of its own. Every item is one line; {@link laidOut} makes it fit.
 */
export function formatHelp(command: Command, help: Help): string {
  const args = help.visibleArguments(command).map((each): Item => {
    return [each.name(), help.argumentDescription(each)];
  });
  const alias = command.aliases().map((name) => `  or:  ${pathOf(command.parent)} ${name}`);
  return [
    `${help.commandDescription(command) || asSentence(command.summary())}\n`,
    `Usage: ${pathOf(command)} ${usageOf(command)}`.trimEnd(),
    ...alias,
    '',
    ...section('Arguments:', args),
    ...groupsOf(command, help),
    ...flagSections(shownFlags(command, help), help),
    ...(hasMore(command) ? [`More flags: ${pathOf(command)} --help --all`, ''] : []),
  ].join('\n');
}

/** All global flags, laid out as in help. */
export function globalFlags(program: Command): string {
  const help = program.createHelp();
  const flags = help.visibleOptions(program);
  const everywhere = flags.filter(({ helpGroupHeading }) => helpGroupHeading === GLOBAL_FLAGS);
  const alone = flags.filter((flag) => !everywhere.includes(flag));
  return [
    ...section(GLOBAL_FLAGS, flagItems(everywhere, help)),
    ...section('Without a command:', flagItems(alone, help)),
  ].join('\n');
}

/** The words by which a command is called. */
export function pathOf(command: Command | null): string {
  return command?.parent ? `${pathOf(command.parent)} ${command.name()}` : (command?.name() ?? '');
}

/** The command that all others are below. */
export function topOf(command: Command): Command {
  return command.parent ? topOf(command.parent) : command;
}

/** The words after the command's name. A command gives them itself where one flag can stand for another. */
function usageOf(command: Command): string {
  const usage = command.usage();
  if (!usage.startsWith('[options]')) return usage;
  const needed = command.options.filter(({ mandatory }) => mandatory).map(({ flags }) => flags);
  const args = command.commands.length > 0 ? '<command>' : argumentsOf(command);
  const flags = command.options.some(({ mandatory }) => !mandatory) ? '[flags]' : '';
  return [args, ...needed, flags].filter((word) => word !== '').join(' ');
}

/** The arguments as commander's usage has them. */
function argumentsOf(command: Command): string {
  return command.usage().replace(/^\[options\] ?(?:\[command\])?/, '');
}

/** The commands below a command. Those of the top level are named without their long arguments. */
function groupsOf(command: Command, help: Help): string[] {
  // Commander gives every group a help command of its own, which needs no line.
  const below = help.visibleCommands(command).filter((child) => command.commands.includes(child));
  const name = (child: Command): string =>
    command.parent ? `${child.name()} ${argumentsOf(child)}`.trimEnd() : child.name();
  const width = Math.max(...below.map((child) => name(child).length));
  const groups = Map.groupBy(below, (child) => child.helpGroup() || 'Commands:');
  return [...groups].flatMap(([heading, commands]) => {
    const items = commands.map((child): Item => [name(child), child.summary()]);
    return section(heading, items, width);
  });
}

/** A command's own flags, the required ones first; of the top level the flags that are used most. */
function shownFlags(command: Command, help: Help): Option[] {
  const flags = help.visibleOptions(command);
  if (!command.parent) return SHORT_LIST.flatMap((name) => flags.filter(({ long }) => long === name));
  const own = flags.filter((flag) => flag.long !== '--help' && !(hasMore(command) && isRare(flag)));
  return [...own.filter(({ mandatory }) => mandatory), ...own.filter(({ mandatory }) => !mandatory)];
}

function isRare(flag: Option): boolean {
  return flag instanceof DeclaredOption && flag.isRare;
}

/** Whether some flags are not shown. They are where `--all` was typed beside `--help`. */
function hasMore({ options, args }: Command): boolean {
  return !args.includes('--all') && options.some(isRare);
}

/** Flags under their headings, in the order of the first of each; a command that has none has them under `Flags:`. */
function flagSections(flags: readonly Option[], help: Help): string[] {
  const width = Math.max(...flags.map(({ flags: text }) => text.length));
  const groups = Map.groupBy(flags, ({ helpGroupHeading: heading = GLOBAL_FLAGS }) =>
    heading === GLOBAL_FLAGS ? 'Flags:' : heading,
  );
  return [...groups].flatMap(([heading, own]) => section(heading, flagItems(own, help), width));
}

function flagItems(flags: readonly Option[], help: Help): Item[] {
  return flags.map((flag) => {
    const needed = flag.mandatory ? 'required: ' : '';
    return [flag.flags, needed + help.optionDescription(flag).replaceAll('"', '')];
  });
}

function section(heading: string, items: readonly Item[], least = 0): string[] {
  if (items.length === 0) return [];
  const width = Math.max(least, ...items.map(([term]) => term.length));
  return [heading, ...items.map(([term, about]) => `  ${term.padEnd(width)}  ${about}`.trimEnd()), ''];
}

/** A summary as a sentence. */
export function asSentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
}

/** The page that a help text is laid out for. */
interface HelpPage {
  /** Columns of the terminal; undefined without one. */
  columns: number | undefined;
  /** Whether headings are bold. */
  bold: boolean;
  /** The shell that examples are typed in. */
  shell: AdviceShell;
}

/** Without a terminal. */
export const PLAIN_PAGE: HelpPage = { columns: undefined, bold: false, shell: 'posix' };

/** The columns of a text that is printed without a terminal. */
const USUAL = 80;
/** The widest text that is easy to read, in columns. */
const WIDEST = 110;
/** The narrowest that text is made for, in columns. */
const NARROWEST = 40;
/** The least room beside the terms of a list; with less, each description stands below its term. */
const LEAST_BESIDE = 26;

/**
 * Makes a help text fit the page: sentences and descriptions are wrapped, and the examples, which stay one
 * command each when pasted, continue after a backslash. Without a terminal examples stay whole, for programs
 * that read them.
 *
 * @param text lines of any length: headings, sentences, and lists of a term, two blanks, and a description
 */
export function laidOut(text: string, { columns, bold, shell }: HelpPage): string {
  const width = Math.max(NARROWEST, Math.min(columns ?? USUAL, WIDEST));
  let heading = '';
  return text
    .split('\n')
    .map((line) => {
      if (/^\S.*:$/.test(line)) {
        heading = line;
        return bold ? `\u001b[1m${line}\u001b[22m` : line;
      }
      if (line === '') heading = '';
      if (line.length <= width) return line;
      if (heading === 'Examples:' || COMMAND.test(line))
        return columns === undefined ? line : continued(line, width, shell);
      return wrapped(line, width);
    })
    .join('\n');
}

/** A whole command that stands by itself, under whatever heading. */
const COMMAND = /^ {2}(?:sudo )?slices-conn \S/;

/** A sentence, or an item of a list with its description in one column. */
function wrapped(line: string, width: number): string {
  const [, indent = '', term = '', gap = '', rest = ''] =
    /^( *)(?:(\S(?:.*?\S)?)( {2,}))?(.*)$/.exec(line) ?? [];
  const column = indent.length + term.length + gap.length;
  if (width - column >= LEAST_BESIDE) {
    return indent + term + gap + folded(rest, width - column).join(`\n${' '.repeat(column)}`);
  }
  const below = `\n${indent}    `;
  return indent + term + below + folded(rest, width - indent.length - 4).join(below);
}
