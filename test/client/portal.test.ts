import { describe, expect, test } from 'vitest';
import { createPortalClient, type PortalClient } from '../../src/client/portal.ts';
import { Secret } from '../../src/contract/secret.ts';
import { failureOf } from '../fixtures/failures.ts';
import { claimsOf, IDS, makeKey, makeToken } from '../fixtures/tokens.ts';
import { type Answer, html, json, jwt, scriptedFetch, text } from './scripted-fetch.ts';

const PORTAL = 'https://portal.example.org';
const TOKEN = makeToken(makeKey(), claimsOf('experiment'));

/** A client of a portal that gives these answers. */
function portal(...answers: (Response | Answer)[]) {
  const scripted = scriptedFetch(...answers);
  const client = createPortalClient({
    fetch: scripted.fetch,
    portalUrl: PORTAL,
    projectsApiGroup: 'projects.example.org',
    experimentsApiGroup: 'experiments.example.org',
    userToken: async () => new Secret('user-token'),
  });
  return { client, sent: scripted.sent };
}

const experiment = {
  name: 'demo',
  description: '',
  project_id: IDS.project,
  expires_at: '2027-01-01T00:00:00.000Z',
};

describe('requests', () => {
  test.each<[string, (client: PortalClient) => Promise<unknown>, Response, string]>([
    [
      'projects',
      (client) => client.projects(),
      json({ projects: [] }),
      'GET /apis/projects.example.org/v1alpha1/projects/',
    ],
    [
      'experiments',
      (client) => client.experiments(),
      json({ experiments: [] }),
      'GET /apis/experiments.example.org/v1alpha1/experiments/',
    ],
    [
      'projectToken',
      (client) => client.projectToken(IDS.project),
      jwt(TOKEN),
      `GET /apis/projects.example.org/v1alpha1/projects/${IDS.project}`,
    ],
    [
      'experimentToken',
      (client) => client.experimentToken(IDS.experiment),
      jwt(TOKEN),
      `GET /apis/experiments.example.org/v1alpha1/experiments/${IDS.experiment}`,
    ],
    [
      'createExperiment',
      (client) => client.createExperiment(experiment),
      json({ id: IDS.experiment }, 201),
      'POST /apis/experiments.example.org/v1alpha1/experiments/',
    ],
  ])('%s goes to its address with the user token, and follows no redirect', async (_, call, reply, line) => {
    const { client, sent } = portal(reply);
    await call(client);
    expect(sent).toHaveLength(1);
    expect(`${sent[0]?.method} ${sent[0]?.url}`).toBe(line.replace(' ', ` ${PORTAL}`));
    expect(sent[0]?.headers.get('authorization')).toBe('Bearer user-token');
    expect(sent[0]?.redirect).toBe('manual');
  });

  test.each(['../../etc/passwd', 'a/b', '?x=1', 'a b'])('an id is one part of the path: %s', async (id) => {
    const { client, sent } = portal(jwt(TOKEN));
    await client.projectToken(id);
    expect(sent[0]?.url).toBe(
      `${PORTAL}/apis/projects.example.org/v1alpha1/projects/${encodeURIComponent(id)}`,
    );
  });
});

describe('what a portal may leave out', () => {
  const FACTS = ['name', 'description', 'role', 'created_at', 'expires_at', 'project_id'];
  const full = {
    id: 'e',
    name: 'n',
    description: 'd',
    role: 'lead',
    created_at: '2026-12-01T10:00:00.000Z',
    expires_at: '2026-12-02T10:00:00.000Z',
    project_id: 'p',
  };
  const lists = async (record: object) => {
    const [project, second] = await portal(json({ projects: [record, full] })).client.projects();
    const [experiment, another] = await portal(json({ experiments: [record, full] })).client.experiments();
    const { project_id: _, ...other } = full;
    expect([second, another]).toEqual([other, full]);
    return { project, experiment };
  };

  test.each(FACTS)(
    'row 67: %s that is missing, null or no text hides that one fact, not the list',
    async (fact) => {
      for (const wrong of [undefined, null, 1_796_119_200, 1e306, true, {}, ['x']]) {
        const { project, experiment } = await lists({ ...full, [fact]: wrong });
        expect(experiment).toEqual({ ...full, [fact]: '' });
        const { project_id: _, ...rest } = { ...full, [fact]: '' };
        expect(project).toEqual(rest);
      }
    },
  );

  test.each([
    ['2026-12-02T10:00:00Z', '2026-12-02T10:00:00.000Z'],
    ['2026-12-02T12:00:00.5+02:00', '2026-12-02T10:00:00.500Z'],
    ['2026-12-02T10:00:00', '2026-12-02T10:00:00.000Z'],
    ['tomorrow', ''],
    ['2026-02-30T10:00:00Z', ''],
  ])('row 67: an expiry %j reads as %j', async (expires_at, read) => {
    expect((await lists({ ...full, expires_at })).experiment).toMatchObject({ expires_at: read });
  });

  test('an id is needed', async () => {
    for (const id of [undefined, null, '', 5]) {
      const failure = await failureOf(() => portal(json({ projects: [{ ...full, id }] })).client.projects());
      expect(failure.code).toBe('reply_invalid');
    }
  });

  test('members that the spec does not name are ignored', async () => {
    const [project] = await portal(
      json({ projects: [{ id: 'p', name: 'n', x: 1 }], y: 2 }),
    ).client.projects();
    expect(project).not.toHaveProperty('x');
  });
});

describe('a portal without experiments', () => {
  test.each([404, 405, 501])('answers %i to every question about them: not_supported', async (status) => {
    const none = () => json({ detail: 'Not Found' }, status);
    for (const call of [
      (client: PortalClient) => client.experiments(),
      (client: PortalClient) => client.createExperiment(experiment),
      (client: PortalClient) => client.experimentToken(IDS.experiment),
    ]) {
      const { client } = portal(none, none);
      const { code, message, facts } = await failureOf(() => call(client));
      expect({ code, message }).toEqual({
        code: 'not_supported',
        message: `The portal ${PORTAL} has no experiments.`,
      });
      expect(facts).toMatchObject({
        httpStatus: status,
        why: expect.stringContaining('no experiment token'),
      });
    }
  });

  test('is told apart from one that does not know this experiment', async () => {
    const unknown = () => json({ detail: 'No such experiment.' }, 404);
    const { client, sent } = portal(unknown, json({ experiments: [] }));
    const failure = await failureOf(() => client.experimentToken(IDS.experiment));
    expect(failure).toMatchObject({ code: 'not_found', message: 'No such experiment.' });
    expect(sent).toHaveLength(2);
  });

  test('is not what another failure means', async () => {
    const { client } = portal(
      () => json({}, 404),
      () => json({}, 503),
    );
    expect((await failureOf(() => client.experimentToken(IDS.experiment))).code).toBe('not_found');
    expect((await failureOf(() => portal(json({}, 403)).client.experiments())).code).toBe('forbidden');
  });
});

describe('a token', () => {
  test.each<[string, Response]>([
    ['as application/jwt', jwt(TOKEN)],
    ['with a line end', jwt(`${TOKEN}\n`)],
    ['as text', text(TOKEN, 'text/plain')],
    ['with a line end of Windows', jwt(`${TOKEN}\r\n`)],
    ['as a JSON string', json(TOKEN)],
    ['as a JSON string that calls itself a token', jwt(JSON.stringify(TOKEN))],
  ])('is taken %s', async (_, reply) => {
    expect(await portal(reply).client.experimentToken(IDS.experiment)).toBe(TOKEN);
  });

  test.each<[string, () => Response]>([
    ['a page, though it holds two dots', () => html()],
    ['what says that it is a page', () => text(TOKEN, 'text/html')],
    ['nothing', () => new Response('')],
    ['JSON', () => json({ token: 'x' })],
    ['two parts', () => jwt('a.b')],
    ['four parts', () => jwt('a.b.c.d')],
    ['two lines', () => jwt(`${TOKEN}\n${TOKEN.slice(0, 5)}`)],
    ['a sentence of three', () => jwt('One. Two. Three')],
    ['a header of its own', () => jwt('a.b.c\r\nX-Evil: 1')],
  ])('is not %s', async (_, reply) => {
    for (const call of ['projectToken', 'experimentToken'] as const) {
      const failure = await failureOf(() => portal(reply()).client[call]('id'));
      expect(failure.code).toBe('reply_invalid');
    }
  });
});

test.each<[string, () => Response]>([
  ['an HTML page', () => html()],
  ['nothing', () => new Response('')],
  ['half an object', () => text('{"projects":[', 'application/json')],
  ['no list', () => json({ projects: {}, experiments: {} })],
  ['a list of something else', () => json({ projects: [{ name: 'n' }], experiments: [{ name: 'n' }] })],
])('a list that is %s is exit 9', async (_, reply) => {
  expect((await failureOf(() => portal(reply()).client.projects())).code).toBe('reply_invalid');
  expect((await failureOf(() => portal(reply()).client.experiments())).code).toBe('reply_invalid');
});
