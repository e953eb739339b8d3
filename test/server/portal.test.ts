import { decodeJwt } from 'jose';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { Experiment, ExperimentList, MAX_NAME, ProjectList } from '../../src/contract/directory.ts';
import { ROLES, type Role } from '../../src/contract/roles.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import { checkDirectory, DirectoryError, type DirectoryFile } from '../../src/server/portal/directory.ts';
import { openStores } from '../../src/store/stores.ts';
import { localKeySet, readKeySet } from '../../src/tokens/key-set.ts';
import { verifyExperimentToken, verifyProjectToken } from '../../src/tokens/verify.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import {
  at,
  booking,
  DAY,
  EXPERIMENTS,
  HOUR,
  MINUTE,
  NOW,
  openService,
  outcome,
  PROJECTS,
  problemIn,
  reservationIn,
  SECOND,
  SIGNED,
  type TestService,
} from '../fixtures/service.ts';

const UNKNOWN = 'offline.localhost_01jd3x0m2sf0vrv9mhb1wk6x4q';

async function signedIn(service: TestService, user: Role) {
  return service.with({ authorization: `Bearer ${await service.userToken(user)}` });
}

/** The portal as an issuer, with the key set that it publishes. */
async function portalTrust(service: TestService) {
  const keys = localKeySet(readKeySet((await service.send('GET', '/portal/.well-known/jwks.json')).body));
  return { issuers: new Map([[`${service.base}/portal`, keys]]), now: service.now };
}

/** Ids of the project and experiment `other`, which nobody can list. */
function others(service: TestService) {
  return { project: service.idOf('project', 'other'), experiment: service.idOf('experiment', 'other') };
}

const service = await openService();
const other = others(service);
const lead = await signedIn(service, 'lead');
const { sub: leadId } = decodeJwt(await service.userToken('lead'));

describe('projects and experiments', () => {
  const record = { name: 'demo', description: 'Comes with the reference server.', created_at: at(0) };

  test.each(ROLES)(
    '%s lists demo, with the fields of the API and its own role, and not other',
    async (role) => {
      const caller = await signedIn(service, role);
      const project = { ...record, id: service.project, role, expires_at: at(365 * DAY) };
      expect((await caller.send('GET', PROJECTS)).body).toEqual({ projects: [project] });
      const own = { ...record, id: service.experiment, project_id: service.project, role };
      expect((await caller.send('GET', EXPERIMENTS)).body).toEqual({
        experiments: [{ ...own, expires_at: at(90 * DAY) }],
      });
    },
  );

  test('a token holds the claims of the API', async () => {
    const reply = await lead.send('GET', `${PROJECTS}${service.project}`, { headers: SIGNED });
    expect(reply.headers.get('content-type')).toBe('application/jwt');
    expect(reply.headers.get('cache-control')).toBe('no-store');
    expect(await verifyProjectToken(String(reply.body), await portalTrust(service))).toEqual({
      iss: `${service.base}/portal`,
      iat: NOW / SECOND,
      exp: NOW / SECOND + 900,
      sub: service.project,
      name: 'demo',
      proj_exp: at(365 * DAY),
      act: { sub: leadId, role: 'lead' },
    });
  });

  test.each(ROLES)("%s's token holds the claims of an experiment token", async (role) => {
    const token = await service.experimentToken(role);
    expect(await verifyExperimentToken(token, await portalTrust(service))).toEqual({
      iss: `${service.base}/portal`,
      iat: NOW / SECOND,
      exp: NOW / SECOND + 900,
      sub: service.experiment,
      name: 'demo',
      exp_exp: at(90 * DAY),
      proj: service.project,
      proj_name: 'demo',
      act: { sub: decodeJwt(await service.userToken(role)).sub, role },
    });
  });
});

test.each([
  ["another's project", `${PROJECTS}${other.project}`, '403 wrong_project'],
  ["another's experiment", `${EXPERIMENTS}${other.experiment}`, '403 wrong_experiment'],
  ['an unknown experiment', `${EXPERIMENTS}exp_${UNKNOWN}`, '404 not_found'],
  ['an experiment as a project', `${PROJECTS}${service.experiment}`, '404 not_found'],
  ['a statement', `${PROJECTS}' OR 1=1 --`, '404 not_found'],
])('projects and experiments that are refused: %s: %3$s', async (_, address, expected) => {
  expect(outcome(await lead.send('GET', address))).toBe(expected);
  expect(outcome(await lead.send('GET', address, { headers: SIGNED }))).toBe(expected);
});

test.each([
  ['with 15 minutes left', 45 * MINUTE, 900],
  ['with a second left', HOUR - SECOND, 1],
])('a token lasts no longer than the user token that it was had with, %s', async (_, later, lifetime) => {
  const aging = await openService();
  const caller = await signedIn(aging, 'lead');
  aging.moveTo(later);
  for (const address of [`${PROJECTS}${aging.project}`, `${EXPERIMENTS}${aging.experiment}`]) {
    const { iat = 0, exp = 0 } = decodeJwt((await caller.send('GET', address, { headers: SIGNED })).text);
    expect([iat, exp - iat]).toEqual([(NOW + later) / SECOND, lifetime]);
  }
});

/** A good request for an experiment in demo. */
function asked(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return { name: 'throughput-1', project_id: service.project, expires_at: at(DAY), ...changes };
}

describe('creating an experiment', () => {
  test.each(['lead', 'admin'] as const)(
    '%s gets 201, the record, Location, and is its lead',
    async (role) => {
      const caller = await signedIn(service, role);
      const name = `of-${role}`;
      const reply = await caller.send('POST', EXPERIMENTS, {
        body: asked({ name, description: 'Ünïcode ✓' }),
      });
      expect(outcome(reply)).toBe('201');
      const created = v.parse(Experiment, reply.body);
      expect(created).toEqual({
        id: expect.stringMatching(/^exp_offline\.localhost_[0-9a-z]{26}$/),
        name,
        description: 'Ünïcode ✓',
        project_id: service.project,
        role: 'lead',
        created_at: at(0),
        expires_at: at(DAY),
      });
      expect(reply.headers.get('location')).toBe(`${EXPERIMENTS}${created.id}`);
      const { experiments } = v.parse(ExperimentList, (await caller.send('GET', EXPERIMENTS)).body);
      expect(experiments).toContainEqual(created);
      // No other user sees it.
      const other = await signedIn(service, role === 'lead' ? 'admin' : 'lead');
      expect((await other.send('GET', EXPERIMENTS)).text).not.toContain(created.id);
      expect(outcome(await other.send('GET', `${EXPERIMENTS}${created.id}`))).toBe('403 wrong_experiment');
      const booker = await service.as(role, created.id);
      expect(reservationIn(await booker.book()).experiment_id).toBe(created.id);
      expect(outcome(await booker.book(booking({ end_date: at(DAY + 1) })))).toBe(
        '422 experiment_ends_first Date',
      );
    },
  );

  const ACCEPTED: [title: string, changes: Record<string, unknown>][] = [
    ['until the end of its project', { expires_at: at(365 * DAY) }],
    ['for a millisecond', { expires_at: at(1) }],
    [`with a name of ${MAX_NAME} characters`, { name: 'n'.repeat(MAX_NAME) }],
    ['with members that are not ours', { id: 'exp_1', role: 'admin', created_at: 'x' }],
  ];

  test.each(ACCEPTED)('%s: 201', async (title, changes) => {
    const body = asked({ name: title.replaceAll(/[^a-z]/g, ''), ...changes });
    expect(outcome(await lead.send('POST', EXPERIMENTS, { body }))).toBe('201');
  });

  const NAME = '422 experiment_invalid';
  const DATE = '422 date_invalid Date';
  const REFUSED: [title: string, changes: Record<string, unknown>, expected: string][] = [
    ['a name that is taken', { name: 'demo' }, '409 name_taken'],
    ["another's project", { project_id: other.project }, '403 wrong_project'],
    ['an unknown project', { project_id: `proj_${UNKNOWN}` }, '403 wrong_project'],
    ['an expiry that is now', { expires_at: at(0) }, '422 date_past Date'],
    [
      'an expiry a millisecond past the project',
      { expires_at: at(365 * DAY + 1) },
      '422 project_ends_first Date',
    ],
    ['an expiry without a zone', { expires_at: '2026-11-02T10:00:00' }, DATE],
    ['no expiry', { expires_at: undefined }, DATE],
    ['an empty name', { name: '' }, NAME],
    ['a name that is a path', { name: '../x' }, NAME],
    ['a name with a line end', { name: 'x\n' }, NAME],
    ['a name that is too long', { name: 'n'.repeat(MAX_NAME + 1) }, NAME],
    ['no name', { name: undefined }, NAME],
    ['a description that is too long', { description: 'd'.repeat(1001) }, NAME],
    ['no project', { project_id: undefined }, NAME],
  ];

  test.each(REFUSED)('with %s: %3$s, and none is made', async (_, changes, expected) => {
    const before = (await lead.send('GET', EXPERIMENTS)).body;
    const reply = await lead.send('POST', EXPERIMENTS, { body: asked({ name: 'refused', ...changes }) });
    expect(outcome(reply)).toBe(expected);
    for (const { msg } of problemIn(reply).detail) expect(msg.length).toBeLessThan(600);
    expect((await lead.send('GET', EXPERIMENTS)).body).toEqual(before);
  });

  test('of two at once with one name, one is made', async () => {
    const body = asked({ name: 'twins' });
    const replies = await Promise.all([1, 2, 3].map(() => lead.send('POST', EXPERIMENTS, { body })));
    expect(replies.map(outcome).toSorted()).toEqual(['201', '409 name_taken', '409 name_taken']);
  });
});

test('a project has a hundred experiments that live or were made today, also with requests at once (THREATS.md 93)', async () => {
  const full = await openService();
  const make = async (count: number, lifetime: number): Promise<Record<string, number>> => {
    const caller = await signedIn(full, 'lead');
    const expires_at = at(full.now() - NOW + lifetime);
    const replies = await Promise.all(
      Array.from({ length: count }, (_, index) => {
        const body = { name: `e${full.now()}-${lifetime}-${index}`, project_id: full.project, expires_at };
        return caller.send('POST', EXPERIMENTS, { body });
      }),
    );
    const outcomes = replies.map(outcome);
    return Object.fromEntries([...Map.groupBy(outcomes, (each) => each)].map(([k, all]) => [k, all.length]));
  };
  // The project has one already. Those that end at once count for a day.
  expect(await make(60, MINUTE)).toEqual({ '201': 60 });
  expect(await make(60, 30 * DAY)).toEqual({ '201': 39, '422 experiment_limit_reached': 21 });
  full.moveTo(DAY - 1);
  expect(await make(1, DAY)).toEqual({ '422 experiment_limit_reached': 1 });
  full.moveTo(DAY);
  expect(await make(70, DAY)).toEqual({ '201': 60, '422 experiment_limit_reached': 10 });
});

test('a restart prolongs the built-in projects and experiments, with the same ids', async () => {
  const aging = await openService();
  const ownExperiment = await aging.newExperiment('own', DAY);
  const othersBefore = others(aging);
  aging.moveTo(100 * DAY);
  await aging.restart();
  const caller = await signedIn(aging, 'lead');
  const { projects } = v.parse(ProjectList, (await caller.send('GET', PROJECTS)).body);
  expect(projects).toMatchObject([{ id: aging.project, created_at: at(0), expires_at: at(465 * DAY) }]);
  const { experiments } = v.parse(ExperimentList, (await caller.send('GET', EXPERIMENTS)).body);
  expect(experiments.map(({ id, expires_at }) => [id, expires_at]).toSorted()).toEqual(
    [
      [aging.experiment, at(190 * DAY)],
      [ownExperiment, at(DAY)],
    ].toSorted(),
  );
  const booker = await aging.as('lead');
  expect(
    outcome(await booker.book(booking({ start_date: null, end_date: at(101 * DAY) }), 'start_now=true')),
  ).toBe('201');
  expect(others(aging)).toEqual(othersBefore);
  // A clock that went back shortens nothing.
  aging.moveTo(99 * DAY);
  await aging.restart();
  const again = (await (await signedIn(aging, 'lead')).send('GET', PROJECTS)).body;
  expect(v.parse(ProjectList, again).projects).toMatchObject([{ expires_at: at(465 * DAY) }]);
});

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
