import { Failure, failureOrThrow } from '../../contract/failure.ts';
import type { OptionsOf, OptionTable } from '../../contract/flags.ts';
import { formatInstant } from '../../contract/instants.ts';
import { withoutTokens } from '../../contract/secret.ts';
import { chooseOne } from '../../session/choice.ts';
import { officialClient } from '../../session/login/token-source.ts';
import { claimedClaims } from '../../tokens/claimed.ts';
import { parseTime } from '../../words/typed-time.ts';
import type { CommandFile } from '../command.ts';
import type { Context } from '../context.ts';
import { openProfiles } from '../global-options.ts';
import { experimentInUse } from '../login/experiment-in-use.ts';
import { type DirectoryEntry, directoryCard, directoryItem, directoryTable } from '../print/cards.ts';
import { escapeLines } from '../print/output.ts';
import { accepts } from '../questions.ts';
import { verifiedToken } from '../tokens.ts';
import { experimentOfToken } from '../user/user.ts';

/** Entries of the portal's directory, which people choose by id or name. */
type Noun = 'project' | 'experiment';

const CREATE_OPTIONS = {
  end: { flags: '--end <time>', help: 'when it expires, no later than its project', required: true },
  description: { flags: '--description <text>', help: 'what it is for' },
} as const satisfies OptionTable;

/** `slices-conn experiment create NAME --end T`. */
const create: CommandFile = {
  command: {
    args: { '<name>': 'letters, digits, dot, dash and underscore' },
    options: CREATE_OPTIONS,
  },
  run: createExperiment,
};

const CHOSEN = { '[id]': 'its id or name; the chosen one when left out' };

/** Lists the person's projects or experiments. */
const listOf = (noun: Noun): CommandFile => ({
  command: {},
  run: async (context) => {
    const { output, flags, clock } = context;
    const opened = await context.session();
    const { portal, profile } = opened;
    const client = profile.portalUrl === undefined && !flags.json ? officialClient(profile) : undefined;
    if (client !== undefined) return listOfClient(context, client, noun);
    const experiments = noun === 'experiment' ? await portal.experiments() : undefined;
    const all: readonly DirectoryEntry[] = experiments ?? (await portal.projects());
    const items = experiments ? (await opened.experiments.ofNamedProject(experiments)).items : all;
    const shown = await clock.times();
    const inUse = experiments
      ? await experimentInUse(context, opened, experiments).then(idIn)
      : await chooseOne('project', flags.project ?? profile.project, all, clock.now(), profile)
          .catch(failureOrThrow)
          .then(idIn);
    const told = items.map((item) => ({ ...directoryItem(item), in_use: item.id === inUse }));
    await output.result({ items: told }, (print) =>
      directoryTable(print, items.length < all.length ? `${noun} of this project` : noun, items, {
        inUse,
        times: shown,
      }),
    );
  },
});

/** Shows the list that the official client prints. @throws Failure `not_supported` where it prints none */
async function listOfClient({ processes, output }: Context, client: string, noun: Noun): Promise<void> {
  const { exitCode, stdout, stderr } = await processes.runProgram([client, noun, 'list']);
  if (exitCode === 0) return output.result({}, () => escapeLines(stdout));
  throw new Failure('not_supported', `${client} ${noun} list ended with ${exitCode}.`, {
    why: withoutTokens(stderr.trim().split('\n').at(-1) ?? ''),
    fix: `${client} ${noun} list`,
  });
}

function idIn(used: { id: string | null } | Failure): string | null {
  return used instanceof Failure ? null : used.id;
}

/** Shows a project or an experiment. */
const showOne = (noun: Noun): CommandFile => ({
  command: { args: CHOSEN },
  run: async (context, [wanted]) => {
    const entry = await (await context.session())[noun](wanted);
    await print(context, noun, `${noun.charAt(0).toUpperCase()}${noun.slice(1)}`, entry);
  },
});

/** Stores the chosen project or experiment in the profile. */
const useOne = (noun: Noun): CommandFile => ({
  command: { args: { '<id>': 'its id or name' } },
  run: async (context, [wanted]) => {
    const session = await context.session();
    const { name, portalUrl } = session.profile;
    const isByToken = portalUrl === undefined && noun === 'experiment';
    const entry = isByToken ? await experimentOfToken(session, wanted) : await session[noun](wanted);
    await (await openProfiles(context)).choose(name, noun, entry);
    await print(context, noun, `Profile ${name} now uses ${noun}`, entry);
  },
});

/** Creates an experiment in the chosen project. */
async function createExperiment(
  context: Context,
  [name = '']: readonly string[],
  { end, description = '' }: OptionsOf<typeof CREATE_OPTIONS>,
): Promise<void> {
  const expiry = parseTime(end, await context.clock.times(), { isEnd: true });
  const session = await context.session();
  const project = await session.project();
  const experiment = await session.portal.createExperiment({
    name,
    description,
    project_id: project.id,
    expires_at: formatInstant(expiry),
  });
  await print(context, 'experiment', 'Created experiment', experiment, project);
  const { name: profile } = session.profile;
  if (await accepts(context, `Use it for later commands, in profile ${profile}?`)) {
    await (await openProfiles(context)).choose(profile, 'experiment', experiment);
  }
}

/** @param project the experiment's; its name is printed then too */
async function print(
  { output, clock: { times } }: Context,
  noun: Noun,
  title: string,
  entry: DirectoryEntry,
  project?: { id: string; name: string },
): Promise<void> {
  const shown = await times();
  await output.result({ [noun]: directoryItem(entry) }, (printer) =>
    directoryCard(printer, title, entry, shown, project),
  );
}

/**
 * Prints a token for a project or an experiment. A token from the portal is verified first; any other is
 * printed as it is.
 */
const tokenOf = (noun: Noun): CommandFile => ({
  command: { args: CHOSEN },
  run: async ({ session, output }, [wanted]) => {
    const opened = await session();
    let id: string | undefined;
    let token: string;
    if (noun === 'project') {
      ({ id } = await opened.project(wanted));
      token = (await opened.projectToken(id)).reveal();
    } else {
      const access = await opened.access(wanted);
      token = access.token.reveal();
      if (access.origin === 'portal') ({ id } = access);
    }
    const claims =
      id === undefined ? claimedClaims(token) : await verifiedToken(token, opened.trust(noun), id);
    output.text({ token, claims }, token);
  },
});

const commandsOf = (noun: Noun) => ({
  list: listOf(noun),
  show: showOne(noun),
  use: useOne(noun),
  token: tokenOf(noun),
});

/** `slices-conn project list | show [ID] | use ID | token [ID]`. */
export const project = commandsOf('project');

/** `slices-conn experiment list | show [ID] | create NAME --end T | use ID | token [ID]`. */
export const experiment = { ...commandsOf('experiment'), create };
