import type { IdKind } from '../../contract/ids.ts';
import { ROLES } from '../../contract/roles.ts';
import type { Person } from '../identity/user-token.ts';

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

/** The records that a server starts with. An existing record of the same name keeps its id. */
export interface InitialDirectory {
  people: readonly Person[];
  projects: readonly (ProjectRecord & { experiment: ExperimentRecord; open: boolean })[];
}

/** Users, projects and experiments: what the portal administers (SPEC.md, "What the service does" 6). */
export interface Directory {
  /**
   * Adds missing records and extends the lifetime of existing ones, in one transaction. Each person gets the role that
   * it is named after in the projects that are `open`, and in their experiments.
   */
  settle(initial: InitialDirectory): Promise<void>;
  people(): Promise<Person[]>;
  personNamed(name: string): Promise<Person | undefined>;
  person(id: string): Promise<Person | undefined>;
  projectsOf(person: string): Promise<WithRole<ProjectRecord>[]>;
  project(id: string): Promise<ProjectRecord | undefined>;
  experimentsOf(person: string): Promise<WithRole<ExperimentRecord>[]>;
  experiment(id: string): Promise<ExperimentRecord | undefined>;
  /** The person's role in a project or experiment. */
  role(person: string, scope: string): Promise<string | undefined>;
  /** @returns false when the project has an experiment of that name already */
  addExperiment(experiment: ExperimentRecord, lead: string): Promise<boolean>;
}

const DAY = 24 * 60 * 60 * 1000;

/** How long the built-in projects last from each start on, in milliseconds: 365 days. */
export const PROJECT_LIFETIME = 365 * DAY;
/** How long the built-in experiments last from each start on, in milliseconds: 90 days. */
export const EXPERIMENT_LIFETIME = 90 * DAY;

/**
 * The built-in users, projects and experiments (DESIGN.md, "The reference server"): a user for each role, named after it; a
 * project and an experiment, both named `demo`, that they share; and one of each named `other` that is not theirs.
 */
export function builtInDirectory(now: number, newId: (kind: IdKind) => string): InitialDirectory {
  const project = (name: string, open: boolean) => {
    const id = newId('project');
    const described = open ? 'Comes with the reference server.' : 'The built-in users are not in it.';
    const record = { name, description: described, createdAt: now };
    return {
      ...record,
      id,
      open,
      expiresAt: now + PROJECT_LIFETIME,
      experiment: {
        ...record,
        id: newId('experiment'),
        project: id,
        expiresAt: now + EXPERIMENT_LIFETIME,
      },
    };
  };
  return {
    people: ROLES.map((name) => ({ id: newId('user'), name })),
    projects: [project('demo', true), project('other', false)],
  };
}
