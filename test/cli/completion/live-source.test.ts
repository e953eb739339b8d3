import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIVE_LIMIT } from '../../../src/cli/completion/live-source.ts';
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

  test('reservations of this machine’s ledger are offered by id, without those in the line', async () => {
    const first = `${active}\tbe-gent1 – pl-poznan1, 1 Gbps, active`;
    const second = `${later}\tbe-gent1 – pl-poznan1, 2.5 Gbps, scheduled`;
    const third = `${other}\tbe-gent1 – pl-poznan1, 100 Mbps, active`;
    expect((await complete('show', '')).toSorted()).toEqual([first, second, third].toSorted());
    expect(await complete('delete', active ?? '', other ?? '', '')).toEqual([second]);
    expect(await complete('show', (later ?? '').slice(-9))).toEqual([second]);
  });

  test('an ended reservation is not offered, as `list` does not show it', async () => {
    let now = NOW;
    const moving = await offlineWorld({ now: () => now });
    const hour = ['--bandwidth', '1G', '--start-now', '--end', new Date(NOW + 3_600_000).toISOString()];
    await moving.run('--offline', 'reserve', 'be-gent1', 'pl-poznan1', ...hour);
    const offered = () => moving.run('__complete', '--', '--offline', 'show', '').then(candidates);
    now = NOW + 3_599_999;
    expect(await offered()).toHaveLength(1);
    now = NOW + 3_600_000;
    expect(await offered()).toEqual([]);
    await moving.server.close();
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
    ['it answers with a page', asking(async () => new Response('<p>'))],
    ['it can not be reached', asking(nobody.fetch)],
  ])('when %s, nothing is offered and nothing is printed', async (_, connection) => {
    const run = await commandWorld(connection).run('__complete', '--', 'experiment', 'use', '');
    expect(run).toEqual({ exitCode: 0, stdout: ':0\n', stderr: '' });
  });

  test(`when it never answers, the shell waits ${LIVE_LIMIT} ms and goes on`, async () => {
    const hanging = asking(() => new Promise(() => undefined));
    const began = performance.now();
    const run = await commandWorld(hanging).run('__complete', '--', 'experiment', 'use', '');
    expect(run).toEqual({ exitCode: 0, stdout: ':0\n', stderr: '' });
    expect(performance.now() - began).toBeGreaterThan(LIVE_LIMIT - 50);
  });

  test.each<[names: (string | undefined)[], offered: string[]]>([
    [
      ['same', 'same'],
      ['exp_1\tsame', 'exp_2\tsame'],
    ],
    [['$(id) \u001b[2J'], ['exp_1\t$(id) \\u001b[2J']],
    [[undefined], ['exp_1\t']],
  ])('of experiments with the names %j', async (names, offered) => {
    const experiments = names.map((name, at) => ({ id: `exp_${at + 1}`, name }));
    const world = commandWorld(asking(async () => json({ experiments })));
    expect(candidates(await world.run('__complete', '--', 'experiment', 'use', ''))).toEqual(offered);
  });

  test('an id that is no word either is not offered, and an end that has come is said', async () => {
    const past = { id: 'exp_1', name: 'old', expires_at: '2020-01-01T00:00:00Z' };
    const experiments = [past, { id: '--yes', name: '`id`' }];
    const world = commandWorld(asking(async () => json({ experiments })));
    const offered = candidates(await world.run('__complete', '--', 'experiment', 'use', ''));
    expect(offered).toEqual(['old\texpired']);
  });
});

describe('completion never prints an error', () => {
  test.each<[string, string[]]>([
    ['nothing', []],
    ['no words', ['--']],
    ['words without the mark', ['re']],
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
