import { Command } from 'commander';
import type { Invoke } from '../invocation.ts';
import type { CreateFlags } from './run.ts';

/** `slices-conn experiment list | show [ID] | create NAME --end T | use ID | token [ID]`. */
export function experimentCommand(invoke: Invoke): Command {
  const command = new Command('experiment').summary(
    'list, show, create and choose experiments; get an experiment token',
  );
  command.addCommand(
    new Command('list')
      .summary('list your experiments')
      .action(invoke(async () => (await import('./run.ts')).listExperiments)),
  );
  command.addCommand(
    new Command('show')
      .summary('show an experiment')
      .argument('[id]', 'its id or name; the chosen one when left out')
      .action(invoke(async () => (await import('./run.ts')).showExperiment)),
  );
  command.addCommand(
    new Command('create')
      .summary('create an experiment, which you lead')
      .argument('<name>', 'letters, digits, dot, dash and underscore')
      .requiredOption('--end <time>', 'when it expires, no later than its project')
      .option('--description <text>', 'what it is for')
      .action(invoke<CreateFlags>(async () => (await import('./run.ts')).createExperiment)),
  );
  command.addCommand(
    new Command('use')
      .summary('choose the experiment for later commands')
      .argument('<id>', 'its id or name')
      .action(invoke(async () => (await import('./run.ts')).useExperiment)),
  );
  command.addCommand(
    new Command('token')
      .summary('print an experiment token')
      .argument('[id]', 'its id or name; the chosen one when left out')
      .action(invoke(async () => (await import('./run.ts')).experimentToken)),
  );
  return command.addHelpText(
    'after',
    `
Examples:
  slices-conn experiment create throughput-1 --end +30d
  slices-conn experiment use throughput-1
  slices-conn experiment token --json | jq .claims`,
  );
}
