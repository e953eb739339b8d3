import * as v from 'valibot';
import { beforeAll, expect, test } from 'vitest';
import { type CiIssuer, ciIssuer } from '../fixtures/ci-issuer.ts';
import { reportOf } from './command.ts';
import { type Client, newClient, type ServedHere, serveHere } from './served.ts';

let github: CiIssuer;
let gitlab: CiIssuer;
let server: ServedHere;
/** The lead, who adds the rules. */
let person: Client;

beforeAll(async () => {
  [github, gitlab] = await Promise.all([ciIssuer('github'), ciIssuer('gitlab')]);
  const issuers = [github, gitlab].flatMap(({ name, issuer }) => ['--ci-issuer', `${name}=${issuer}`]);
  server = await serveHere('--auto-approve', 'lead', ...issuers);
  person = newClient({ ...server.env, SLICES_CONN_EXPERIMENT: 'demo' });
  await person.command('login');
  await person.result('experiment', 'ci', 'add', '--github', 'octo/measure', '--ref', 'refs/heads/main');
  await person.result('experiment', 'ci', 'add', '--gitlab', 'lab/net/measure', '--ref', 'main');
});

const LINK = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '1h'];

test('a job of GitHub books by the ID tokens of its runner, and asks for one in a job of many commands', async () => {
  const { env, asked } = github.runner();
  const job = newClient({ ...server.env, ...env });
  const { reservation } = await job.result('reserve', ...LINK);
  const { id } = v.parse(v.object({ id: v.string() }), reservation);
  await job.result('delete', '--yes', id);
  expect(await job.result('status')).toMatchObject({
    name: 'lead',
    roles: [{ kind: 'experiment', name: 'demo' }],
    tokens: [{ kind: 'user', source: 'environment' }],
  });
  expect(asked).toEqual([server.issuer]);
  // They are no login, and not where logins are.
  expect(job.logins).toEqual([]);
});

test('a job that asks for more is told that its token is for its experiment alone', async () => {
  const { env } = github.runner();
  const refused = await newClient({ ...server.env, ...env }).command('user', 'sessions', '--json');
  expect(reportOf(refused)).toMatchObject({
    exitCode: 5,
    code: 'scope_missing',
    message: expect.stringMatching(/^Your token is for experiment exp_\S+ alone/),
    fix: null,
  });
});

test('row 161: the secret of a runner is not sent over plain http', async () => {
  const { env } = github.runner();
  const address = 'http://ci.example.org/runner?api-version=2.0';
  const job = newClient({ ...server.env, ...env, ACTIONS_ID_TOKEN_REQUEST_URL: address });
  const refused = await job.command('list', '--json');
  expect(reportOf(refused)).toMatchObject({
    code: 'usage',
    message: expect.stringContaining('ci.example.org'),
  });
});

test('a token that is given goes before what a job could ask for', async () => {
  const { token } = await person.result('user', 'token');
  const { env, asked } = github.runner();
  const job = newClient({ ...server.env, ...env, SLICES_CONN_USER_TOKEN: String(token) });
  await job.result('list');
  expect(asked).toEqual([]);
});

test('experiment ci list shows the rules, and remove ends one by a part of its id', async () => {
  const add = ['experiment', 'ci', 'add', '--github', 'octo/other', '--environment', 'lab', '--end', '+2d'];
  expect((await person.command(...add)).exitCode).toBe(0);
  // What a job of GitHub is told to have is in test/cli/directory/ci-rules.test.ts.
  const again = ['experiment', 'ci', 'add', '--gitlab', 'lab/net/measure', '--ref', 'main'];
  expect((await person.command(...again)).stdout).toContain(
    `id_tokens: { SLICES_CONN_ID_TOKEN: { aud: ${server.issuer} } }\n`,
  );
  const Rules = v.object({ items: v.array(v.object({ id: v.string(), repository: v.string() })) });
  const { items } = v.parse(Rules, await person.result('experiment', 'ci', 'list'));
  const { id = '' } = items.find(({ repository }) => repository === 'octo/other') ?? {};
  const table = (await person.command('experiment', 'ci', 'list')).stdout;
  expect(table).toMatch(new RegExp(`^${id} +octo/other in environment lab +lead `, 'm'));
  expect(table).toMatch(/ octo\/measure on refs\/heads\/main +lead /);
  expect(table).toMatch(/ lab\/net\/measure on branch main +lead /);
  const removed = await person.result('experiment', 'ci', 'remove', id.slice(0, 8));
  expect(removed).toEqual({ items: [{ id, removed: true }] });
  const gone = await person.command('experiment', 'ci', 'remove', id, '--json');
  expect(reportOf(gone)).toMatchObject({
    exitCode: 3,
    code: 'not_found',
    fix: 'slices-conn experiment ci list',
  });
});
