import { expect, onTestFinished, test } from 'vitest';
import { createReferenceServer } from '../../../src/reference-server.ts';
import { reportOf } from '../../e2e/command.ts';
import { commandWorld, connectionTo, NO_SERVICE } from '../../fixtures/command-world.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';
import { NOW } from '../../fixtures/tokens.ts';

test.each([
  ['--ref refs/heads/main', '--github or --gitlab is missing.'],
  ['--gitlab lab/measure', /^ref or environment must be given/],
  ['--gitlab lab/measure --environment lab --ref-type tag', /^ref_type must be given with ref/],
  ['--github octo/measure --ref main', 'ref must be in full, such as refs/heads/main.'],
  ['--github git@github.com:octo/measure.git --ref refs/heads/main', /OWNER\/REPOSITORY/],
])('experiment ci add %s: exit 2, and nothing is sent', async (flags, message) => {
  const added = ['experiment', 'ci', 'add', ...flags.split(' ')];
  const report = reportOf(await commandWorld(NO_SERVICE).run('--json', ...added));
  expect(report).toMatchObject({ code: 'usage', exitCode: 2, message: expect.stringMatching(message) });
});

test('experiment ci add at a server that takes no ID tokens: 3, with what it lacks', async () => {
  const server = await createReferenceServer({ now: () => NOW });
  onTestFinished(() => server.close());
  const add = ['experiment', 'ci', 'add', '--github', 'octo/measure', '--ref', 'refs/heads/main'];
  const report = reportOf(await commandWorld(connectionTo(server)).run('--offline', '--json', ...add));
  expect(report).toMatchObject({
    code: 'not_supported',
    exitCode: 3,
    fix: 'slices-conn --offline login --ci',
  });
  expect(report.message).toBe(
    'This server takes no ID tokens of github: it was started without --ci-issuer github.',
  );
});

test('experiment ci add says what the jobs need', async () => {
  const server = await createReferenceServer({
    now: () => NOW,
    ci: { issuers: { github: 'https://token.actions.githubusercontent.com' } },
  });
  onTestFinished(() => server.close());
  const rule = ['--github', 'octo/measure', '--ref', 'refs/heads/main', '--end', '+1d'];
  const run = async (columns: number): Promise<string[]> => {
    const stdout = recordedStream(columns);
    const world = commandWorld(connectionTo(server), { stdout });
    await world.run('--offline', '--color', 'never', 'experiment', 'ci', 'add', ...rule);
    return stdout.text.split('\n');
  };
  expect(await run(200)).toEqual([
    'Jobs of octo/measure on refs/heads/main now act as you in experiment demo, until Mon 2 Nov 12:00 UTC (in 1 d).',
    'They need these variables, which are no secrets:',
    '  SLICES_CONN_BASE_URL=http://offline.localhost',
    '  SLICES_CONN_PORTAL_URL=http://offline.localhost/portal',
    '  SLICES_CONN_AUTH_URL=http://offline.localhost/auth',
    '  SLICES_CONN_EXPERIMENT=demo',
    'and in the file of the job:',
    '  permissions: { id-token: write, contents: read }',
    expect.stringMatching(/^To end this: slices-conn --offline experiment ci remove [0-9a-f]{16}$/),
    '',
  ]);
  expect(Math.max(...(await run(60)).map(({ length }) => length))).toBeLessThanOrEqual(60);
});

test('experiment ci add names the API groups that are not the usual ones', async () => {
  const server = await createReferenceServer({
    now: () => NOW,
    ci: { issuers: { github: 'https://token.actions.githubusercontent.com' } },
    experimentsApiGroup: 'own.experiments',
  });
  onTestFinished(() => server.close());
  const own = {
    SLICES_CONN_BASE_URL: 'http://offline.localhost',
    SLICES_CONN_PORTAL_URL: 'http://offline.localhost/portal',
    SLICES_CONN_AUTH_URL: 'http://offline.localhost/auth',
    SLICES_CONN_EXPERIMENTS_API_GROUP: 'own.experiments',
    SLICES_CONN_EXPERIMENT: 'demo',
  };
  const world = commandWorld(connectionTo(server), { variables: own });
  const add = ['experiment', 'ci', 'add', '--github', 'octo/measure', '--ref', 'refs/heads/main'];
  const { stdout, stderr } = await world.run('--json', '--profile', 'local', ...add);
  expect(stderr).toBe('');
  const { variables }: Record<string, unknown> = JSON.parse(stdout);
  expect(variables).toEqual(own);
});
