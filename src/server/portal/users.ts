import type { Person } from '../identity/user-token.ts';
import type { Directory, ExperimentRecord, InitialDirectory, WithRole } from './directory.ts';

/** The users who can log in. */
export interface Users {
  all(): Promise<Person[]>;
  /** @returns undefined where no user who can log in has this id */
  withId(id: string): Promise<Person | undefined>;
  /** @throws RangeError where no user who can log in has this name */
  named(name: string): Promise<Person>;
  /** The experiments that a user is in, with the role. */
  experimentsOf(id: string): Promise<readonly WithRole<ExperimentRecord>[]>;
}

/**
 * Lets the users of the initial records log in, and no others. The database may hold users from an earlier start with
 * another directory, or without `trust`.
 */
export async function usersIn(directory: Directory, initial: InitialDirectory | undefined): Promise<Users> {
  const known = initial ? await directory.people() : [];
  const ids = (initial?.people ?? []).flatMap(
    ({ name }) => known.find((person) => person.name === name)?.id ?? [],
  );
  const all = async (): Promise<Person[]> => {
    const people = await directory.people();
    return ids.flatMap((id) => people.find((person) => person.id === id) ?? []);
  };
  return {
    all,
    withId: async (id) => (ids.includes(id) ? directory.person(id) : undefined),
    async named(name) {
      const person = (await all()).find((user) => user.name === name);
      if (!person) throw new RangeError(`there is no user ${name}`);
      return person;
    },
    experimentsOf: (id) => directory.experimentsOf(id),
  };
}
