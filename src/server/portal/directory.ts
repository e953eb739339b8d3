import * as v from 'valibot';
import type { UserClaims } from '../../contract/claims.ts';
import { DAY } from '../../contract/durations.ts';
import type { IdKind } from '../../contract/fields.ts';
import { parseInstant } from '../../contract/instants.ts';
import { ROLES, type Role } from '../../contract/roles.ts';
import type { Person } from '../identity/user-token.ts';
import { refusal } from '../problem-error.ts';

/** A project as it is stored; times in milliseconds. */
export interface ProjectRecord {
  id: string;
  name: string;
  description: string;
  createdAt: number;
  expiresAt: number;
}

/** An experiment as it is stored; it ends no later than its project. */
export interface ExperimentRecord extends ProjectRecord {
  project: string;
}

/** A project or an experiment, with a person's role in it. */
export type WithRole<Item> = Item & { role: string };

/** A user's role in a project or an experiment, by the user's name. */
export interface Membership {
  name: string;
  role: Role;
}

/**
 * The names of the leads of a project or an experiment, in order and `most` at most, for a person who has a role in it now;
 * none for others.
 */
export type LeadsOf = (scope: string, person: string, most: number) => Promise<string[]>;

/** The records that a server starts with. An existing record of the same name keeps its id. */
export interface InitialDirectory {
  /** Everyone who can log in, in the order in which the device page shows them. */
  people: readonly Person[];
  projects: readonly (ProjectRecord & {
    members: readonly Membership[];
    experiments: readonly (ExperimentRecord & { members: readonly Membership[] })[];
  })[];
  /**
   * Whether an existing record gets exactly this expiry and these members, as a file says. Otherwise its expiry is only
   * extended, and members are only added.
   */
  exact: boolean;
}

/** Users, projects and experiments: what the portal administers (contract/README.md, "What the service does" 6). */
export interface Directory {
  /** Adds missing records and updates existing ones, in one transaction. Other projects lose their members. */
  settle(initial: InitialDirectory): Promise<void>;
  people(): Promise<Person[]>;
  person(id: string): Promise<Person | undefined>;
  projectsOf(person: string): Promise<WithRole<ProjectRecord>[]>;
  project(id: string): Promise<ProjectRecord | undefined>;
  experimentsOf(person: string): Promise<WithRole<ExperimentRecord>[]>;
  experiment(id: string): Promise<ExperimentRecord | undefined>;
  /** The person's role in a project or experiment. */
  role(person: string, scope: string): Promise<string | undefined>;
  /** See {@link LeadsOf}. */
  leads: LeadsOf;
  /**
   * Adds an experiment, unless the project has one of that name already, or as many as it may have: those count that end
   * after the new one is made, or were made themselves after `since`, in milliseconds.
   */
  addExperiment(
    experiment: ExperimentRecord,
    lead: string,
    limit: { most: number; since: number },
  ): Promise<'added' | 'name_taken' | 'too_many'>;
}

/** The caller's role in a project or an experiment. @throws ProblemError 403 */
export async function requireMembership(
  directory: Directory,
  user: UserClaims,
  scope: string,
  code: 'wrong_project' | 'wrong_experiment',
): Promise<string> {
  const role = await directory.role(user.sub, scope);
  if (role === undefined) throw refusal(code, `You have no role in ${scope}.`);
  return role;
}

/**
 * How many experiments of one project have not ended, or were made within {@link EXPERIMENTS_COUNT_FOR}: a user who may make
 * experiments must not fill the disk with them.
 */
export const MAX_EXPERIMENTS = 100;
/** How long a new experiment counts though it may have ended, in milliseconds: a day. */
export const EXPERIMENTS_COUNT_FOR = DAY;

/** How long the built-in projects last from each start on, in milliseconds: 365 days. */
const PROJECT_LIFETIME = 365 * DAY;
/** How long the built-in experiments last from each start on, in milliseconds: 90 days. */
const EXPERIMENT_LIFETIME = 90 * DAY;

/**
 * The built-in users, projects and experiments (contract/README.md, "The reference server"): a user for each role, named after it; a
 * project and an experiment, both named `demo`, that they share; and one of each named `other` that is not theirs.
 */
export function builtInDirectory(now: number, newId: (kind: IdKind) => string): InitialDirectory {
  const project = (name: string, open: boolean) => {
    const id = newId('project');
    const described = open ? 'Comes with the reference server.' : 'The built-in users are not in it.';
    const members = open ? ROLES.map((role) => ({ name: role, role })) : [];
    const record = { name, description: described, createdAt: now, members };
    const experiment = {
      ...record,
      id: newId('experiment'),
      project: id,
      expiresAt: now + EXPERIMENT_LIFETIME,
    };
    return { ...record, id, expiresAt: now + PROJECT_LIFETIME, experiments: [experiment] };
  };
  return {
    people: ROLES.map((name) => ({ id: newId('user'), name })),
    projects: [project('demo', true), project('other', false)],
    exact: false,
  };
}

const name = v.pipe(
  v.string('must be a text'),
  v.regex(
    /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/,
    'must start with a letter or digit and hold letters, digits and . _ @ - only, 64 at most',
  ),
);
const instant = v.pipe(
  v.string('must be a time such as 2030-01-01T00:00:00Z'),
  v.check(
    (text) => parseInstant(text) !== undefined,
    'must be a time with a zone, such as 2030-01-01T00:00:00Z',
  ),
);
const members = v.record(
  v.string(),
  v.picklist(ROLES, `must be a role: ${ROLES.join(', ')}`),
  'must be an object of users and their roles',
);
const listOf = <Item extends v.GenericSchema>(item: Item) => v.array(item, 'must be a list');

const DirectorySchema = v.strictObject({
  users: listOf(v.strictObject({ name })),
  projects: listOf(v.strictObject({ name, expires_at: instant, members })),
  experiments: listOf(v.strictObject({ name, project: name, expires_at: instant, members })),
});

/** Users, projects, experiments and roles in place of the built-in ones, as a file has them (cli/README.md, "Commands"). */
export type DirectoryFile = v.InferOutput<typeof DirectorySchema>;

/** A directory that breaks a rule. */
export class DirectoryError extends Error {
  /** The first word of `toString`. */
  override readonly name = 'DirectoryError';
  /** One sentence per violation, which begins with its place, such as `projects[0].members.alice`. */
  readonly violations: readonly string[];

  constructor(violations: readonly string[]) {
    super(violations.join(' '));
    this.violations = violations;
  }
}

/**
 * Checks parsed JSON: its form; each name once; each member a user; each experiment's project listed, and ending no
 * earlier than the experiment.
 *
 * @throws DirectoryError naming every violation
 */
export function checkDirectory(content: unknown): DirectoryFile {
  const result = v.safeParse(DirectorySchema, content);
  if (!result.success) throw new DirectoryError(result.issues.map(formViolation));
  const { users, projects, experiments } = result.output;
  const violations = [
    ...repeated('users', users, (user) => user.name),
    ...repeated('projects', projects, (project) => project.name),
    ...repeated('experiments', experiments, (experiment) => `${experiment.project}/${experiment.name}`),
    ...strangers('projects', projects, users),
    ...strangers('experiments', experiments, users),
    ...experiments.flatMap(({ project: named, expires_at }, index) => {
      const place = `experiments[${index}]`;
      const project = projects.find((other) => other.name === named);
      if (!project) return [`${place}.project: there is no project ${named}.`];
      if (timeOf(expires_at) <= timeOf(project.expires_at)) return [];
      return [`${place}.expires_at: project ${named} ends before, at ${project.expires_at}.`];
    }),
  ];
  if (violations.length > 0) throw new DirectoryError(violations);
  return result.output;
}

/** The records of a directory file. @param file as {@link checkDirectory} returns it */
export function directoryOf(
  file: DirectoryFile,
  now: number,
  newId: (kind: IdKind) => string,
): InitialDirectory {
  const record = ({ name, expires_at, members }: DirectoryFile['projects'][number]) => ({
    name,
    description: 'From the directory file.',
    createdAt: now,
    expiresAt: timeOf(expires_at),
    members: Object.entries(members).map(([member, role]) => ({ name: member, role })),
  });
  return {
    people: file.users.map((user) => ({ id: newId('user'), name: user.name })),
    projects: file.projects.map((project) => {
      const id = newId('project');
      const own = file.experiments.filter((experiment) => experiment.project === project.name);
      return {
        ...record(project),
        id,
        experiments: own.map((experiment) => ({
          ...record(experiment),
          id: newId('experiment'),
          project: id,
        })),
      };
    }),
    exact: true,
  };
}

/** A user and the user's roles; each in an experiment of a project, or in the project itself. */
export interface UserRoles {
  /** By which the user logs in. */
  name: string;
  /** In each project, and in each experiment. */
  roles: readonly { role: Role; project: string; experiment: string | null }[];
}

/** The users of a directory, with their roles. */
export function usersOf({ people, projects }: InitialDirectory): UserRoles[] {
  const rolesIn = (user: string, list: readonly Membership[], project: string, experiment: string | null) =>
    list.filter(({ name }) => name === user).map(({ role }) => ({ role, project, experiment }));
  return people.map(({ name: user }) => ({
    name: user,
    roles: projects.flatMap((project) => [
      ...rolesIn(user, project.members, project.name, null),
      ...project.experiments.flatMap((experiment) =>
        rolesIn(user, experiment.members, project.name, experiment.name),
      ),
    ]),
  }));
}

function timeOf(text: string): number {
  return parseInstant(text) ?? Number.NaN;
}

/** The fault in the form of a directory, with its place. */
function formViolation({ path, message, expected, received, kind }: v.BaseIssue<unknown>): string {
  const place = (path ?? [])
    .map(({ key }) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '');
  const said =
    expected === 'never'
      ? 'is not known here'
      : received === 'undefined'
        ? 'is missing'
        : kind === 'schema' && message.startsWith('Invalid')
          ? 'must be an object'
          : message;
  return `${place === '' ? 'The file' : place}: ${said}.`;
}

function repeated<Item>(list: string, items: readonly Item[], nameOf: (item: Item) => string): string[] {
  const names = items.map(nameOf);
  return names.flatMap((each, index) =>
    names.indexOf(each) < index
      ? [`${list}[${index}].name: ${each} is listed twice; first as ${list}[${names.indexOf(each)}].`]
      : [],
  );
}

/** Members who are not users. */
function strangers(
  list: string,
  items: readonly { members: Readonly<Record<string, Role>> }[],
  users: DirectoryFile['users'],
): string[] {
  return items.flatMap(({ members }, index) =>
    Object.keys(members)
      .filter((member) => !users.some((user) => user.name === member))
      .map((member) => `${list}[${index}].members.${member}: there is no user ${member}.`),
  );
}
