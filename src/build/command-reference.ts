import type { Command } from 'commander';
import { laidOut, PLAIN_PAGE, sentence } from '../cli/help-layout.ts';
import { HELP_TOPICS, helpTopic } from '../cli/help-topics.ts';
import { createProgram, GLOBAL_FLAGS_HINT, NO_HELP } from '../cli/program.ts';
import { SERVER_OPTIONS } from '../operate/options.ts';

/** One command of the tree: the words by which it is called, and itself. */
interface Entry {
  name: string;
  command: Command;
}

/**
 * The command reference, in Markdown: the help of every command as the command line itself prints it, so that nothing
 * is declared twice. Text that is in every help appears once, at the top.
 */
export function commandReference(): string {
  let printed = '';
  const program = createProgram({
    version: '0',
    serverOptions: SERVER_OPTIONS,
    open: () => {
      throw new TypeError('no command is run');
    },
    help: {
      ...NO_HELP,
      write: (text) => {
        printed += text;
      },
    },
  });
  const help = (command: Command): string => {
    printed = '';
    command.outputHelp();
    return printed.replace(`${GLOBAL_FLAGS_HINT}\n`, '');
  };
  const topic = (name: string): string => laidOut(helpTopic(name, program), PLAIN_PAGE);
  // The program starts itself with the others.
  const typed = program.commands.filter((command) => !command.name().startsWith('__'));
  const commands = typed.flatMap((command) => entries(command, program.name()));
  return [
    '# The commands\n',
    '<!-- Made by `npm run generate` from the help texts. -->\n',
    'What `slices-conn --help`, `slices-conn COMMAND --help` and `slices-conn help TOPIC` print, on one page.',
    'Every command takes `-h` and `--help`, and the flags of `slices-conn help flags`, before and after its name.\n',
    ...commands.map(({ name, command }) => contentsLine(name, command.summary())),
    ...HELP_TOPICS.map((name) => contentsLine(topicTitle(name), '')),
    '',
    `## ${program.name()}\n`,
    fenced(help(program)),
    ...commands.map(({ name, command }) => section(name, sentence(command.summary()), help(command))),
    ...HELP_TOPICS.map((name) => section(topicTitle(name), '', topic(name))),
  ].join('\n');
}

/** A command that help shows, and its sub-commands. */
function entries(command: Command, before: string): Entry[] {
  const name = `${before} ${command.name()}`;
  const below = command.commands.filter((child) => shown(command).has(child));
  return [{ name, command }, ...below.flatMap((child) => entries(child, name))];
}

function shown(command: Command): ReadonlySet<Command> {
  return new Set(command.createHelp().visibleCommands(command));
}

function topicTitle(topic: string): string {
  return `slices-conn help ${topic}`;
}

/** A line of the contents; sub-commands are indented. */
function contentsLine(name: string, summary: string): string {
  const indent = '  '.repeat(Math.max(0, name.split(' ').length - 2));
  const link = `[${name}](#${name.replaceAll(' ', '-')})`;
  return `${indent}- ${link}${summary === '' ? '' : `: ${escaped(summary)}`}`;
}

function section(title: string, about: string, text: string): string {
  return `## ${title}\n${about === '' ? '' : `\n${escaped(about)}\n`}\n${fenced(text)}`;
}

function fenced(text: string): string {
  return `\`\`\`text\n${text.trim()}\n\`\`\`\n`;
}

/** Text with Markdown's special characters escaped. */
function escaped(text: string): string {
  return text.replaceAll(/[\\`*_<>[\]]/g, '\\$&');
}
