import { describe, expect, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import { type Changes, commandWorld, connectionTo, offlineWorld } from '../../fixtures/command-world.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';

describe('user', () => {
  test('show: name, id, profile and a role in each project and experiment', async () => {
    const world = await offlineWorld();
    const { stdout } = await world.run('--offline', '--json', 'user', 'show');
    const role = { id: expect.any(String), name: 'demo', role: 'lead', expires_at: expect.any(String) };
    expect(JSON.parse(stdout)).toEqual({
      sub: expect.stringMatching(/^user_/),
      name: 'lead',
      profile: 'offline',
      roles: [
        { kind: 'project', ...role },
        { kind: 'experiment', ...role },
      ],
    });
    const card = await world.run('--offline', 'user', 'show');
    expect(card.stdout).toMatch(/^You are lead\n/);
    expect(card.stdout).toMatch(/^ +experiment +demo: lead$/m);
  });

  test('token: the token alone, or with its claims', async () => {
    const { server, run } = await offlineWorld();
    const { stdout } = await run('--offline', 'user', 'token');
    const list = 'http://offline.localhost/portal/apis/projects/v1alpha1/projects/';
    const headers = { authorization: `Bearer ${stdout.trim()}` };
    expect((await server.fetch(new Request(list, { headers }))).status).toBe(200);
    const { token, claims } = JSON.parse((await run('--offline', '--json', 'user', 'token')).stdout);
    expect(token.split('.')).toHaveLength(3);
    expect(claims).toMatchObject({ preferred_username: 'lead', sub: expect.stringMatching(/^user_/) });
  });

  const away = () => Promise.reject(new Failure('network', 'Nobody is there.'));
  test.each<[string, () => Promise<Response>, number]>([
    ['can’t be reached', away, 0],
    ['is broken', async () => new Response('oops', { status: 500 }), 0],
    [
      'refuses the token',
      async () => Response.json({ code: 'token_invalid', detail: [] }, { status: 403 }),
      4,
    ],
  ])('status where the portal %s', async (_, fetch, exitCode) => {
    const { server } = await offlineWorld();
    const world = commandWorld(connectionTo(server, fetch));
    const result = await world.run('--offline', '--json', 'status');
    expect(result.exitCode).toBe(exitCode);
    if (exitCode !== 0) return;
    expect(JSON.parse(result.stdout)).toMatchObject({ name: 'lead', roles: null });
    const { stdout } = await world.run('--offline', 'status');
    expect(stdout).toMatch(/^Logged in to .* as lead\n(?:.*\n)* +roles +not known: /);
  });

  test('status marks the experiment in use, and what has chosen it', async () => {
    const variables = { SLICES_CONN_PROFILE: 'offline' };
    const folder = temporaryFolder();
    const world = await offlineWorld({
      variables,
      folders: { config: folder, state: folder, cache: folder },
    });
    const used = async (changes: Changes, ...flags: string[]) =>
      JSON.parse((await world.runIn(changes, '--json', 'status', ...flags)).stdout).experiment;
    const id = expect.stringMatching(/^exp_/);
    expect(await used({})).toMatchObject({ id, name: 'demo', from: 'only' });
    await world.run('experiment', 'create', 'second', '--end', '+10d');
    expect(await used({})).toBeNull();
    expect(await used({}, '--experiment', 'second')).toMatchObject({ id, name: 'second', from: 'flag' });
    const SLICES_EXPERIMENT = 'second';
    expect(await used({ variables: { ...variables, SLICES_EXPERIMENT } })).toMatchObject({
      ...{ name: 'second', from: 'variable', where: 'SLICES_EXPERIMENT' },
    });
    await world.run('experiment', 'use', 'demo');
    expect(await used({})).toMatchObject({ name: 'demo', from: 'profile', where: 'profile offline' });
    expect((await world.run('status')).stdout).toMatch(/^ +in use +demo, chosen by profile offline$/m);
    expect(await used({}, '--experiment', 'third')).toBeNull();
  });
});
