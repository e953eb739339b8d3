import type { Command } from 'commander';
import { asSentence, laidOut, PLAIN_PAGE } from '../cli/help-layout.ts';
import { HELP_TOPICS, helpTopic } from '../cli/help-topics.ts';
import { CommandTree, GLOBAL_FLAGS_HINT, type TreeSurroundings } from '../cli/program.ts';
import { SERVER_OPTIONS } from '../operate/options.ts';

/** All that help prints, of the program, of each command and of each topic, by the command line itself: so nothing is declared twice. Text that is in every help is left out. */
async function allHelp() {
  let printed = '';
  const around: TreeSurroundings = {
    env: { version: '0', variables: {}, licences: async () => undefined },
    server: { options: SERVER_OPTIONS },
    terminal: { stdout: { isTerminal: false, columns: undefined } },
  };
  const write = (text: string): void => {
    printed += text;
  };
  const tree = new CommandTree(around, { act: async () => undefined, write });
  await tree.loadAll();
  const { program } = tree;
  const help = (command: Command): string => {
    printed = '';
    // All flags.
    command.args = ['--all'];
    command.outputHelp();
    return printed.replace(`${GLOBAL_FLAGS_HINT}\n`, '');
  };
  // The program starts itself with the others.
  const typed = program.commands.filter((command) => !command.name().startsWith('__'));
  return {
    overview: help(program),
    commands: typed
      .flatMap((command) => entries(command, program.name()))
      .map(({ name, command }) => ({ name, summary: command.summary(), help: help(command) })),
    topics: HELP_TOPICS.map((name) => ({ name, text: laidOut(helpTopic(name, program), PLAIN_PAGE) })),
  };
}

/** The command reference, in Markdown: the help of every command. */
export async function commandReference(): Promise<string> {
  const { overview, commands, topics } = await allHelp();
  return [
    '# The commands\n',
    '<!-- Made by `npm run generate` from the help texts. -->\n',
    'What `slices-conn --help`, `slices-conn COMMAND --help` and `slices-conn help TOPIC` print, on one page.',
    'Every command takes `-h` and `--help`, and the flags of `slices-conn help flags`, before and after its name.\n',
    ...commands.map(({ name, summary }) => contentsLine(name, summary)),
    ...topics.map(({ name }) => contentsLine(topicTitle(name), '')),
    '',
    '## slices-conn\n',
    fenced(overview),
    ...commands.map(({ name, summary, help }) => section(name, asSentence(summary), help)),
    ...topics.map(({ name, text }) => section(topicTitle(name), '', text)),
  ].join('\n');
}

/** The same as a page of the manual (man(7)), in section 1. @param version of the program */
export async function manualPage(version: string): Promise<string> {
  const { overview, commands, topics } = await allHelp();
  const part = (macro: string, title: string, text: string): string =>
    `.${macro} "${roff(title)}"\n.nf\n${roff(text.trim())}\n.fi\n`;
  return [
    `.TH SLICES-CONN 1 "" "slices-conn ${version}"`,
    '.SH NAME\nslices-conn \\- book network links between research sites',
    '.SH SYNOPSIS\n.B slices-conn\n.I command\n.RI [ arguments ]\n.RI [ flags ]',
    part('SH', 'OVERVIEW', overview),
    '.SH COMMANDS',
    ...commands.map(({ name, help }) => part('SS', name, help)),
    ...topics.map(({ name, text }) => part('SH', name.replaceAll('-', ' ').toUpperCase(), text)),
  ].join('\n');
}

/** Text as roff prints it as it stands, in ASCII too: backslashes, hyphens, dots, and no line that begins a request. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('…', '...')
    .replaceAll(/^(?=[.'])/gm, '\\&');
}

/** A command that help shows, and its sub-commands, each with the words by which it is called. */
function entries(command: Command, before: string): { name: string; command: Command }[] {
  const name = `${before} ${command.name()}`;
  const shown = command.createHelp().visibleCommands(command);
  const below = command.commands.filter((child) => shown.includes(child));
  return [{ name, command }, ...below.flatMap((child) => entries(child, name))];
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
