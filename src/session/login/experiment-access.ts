import type { PortalClient } from '../../client/portal.ts';
import type { Experiment } from '../../contract/directory.ts';
import { Failure, ownCommand, shellWord } from '../../contract/failure.ts';
import { idKind } from '../../contract/fields.ts';
import { Secret } from '../../contract/secret.ts';
import { claimedName, claimedSubject } from '../../tokens/claimed.ts';
import { type ChoiceOptions, chooseOne, isNamed } from '../choice.ts';
import type { Profile } from '../profiles/profiles.ts';
import type { Connection } from './connection.ts';
import { isMisplaced } from './given-tokens.ts';
import { officialClient, type TokenOrigin, type TokenSource } from './token-source.ts';

/** The experiment that a command acts in, and a token for it. */
export interface ExperimentAccess {
  /** Its id, where it is known. */
  id: string | undefined;
  /** Its name for people, where it is known. */
  name: string | undefined;
  origin: TokenOrigin;
  /** For people: where the token is from. */
  where: string;
  token: Secret;
}

/** The names that an experiment is chosen by, and the sources of its token. */
export interface ExperimentAccessOptions {
  /** Id or name given with the command. */
  wanted?: string;
  /** Id or name of the project given with the command. */
  project?: string;
  /** Its experiment and project are those where the command names none. */
  profile: Pick<Profile, 'experiment' | 'project' | 'portalUrl' | 'experimentTokenCommand'>;
  connection: Pick<Connection, 'experimentToken' | 'experimentTokenFrom' | 'portalTokens'>;
  portal: Pick<PortalClient, 'projects' | 'experiments' | 'experimentToken'>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** See {@link ChoiceOptions}. */
  choice?: ChoiceOptions;
}

/**
 * The experiment: of the command's flag, else of a token in the environment, else of the environment or the
 * profile, else the only active one (cli/README.md, "Global flags", "Environment"); where the command names a project, one of that,
 * unless its id is given. Its token comes from the environment, the profile's command, the tokens that the portal gave before, or
 * the portal.
 *
 * @throws Failure `not_found` for an unknown one, `usage` where one must be chosen; or a failure to get the token
 */
export async function accessExperiment(options: ExperimentAccessOptions): Promise<ExperimentAccess> {
  const { wanted, connection } = options;
  const given = await givenAccess(wanted, connection.experimentToken);
  return given ?? (await byCommand(options)) ?? byPortal(options);
}

/** Of what an experiment is chosen. */
type ExperimentChoice = Pick<ExperimentAccessOptions, 'project' | 'profile' | 'portal' | 'now' | 'choice'>;

/**
 * What the command, else the profile names; undefined where nothing is named, and where the portal must tell first whether the
 * profile's is of the project that the command names.
 */
export function namedExperiment({
  wanted,
  project,
  profile,
}: Pick<ExperimentAccessOptions, 'wanted' | 'project' | 'profile'>): string | undefined {
  return wanted ?? (project === undefined ? profile.experiment : undefined);
}

/**
 * Those of some experiments that are of the project that the command names, and its name; all where it names none.
 *
 * @throws Failure `not_found` for an unknown project
 */
export async function ofNamedProject(
  all: readonly Experiment[],
  { project, portal, now, choice }: ExperimentChoice,
): Promise<{ items: readonly Experiment[]; project?: string }> {
  if (project === undefined) return { items: all };
  const { id, name } = await chooseOne('project', project, await portal.projects(), now(), choice);
  return { items: all.filter(({ project_id }) => project_id === id), project: name };
}

/**
 * Chooses an experiment as {@link accessExperiment} does.
 *
 * @param wanted id or name; undefined: the profile's, else the only active one
 * @param all those that the portal tells
 */
export async function chooseExperiment(
  wanted: string | undefined,
  all: readonly Experiment[],
  terms: ExperimentChoice,
): Promise<Experiment> {
  const { profile, now, choice } = terms;
  const isId = wanted !== undefined && idKind(wanted) === 'experiment';
  const { items, project } = await ofNamedProject(all, isId ? { ...terms, project: undefined } : terms);
  const isElsewhere =
    project !== undefined && !items.some((item) => isNamed(item, profile.experiment, choice));
  const named = wanted ?? (isElsewhere ? undefined : profile.experiment);
  return chooseOne('experiment', named, items, now(), { ...choice, project });
}

/**
 * The access that a source's token gives.
 *
 * @throws Failure `token_invalid` for a token of another kind: a service goes by the kind that a token has, and would accept it
 */
async function accessBy({ get, origin, where }: TokenSource): Promise<ExperimentAccess> {
  const token = await get();
  if (isMisplaced({ kind: 'experiment', token }))
    throw new Failure('token_invalid', 'The experiment token is of another kind. Nothing was sent.');
  return { id: claimedSubject(token.reveal()), name: claimedName(token.reveal()), token, origin, where };
}

/** The experiment of a token in the environment; undefined where there is none, or another experiment is wanted. */
export async function givenAccess(
  wanted: string | undefined,
  given: TokenSource | undefined,
): Promise<ExperimentAccess | undefined> {
  if (!given) return undefined;
  const access = await accessBy(given);
  const isMeant = wanted === undefined || wanted === access.id || wanted === access.name;
  return isMeant ? access : undefined;
}

async function byCommand(options: ExperimentAccessOptions): Promise<ExperimentAccess | undefined> {
  const { connection, profile } = options;
  if (!connection.experimentTokenFrom) return undefined;
  const named = namedExperiment(options);
  const experiment = named ?? (await chosenByPortal(options));
  const needsProject = profile.experimentTokenCommand?.some((word) => word.includes('{project}'));
  const project =
    options.project ?? profile.project ?? (needsProject ? await projectOf(experiment, options) : undefined);
  const source = connection.experimentTokenFrom({ experiment, project });
  const access = await accessBy(source);
  const { id, name } = access;
  const byId = named === undefined || idKind(named) === 'experiment';
  // What a token does not claim can't be compared.
  const [came, isOther] = byId ? [id, id !== experiment] : [name, name !== experiment && id !== experiment];
  if (came !== undefined && isOther) {
    throw new Failure('unverified', `The program gave the token of another experiment than ${experiment}.`, {
      why: `${source.where} gave one of ${name === undefined ? id : `${name} (${id})`}. The profile's experimentTokenCommand must give that of {experiment}. Nothing was sent.`,
    });
  }
  return access;
}

/**
 * The experiment that is chosen from those of the portal, for a token command: the profile's in the profile's own words. A portal
 * that has no experiments leaves the profile's.
 *
 * @throws Failure `usage` where only the user can name it
 */
async function chosenByPortal(options: ExperimentAccessOptions): Promise<string> {
  const { profile, portal, choice } = options;
  const { experiment: own } = profile;
  const told = await portal.experiments().catch((error: unknown) => {
    if (!(error instanceof Failure) || error.code !== 'not_supported') throw error;
    if (own !== undefined) return own;
    const what = 'No experiment was chosen; name one with --experiment.';
    throw new Failure('usage', what, { why: error.message, fix: error.facts.fix });
  });
  if (typeof told === 'string') return told;
  const chosen = await chooseExperiment(undefined, told, options);
  return own !== undefined && isNamed(chosen, own, choice) ? own : chosen.id;
}

/** The project of an experiment, where the portal knows it. */
async function projectOf(experiment: string, options: ExperimentAccessOptions): Promise<string | undefined> {
  try {
    const known = await chooseExperiment(experiment, await options.portal.experiments(), options);
    return known.project_id || undefined;
  } catch (error) {
    if (!(error instanceof Failure) || (error.code !== 'not_supported' && error.code !== 'not_found'))
      throw error;
    return undefined;
  }
}

/** Fails in place of a user token for a portal that the profile does not name. */
export function noPortal(profile: Profile): () => never {
  const program = officialClient(profile);
  return () => {
    throw new Failure('not_supported', `Profile ${profile.name} has no portal that could be asked.`, {
      why:
        program === undefined
          ? 'Its tokens are given, and SLICES_CONN_EXPERIMENT_TOKEN is unset, empty, or of another experiment.'
          : `Its tokens come from ${program}.`,
      fix: program === undefined ? 'slices-conn profile show' : `${shellWord(program)} experiment list`,
    });
  };
}

/**
 * A portal whose failures say how to give an experiment token where the portal has no experiments
 * (cli/README.md, "Environment").
 */
export function withTokenAdvice(portal: PortalClient, { baseUrl }: Pick<Profile, 'baseUrl'>): PortalClient {
  const advise = (error: unknown): never => {
    if (!(error instanceof Failure) || error.code !== 'not_supported' || error.facts.fix) throw error;
    throw error.with({
      why: `${error.facts.why} Give one in SLICES_CONN_EXPERIMENT_TOKEN or SLICES_CONN_EXPERIMENT_TOKEN_FILE, or let the official client slices give it.`,
      fix: ownCommand('login', baseUrl, '--with-slices'),
    });
  };
  return {
    ...portal,
    experiments: () => portal.experiments().catch(advise),
    createExperiment: (request) => portal.createExperiment(request).catch(advise),
    experimentToken: (id) => portal.experimentToken(id).catch(advise),
  };
}

async function byPortal(options: ExperimentAccessOptions): Promise<ExperimentAccess> {
  const { wanted, connection, portal, profile } = options;
  const { portalTokens: kept } = connection;
  const from = { origin: 'portal', where: profile.portalUrl ?? '' } as const;
  const named = namedExperiment(options);
  const isId = named !== undefined && idKind(named) === 'experiment';
  const known = isId ? kept?.read(named) : undefined;
  if (isId && known) return { id: named, name: claimedName(known.reveal()), token: known, ...from };
  const { id, name } = await chooseExperiment(wanted, await portal.experiments(), options);
  const again = kept?.read(id);
  if (again) return { id, name, token: again, ...from };
  const token = new Secret(await portal.experimentToken(id));
  await kept?.keep(id, token);
  return { id, name, token, ...from };
}
