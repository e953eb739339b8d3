import { expect, onTestFinished, test } from 'vitest';
import { createReferenceServer } from '../../../src/reference-server.ts';
import { reportOf } from '../../e2e/command.ts';
import { commandWorld, connectionTo, NO_SERVICE } from '../../fixtures/command-world.ts';
import { recordedStream } from '../../fixtures/recorded-stream.ts';
import { NOW } from '../../fixtures/tokens.ts';

test.each([
  ['neither --ref nor --environment', [], '--ref or --environment is missing.'],
  ['--ref-type without --ref', ['--environment', 'lab', '--ref-type', 'tag'], '--ref-type needs --ref.'],
])('experiment ci add: %s: exit 2, and nothing is sent', async (_, flags, message) => {
  const added = ['experiment', 'ci', 'add', '--gitlab', 'lab/measure', ...flags];
  const report = reportOf(await commandWorld(NO_SERVICE).run('--json', ...added));
  expect(report).toMatchObject({ code: 'usage', exitCode: 2, message });
});

test.each([
  ['--gitlab lab/measure --ref refs/heads/main', '--gitlab lab/measure --ref main'],
  ['--gitlab lab/measure --ref refs/tags/v1', '--gitlab lab/measure --ref v1 --ref-type tag'],
  ['--gitlab lab/measure --ref refs/tags/v1 --ref-type tag', '--gitlab lab/measure --ref v1 --ref-type tag'],
  ['--github octo/measure --ref main', '--github octo/measure --ref refs/heads/main'],
  [
    '--github https://github.com/octo/measure --ref refs/heads/main',
    '--github octo/measure --ref refs/heads/main',
  ],
  ['--github git@github.com:octo/measure.git --ref main', '--github octo/measure --ref main'],
  ['--gitlab https://lab.example.org/lab/net/measure/ --ref main', '--gitlab lab/net/measure --ref main'],
])('experiment ci add %s: exit 2, and nothing is sent; meant is %s', async (flags, meant) => {
  const report = reportOf(
    await commandWorld(NO_SERVICE).run('--json', 'experiment', 'ci', 'add', ...flags.split(' ')),
  );
  expect(report).toMatchObject({ exitCode: 2, fix: `slices-conn --json experiment ci add ${meant}` });
});

test.each<[string, number, string[]]>([
  [
    'octo/measure',
    200,
    [
      'Jobs of octo/measure on refs/heads/main now act as you in experiment demo, until Mon 2 Nov 12:00 UTC (in 1 d).',
      'They need these variables, which are no secrets:',
      '  SLICES_CONN_BASE_URL=http://offline.localhost',
      '  SLICES_CONN_PORTAL_URL=http://offline.localhost/portal',
      '  SLICES_CONN_AUTH_URL=http://offline.localhost/auth',
      '  SLICES_CONN_EXPERIMENT=demo',
      'and in the file of the job:',
      '  permissions: { id-token: write, contents: read }',
    ],
  ],
])('experiment ci add says what the jobs of %s need', async (repository, columns, lines) => {
  const server = await createReferenceServer({
    now: () => NOW,
    ci: { issuers: { github: 'https://token.actions.githubusercontent.com' } },
  });
  const add = ['experiment', 'ci', 'add', '--github', repository, '--ref', 'refs/heads/main', '--end', '+1d'];
  const run = async (wide: number): Promise<string[]> => {
    const stdout = recordedStream(wide);
    await commandWorld(connectionTo(server), { stdout }).run('--offline', '--color', 'never', ...add);
    return stdout.text.split('\n');
  };
  const printed = await run(columns);
  expect(printed.slice(0, lines.length)).toEqual(lines);
  expect(printed.slice(lines.length)).toEqual([
    expect.stringMatching(/^To end this: slices-conn --offline experiment ci remove [0-9a-f]{16}$/),
    '',
  ]);
  expect(Math.max(...(await run(60)).map(({ length }) => length))).toBeLessThanOrEqual(60);
  await server.close();
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
