import * as v from 'valibot';
import { afterAll, describe, expect, test } from 'vitest';
import { ProblemBody } from '../../src/contract/problems.ts';
import { SCOPES, type Scope } from '../../src/contract/roles.ts';
import { ROUTES, type Route, type RouteName } from '../../src/contract/routes.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import type { ForeignIssuers } from '../../src/server/trust.ts';
import { partOf } from '../fixtures/identity.ts';
import {
  addressOf,
  at,
  booking,
  CONNECTIVITY,
  DAY,
  endpointsOf,
  HOUR,
  LINKS,
  openService,
  outcome,
  PROJECTS,
  reservationIn,
  SECOND,
} from '../fixtures/service.ts';
import { IDS, SECONDS } from '../fixtures/tokens.ts';
import {
  book,
  experiment,
  headersWith,
  KEY_SETS,
  LOGIN,
  loginKey,
  openTrusting,
  PORTAL,
  portalKey,
  project,
  user,
} from '../fixtures/trusting.ts';

describe('a server that trusts issuers elsewhere', async () => {
  const { service, world } = await openTrusting();
  const bare = await createReferenceServer({ trust: { issuers: [LOGIN, PORTAL] } });
  afterAll(() => bare.close());

  test('creates reservations for their users, and signs with a key of its own', async () => {
    const reply = await book(service, user());
    expect(outcome(reply)).toBe('201');
    const { id, created_by, experiment_id } = reservationIn(reply);
    expect([created_by, experiment_id]).toEqual([IDS.user, IDS.experiment]);
    const read = await service.send('GET', addressOf('readReservation', id), {
      headers: { ...headersWith(user()), accept: 'application/jwt' },
    });
    expect(read.status).toBe(200);
    expect(
      (await service.send('GET', LINKS, { headers: { authorization: `Bearer ${user()}` } })).status,
    ).toBe(200);
    expect(world.fetched.toSorted()).toEqual(Object.values(KEY_SETS).toSorted());
  });

  test.each([
    ['/portal/', PORTAL],
    [PROJECTS, PORTAL],
    ['/portal/.well-known/jwks.json', PORTAL],
    ['/auth', 'https://login.example.org/realms/slices'],
    ['/auth/token', 'https://login.example.org/realms/slices'],
    ['/auth/.well-known/jwks.json', 'https://login.example.org/realms/slices'],
  ])('%s: 404 that says where', async (address, where) => {
    // Past the fixture, which holds replies against the description of a server with a portal.
    for (const method of ['GET', 'POST']) {
      const reply = await bare.fetch(new Request(`${service.base}${address}`, { method }));
      expect(reply.status).toBe(404);
      const { code, detail } = v.parse(ProblemBody, await reply.json());
      expect([code, detail[0]?.msg]).toEqual(['not_found', expect.stringContaining(` is at ${where}.`)]);
    }
  });

  test('its description shows the services that are here, without references to missing parts', async () => {
    const { body } = await service.send('GET', '/api-spec');
    const { paths, tags, components } = v.parse(
      v.looseObject({
        paths: v.record(v.string(), v.unknown()),
        tags: v.array(v.object({ name: v.string() })),
        components: v.looseObject({ schemas: v.record(v.string(), v.unknown()) }),
      }),
      body,
    );
    const here = Object.values(ROUTES).filter(({ service: which }: Route) => which === 'connectivity');
    expect(Object.keys(paths).toSorted()).toEqual([...new Set(here.map(({ path }) => path))].toSorted());
    expect(tags.map(({ name }) => name)).toEqual(['connectivity']);
    const text = JSON.stringify(body);
    expect(text).not.toContain('"/portal');
    const referred = [...text.matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name);
    expect(new Set(referred)).toEqual(new Set(Object.keys(components.schemas)));
  });
});

describe('aud of a foreign user token', async () => {
  const [open, bound] = [await openTrusting(), await openTrusting({ audience: 'https://conn.example.org' })];
  const others = { aud: 'https://elsewhere.example.org' };
  const both = { aud: ['https://elsewhere.example.org', 'https://conn.example.org'] };

  test.each<[string, object, string, string]>([
    ['the one', {}, '201', '201'],
    ['among others', both, '201', '201'],
    ['another', others, '201', '403 token_invalid'],
    ['none', { aud: undefined }, '201', '403 token_invalid'],
  ])('%s: unset %s, set %s', async (_, claims, unset, set) => {
    expect(outcome(await book(open.service, user(claims)))).toBe(unset);
    expect(outcome(await book(bound.service, user(claims)))).toBe(set);
  });
});

test('row 26: the keys of a trusted issuer: where it can’t be reached, the copy is used for a day, and the log says so; then it is 503', async () => {
  const { service, world } = await openTrusting();
  expect(outcome(await book(service, user()))).toBe('201');
  world.away = true;
  service.moveTo(23 * HOUR);
  const fresh = { iat: SECONDS + 23 * 3600, exp: SECONDS + 24 * 3600 };
  const links = (token: string) =>
    service.send('GET', LINKS, { headers: { authorization: `Bearer ${token}` } });
  expect(outcome(await links(user(fresh)))).toBe('200');
  expect(service.log).toContainEqual({
    level: 'error',
    event: 'keys_stale',
    fields: { issuer: LOGIN, ms: 23 * HOUR },
  });
  service.moveTo(24 * HOUR + SECOND);
  const later = { iat: SECONDS + 24 * 3600, exp: SECONDS + 25 * 3600 };
  expect(outcome(await links(user(later)))).toBe('503 unavailable');
});

describe('options that are refused', () => {
  test.each([
    'http://portal.example.org',
    'portal.example.org',
    'https://user@portal.example.org',
    'https://portal.example.org?',
    'http://localhost.example.org',
  ])('%j', async (issuer) => {
    await expect(openService({ trust: { issuers: [issuer] } })).rejects.toThrow(RangeError);
  });

  test('an empty list of issuers, and autoApprove with one', async () => {
    await expect(openService({ trust: { issuers: [] } })).rejects.toThrow(RangeError);
    const both = openService({ trust: { issuers: [PORTAL] }, autoApprove: 'lead' });
    await expect(both).rejects.toThrow(/autoApprove/);
  });
});

const experimentOfLogin = (changes: object = {}) => experiment({ iss: LOGIN, ...changes }, loginKey);
const projectOfLogin = (changes: object = {}) => project({ iss: LOGIN, ...changes }, loginKey);

describe('row 50: an issuer speaks for the kinds that it is trusted for', async () => {
  const { service } = await openTrusting({
    issuers: [
      { issuer: LOGIN, kinds: ['user'] },
      { issuer: PORTAL, kinds: ['project', 'experiment'] },
    ],
  });
  // Their ids are of no issuer's host, so that nothing but the kind is in the way.
  const [exp, proj] = ['exp_h_1', 'proj_h_1'];

  const booked = async (userToken: string, experimentToken: string, tokens: readonly string[] = []) =>
    outcome(await book(service, userToken, experimentToken, booking({ tokens })));
  const its = experiment({ sub: exp });

  test.each<[string, string, () => Promise<string>]>([
    ['each its own', '201', () => booked(user(), its, [project({ sub: proj })])],
    ['a user of the portal', '403 token_invalid', () => booked(user({ iss: PORTAL }, portalKey), its)],
    [
      'an experiment of the other',
      '403 token_invalid',
      () => booked(user(), experimentOfLogin({ sub: exp })),
    ],
    [
      'a project of the other',
      '403 token_invalid',
      () => booked(user(), its, [projectOfLogin({ sub: proj })]),
    ],
  ])('%s: %s', async (_, due, send) => {
    expect(await send()).toBe(due);
  });

  test.each<[string, ForeignIssuers['issuers']]>([
    ['users', [{ issuer: PORTAL, kinds: ['project', 'experiment'] }]],
    ['experiments', [{ issuer: LOGIN, kinds: ['user', 'project'] }]],
  ])('without an issuer of %s there is nothing to serve', async (_, issuers) => {
    await expect(openTrusting({ issuers })).rejects.toThrow(RangeError);
  });
});

describe('row 50: an experiment belongs to the issuer that minted it', () => {
  /** What becomes of everything that a token for an experiment could do to a reservation there. */
  async function everything(
    { service }: Awaited<ReturnType<typeof openTrusting>>,
    id: string,
    token: string,
  ) {
    const headers = headersWith(user(), token);
    const one = addressOf('readReservation', id);
    return Promise.all(
      (
        [
          ['POST', CONNECTIVITY, booking()],
          ['POST', `${CONNECTIVITY}?dry_run=true`, booking()],
          ['GET', CONNECTIVITY, undefined],
          ['GET', one, undefined],
          ['PUT', one, { bandwidth: '2', tokens: [] }],
          ['DELETE', one, undefined],
        ] as const
      ).map(async ([method, address, body]) =>
        outcome(await service.send(method, address, { headers, ...(body ? { body } : {}) })),
      ),
    );
  }
  const REFUSED = Array.from({ length: 6 }, () => '403 wrong_experiment');

  test('whose host its id names, though another one comes first', async () => {
    const trusting = await openTrusting();
    expect(await everything(trusting, IDS.reservation, experimentOfLogin())).toEqual(REFUSED);
    const { id } = reservationIn(await book(trusting.service, user()));
    expect(await everything(trusting, id, experimentOfLogin())).toEqual(REFUSED);
    expect(await everything(trusting, id, experiment())).not.toContain('403 wrong_experiment');
  });

  test('else the first that used it; on other servers with this database, and after a restart', async () => {
    const trusting = await openTrusting();
    const sub = 'exp_ids.example.net_1';
    // A request that is refused for its tokens makes no issuer the owner.
    const otherUser = experimentOfLogin({ sub, act: { sub: `${IDS.user}x`, role: 'lead' } });
    expect(outcome(await book(trusting.service, user(), otherUser))).toBe('403 token_invalid');
    const { id } = reservationIn(await book(trusting.service, user(), experiment({ sub })));
    const beside = await openTrusting(
      {},
      { database: trusting.service.file, random: (n) => new Uint8Array(n) },
    );
    expect(await everything(trusting, id, experimentOfLogin({ sub }))).toEqual(REFUSED);
    expect(await everything(beside, id, experimentOfLogin({ sub }))).toEqual(REFUSED);
    await trusting.service.restart();
    expect(await everything(trusting, id, experimentOfLogin({ sub }))).toEqual(REFUSED);
    expect(outcome(await book(beside.service, user(), experiment({ sub, iss: `${PORTAL}/` })))).toBe('201');
  });

  test('so does a project', async () => {
    const { service } = await openTrusting();
    const withProject = (token: string) => book(service, user(), undefined, booking({ tokens: [token] }));
    expect(outcome(await withProject(projectOfLogin()))).toBe('403 wrong_project');
    expect(outcome(await withProject(project()))).toBe('201');
    const sub = 'proj_ids.example.net_1';
    expect(outcome(await withProject(projectOfLogin({ sub })))).toBe('201');
    expect(outcome(await withProject(project({ sub })))).toBe('403 wrong_project');
  });
});

test('row 50: the scope projects: a foreign token may know no scopes; one that does must have it', async () => {
  const { service } = await openTrusting();
  expect(outcome(await book(service, user({ scope: undefined })))).toBe('201');
  expect(outcome(await book(service, user({ scope: 'openid projects2 Projects' })))).toBe(
    '403 scope_missing',
  );
});

/** The scopes that each endpoint with a user token needs. */
const SCOPES_OF: [scopes: readonly Scope[], endpoints: readonly RouteName[]][] = [
  [[], ['listLinks', 'linkUse', 'linkAvailability', 'linkSlots', 'linkRoutes']],
  [['projects'], ['createReservation', 'batchReservations', 'listReservations', 'readReservation']],
  [['projects'], ['updateReservation', 'deleteReservation', 'events', 'listProjects', 'projectToken']],
  [['projects'], ['listExperiments', 'createExperiment', 'experimentToken']],
  [['sessions'], ['listSessions', 'endSession']],
  [
    ['projects', 'sessions'],
    ['listCiRules', 'addCiRule', 'removeCiRule'],
  ],
];

describe('rows 50, 149: the scopes of each endpoint', async () => {
  const own = await openService();
  const { identity } = await own.issuers();
  const lead = await own.as('lead');
  const { id } = reservationIn(await lead.book());
  const claims = partOf(await own.userToken('lead'), 'payload');
  const endpoints = endpointsOf(own, id).filter(({ route }) => route.credentials !== 'none');

  /** The outcome of a request with a login that was granted some scopes. */
  async function asked({ route, address }: (typeof endpoints)[number], scopes: readonly string[]) {
    const authorization = `Bearer ${await identity.issue({ ...claims, scope: scopes.join(' ') })}`;
    const body = route.request === undefined ? {} : { body: {} };
    return outcome(await own.send(route.method, address, { headers: { authorization }, ...body }));
  }

  test('are in the route table: a new endpoint with a user token needs a row here', () => {
    const due = SCOPES_OF.flatMap(([scopes, names]) => names.map((name) => [name, scopes]));
    expect(Object.fromEntries(endpoints.map(({ name, route }) => [name, route.scopes]))).toEqual(
      Object.fromEntries(due),
    );
  });

  test.each(endpoints)('$name needs them all, and no other', async (endpoint) => {
    for (const scope of endpoint.route.scopes) {
      const others = SCOPES.filter((one) => one !== scope);
      expect(await asked(endpoint, ['openid', 'userinfo', ...others])).toBe('403 scope_missing');
    }
    const granted = await asked(endpoint, endpoint.route.scopes);
    expect(granted).not.toMatch(/scope_missing|token_(?:invalid|expired)/);
  });

  test('in tokens of the body as well', async () => {
    const token = await identity.issue({ ...claims, scope: 'openid' });
    const reply = await own.send('POST', CONNECTIVITY, {
      headers: { authorization: `Bearer ${await own.experimentToken('lead')}` },
      body: booking({ tokens: [token] }),
    });
    expect(outcome(reply)).toBe('403 scope_missing');
    expect(own.rows().reservations).toBe(1);
  });
});

test('row 50: an ID token is not an access token', async () => {
  const { service } = await openTrusting();
  for (const claims of [{ at_hash: 'MTIzNDU2Nzg5MDEyMzQ1Ng' }, { aud: 'slices-conn', scope: undefined }]) {
    expect(outcome(await book(service, user(claims)))).toBe('403 token_invalid');
    const headers = { authorization: `Bearer ${user(claims)}` };
    expect(outcome(await service.send('GET', LINKS, { headers }))).toBe('403 token_invalid');
  }
});

describe('row 50: a project token limits the reservations made with it', async () => {
  const { service } = await openTrusting();
  const ends = (offset: number, changes: object = {}) => project({ proj_exp: at(offset), ...changes });
  const bookWith = async (...tokens: string[]) =>
    outcome(await book(service, user(), undefined, booking({ tokens })));

  test.each<[string, string, () => string[]]>([
    ['ends with the reservation', '201', () => [ends(2 * HOUR)]],
    ['ends a millisecond before it', '422 project_ends_first Date', () => [ends(2 * HOUR - 1)]],
    ['has ended', '422 project_expired Date', () => [ends(0)]],
    [
      'is the first of two',
      '422 project_ends_first Date',
      () => [ends(DAY, { sub: 'proj_h_2' }), ends(HOUR)],
    ],
    ['is none: the experiment alone counts', '201', () => []],
  ])('the project %s: %s', async (_, due, tokens) => {
    const before = service.rows();
    expect(await bookWith(...tokens())).toBe(due);
    if (due !== '201') expect(service.rows()).toEqual(before);
  });

  test('an update too', async () => {
    const { id } = reservationIn(await book(service, user()));
    const update = async (end: number, token: string) =>
      outcome(
        await service.send('PUT', addressOf('updateReservation', id), {
          headers: headersWith(user()),
          body: { end_date: at(end), tokens: [token] },
        }),
      );
    expect(await update(4 * HOUR, ends(3 * HOUR))).toBe('422 project_ends_first Date');
    expect(await update(3 * HOUR, ends(3 * HOUR))).toBe('200');
    expect(await update(3 * HOUR, ends(-1))).toBe('422 project_expired Date');
  });
});
