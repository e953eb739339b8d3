import { Command } from 'commander';
import { formatInstant } from '../../contract/instants.ts';
import { directoryCard, directoryTable } from '../directory-print.ts';
import type { Invocation, Invoke } from '../invocation.ts';
import { parseTime } from '../times.ts';
import { verifiedToken } from '../verified-token.ts';

interface CreateFlags {
  end: string;
  description?: string;
}

/** `slices-conn experiment list | show [ID] | create NAME --end T | use ID | token [ID]`. */
export function experimentCommand(invoke: Invoke): Command {
  const command = new Command('experiment').summary(
    'list, show, create and choose experiments; get an experiment token',
  );
  command.addCommand(new Command('list').summary('list your experiments').action(invoke(listExperiments)));
  command.addCommand(
    new Command('show')
      .summary('show an experiment')
      .argument('[id]', 'its id or name; the chosen one when left out')
      .action(invoke(showExperiment)),
  );
  command.addCommand(
    new Command('create')
      .summary('create an experiment, which you lead')
      .argument('<name>', 'letters, digits, dot, dash and underscore')
      .requiredOption('--end <time>', 'when it expires, no later than its project')
      .option('--description <text>', 'what it is for')
      .action(invoke<CreateFlags>(createExperiment)),
  );
  command.addCommand(
    new Command('use')
      .summary('choose the experiment for later commands')
      .argument('<id>', 'its id or name')
      .action(invoke(useExperiment)),
  );
  command.addCommand(
    new Command('token')
      .summary('print an experiment token')
      .argument('[id]', 'its id or name; the chosen one when left out')
      .action(invoke(experimentToken)),
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

async function listExperiments({ session, output }: Invocation): Promise<void> {
  const { portal, profile } = await session();
  const items = await portal.experiments();
  await output.result({ items }, (print) => directoryTable(print, 'experiment', items, profile.experiment));
}

async function showExperiment({ session, output }: Invocation, [wanted]: readonly string[]): Promise<void> {
  const experiment = await (await session()).experiment(wanted);
  await output.result({ experiment }, (print) => directoryCard(print, 'Experiment', experiment));
}

async function createExperiment(
  { session, output, times }: Invocation,
  [name = '']: readonly string[],
  { end, description = '' }: CreateFlags,
): Promise<void> {
  const expiry = await parseTime(end, times());
  const opened = await session();
  const project = await opened.project();
  const experiment = await opened.portal.createExperiment({
    name,
    description,
    project_id: project.id,
    expires_at: formatInstant(expiry),
  });
  await output.result({ experiment }, (print) => directoryCard(print, 'Created experiment', experiment));
}

async function useExperiment(
  { session, output, profiles }: Invocation,
  [wanted]: readonly string[],
): Promise<void> {
  const opened = await session();
  const experiment = await opened.experiment(wanted);
  const { name } = opened.profile;
  await (await profiles()).choose(name, { experiment: experiment.id });
  await output.result({ experiment }, (print) =>
    directoryCard(print, `Profile ${name} now uses experiment`, experiment),
  );
}

async function experimentToken({ session, output }: Invocation, [wanted]: readonly string[]): Promise<void> {
  const opened = await session();
  const { id } = await opened.experiment(wanted);
  const token = await opened.portal.experimentToken(id);
  output.text({ token, claims: await verifiedToken(token, opened.trust.experiment, id) }, token);
}
