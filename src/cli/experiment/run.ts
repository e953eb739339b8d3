import { claimedClaims } from '../../client/claimed.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { Invocation } from '../invocation.ts';
import { directoryCard, directoryItem, directoryTable } from '../print/cards.ts';
import { accepts } from '../questions.ts';
import { parseTime } from '../times.ts';
import { verifiedToken } from '../tokens.ts';

/** The flags of the command, as typed. */
export interface CreateFlags {
  end: string;
  description?: string;
}

/** Lists the person's experiments. */
export async function listExperiments({ session, output, times }: Invocation): Promise<void> {
  const { portal, profile } = await session();
  const items = await portal.experiments();
  const shown = await times();
  await output.result({ items: items.map(directoryItem) }, (print) =>
    directoryTable(print, 'experiment', items, { chosen: profile.experiment, times: shown }),
  );
}

/** Shows an experiment. */
export async function showExperiment(
  { session, output, times }: Invocation,
  [wanted]: readonly string[],
): Promise<void> {
  const experiment = await (await session()).experiment(wanted);
  const shown = await times();
  await output.result({ experiment: directoryItem(experiment) }, (print) =>
    directoryCard(print, 'Experiment', experiment, shown),
  );
}

/** Creates an experiment in the chosen project. */
export async function createExperiment(
  invocation: Invocation,
  [name = '']: readonly string[],
  { end, description = '' }: CreateFlags,
): Promise<void> {
  const { session, output, profiles, times } = invocation;
  const expiry = await parseTime(end, await times());
  const opened = await session();
  const project = await opened.project();
  const experiment = await opened.portal.createExperiment({
    name,
    description,
    project_id: project.id,
    expires_at: formatInstant(expiry),
  });
  const shown = await times();
  await output.result({ experiment: directoryItem(experiment) }, (print) =>
    directoryCard(print, 'Created experiment', experiment, shown, project),
  );
  const { name: profile } = opened.profile;
  if (await accepts(invocation, `Use it for later commands, in profile ${profile}?`)) {
    await (await profiles()).choose(profile, 'experiment', experiment);
  }
}

/** Stores the chosen experiment in the profile. */
export async function useExperiment(
  { session, output, profiles, times }: Invocation,
  [wanted]: readonly string[],
): Promise<void> {
  const opened = await session();
  const experiment = await opened.experiment(wanted);
  const { name } = opened.profile;
  await (await profiles()).choose(name, 'experiment', experiment);
  const shown = await times();
  await output.result({ experiment: directoryItem(experiment) }, (print) =>
    directoryCard(print, `Profile ${name} now uses experiment`, experiment, shown),
  );
}

/** Prints an experiment token. A token from the portal is verified first; any other is printed as it is. */
export async function experimentToken(
  { session, output }: Invocation,
  [wanted]: readonly string[],
): Promise<void> {
  const opened = await session();
  const access = wanted === undefined ? await opened.access() : await opened.accessTo(wanted);
  const token = access.token.reveal();
  const claims =
    access.origin === 'portal' && access.id !== undefined
      ? await verifiedToken(token, opened.trust.experiment, access.id)
      : claimedClaims(token);
  output.text({ token, claims }, token);
}
