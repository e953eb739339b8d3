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

test('a job of GitLab books by the one ID token that it has', async () => {
  const job = newClient({ ...server.env, SLICES_CONN_ID_TOKEN: gitlab.idToken(server.issuer) });
  const { reservation } = await job.result('reserve', ...LINK);
  const { id } = v.parse(v.object({ id: v.string() }), reservation);
  await job.result('delete', '--yes', id);
});

test('what a job says that a rule does not is told, and what to do', async () => {
  const { env } = github.runner({ ref: 'refs/pull/7/merge', event_name: 'pull_request' });
  const refused = await newClient({ ...server.env, ...env }).command('list', '--json');
  expect(reportOf(refused)).toMatchObject({
    exitCode: 4,
    code: 'not_logged_in',
    why: expect.stringContaining('refs/pull/7/merge'),
    fix: 'slices-conn experiment ci list',
  });
});
