import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { describe, expect, it, test } from 'vitest';
import { commandReference } from '../../src/build/command-reference.ts';
import { GLOBAL_FLAGS } from '../../src/cli/global-options.ts';
import { allCommands } from '../fixtures/command-world.ts';

const committed = readFileSync(new URL('../../src/cli/REFERENCE.md', import.meta.url), 'utf8');

/** The text below a heading. */
function section(title: string): string {
  const found = committed.split(/^## /m).filter((text) => text.startsWith(`${title}\n`));
  if (found.length !== 1) throw new Error(`${found.length} sections "${title}"`);
  return found[0] ?? '';
}

/** Every command that help shows, by its words. */
function commandsOf(command: Command, before = ''): [string, Command][] {
  const name = `${before}${command.name()}`;
  const shown = new Set(command.createHelp().visibleCommands(command));
  const below = command.commands.filter((child) => shown.has(child));
  return [[name, command], ...below.flatMap((child) => commandsOf(child, `${name} `))];
}

/** A text with all white space made alike, wherever lines were wrapped. */
const unwrapped = (text: string): string => text.replaceAll(/\s+/g, ' ');

const program = await allCommands();
const commands = commandsOf(program);

describe('the command reference', () => {
  it('equals the help texts (npm run generate)', async () => {
    expect(committed).toBe(await commandReference());
  });

  test.each(commands)('has a section for %s, with its flags and its usage', (name, command) => {
    const text = section(name);
    expect(text).toContain(`Usage: ${name}`);
    const flags = command.parent ? text : section('slices-conn help flags');
    for (const option of command.options) expect(flags).toContain(`  ${option.flags}`);
    for (const { description } of command.registeredArguments) {
      expect(unwrapped(text)).toContain(unwrapped(description));
    }
  });

  it('lists the global flags once', () => {
    expect(committed.split(GLOBAL_FLAGS)).toHaveLength(2);
    expect(committed).not.toContain('Global flags, such as');
  });

  it('links to a section for each line of its contents', () => {
    const headings = [...committed.matchAll(/^## (.*)$/gm)].map(([, title = '']) =>
      title.replaceAll(' ', '-'),
    );
    const targets = [...committed.matchAll(/\]\(#([^)]*)\)/g)].map(([, target]) => target);
    expect(targets).toEqual(headings.slice(1));
  });
});
