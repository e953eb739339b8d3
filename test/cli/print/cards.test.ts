import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Connection } from '../../../src/session/login/connection.ts';
import { json } from '../../client/replies.ts';
import { reportOf } from '../../e2e/command.ts';
import { commandWorld, offlineWorld, tokenOf } from '../../fixtures/command-world.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';
import { IDS, makeKey, makeToken } from '../../fixtures/tokens.ts';

/** A world whose portal gives this answer. */
function worldOf(answer: (path: string) => Response) {
  const connection: Connection = {
    fetch: async ({ url }) => answer(new URL(url).pathname),
    userToken: tokenOf(async () => 'user-token'),
    close: async () => undefined,
  };
  return commandWorld(connection);
}

const bare = { id: IDS.project, name: null, description: null, role: null, created_at: 5, expires_at: null };
const known = { name: 'demo', role: 'lead', expires_at: '2027-12-01T10:00:00Z' };
const other = { ...bare, ...known, id: `${IDS.project}2` };

test.each(['project', 'experiment'])(
  'row 67: a record with unreadable members is still listed: %s',
  async (noun) => {
    const world = worldOf((path) =>
      json({ [path.includes('/projects/') ? 'projects' : 'experiments']: [bare, other] }),
    );
    const { stdout, exitCode } = await world.run(noun, 'list');
    const [, first, second] = stdout.split('\n');
    expect([exitCode, first?.split(/ {2,}/)]).toEqual([0, ['–', '–', '–', bare.id]]);
    expect(second).toContain('demo');
    const { items } = JSON.parse((await world.run(noun, 'list', '--json')).stdout);
    expect(items).toMatchObject([
      { ...bare, description: '', created_at: null },
      { ...known, expires_at: '2027-12-01T10:00:00.000Z' },
    ]);
    const shown = await world.run(noun, 'show', bare.id);
    expect(shown).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^(?:Project|Experiment) –\n/),
    });
  },
);

describe('row 55: a wrong answer of a portal in place of a list', () => {
  const deep = (around: (inner: string) => string) =>
    new Response(around('['.repeat(20_000) + ']'.repeat(20_000)), {
      headers: { 'content-type': 'application/json' },
    });

  test.each<[string, () => Response, number]>([
    ['20,000 arrays in each other', () => deep((inner) => inner), 9],
    ['the same as a fact of a record', () => deep((inner) => `{"projects":[{"id":"p","name":${inner}}]}`), 9],
    [
      'the same as an error',
      () => new Response(deep((inner) => `{"detail":${inner}}`).body, { status: 500 }),
      7,
    ],
    ['an id that is the folder above', () => json({ projects: [{ ...other, id: '..' }] }), 2],
    ['an id that is no Unicode', () => json({ projects: [{ ...other, id: '\ud800' }] }), 2],
  ])('%s is a clear error, not an unexpected one', async (_, answer, expected) => {
    const { exitCode, stderr } = await worldOf(answer).run('project', 'token', '--json');
    expect(exitCode).toBe(expected);
    expect(stderr).not.toContain('unexpected');
  });

  test.each([['show'], ['update', '--bandwidth', '1G'], ['delete', '--yes']])(
    '%s refuses `..` as an id',
    async (command, ...flags) => {
      const { exitCode } = await worldOf(() => json({}, 500)).run(command ?? '', '..', ...flags);
      expect(exitCode).toBe(2);
    },
  );
});

test.each([['verify'], ['token', 'inspect']])(
  'row 55: a token with 20,000 arrays in each other: %s %s: exit 9',
  async (...command) => {
    const world = worldOf(() => json({ keys: [] }));
    const claims = `{"iss":"http://127.0.0.1:4280","x":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
    world.files.set('-', makeToken(makeKey(), {}, { rawPayload: claims }));
    const { exitCode, stdout } = await world.run(...command.filter((word) => word !== undefined));
    expect({ exitCode, stdout }).toEqual({ exitCode: 9, stdout: '' });
  },
);

describe('lists mark what the next command acts in', () => {
  const listed = async (command: string, variables: Record<string, string>) => {
    const config = temporaryFolder();
    const folders = { config, state: join(config, 'state'), cache: join(config, 'cache') };
    const world = await offlineWorld({ variables, folders });
    const run = (words: string) => world.run('--offline', '--color', 'never', ...words.split(' '));
    const marked = async (words: string) =>
      [...(await run(words)).stdout.matchAll(/^(\S+) \(in use\)/gm)].map(([, name]) => name);
    const only = await marked('experiment list');
    await run('experiment create second --end +1d');
    const several = await marked('experiment list');
    await run('experiment use second');
    const shown = await marked(command);
    const { items } = JSON.parse((await run(`${command} --json`)).stdout);
    await world.server.close();
    const inUse = items.flatMap((item: { name: string; in_use: boolean }) => (item.in_use ? item.name : []));
    return { only, several, shown, inUse };
  };

  test.each([
    ['experiment list', {}, ['second']],
    ['experiment list --experiment demo', {}, ['demo']],
    ['project list', {}, ['demo']],
    ['project list --project nowhere', {}, []],
  ])('%s, %j: %j', async (command, variables, expected) => {
    const found = await listed(command, variables);
    expect(found).toMatchObject({ shown: expected, inUse: expected });
    if (Object.keys(variables).length === 0) expect(found).toMatchObject({ only: ['demo'], several: [] });
  });
});

const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];
test.each([
  [['experiment', 'list']],
  [['experiment', 'create', 'mine', '--end', '+1h']],
  [['list', '--all']],
  [LINK],
])('a portal without experiments: %j is not supported, exit 3, and how to get a token', async (args) => {
  const world = worldOf((path) =>
    path.includes('/projects/') ? json({ projects: [other] }) : json({ detail: 'Not Found' }, 404),
  );
  const result = await world.run(...args, '--json');
  expect(result).toMatchObject({ exitCode: 3, stdout: '' });
  expect(reportOf(result)).toMatchObject({
    ...{ code: 'not_supported', exitCode: 3, message: expect.stringContaining('has no experiments') },
    why: expect.stringContaining('SLICES_CONN_EXPERIMENT_TOKEN or SLICES_CONN_EXPERIMENT_TOKEN_FILE'),
    fix: 'slices-conn login http://127.0.0.1:4280 --with-slices',
  });
});
