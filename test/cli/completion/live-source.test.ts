import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SITES } from '../../../src/contract/links.ts';
import { Secret } from '../../../src/contract/secret.ts';
import type { Connection } from '../../../src/session/login/connection.ts';
import type { StoredCredentials } from '../../../src/session/login/credentials.ts';
import { json } from '../../client/replies.ts';
import {
  type CommandRun,
  commandWorld,
  NO_SERVICE,
  offlineWorld,
  tokenOf,
} from '../../fixtures/command-world.ts';
import { NOW } from '../../fixtures/tokens.ts';

const never = async (): Promise<never> => {
  throw new RangeError('nobody expected a request');
};
const nobody = NO_SERVICE;

/** The candidates in an answer that is complete. */
function candidates({ exitCode, stdout, stderr }: CommandRun): string[] {
  expect([exitCode, stderr]).toEqual([0, '']);
  const lines = stdout.split('\n');
  expect(lines.splice(-2)).toEqual([':0', '']);
  return lines;
}

describe('at a service with a login', () => {
  let world: Awaited<ReturnType<typeof offlineWorld>>;
  const complete = (...words: string[]) =>
    world.run('__complete', '--', '--offline', ...words).then(candidates);
  const reserve = async (...flags: string[]): Promise<string> => {
    const args = ['reserve', 'be-gent1', 'pl-poznan1', '--offline', '--json', ...flags];
    return JSON.parse((await world.run(...args)).stdout).reservation.id;
  };

  let [active, later, other]: string[] = [];
  beforeAll(async () => {
    world = await offlineWorld();
    active = await reserve('--bandwidth', '1G', '--start-now', '--for', '2h');
    later = await reserve('--bandwidth', '2.5G', '--start', '+3h', '--for', '2h');
    await world.run('--offline', 'experiment', 'create', 'second', '--end', '+1d');
    other = await reserve('--bandwidth', '100M', '--start-now', '--for', '1h', '--experiment', 'second');
    await reserve(
      '--bandwidth',
      '1G',
      '--start',
      '+3h',
      '--for',
      '1h',
      '--experiment',
      'second',
      '--name',
      'nightly',
    );
  });
  afterAll(() => world.server.close());

  test('experiments and projects are offered by name', async () => {
    expect((await complete('experiment', 'use', '')).toSorted()).toEqual([
      expect.stringMatching(/^demo\tlead/),
      expect.stringMatching(/^second\tlead/),
    ]);
    expect(await complete('experiment', 'use', 'sec')).toHaveLength(1);
    expect(await complete('project', 'use', '')).toEqual([expect.stringMatching(/^demo\tlead/)]);
    expect(await complete('--project=de')).toEqual([expect.stringMatching(/^--project=demo\t/)]);
  });

  test('reservations of this machine’s ledger are offered by name or id, without those in the line', async () => {
    const first = `${active}\tbe-gent1 – pl-poznan1, 1 Gbps, active`;
    const second = `${later}\tbe-gent1 – pl-poznan1, 2.5 Gbps, scheduled`;
    const third = `${other}\tbe-gent1 – pl-poznan1, 100 Mbps, active`;
    const fourth = 'nightly\tbe-gent1 – pl-poznan1, 1 Gbps, scheduled';
    expect((await complete('show', '')).toSorted()).toEqual([first, second, third, fourth].toSorted());
    expect(await complete('delete', active ?? '', other ?? '', 'nightly', '')).toEqual([second]);
    expect(await complete('show', (later ?? '').slice(-9))).toEqual([second]);
  });
});

describe('without a service', () => {
  test('names that this machine knows are offered without a request', async () => {
    const world = commandWorld(nobody);
    const complete = (...words: string[]) => world.run('__complete', '--', ...words).then(candidates);
    expect((await complete('reserve', '')).map((line) => line.split('\t')[0])).toEqual([...SITES]);
    expect(await complete('reserve', 'be-gent1', 'be')).toEqual(['be-antwerp\tBelgium']);
    expect((await complete('--profile', '')).map((line) => line.split('\t')[0])).toEqual([
      ...['local', 'offline', 'slices'],
    ]);
    expect(await complete('re')).toEqual(['reserve\tbook a link between two sites']);
    expect(await complete('reserve', 'a', 'b', '--start', '2026-12-01T10:')).toEqual([]);
  });

  const asking = (fetch: NonNullable<Connection['fetch']>): Connection => ({
    ...{ ...nobody, fetch },
    userToken: tokenOf(async () => 'x'),
  });
  const login = (read: () => StoredCredentials | undefined): Connection => ({
    ...asking(async () => json({ experiments: [{ id: 'exp_x', name: 'seen' }] })),
    userToken: { ...tokenOf(async () => 'refreshed'), origin: 'login' },
    login: { path: '', startLogin: never, keep: never, end: never, read },
  });
  const since = NOW - 3_600_000;
  const secrets = { accessToken: new Secret('x'), refreshToken: new Secret('y'), portalTokens: {} };
  const over = { ...secrets, issuedAt: since, expiresAt: NOW, loggedInAt: since };

  test.each<[string, Connection]>([
    ['nobody is logged in', nobody],
    ['the login would have to be refreshed', login(() => over)],
    ['it refuses', asking(async () => json({}, 403))],
    ['it can not be reached', asking(nobody.fetch)],
  ])('when %s, nothing is offered and nothing is printed', async (_, connection) => {
    const run = await commandWorld(connection).run('__complete', '--', 'experiment', 'use', '');
    expect(run).toEqual({ exitCode: 0, stdout: ':0\n', stderr: '' });
  });
});

describe('completion never prints an error', () => {
  test.each<[string, string[]]>([
    ['nothing', []],
    ['nonsense', ['--', '--=', '-', '--', '', '=']],
    ['two services at once', ['--', '--offline', '--profile', 'local', 'show', '']],
    ['no such profile', ['--', '--profile', 'nope', 'show', '']],
    ['a file that is not there', ['--', '--ca-file', '/nowhere', 'show', '']],
  ])('%s', async (_, words) => {
    const { exitCode, stdout, stderr } = await commandWorld(nobody).run('__complete', ...words);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^(?:[^\n]*\t[^\n]*\n)*:[01]\n$/);
  });

  test('a failing clock gives an empty answer', async () => {
    const broken = commandWorld(nobody, {
      now: () => {
        throw new RangeError('no clock');
      },
    });
    expect(await broken.run('__complete', '--', 're')).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  });
});
