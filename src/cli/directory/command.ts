import { Command, Option } from 'commander';
import type { Invoke } from '../context.ts';
import type { CiFlags } from './ci-rules.ts';
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

/** `slices-conn experiment list | show [ID] | create NAME --end T | use ID | token [ID] | ci …`. */
export function experimentCommand(invoke: Invoke): Command {
  const summary = 'list, show, create and choose experiments; get an experiment token; let CI jobs in';
  const create = new Command('create')
    .summary('create an experiment, which you lead')
    .argument('<name>', 'letters, digits, dot, dash and underscore')
    .requiredOption('--end <time>', 'when it expires, no later than its project')
    .option('--description <text>', 'what it is for')
    .action(invoke<CreateFlags>(async () => (await import('./run.ts')).createExperiment));
  return groupOf('experiment', summary, invoke, create, ciCommand(invoke)).addHelpText(
    'after',
    `
Examples:
  slices-conn experiment create throughput-1 --end +30d
  slices-conn experiment use throughput-1
  slices-conn experiment token --json | jq .claims`,
  );
}

/** `slices-conn experiment ci add | list | remove`. */
function ciCommand(invoke: Invoke): Command {
  const command = new Command('ci').summary('let CI jobs act as you in an experiment, without a secret');
  command
    .command('add')
    .summary('let the jobs of a repository act as you')
    .description(
      'Jobs of the repository that run for exactly this branch, tag or environment act as you in the experiment, and nowhere else. They prove who they are by the ID token of their CI, so no secret is kept there. Only jobs of a push, of a schedule and of a start by hand do: pull requests and merge requests may run code of others.\nThe repository is known by its id from its first job on: who takes its name later is refused.',
    )
    .addOption(
      new Option('--github <owner/repository>', 'a repository on GitHub').conflicts(['gitlab', 'refType']),
    )
    .option('--gitlab <group/project>', 'a project on GitLab')
    .option(
      '--ref <ref>',
      'on GitHub in full, such as refs/heads/main; on GitLab the name of a branch or tag',
    )
    .addOption(
      new Option('--ref-type <type>', 'what --ref is on GitLab (default: branch)').choices(['branch', 'tag']),
    )
    .option('--environment <name>', 'the environment that the job names')
    .option('--end <time>', 'until when (default: as long as the experiment lasts, 90 days at most)')
    .action(invoke<CiFlags>(async () => (await import('./ci-rules.ts')).addCiRule));
  command
    .command('list')
    .summary('list whose jobs act as whom')
    .action(invoke(async () => (await import('./ci-rules.ts')).listCiRules));
  command
    .command('remove')
    .summary('let them act no more')
    .argument('<rule-id>', 'the id of a rule, or a part of it that is in no other id')
    .action(invoke(async () => (await import('./ci-rules.ts')).removeCiRule));
  return command.addHelpText(
    'after',
    `
Examples:
  slices-conn experiment ci add --github octo/measure --ref refs/heads/main
  slices-conn experiment ci add --gitlab lab/measure --ref main
  slices-conn experiment ci list`,
  );
}

/** The commands of a noun. @param create stands after `show` @param last stands at the end */
function groupOf(noun: Noun, summary: string, invoke: Invoke, create?: Command, last?: Command): Command {
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
  if (last) command.addCommand(last);
  return command;
}
