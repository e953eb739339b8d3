import { Command } from 'commander';
import type { Invoke } from '../invocation.ts';

/** `slices-conn project list | show [ID] | use ID | token [ID]`. */
export function projectCommand(invoke: Invoke): Command {
  const command = new Command('project').summary('list, show and choose projects; get a project token');
  command.addCommand(
    new Command('list')
      .summary('list your projects')
      .action(invoke(async () => (await import('./run.ts')).listProjects)),
  );
  command.addCommand(
    new Command('show')
      .summary('show a project')
      .argument('[id]', 'its id or name; the chosen one when left out')
      .action(invoke(async () => (await import('./run.ts')).showProject)),
  );
  command.addCommand(
    new Command('use')
      .summary('choose the project for later commands')
      .argument('<id>', 'its id or name')
      .action(invoke(async () => (await import('./run.ts')).useProject)),
  );
  command.addCommand(
    new Command('token')
      .summary('print a project token')
      .argument('[id]', 'its id or name; the chosen one when left out')
      .action(invoke(async () => (await import('./run.ts')).projectToken)),
  );
  return command.addHelpText(
    'after',
    `
Examples:
  slices-conn project list
  slices-conn project use demo
  slices-conn project token --json | jq .claims`,
  );
}
