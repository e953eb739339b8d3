import type { PortalClient } from '../../client/portal.ts';
import type { Experiment } from '../../contract/directory.ts';
import { Failure, shellWord } from '../../contract/failure.ts';
import { idKind } from '../../contract/fields.ts';
import { Secret } from '../../contract/secret.ts';
import { claimedName, claimedSubject } from '../../tokens/claimed.ts';
import { chooseOne, isNamed, type Picker } from '../choice.ts';
import type { Profile } from '../profiles/profiles.ts';
import type { Connection } from './connection.ts';
import { isMisplaced } from './given-tokens.ts';
import type { PortalTokens } from './login-tokens.ts';
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

/** What experiments are chosen by, and where their tokens come from. */
export interface ExperimentOptions {
  /** Id or name of the project given with the command. */
  project?: string;
  /** Its experiment and project are those where the command names none. */
  profile: Pick<Profile, 'experiment' | 'project' | 'portalUrl' | 'experimentTokenCommand' | 'chosenNames'>;
  connection: Pick<Connection, 'experimentToken' | 'experimentTokenFrom' | 'portalTokens'>;
  portal: Pick<PortalClient, 'projects' | 'experiments' | 'experimentToken'>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Chooses one of several active experiments; undefined without a terminal. */
  pick?: Picker;
}

/** The experiments that a command may act in, and tokens for them. */
export class Experiments {
  readonly #options: ExperimentOptions;

  constructor(options: ExperimentOptions) {
    this.#options = options;
  }

  /**
   * What the command, else the profile names; undefined where nothing is named, and where the portal must tell first whether the
   * profile's is of the project that the command names.
   *
   * @param wanted id or name given with the command
   */
  named(wanted: string | undefined): string | undefined {
    const { project, profile } = this.#options;
    return wanted ?? (project === undefined ? profile.experiment : undefined);
  }

  /**
   * Those of some experiments that are of the project that the command names, and its name; all where it names none.
   *
   * @throws Failure `not_found` for an unknown project
   */
  async ofNamedProject(
    all: readonly Experiment[],
  ): Promise<{ items: readonly Experiment[]; project?: string }> {
    const { project, portal, now, profile } = this.#options;
    if (project === undefined) return { items: all };
    const { chosenNames } = profile;
    const { id, name } = await chooseOne('project', project, await portal.projects(), now(), { chosenNames });
    return { items: all.filter(({ project_id }) => project_id === id), project: name };
  }

  /**
   * Chooses an experiment as {@link Experiments.access} does.
   *
   * @param wanted id or name; undefined: the profile's, else the only active one
   * @param all those that the portal tells
   * @param pick asks the person where several are active. Default: that of the options
   */
  async choose(
    wanted: string | undefined,
    all: readonly Experiment[],
    { pick }: Pick<ExperimentOptions, 'pick'> = this.#options,
  ): Promise<Experiment> {
    const { profile, now } = this.#options;
    const { chosenNames } = profile;
    const isId = wanted !== undefined && idKind(wanted) === 'experiment';
    const { items, project } = isId ? { items: all } : await this.ofNamedProject(all);
    const isElsewhere =
      project !== undefined && !items.some((item) => isNamed(item, profile.experiment, profile));
    const named = wanted ?? (isElsewhere ? undefined : profile.experiment);
    return chooseOne('experiment', named, items, now(), { pick, chosenNames, project });
  }

  /**
   * The experiment: of the command's flag, else of a token in the environment, else of the environment or the
   * profile, else the only active one (cli/README.md, "Global flags", "Environment"); where the command names a project, one of that,
   * unless its id is given. Its token comes from the environment, the profile's command, the tokens that the portal gave before, or
   * the portal.
   *
   * @throws Failure `not_found` for an unknown one, `usage` where one must be chosen; or a failure to get the token
   */
  async access(wanted: string | undefined): Promise<ExperimentAccess> {
    const given = await givenAccess(wanted, this.#options.connection.experimentToken);
    return given ?? (await this.#byCommand(wanted)) ?? this.#byPortal(wanted);
  }

  async #byCommand(wanted: string | undefined): Promise<ExperimentAccess | undefined> {
    const { connection, profile, project } = this.#options;
    if (!connection.experimentTokenFrom) return undefined;
    const named = this.named(wanted);
    const experiment = named ?? (await this.#chosenByPortal());
    const needsProject = profile.experimentTokenCommand?.some((word) => word.includes('{project}'));
    const ofExperiment = async () => (needsProject ? this.#projectOf(experiment) : undefined);
    const source = connection.experimentTokenFrom({
      experiment,
      project: project ?? profile.project ?? (await ofExperiment()),
    });
    const access = await accessBy(source);
    const { id, name } = access;
    const byId = named === undefined || idKind(named) === 'experiment';
    // What a token does not claim can't be compared.
    const [came, isOther] = byId ? [id, id !== experiment] : [name, name !== experiment && id !== experiment];
    if (came !== undefined && isOther) {
      throw new Failure(
        'unverified',
        `The program gave the token of another experiment than ${experiment}.`,
        {
          why: `${source.where} gave one of ${name === undefined ? id : `${name} (${id})`}. The profile's experimentTokenCommand must give that of {experiment}. Nothing was sent.`,
        },
      );
    }
    return access;
  }

  /**
   * The experiment that is chosen from those of the portal, for a token command: the profile's in the profile's own words. A portal
   * that has no experiments leaves the profile's.
   *
   * @throws Failure `usage` where only the user can name it
   */
  async #chosenByPortal(): Promise<string> {
    const { profile, portal } = this.#options;
    const { experiment: own } = profile;
    const told = await portal.experiments().catch((error: unknown) => {
      if (!(error instanceof Failure) || error.code !== 'not_supported') throw error;
      if (own !== undefined) return own;
      const what = 'No experiment was chosen; name one with --experiment.';
      throw new Failure('usage', what, { why: error.message, fix: error.facts.fix });
    });
    if (typeof told === 'string') return told;
    const chosen = await this.choose(undefined, told);
    return own !== undefined && isNamed(chosen, own, profile) ? own : chosen.id;
  }

  /** The project of an experiment, where the portal knows it. */
  async #projectOf(experiment: string): Promise<string | undefined> {
    try {
      const known = await this.choose(experiment, await this.#options.portal.experiments());
      return known.project_id || undefined;
    } catch (error) {
      if (!(error instanceof Failure) || (error.code !== 'not_supported' && error.code !== 'not_found'))
        throw error;
      return undefined;
    }
  }

  async #byPortal(wanted: string | undefined): Promise<ExperimentAccess> {
    const { connection, portal, profile } = this.#options;
    const { portalTokens: kept } = connection;
    const from = { origin: 'portal', where: profile.portalUrl ?? '' } as const;
    const named = this.named(wanted);
    const known = named !== undefined && idKind(named) === 'experiment' ? kept?.read(named) : undefined;
    if (known) return { id: named, name: claimedName(known.reveal()), token: known, ...from };
    const { id, name } = await this.choose(wanted, await portal.experiments());
    return { id, name, token: await portalToken(id, kept, () => portal.experimentToken(id)), ...from };
  }
}

/** A token for a project or an experiment: the kept one, or a new one from the portal. */
export async function portalToken(
  id: string,
  kept: PortalTokens | undefined,
  ask: () => Promise<string>,
): Promise<Secret> {
  const known = kept?.read(id);
  if (known) return known;
  const token = new Secret(await ask());
  await kept?.keep(id, token);
  return token;
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
