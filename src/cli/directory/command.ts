import { Command } from 'commander';
import type { Invoke } from '../invocation.ts';
import type { CreateFlags, Noun } from './run.ts';

/** `slices-conn project list | show [ID] | use ID | token [ID]`. */
export function projectCommand(invoke: Invoke): Command {
  return groupOf('project', 'list, show and choose projects; get a project token', invoke).addHelpText(
    'after',
    `
Examples:
  slices-conn project list
  slices-conn project use demo
  slices-conn project token --json | jq .claims`,
  );
}

/** `slices-conn experiment list | show [ID] | create NAME --end T | use ID | token [ID]`. */
export function experimentCommand(invoke: Invoke): Command {
  const summary = 'list, show, create and choose experiments; get an experiment token';
  const create = new Command('create')
    .summary('create an experiment, which you lead')
    .argument('<name>', 'letters, digits, dot, dash and underscore')
    .requiredOption('--end <time>', 'when it expires, no later than its project')
    .option('--description <text>', 'what it is for')
    .action(invoke<CreateFlags>(async () => (await import('./run.ts')).createExperiment));
  return groupOf('experiment', summary, invoke, create).addHelpText(
    'after',
    `
Examples:
  slices-conn experiment create throughput-1 --end +30d
  slices-conn experiment use throughput-1
  slices-conn experiment token --json | jq .claims`,
  );
}

/** The commands of a noun. @param create stands after `show` */
function groupOf(noun: Noun, summary: string, invoke: Invoke, create?: Command): Command {
  const a = noun === 'project' ? 'a' : 'an';
  const command = new Command(noun).summary(summary);
  command
    .command('list')
    .summary(`list your ${noun}s`)
    .action(invoke(async () => (await import('./run.ts')).listOf(noun)));
  command
    .command('show')
    .summary(`show ${a} ${noun}`)
    .argument('[id]', 'its id or name; the chosen one when left out')
    .action(invoke(async () => (await import('./run.ts')).showOne(noun)));
  if (create) command.addCommand(create);
  command
    .command('use')
    .summary(`choose the ${noun} for later commands`)
    .argument('<id>', 'its id or name')
    .action(invoke(async () => (await import('./run.ts')).useOne(noun)));
  command
    .command('token')
    .summary(`print ${a} ${noun} token`)
    .argument('[id]', 'its id or name; the chosen one when left out')
    .action(invoke(async () => (await import('./run.ts')).tokenOf(noun)));
  return command;
}
