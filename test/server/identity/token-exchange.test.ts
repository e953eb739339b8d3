import { getIDToken } from '@actions/core';
import { decodeJwt } from 'jose';
import * as v from 'valibot';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { CiRule, TOKEN_EXCHANGE_GRANT } from '../../../src/contract/ci-rules.ts';
import { EXPERIMENT_TOKEN_HEADER, ROUTES, type RouteName } from '../../../src/contract/routes.ts';
import { administratorsNamed } from '../../../src/server/credentials.ts';
import { readAudit } from '../../../src/store/audit.ts';
import { openToRead } from '../../../src/store/stores.ts';
import { send as askWithin } from '../../fixtures/asked-server.ts';
import { type Changes, type CiIssuer, ciIssuer } from '../../fixtures/ci-issuer.ts';
import {
  type IdentityServer,
  type Provider,
  post,
  send,
  startIdentity,
  tally,
  type WireReply,
} from '../../fixtures/identity.ts';
import { usePostgres } from '../../fixtures/postgres.ts';
import {
  addressOf,
  booking,
  CONNECTIVITY,
  DAY,
  EXPERIMENTS,
  MINUTE,
  type Sending,
  SIGNED,
} from '../../fixtures/service.ts';
import { type Forgery, makeKey } from '../../fixtures/tokens.ts';

const postgres = usePostgres();
const [github, gitlab] = await Promise.all([ciIssuer('github'), ciIssuer('gitlab')]);
const ci = { issuers: { github: github.issuer, gitlab: gitlab.issuer } };

afterEach(() => void vi.unstubAllEnvs());

/** Asks a server for something with a user token. */
function ask(
  { server }: IdentityServer,
  method: string,
  path: string,
  { user, headers, body }: Sending & { user: string },
): Promise<{ status: number; text: string }> {
  return askWithin(server, method, path, { headers: { authorization: `Bearer ${user}`, ...headers }, body });
}

const Experiments = v.object({ experiments: v.array(v.object({ id: v.string(), name: v.string() })) });

/** The id of an experiment of a user's. */
async function experimentOf(server: IdentityServer, user: string, wanted = 'demo'): Promise<string> {
  const { text } = await ask(server, 'GET', EXPERIMENTS, { user });
  const found = v.parse(Experiments, JSON.parse(text)).experiments.find(({ name }) => name === wanted);
  return v.parse(v.string(), found?.id);
}

/** Creates an experiment in the project of the user's first one. */
async function addExperiment(server: IdentityServer, user: string, name: string): Promise<string> {
  const { text } = await ask(server, 'GET', addressOf('listProjects'), { user });
  const project_id = v.parse(v.string(), JSON.parse(text).projects[0].id);
  const expires_at = new Date(Date.now() + DAY).toISOString();
  await ask(server, 'POST', EXPERIMENTS, { user, body: { name, project_id, expires_at } });
  return project_id;
}

const GITHUB = { ci: 'github', repository: 'octo/measure', ref: 'refs/heads/main' };
const GITLAB = { ci: 'gitlab', repository: 'lab/net/measure', ref: 'main', ref_type: 'branch' };

/** Adds a rule, as the lead unless it says otherwise. */
async function addRule(
  server: IdentityServer,
  rule: Changes = {},
  { user, experiment }: { user?: string; experiment?: string } = {},
): Promise<v.InferOutput<typeof CiRule>> {
  const lead = user ?? (await server.server.signIn('lead'));
  const id = experiment ?? (await experimentOf(server, lead));
  const body = { ...GITHUB, ...rule };
  const { status, text } = await ask(server, 'POST', addressOf('addCiRule', id), { user: lead, body });
  if (status !== 201) throw new Error(`${status} ${text}`);
  return v.parse(CiRule, JSON.parse(text));
}

/** Exchanges an ID token as a job does. */
function exchange(target: Provider, idToken: string, more: Record<string, string> = {}): Promise<WireReply> {
  return post(target, '/token', {
    client_id: 'slices-conn-ci',
    grant_type: TOKEN_EXCHANGE_GRANT,
    subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
    subject_token: idToken,
    resource: target.base,
    ...more,
  });
}

const Answer = v.looseObject({ access_token: v.string(), expires_in: v.number(), scope: v.string() });
const answered = ({ status, text }: WireReply) => {
  if (status !== 200) throw new Error(`${status} ${text}`);
  return v.parse(Answer, JSON.parse(text));
};

/** What a job is told that gets no token. */
const told = ({ status, text }: WireReply): string => {
  const { error, error_description: why } = JSON.parse(text);
  return `${status} ${error}: ${why}`;
};
/** What a stranger is told: nothing. */
const NOTHING = '400 invalid_grant: The ID token is not accepted.';

/** What the log says of refused jobs. */
const logged = ({ log }: IdentityServer): unknown[] =>
  log.filter(({ event }) => event === 'ci_refused').map(({ fields }) => fields['why']);

/** A server with rules, and a job of GitHub that asks it. */
async function withRules(rules: readonly Changes[] = [{}], database?: string) {
  const server = await startIdentity({ ci, ...(database === undefined ? {} : { database }) });
  const added: v.InferOutput<typeof CiRule>[] = [];
  for (const rule of rules) added.push(await addRule(server, rule));
  const job = (changes: Changes = {}, more?: Record<string, string>) =>
    exchange(server, github.idToken(server.issuer, changes), more);
  return { server, added, job };
}

describe('a job', () => {
  test('of GitHub acts for 15 min, in the experiment of its rule alone', async () => {
    const { server, added, job } = await withRules();
    expect(added).toMatchObject([{ repository_id: null, user_name: 'lead' }]);
    const answer = answered(await job());
    const { access_token: user } = answer;
    expect(answer).toMatchObject({ expires_in: 900, scope: 'projects', token_type: 'Bearer' });
    expect(answer).not.toHaveProperty('refresh_token');
    const id = await experimentOf(server, user);
    expect(decodeJwt(user)).toMatchObject({
      sub: added[0]?.user,
      aud: server.base,
      client_id: 'slices-conn-ci',
      limited_to: id,
    });
    expect(server.log.filter(({ event }) => event === 'login')).toMatchObject([
      { fields: { name: 'lead', repository: 'octo/measure', experiment: 'demo' } },
    ]);
    // Its experiment tokens say so too: alone in a request, they are as limited.
    const token = await ask(server, 'GET', addressOf('experimentToken', id), { user, headers: SIGNED });
    expect(decodeJwt(token.text)).toMatchObject({ sub: id, limited_to: id });
    // It can't revoke its token, and is told so: its rule can be removed (RFC 7009 §2.2.1).
    const reply = await post(server, '/token/revocation', { client_id: 'slices-conn-ci', token: user });
    expect([reply.status, JSON.parse(reply.text)]).toMatchObject([400, { error: 'unsupported_token_type' }]);
    expect((await ask(server, 'GET', EXPERIMENTS, { user })).status).toBe(200);
  });

  test('of GitHub gets its ID token by the toolkit of GitHub, from the same runner', async () => {
    const { server } = await withRules();
    const { env, asked } = github.runner();
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    // It tells the runner to mask the token.
    const printed = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    const idToken = await getIDToken(server.issuer);
    printed.mockRestore();
    expect(asked).toEqual([server.issuer]);
    answered(await exchange(server, idToken));
  });

  test('of GitLab acts as long as its ID token, a day at most, and never longer than its rule', async () => {
    const { server } = await withRules([GITLAB]);
    const soon = Math.floor(Date.now() / 1000) + 2 * 86_400;
    const answer = answered(await exchange(server, gitlab.idToken(server.issuer)));
    expect(answer.expires_in).toBeGreaterThan(2990);
    expect(answer.expires_in).toBeLessThanOrEqual(3000);
    const long = answered(await exchange(server, gitlab.idToken(server.issuer, { exp: soon })));
    expect(long.expires_in).toBe(86_400);
    const expires_at = new Date(Date.now() + MINUTE).toISOString();
    await addRule(server, { ...GITLAB, expires_at });
    const short = answered(await exchange(server, gitlab.idToken(server.issuer, { exp: soon })));
    expect(short.expires_in).toBeLessThanOrEqual(60);
  });

  test('is let in by its environment alone, where the rule says so', async () => {
    const { job } = await withRules([{ ref: undefined, environment: 'lab' }]);
    answered(await job({ environment: 'lab', ref: 'refs/tags/v1' }));
    expect(told(await job())).toContain('environment lab');
  });

  test('of several experiments says which, by id or name', async () => {
    const { server, job } = await withRules();
    const user = await server.server.signIn('lead');
    await addExperiment(server, user, 'second');
    const [demo, second] = [await experimentOf(server, user), await experimentOf(server, user, 'second')];
    await addRule(server, {}, { user, experiment: second });
    expect(told(await job())).toContain('demo, second');
    expect(told(await job({}, { experiment: 'third' }))).toContain('third');
    for (const experiment of ['demo', demo]) {
      const { access_token } = answered(await job({}, { experiment }));
      expect(decodeJwt(access_token)).toMatchObject({ limited_to: demo });
    }
  });

  test('gets nothing for another client, service or kind of token, or none; its ID token is not used up', async () => {
    const { server } = await withRules();
    const idToken = github.idToken(server.issuer);
    const jwt = 'urn:ietf:params:oauth:token-type:jwt';
    const wrong: [Record<string, string>, string][] = [
      [{ client_id: 'slices-conn' }, 'invalid_request'],
      [{ resource: 'https://conn.example.org' }, 'invalid_target'],
      [{ subject_token_type: jwt }, 'invalid_request'],
      [{ subject_token: '' }, 'invalid_request'],
    ];
    for (const [changes, error] of wrong) {
      expect(told(await exchange(server, idToken, changes))).toContain(`400 ${error}: `);
    }
    answered(await exchange(server, idToken));
  });

  test('gets nothing of a server that names no CI, and its provider does not offer the exchange', async () => {
    const server = await startIdentity();
    const user = await server.server.signIn('lead');
    const path = addressOf('addCiRule', await experimentOf(server, user));
    expect(await ask(server, 'POST', path, { user, body: GITHUB })).toMatchObject({ status: 422 });
    expect((await exchange(server, github.idToken(server.issuer))).status).toBe(400);
    const offered = async (of: IdentityServer): Promise<string> =>
      (await send(of, 'GET', '/auth/.well-known/openid-configuration')).text;
    expect(await offered(server)).not.toContain(TOKEN_EXCHANGE_GRANT);
    expect(await offered(await startIdentity({ ci }))).toContain(TOKEN_EXCHANGE_GRANT);
  });
});

describe('a stranger is told nothing, and the log the reason', () => {
  let server: IdentityServer;
  beforeAll(async () => {
    ({ server } = await withRules([GITHUB, GITLAB]));
  });
  const refused = async (idToken: string, more?: Record<string, string>): Promise<void> => {
    const before = logged(server).length;
    expect(told(await exchange(server, idToken, more))).toBe(NOTHING);
    expect(logged(server)).toHaveLength(before + 1);
    expect(String(logged(server).at(-1))).not.toContain(idToken);
  };

  test.each(['octo/measure2', 'Octo/Measure', '*', undefined])(
    'row 150: of repository %s, where the rule says octo/measure',
    (repository) => refused(github.idToken(server.issuer, { repository, repository_id: '75' })),
  );

  test.each<[string, (audience: string) => string]>([
    ['for another audience', () => github.idToken('https://github.com/octo')],
    ['for the service in place of its identity provider', () => github.idToken(server.base)],
    ['for another audience too', (own) => github.idToken(own, { aud: [own, 'https://other.example.org'] })],
    ['without an audience', (own) => github.idToken(own, { aud: undefined })],
  ])('row 153: %s', (_, make) => refused(make(server.issuer)));

  const minuteAgo = Math.floor(Date.now() / 1000) - 60;
  const stranger = makeKey('RS256', {}, 'stranger');
  const forged: Record<string, [Changes, Forgery]> = {
    'that has expired': [{ exp: minuteAgo }, {}],
    'that never expires': [{ exp: undefined }, {}],
    'without the id of its repository': [{ repository_id: undefined }, {}],
    'of alg none': [{}, { header: { alg: 'none' }, sign: () => new Uint8Array(1) }],
    'of alg ES256': [{}, { header: { alg: 'ES256' } }],
    'signed by another key': [{}, { sign: stranger.sign }],
    'of an issuer that is not named': [{ iss: 'https://token.actions.githubusercontent.com' }, {}],
    'of the other issuer': [{ iss: gitlab.issuer }, {}],
    'about a user of ours': [{ sub: 'user_127.0.0.1_01jd3x0m2sf0vrv9mhb1wk6x4q' }, {}],
  };
  test.each(Object.entries(forged))('row 155: an ID token %s', (_, [changes, forgery]) =>
    refused(github.idToken(server.issuer, changes, forgery)),
  );

  test('row 155: a text that is none, and one that is a user token of ours', async () => {
    await refused('eyJ');
    await refused(await server.server.signIn('lead'));
  });

  test('row 150: a project of GitLab that has the name of a repository of GitHub', () =>
    refused(gitlab.idToken(server.issuer, { project_path: 'octo/measure', project_id: '9' })));
});

const IN_LAB = { ref: undefined, ref_type: undefined, environment: 'lab' };

/** Events that let others start a job, or run their code in it; and none, and what is none. */
const OTHER_EVENTS: [CiIssuer, string, unknown[]][] = [
  [
    github,
    'event_name',
    ['pull_request', 'pull_request_target', 'workflow_run', 'issue_comment', 'Push', 'web', '', undefined, 7],
  ],
  [
    gitlab,
    'pipeline_source',
    ['merge_request_event', 'parent_pipeline', 'pipeline', 'workflow_dispatch', undefined, ['push']],
  ],
];

describe('a job of a repository that has rules', () => {
  let server: IdentityServer;
  beforeAll(async () => {
    const rules = [GITHUB, GITLAB].flatMap((rule) => [rule, { ...rule, ...IN_LAB }]);
    ({ server } = await withRules(rules));
  });

  test.each(OTHER_EVENTS.flatMap(([of, claim, events]) => events.map((event) => ({ of, claim, event }))))(
    'row 151: a job of $of.name with $claim $event is refused, and told why',
    async ({ of, claim, event }) => {
      const reply = await exchange(server, of.idToken(server.issuer, { environment: 'lab', [claim]: event }));
      const shown = typeof event === 'string' && event !== '' ? event : 'none';
      expect(told(reply)).toMatch(
        `400 invalid_grant: This job has ${claim} ${shown}, and only jobs of push, schedule and `,
      );
    },
  );

  test('gets a token for a push, a schedule and a start by hand', async () => {
    for (const event_name of ['push', 'schedule', 'workflow_dispatch']) {
      answered(await exchange(server, github.idToken(server.issuer, { event_name })));
    }
    for (const pipeline_source of ['push', 'schedule', 'web']) {
      answered(await exchange(server, gitlab.idToken(server.issuer, { pipeline_source })));
    }
  });
});

test.each<[string, CiIssuer, Changes[], Changes, string]>([
  [
    'the only rule',
    github,
    [{}],
    { ref: 'refs/pull/7/merge' },
    'The rule has ref refs/heads/main, this job has refs/pull/7/merge.',
  ],
  ['its type', gitlab, [GITLAB], { ref_type: 'tag' }, 'The rule has ref_type branch, this job has tag.'],
  [
    'all rules that are equally near',
    github,
    [{ ref: 'refs/heads/dev' }, {}],
    { ref: 'refs/heads/feature' },
    'The rules have ref refs/heads/dev and refs/heads/main, this job has refs/heads/feature.',
  ],
  [
    'the nearest rule',
    github,
    [{}, { ref: 'refs/heads/feature', environment: 'lab' }],
    { ref: 'refs/heads/feature' },
    'The rule has environment lab, this job has none.',
  ],
])('row 151: a job of another branch is refused, and told of %s', async (_, of, rules, changes, due) => {
  const { server } = await withRules(rules);
  const reply = await exchange(server, of.idToken(server.issuer, changes));
  expect(told(reply)).toBe(`400 invalid_grant: ${due}`);
  expect(logged(server)).toHaveLength(1);
});

/** The rows of the audit about jobs, the first one first. */
async function audited({ file }: IdentityServer): Promise<unknown[]> {
  const rows: unknown[] = [];
  const database = await openToRead(file);
  await readAudit(database, { limit: 99 }, async (portion) => {
    rows.push(...portion.map(({ by, experiment, why, count }) => [by, experiment, why, count]));
  });
  await database.close();
  return rows;
}

describe.each(postgres.engines)('on %s', (_, database) => {
  const start = async () => withRules([{}], await database());

  test('row 151: the audit has what was refused and granted, one row for what is the same in a minute', async () => {
    const { server, added, job: ask } = await start();
    // At the beginning of a minute.
    server.advance(MINUTE - (Date.now() % MINUTE));
    const experiment = await experimentOf(server, await server.server.signIn('lead'));
    const together = (all: readonly Changes[]) => Promise.all(all.map((changes) => ask(changes)));
    await together(['1', '2', '3'].map((id) => ({ repository: `a/${id}`, repository_id: id })));
    await together([{ ref: 'refs/heads/x' }, { ref: 'refs/heads/y' }, { environment: 'z', ref: 'z' }]);
    await ask({ event_name: 'workflow_run' });
    await Promise.all(['eyJ', 'x', ''].map((idToken) => exchange(server, idToken)));
    await exchange(server, gitlab.idToken('https://elsewhere.example'));
    await together([{}, {}]);
    server.advance(MINUTE);
    await ask({ repository_id: '75' });
    await ask({});
    const [own, none] = [github.issuer, 'There is no rule for its repository.'];
    const granted = [added[0]?.user, experiment, `A job of octo/measure, by rule ${added[0]?.id}.`];
    expect(await audited(server)).toEqual([
      [own, '', none, 3],
      [own, '', 'octo/measure: The job differs from each rule.', 3],
      [own, '', expect.stringMatching(/^octo\/measure: This job has event_name workflow_run, /), 1],
      ['another issuer', '', 'The ID token is not valid: malformed.', 2],
      [gitlab.issuer, '', 'The ID token is not valid: audience.', 1],
      [...granted, 2],
      [own, '', none, 1],
      [...granted, 1],
    ]);
  });

  test('row 152: a repository is known by its id from its first job on', async () => {
    const { server, job } = await start();
    // A refused job is not the first.
    expect((await job({ repository_id: '75', ref: 'refs/heads/other' })).status).toBe(400);
    answered(await job());
    // It was renamed, and somebody else took the name; adding the rule again changes nothing.
    expect(told(await job({ repository_id: '75' }))).toBe(NOTHING);
    expect(await addRule(server)).toMatchObject({ repository_id: '74' });
    expect(told(await job({ repository_id: '75' }))).toBe(NOTHING);
    // Under its new name it is told of its rule.
    expect(told(await job({ repository: 'octo/renamed' }))).toContain('octo/renamed');
    answered(await job());
  });

  test('row 152: of two repositories of one name that come first at once, one is taken', async () => {
    const { server } = await start();
    const targets = [server, await server.replica()];
    const jobs = ['74', '75', '74', '75'].map((id, at) =>
      exchange(targets[at % 2] ?? server, github.idToken(server.issuer, { repository_id: id })),
    );
    const replies = (await Promise.all(jobs)).map(({ status }) => status);
    expect(tally(replies.map(String))).toEqual({ 200: 2, 400: 2 });
    expect(replies.slice(0, 2)).toEqual(replies.slice(2));
  });

  test.each([{}, { jti: undefined }])(
    'row 154: an ID token is taken once, by any replica, with %o',
    async (changes) => {
      const { server } = await start();
      const targets = [server, await server.replica()];
      const idToken = github.idToken(server.issuer, changes);
      const replies = await Promise.all(
        Array.from({ length: 12 }, (_, at) => exchange(targets[at % 2] ?? server, idToken)),
      );
      expect(tally(replies.map(({ status }) => String(status)))).toEqual({ 200: 1, 400: 11 });
      expect(new Set(replies.filter(({ status }) => status === 400).map(told))).toEqual(new Set([NOTHING]));
    },
  );

  test('row 158: a rule ends with its time, its person’s role and its removal, and with it the tokens', async () => {
    const { server, added, job } = await start();
    const user = await server.server.signIn('lead');
    const experiment = await experimentOf(server, user);
    const { access_token } = answered(await job());
    const open = async (token: string) => (await ask(server, 'GET', EXPERIMENTS, { user: token })).status;
    expect(await open(access_token)).toBe(200);
    // What the portal gave for it, which stands in for a user token where there is no body.
    const path = addressOf('experimentToken', experiment);
    const { text: ofPortal } = await ask(server, 'GET', path, { user: access_token, headers: SIGNED });
    const list = async () => (await ask(server, 'GET', CONNECTIVITY, { user: ofPortal })).status;
    expect(await list()).toBe(200);
    const removal = addressOf('removeCiRule', experiment).replace(/[^/]*$/, added[0]?.id ?? '');
    expect((await ask(server, 'DELETE', removal, { user })).status).toBe(204);
    expect((await ask(server, 'DELETE', removal, { user })).status).toBe(404);
    expect([await open(access_token), await list()]).toEqual([403, 403]);
    expect(told(await job())).toBe(NOTHING);
    await addRule(server, { expires_at: new Date(Date.now() + 20 * MINUTE).toISOString() });
    answered(await job());
    server.advance(20 * MINUTE);
    const later = Math.floor(Date.now() / 1000) + 1200;
    const now = { iat: later, nbf: later, exp: later + 300 };
    expect(told(await job(now))).toMatch(/^400 invalid_grant: The rule for this job expired at 20\d\d-/);
    expect(told(await job({ ...now, repository_id: '75' }))).toBe(NOTHING);
    const asLead = { user: await server.server.signIn('lead') };
    expect((await ask(server, 'GET', addressOf('listCiRules', experiment), asLead)).text).toContain(
      '"items":[]',
    );
  });
});

test('row 158: who is a lead no more lets no job in', async () => {
  const member = (role: 'lead' | 'viewer') => ({
    users: [{ name: 'alice' }],
    projects: [{ name: 'p', expires_at: '2100-01-01T00:00:00Z', members: { alice: 'lead' as const } }],
    experiments: [
      { name: 'demo', project: 'p', expires_at: '2100-01-01T00:00:00Z', members: { alice: role } },
    ],
  });
  const before = await startIdentity({ ci, directory: member('lead') });
  await addRule(before, {}, { user: await before.server.signIn('alice') });
  answered(await exchange(before, github.idToken(before.issuer)));
  await before.close();
  const server = await startIdentity({ ci, directory: member('viewer'), database: before.file });
  expect(told(await exchange(server, github.idToken(server.issuer)))).toContain(
    'added by a user who is no longer a lead of its experiment.',
  );
});

test('row 156: while the keys of a CI are away its jobs are to ask again, and its keys are asked for once', async () => {
  const away = await ciIssuer('github');
  away.isAway = true;
  const server = await startIdentity({ ci: { issuers: { github: away.issuer } } });
  await addRule(server);
  const replies = await Promise.all(
    Array.from({ length: 10 }, () => exchange(server, away.idToken(server.issuer))),
  );
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([503]));
  expect(away.fetches()).toBe(1);
  away.isAway = false;
  server.advance(MINUTE);
  answered(await exchange(server, away.idToken(server.issuer)));
});

describe('row 157: a token that is limited to an experiment', () => {
  /** What a route answers with the limited token; with the experiment token of the experiment, and with that of another. */
  const statuses = (names: readonly RouteName[], own: number, other: number) =>
    names.map((name) => [name, own, other] as const);
  const TABLE = [
    ...statuses(['createReservation'], 201, 403),
    ...statuses(['batchReservations'], 422, 403),
    ...statuses(['listReservations', 'linkSlots', 'events', 'experimentToken'], 200, 403),
    ...statuses(['readReservation', 'updateReservation', 'deleteReservation'], 404, 403),
    // What everyone may know who is logged in.
    ...statuses(['listLinks', 'linkUse', 'linkAvailability', 'linkRoutes'], 200, 200),
    // The lists have nothing of others; see below.
    ...statuses(['listProjects', 'listExperiments'], 200, 200),
    ...statuses(['projectToken', 'createExperiment', 'listSessions', 'endSession'], 403, 403),
    ...statuses(['listCiRules', 'addCiRule', 'removeCiRule'], 403, 403),
    // Without a token.
    ...statuses(['connectivityKeySet', 'keyHistory', 'portalKeySet', 'protectedResource'], 200, 200),
    ...statuses(['statusList', 'health', 'readiness'], 200, 200),
  ];
  let server: IdentityServer;
  let limited: string;
  const ids = { demo: '', second: '', project: '' };
  const tokens = { demo: '', second: '' };

  beforeAll(async () => {
    server = await startIdentity({ ci });
    const user = await server.server.signIn('lead');
    ids.project = await addExperiment(server, user, 'second');
    for (const name of ['demo', 'second'] as const) {
      ids[name] = await experimentOf(server, user, name);
      const path = addressOf('experimentToken', ids[name]);
      tokens[name] = (await ask(server, 'GET', path, { user, headers: SIGNED })).text;
    }
    await addRule(server);
    limited = answered(await exchange(server, github.idToken(server.issuer))).access_token;
  });

  const inMinutes = (minutes: number) => new Date(Date.now() + minutes * MINUTE).toISOString();
  const BODIES: Partial<Record<RouteName, object>> = {
    createReservation: booking({ start_date: inMinutes(10), end_date: inMinutes(60) }),
    updateReservation: { bandwidth: '2', tokens: [] },
    batchReservations: { items: [], tokens: [] },
    createExperiment: { name: 'third' },
    addCiRule: GITHUB,
  };

  test('is tried at every route', () => {
    expect(TABLE.map(([name]) => name).toSorted()).toEqual(Object.keys(ROUTES).toSorted());
  });

  test.each(TABLE)('%s', async (name, own, other) => {
    const { service } = ROUTES[name];
    // A stream would go on.
    const method = name === 'events' ? 'HEAD' : ROUTES[name].method;
    for (const [at, which] of (['demo', 'second'] as const).entries()) {
      const id = service === 'connectivity' ? 'con_127.0.0.1_01jd3x0m2sf0vrv9mhb1wk6x4q' : ids[which];
      const query = name === 'linkSlots' ? '?bandwidth=1&duration=PT1H' : '';
      const path = addressOf(name, name === 'projectToken' ? ids.project : id) + query;
      const body = BODIES[name];
      const { status, text } = await ask(server, method, path, {
        user: limited,
        headers: service === 'connectivity' ? { [EXPERIMENT_TOKEN_HEADER]: tokens[which] } : {},
        ...(body ? { body } : {}),
      });
      expect(status, text).toBe(at === 0 ? own : other);
    }
  });

  test('lists its experiment alone, and no project', async () => {
    const listed = async (name: RouteName) =>
      JSON.parse((await ask(server, 'GET', addressOf(name), { user: limited })).text);
    expect((await listed('listExperiments')).experiments).toMatchObject([{ id: ids.demo }]);
    expect((await listed('listProjects')).projects).toEqual([]);
  });

  test('in the body beside the experiment token of another, and as an administrator’s', async () => {
    const reply = await ask(server, 'POST', addressOf('batchReservations'), {
      user: tokens.second,
      body: {
        items: [{ action: 'delete', id: 'con_127.0.0.1_01jd3x0m2sf0vrv9mhb1wk6x4q' }],
        tokens: [limited],
      },
    });
    expect(reply).toMatchObject({ status: 403, text: expect.stringContaining('wrong_experiment') });
    const { sub = '', iss = '' } = decodeJwt(limited);
    const isAdministrator = administratorsNamed([sub], iss);
    const caller = { user: sub, name: 'lead', userIssuer: iss, expiry: 0 };
    expect(isAdministrator({ ...caller, isLimited: false })).toBe(true);
    expect(isAdministrator({ ...caller, isLimited: true })).toBe(false);
  });
});

describe('row 159: rules', () => {
  let server: IdentityServer;
  beforeAll(async () => {
    server = await startIdentity({ ci });
  });

  test.each(['admin', 'member', 'viewer'])('are for leads, not for %s', async (role) => {
    const user = await server.server.signIn(role);
    const id = await experimentOf(server, user);
    for (const name of ['listCiRules', 'addCiRule', 'removeCiRule'] as const) {
      const { method } = ROUTES[name];
      const body = method === 'POST' ? { body: GITHUB } : {};
      const reply = await ask(server, method, addressOf(name, id), { user, ...body });
      expect(reply).toMatchObject({ status: 403, text: expect.stringContaining('role_not_allowed') });
    }
  });

  test.each<[string, Changes]>([
    ['neither branch nor environment', { ref: undefined }],
    ['a branch of GitHub that is not in full', { ref: 'main' }],
    ['no type of ref of GitLab', { ...GITLAB, ref_type: undefined }],
    ['a pattern', { repository: 'octo/*' }],
    ['another CI', { ci: 'jenkins' }],
    ['more than 90 days', { expires_at: new Date(Date.now() + 91 * DAY).toISOString() }],
    ['a time that has passed', { expires_at: '2020-01-01T00:00:00Z' }],
  ])('that say %s are refused', async (_, rule) => {
    await expect(addRule(server, rule)).rejects.toThrow('422');
  });

  test('are 100 of an experiment at most; one that is added again counts once', async () => {
    for (let at = 0; at < 100; at += 1) await addRule(server, { ref: `refs/heads/${at}` });
    await addRule(server, { ref: 'refs/heads/7' });
    await expect(addRule(server)).rejects.toThrow('ci_rule_invalid');
  });
});
