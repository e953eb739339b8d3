import type { Invocation } from '../invocation.ts';
import { directoryCard, directoryItem, directoryTable } from '../print/cards.ts';
import { verifiedToken } from '../tokens.ts';

/** Lists the person's projects. */
export async function listProjects({ session, output, times }: Invocation): Promise<void> {
  const { portal, profile } = await session();
  const items = await portal.projects();
  const shown = await times();
  await output.result({ items: items.map(directoryItem) }, (print) =>
    directoryTable(print, 'project', items, { chosen: profile.project, times: shown }),
  );
}

/** Shows a project. */
export async function showProject(
  { session, output, times }: Invocation,
  [wanted]: readonly string[],
): Promise<void> {
  const project = await (await session()).project(wanted);
  const shown = await times();
  await output.result({ project: directoryItem(project) }, (print) =>
    directoryCard(print, 'Project', project, shown),
  );
}

/** Stores the chosen project in the profile. */
export async function useProject(
  { session, output, profiles, times }: Invocation,
  [wanted]: readonly string[],
): Promise<void> {
  const opened = await session();
  const project = await opened.project(wanted);
  const { name } = opened.profile;
  await (await profiles()).choose(name, 'project', project);
  const shown = await times();
  await output.result({ project: directoryItem(project) }, (print) =>
    directoryCard(print, `Profile ${name} now uses project`, project, shown),
  );
}

/** Prints a project token, verified. */
export async function projectToken(
  { session, output }: Invocation,
  [wanted]: readonly string[],
): Promise<void> {
  const opened = await session();
  const { id } = await opened.project(wanted);
  const token = (await opened.projectToken(id)).reveal();
  output.text({ token, claims: await verifiedToken(token, opened.trust.project, id) }, token);
}
