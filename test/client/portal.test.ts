import { http, type RequestHandler } from 'msw';
import { describe, expect, test } from 'vitest';
import { createPortalClient, type PortalClient } from '../../src/client/portal.ts';
import { Secret } from '../../src/contract/secret.ts';
import { failureOf } from '../fixtures/failures.ts';
import { claimsOf, IDS, makeKey, makeToken } from '../fixtures/tokens.ts';
import { answeredBy } from './answers.ts';
import { html, json, jwt, text } from './replies.ts';

const PORTAL = 'https://portal.example.org';
const TOKEN = makeToken(makeKey(), claimsOf('experiment'));

const PROJECTS = `${PORTAL}/apis/projects.example.org/v1alpha1/projects/`;
const EXPERIMENTS = `${PORTAL}/apis/experiments.example.org/v1alpha1/experiments/`;

/** A client of a portal with these answers. */
function portal(...handlers: RequestHandler[]) {
  const answered = answeredBy(...handlers);
  const client = createPortalClient({
    fetch: answered.fetch,
    portalUrl: PORTAL,
    projectsApiGroup: 'projects.example.org',
    experimentsApiGroup: 'experiments.example.org',
    userToken: async () => new Secret('user-token'),
  });
  return { client, sent: answered.sent };
}

/** A portal's lists, and its answers about one project or experiment. */
const projects = (answer: () => Response) => http.get(PROJECTS, answer);
const experiments = (answer: () => Response) => http.get(EXPERIMENTS, answer);
const oneProject = (answer: () => Response) => http.get(`${PROJECTS}:id`, answer);
const oneExperiment = (answer: () => Response) => http.get(`${EXPERIMENTS}:id`, answer);
const newExperiment = (answer: () => Response) => http.post(EXPERIMENTS, answer);

const experiment = {
  name: 'demo',
  description: '',
  project_id: IDS.project,
  expires_at: '2027-01-01T00:00:00.000Z',
};

describe('requests', () => {
  test('createExperiment may have taken effect when its answer can’t be read', async () => {
    const { client } = portal(newExperiment(() => html()));
    expect(await failureOf(() => client.createExperiment(experiment))).toMatchObject({
      code: 'reply_invalid',
      facts: { maybeDone: true, fix: 'slices-conn experiment list' },
    });
  });
});

describe('a record with missing members', () => {
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
    const { client } = portal(
      projects(() => json({ projects: [record, full] })),
      experiments(() => json({ experiments: [record, full] })),
    );
    const [project, second] = await client.projects();
    const [experiment, another] = await client.experiments();
    const { project_id: _, ...other } = full;
    expect([second, another]).toEqual([other, full]);
    return { project, experiment };
  };

  test.each(FACTS)(
    'row 67: %s that is missing, null or not text hides only that member, not the list',
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
  ])('row 67: the expiry %j becomes %j', async (expires_at, read) => {
    expect((await lists({ ...full, expires_at })).experiment).toMatchObject({ expires_at: read });
  });

  test('a record without an id is refused', async () => {
    for (const id of [undefined, null, '', 5]) {
      const { client } = portal(projects(() => json({ projects: [{ ...full, id }] })));
      const failure = await failureOf(() => client.projects());
      expect(failure.code).toBe('reply_invalid');
    }
  });
});

describe('a portal without experiments', () => {
  test.each([404, 405, 501])('answers %i to every request about them: not_supported', async (status) => {
    const none = () => json({ detail: 'Not Found' }, status);
    for (const call of [
      (client: PortalClient) => client.experiments(),
      (client: PortalClient) => client.createExperiment(experiment),
      (client: PortalClient) => client.experimentToken(IDS.experiment),
    ]) {
      const { client } = portal(experiments(none), newExperiment(none), oneExperiment(none));
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

  test('differs from one that does not know this experiment', async () => {
    const unknown = () => json({ detail: 'No such experiment.' }, 404);
    const { client, sent } = portal(
      oneExperiment(unknown),
      experiments(() => json({ experiments: [] })),
    );
    const failure = await failureOf(() => client.experimentToken(IDS.experiment));
    expect(failure).toMatchObject({ code: 'not_found', message: 'No such experiment.' });
    expect(sent).toHaveLength(2);
  });

  test('is not assumed after other failures', async () => {
    const { client } = portal(
      oneExperiment(() => json({}, 404)),
      experiments(() => json({}, 503)),
    );
    expect((await failureOf(() => client.experimentToken(IDS.experiment))).code).toBe('not_found');
    const refusing = portal(experiments(() => json({}, 403)));
    expect((await failureOf(() => refusing.client.experiments())).code).toBe('forbidden');
  });
});

describe('a token', () => {
  test.each<[string, Response]>([
    ['as application/jwt', jwt(TOKEN)],
    ['with a line end of Windows', jwt(`${TOKEN}\r\n`)],
    ['as text', text(TOKEN, 'text/plain')],
  ])('is accepted %s', async (_, reply) => {
    const { client } = portal(oneExperiment(() => reply));
    expect(await client.experimentToken(IDS.experiment)).toBe(TOKEN);
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
  ])('is refused when it is %s', async (_, reply) => {
    for (const call of ['projectToken', 'experimentToken'] as const) {
      const { client } = portal(oneProject(reply), oneExperiment(reply));
      const failure = await failureOf(() => client[call]('id'));
      expect(failure.code).toBe('reply_invalid');
    }
  });
});
