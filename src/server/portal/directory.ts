import type { Person } from '../identity/user-token.ts';

/** A project as it is kept; times in milliseconds. */
export interface ProjectRecord {
  id: string;
  name: string;
  description: string;
  createdAt: number;
  expiresAt: number;
}

/** An experiment as it is kept; it ends no later than its project. */
export interface ExperimentRecord extends ProjectRecord {
  project: string;
}

/** Something a person sees, with that person's role in it. */
export type WithRole<Item> = Item & { role: string };

/** The records that a server starts with. An existing record of the same name keeps its id. */
export interface InitialDirectory {
  people: readonly Person[];
  projects: readonly (ProjectRecord & { experiment: ExperimentRecord; open: boolean })[];
}

/** Users, projects and experiments: what the portal administers (SPEC.md, "What the service does" 6). */
export interface Directory {
  /**
   * Puts in what is missing and prolongs what is there, in one transaction. Each person gets the role of its own name
   * in the projects that are `open`, and in their experiments.
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
