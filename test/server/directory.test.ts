import { describe, expect, test } from 'vitest';
import { createReferenceServer } from '../../src/reference-server.ts';
import { checkDirectory, DirectoryError, type DirectoryFile } from '../../src/server/portal/directory.ts';
import { openStores } from '../../src/store/stores.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { EXPERIMENTS, PROJECTS } from '../fixtures/service.ts';

const postgres = usePostgres();

const END = '2030-01-01T00:00:00Z';
const FILE: DirectoryFile = {
  users: [{ name: 'alice' }, { name: 'lead' }],
  projects: [{ name: 'optics', expires_at: END, members: { alice: 'lead', lead: 'viewer' } }],
  experiments: [{ name: 'run1', project: 'optics', expires_at: END, members: { alice: 'admin' } }],
};

describe.each(postgres.engines)('on %s', (_, newDatabase) => {
  test('of many experiments that two servers add at once, a project gets so many as it may have', async () => {
    const database = await newDatabase();
    const [one, other] = [await openStores(database), await openStores(database)];
    const project = { id: 'proj_1', name: 'optics', description: '', createdAt: 0, expiresAt: 100 };
    const people = [{ id: 'user_1', name: 'alice' }];
    await one.directory.settle({
      people,
      projects: [{ ...project, members: [], experiments: [] }],
      exact: false,
    });
    const added = await Promise.all(
      Array.from({ length: 20 }, (_each, index) => {
        const own = { id: `exp_${index}`, name: `e${index}`, project: 'proj_1', createdAt: 50 };
        const { directory } = index % 2 === 0 ? one : other;
        return directory.addExperiment({ ...project, ...own }, 'user_1', { most: 7, since: 0 });
      }),
    );
    expect(added.filter((each) => each === 'added')).toHaveLength(7);
    expect(added.filter((each) => each === 'too_many')).toHaveLength(13);
    expect(await one.directory.experimentsOf('user_1')).toHaveLength(7);
    await one.close();
    await other.close();
  });

  test('a directory file replaces the built-in users, projects and experiments, and keeps ids', async () => {
    const database = await newDatabase();
    /** What a user sees at a server with this directory. */
    const seen = async (directory: DirectoryFile | undefined, user: string) => {
      const server = await createReferenceServer({ baseUrl: 'http://127.0.0.1', database, directory });
      try {
        const headers = { authorization: `Bearer ${await server.signIn(user)}` };
        const get = async (path: string): Promise<string> =>
          (await server.fetch(new Request(`http://127.0.0.1${path}`, { headers }))).text();
        return `${await get(PROJECTS)} ${await get(EXPERIMENTS)}`;
      } finally {
        await server.close();
      }
    };
    const listed = (text: string) =>
      [...text.matchAll(/"name":"(\w+)".*?"role":"(\w+)".*?"expires_at":"([^"]+)"/g)].map(
        ([, ...rest]) => rest,
      );
    const before = await seen(undefined, 'lead');
    const end = '2030-01-01T00:00:00.000Z';
    expect(listed(await seen(FILE, 'alice'))).toEqual([
      ['optics', 'lead', end],
      ['run1', 'admin', end],
    ]);
    // The user lead of the file is in no built-in project any more.
    expect(listed(await seen(FILE, 'lead'))).toEqual([['optics', 'viewer', end]]);
    await expect(seen(FILE, 'admin')).rejects.toThrow('there is no user admin');
    // Another file: an earlier end, fewer members.
    const changed: DirectoryFile = {
      users: [{ name: 'alice' }],
      projects: [{ name: 'optics', expires_at: '2027-01-01T00:00:00Z', members: { alice: 'viewer' } }],
      experiments: [],
    };
    expect(listed(await seen(changed, 'alice'))).toContainEqual([
      'optics',
      'viewer',
      '2027-01-01T00:00:00.000Z',
    ]);
    await expect(seen(undefined, 'alice')).rejects.toThrow('there is no user alice');
    const after = await seen(undefined, 'lead');
    const ids = (text: string) => text.match(/(?:proj|exp)_[\w.]+/g);
    expect(ids(after)).toEqual(ids(before));
  });
});

test('the users of a server are told with their roles', async () => {
  const server = await createReferenceServer({ directory: FILE });
  expect(server.users).toEqual([
    {
      name: 'alice',
      roles: [
        { role: 'lead', project: 'optics', experiment: null },
        { role: 'admin', project: 'optics', experiment: 'run1' },
      ],
    },
    { name: 'lead', roles: [{ role: 'viewer', project: 'optics', experiment: null }] },
  ]);
  await server.close();
});

const [project] = FILE.projects;
const [experiment] = FILE.experiments;
const users = (...more: unknown[]) => ({ ...FILE, users: [...FILE.users, ...more] });
const projects = (changes: object) => ({ ...FILE, projects: [{ ...project, ...changes }] });
const experiments = (changes: object) => ({ ...FILE, experiments: [{ ...experiment, ...changes }] });
test.each<[string, unknown, string]>([
  ['no object', 7, 'The file: must be an object.'],
  ['a missing list', { ...FILE, users: undefined }, 'users: is missing.'],
  ['an unknown member', { ...FILE, user: [] }, 'user: is not known here.'],
  ['a user without a name', users({}), 'users[2].name: is missing.'],
  ['a name with spaces', users({ name: 'a b' }), 'users[2].name: must start with'],
  ['a user twice', users({ name: 'alice' }), 'users[2].name: alice is listed twice'],
  [
    'an unknown role',
    projects({ members: { alice: 'boss' } }),
    'projects[0].members.alice: must be a role: lead, admin, member, viewer.',
  ],
  ['no user', projects({ members: { carl: 'lead' } }), 'projects[0].members.carl: there is no user carl.'],
  ['no time', projects({ expires_at: 'soon' }), 'projects[0].expires_at: must be a time'],
  ['an unknown project', experiments({ project: 'x' }), 'experiments[0].project: there is no project x.'],
  [
    'an experiment that ends after its project',
    experiments({ expires_at: '2031-01-01T00:00:00Z' }),
    'experiments[0].expires_at: project optics ends before',
  ],
])('%s is named with its place', (_, content, said) => {
  expect(() => checkDirectory(content)).toThrow(DirectoryError);
  expect(() => checkDirectory(content)).toThrow(said);
});
