import type { Person } from '../identity/user-token.ts';
import type { Directory, InitialDirectory } from './directory.ts';

/** The people who can log in. */
export interface Users {
  all(): Promise<Person[]>;
  /** @returns undefined for the id of nobody who can log in */
  withId(id: string): Promise<Person | undefined>;
  /** @throws RangeError for a name of nobody who can log in */
  named(name: string): Promise<Person>;
}

/**
 * Those of the initial records. The database may hold users from an earlier start with another directory, or without
 * `trust`.
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
  };
}
