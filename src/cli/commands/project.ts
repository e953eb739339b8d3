import { Command } from 'commander';
import { directoryCard, directoryTable } from '../directory-print.ts';
import type { Invocation, Invoke } from '../invocation.ts';
import { verifiedToken } from '../verified-token.ts';

/** `slices-conn project list | show [ID] | use ID | token [ID]`. */
export function projectCommand(invoke: Invoke): Command {
  const command = new Command('project').summary('list, show and choose projects; get a project token');
  command.addCommand(new Command('list').summary('list your projects').action(invoke(listProjects)));
  command.addCommand(
    new Command('show')
      .summary('show a project')
      .argument('[id]', 'its id or name; the chosen one when left out')
      .action(invoke(showProject)),
  );
  command.addCommand(
    new Command('use')
      .summary('choose the project for later commands')
      .argument('<id>', 'its id or name')
      .action(invoke(useProject)),
  );
  command.addCommand(
    new Command('token')
      .summary('print a project token')
      .argument('[id]', 'its id or name; the chosen one when left out')
      .action(invoke(projectToken)),
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

async function listProjects({ session, output }: Invocation): Promise<void> {
  const { portal, profile } = await session();
  const items = await portal.projects();
  await output.result({ items }, (print) => directoryTable(print, 'project', items, profile.project));
}

async function showProject({ session, output }: Invocation, [wanted]: readonly string[]): Promise<void> {
  const project = await (await session()).project(wanted);
  await output.result({ project }, (print) => directoryCard(print, 'Project', project));
}

async function useProject(
  { session, output, profiles }: Invocation,
  [wanted]: readonly string[],
): Promise<void> {
  const opened = await session();
  const project = await opened.project(wanted);
  const { name } = opened.profile;
  await (await profiles()).choose(name, { project: project.id });
  await output.result({ project }, (print) =>
    directoryCard(print, `Profile ${name} now uses project`, project),
  );
}

async function projectToken({ session, output }: Invocation, [wanted]: readonly string[]): Promise<void> {
  const opened = await session();
  const { id } = await opened.project(wanted);
  const token = await opened.portal.projectToken(id);
  output.text({ token, claims: await verifiedToken(token, opened.trust.project, id) }, token);
}
