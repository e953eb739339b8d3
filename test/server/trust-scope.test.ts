import { describe, expect, test } from 'vitest';
import { SCOPES, type Scope } from '../../src/contract/roles.ts';
import { EXPERIMENT_TOKEN_HEADER } from '../../src/contract/routes.ts';
import type { ForeignIssuers } from '../../src/server/trust.ts';
import { partOf } from '../fixtures/identity.ts';
import {
  addressOf,
  at,
  booking,
  CONNECTIVITY,
  DAY,
  EXPERIMENTS,
  endpointsOf,
  HOUR,
  LINKS,
  openService,
  outcome,
  PROJECTS,
  reservationIn,
} from '../fixtures/service.ts';
import { IDS } from '../fixtures/tokens.ts';
import {
  book,
  experiment,
  headersWith,
  LOGIN,
  loginKey,
  openTrusting,
  PORTAL,
  portalKey,
  project,
  user,
} from '../fixtures/trusting.ts';

const userOfPortal = () => user({ iss: PORTAL }, portalKey);
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

  test.each<[string, string, () => Promise<unknown>]>([
    ['each its own', '201', () => book(service, user(), experiment({ sub: exp }))],
    [
      'a project too',
      '201',
      () => book(service, user(), experiment({ sub: exp }), booking({ tokens: [project({ sub: proj })] })),
    ],
    [
      'a user of the portal',
      '403 token_invalid',
      () => book(service, userOfPortal(), experiment({ sub: exp })),
    ],
    [
      'an experiment of the identity provider',
      '403 token_invalid',
      () => book(service, user(), experimentOfLogin({ sub: exp })),
    ],
    [
      'a project of the identity provider',
      '403 token_invalid',
      () =>
        book(service, user(), experiment({ sub: exp }), booking({ tokens: [projectOfLogin({ sub: proj })] })),
    ],
  ])('%s: %s', async (_, due, send) => {
    expect(outcome((await send()) as Parameters<typeof outcome>[0])).toBe(due);
  });

  test('users are told where each is', async () => {
    const told = await openTrusting({
      issuers: [
        { issuer: PORTAL, kinds: ['experiment'] },
        { issuer: LOGIN, kinds: ['user'] },
      ],
    });
    for (const [address, where] of [
      ['/auth', LOGIN.slice(0, -1)],
      ['/portal', PORTAL],
    ] as const) {
      const { body } = await told.service.send('GET', address);
      expect(JSON.stringify(body)).toContain(` ${where}.`);
    }
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

  test('a request that is refused for its tokens makes no issuer the owner', async () => {
    const { service } = await openTrusting();
    const sub = 'exp_ids.example.net_2';
    const otherUser = experimentOfLogin({ sub, act: { sub: `${IDS.user}x`, role: 'lead' } });
    expect(outcome(await book(service, user(), otherUser))).toBe('403 token_invalid');
    expect(outcome(await book(service, user(), experiment({ sub })))).toBe('201');
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

describe('row 50: the scope projects', async () => {
  const own = await openService();
  const { identity } = await own.issuers();
  const lead = await own.as('lead');
  const { id } = reservationIn(await lead.book());
  const [, payload = ''] = (await own.userToken('lead')).split('.');
  const claims: object = JSON.parse(String(Buffer.from(payload, 'base64url')));
  const project_id = own.project;

  /** Everything that takes a user token, with one of this scope. */
  async function outcomesOf(scope: string | undefined): Promise<string[]> {
    const token = await identity.issue({ ...claims, scope });
    const headers = {
      authorization: `Bearer ${token}`,
      [EXPERIMENT_TOKEN_HEADER]: await own.experimentToken('lead'),
    };
    const requests: [string, string, object?][] = [
      ['GET', PROJECTS],
      ['GET', addressOf('projectToken', project_id)],
      ['GET', EXPERIMENTS],
      ['GET', addressOf('experimentToken', own.experiment)],
      [
        'POST',
        EXPERIMENTS,
        { name: `of-${String(scope).replace(' ', '-')}`, project_id, expires_at: at(DAY) },
      ],
      ['POST', CONNECTIVITY, booking()],
      ['GET', CONNECTIVITY],
      ['GET', addressOf('readReservation', id)],
      ['PUT', addressOf('readReservation', id), { bandwidth: '2', tokens: [] }],
      ['GET', LINKS],
    ];
    const found: string[] = [];
    for (const [method, address, body] of requests)
      found.push(outcome(await own.send(method, address, { headers, ...(body ? { body } : {}) })));
    return found;
  }

  test.each([undefined, '', 'openid', 'openid userinfo', 'project', 'projects2 Projects'])(
    'a login with the scope %j does nothing with projects, experiments and reservations',
    async (scope) => {
      const before = own.rows();
      expect(await outcomesOf(scope)).toEqual([
        ...Array.from({ length: 9 }, () => '403 scope_missing'),
        '200',
      ]);
      expect(own.rows()).toEqual(before);
    },
  );

  test.each(['projects', 'openid projects'])('%j is enough', async (scope) => {
    expect(await outcomesOf(scope)).toEqual([
      ...['200', '200', '200', '200', '201', '201', '200', '200', '200', '200'],
    ]);
  });

  test('in tokens of the body as well', async () => {
    const token = await identity.issue({ ...claims, scope: 'openid' });
    const reply = await own.send('POST', CONNECTIVITY, {
      headers: { authorization: `Bearer ${await own.experimentToken('lead')}` },
      body: booking({ tokens: [token] }),
    });
    expect(outcome(reply)).toBe('403 scope_missing');
  });

  test('a foreign token may know no scopes; one that does must have it', async () => {
    const { service } = await openTrusting();
    expect(outcome(await book(service, user({ scope: undefined })))).toBe('201');
    expect(outcome(await book(service, user({ scope: 'openid userinfo' })))).toBe('403 scope_missing');
  });
});

/** The scopes that each endpoint with a user token needs. */
const SCOPES_OF: Record<string, readonly Scope[]> = {
  createReservation: ['projects'],
  batchReservations: ['projects'],
  listReservations: ['projects'],
  readReservation: ['projects'],
  updateReservation: ['projects'],
  deleteReservation: ['projects'],
  listLinks: [],
  linkUse: [],
  linkAvailability: [],
  linkSlots: [],
  linkRoutes: [],
  events: ['projects'],
  listProjects: ['projects'],
  projectToken: ['projects'],
  listExperiments: ['projects'],
  createExperiment: ['projects'],
  experimentToken: ['projects'],
  listSessions: ['sessions'],
  endSession: ['sessions'],
  listCiRules: ['projects', 'sessions'],
  addCiRule: ['projects', 'sessions'],
  removeCiRule: ['projects', 'sessions'],
};

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
    expect(Object.fromEntries(endpoints.map(({ name, route }) => [name, route.scopes]))).toEqual(SCOPES_OF);
  });

  test.each(endpoints)('$name needs them all', async (endpoint) => {
    for (const scope of endpoint.route.scopes) {
      const others = SCOPES.filter((one) => one !== scope);
      expect(await asked(endpoint, ['openid', 'userinfo', ...others])).toBe('403 scope_missing');
    }
  });

  // A stream of events would go on.
  test.each(endpoints.filter(({ name }) => name !== 'events'))('$name needs no other', async (endpoint) => {
    expect(await asked(endpoint, endpoint.route.scopes)).not.toMatch(
      /scope_missing|token_(?:invalid|expired)/,
    );
  });
});

describe('row 50: an ID token is not an access token', async () => {
  const { service } = await openTrusting();

  test.each<[string, object]>([
    ['at_hash', { at_hash: 'MTIzNDU2Nzg5MDEyMzQ1Ng' }],
    ['the client as its audience', { aud: 'slices-conn', scope: undefined }],
  ])('%s', async (_, claims) => {
    expect(outcome(await book(service, user(claims)))).toBe('403 token_invalid');
    const links = await service.send('GET', LINKS, {
      headers: { authorization: `Bearer ${user(claims)}` },
    });
    expect(outcome(links)).toBe('403 token_invalid');
  });
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
      'is the first of two to end',
      '422 project_ends_first Date',
      () => [ends(DAY, { sub: 'proj_h_2' }), ends(HOUR)],
    ],
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

  test('without one, the experiment alone counts', async () => {
    expect(await bookWith()).toBe('201');
  });
});
