import { describe, expect, test } from 'vitest';
import type { Connection } from '../../../src/session/login/connection.ts';
import { commandWorld, offlineWorld, tokenOf } from '../../fixtures/command-world.ts';

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

  test('an opaque token names nobody', async () => {
    const { server } = await offlineWorld();
    const connection: Connection = {
      fetch: async (request) => {
        const headers = { authorization: `Bearer ${await server.signIn('viewer')}` };
        return server.fetch(new Request(request.url, { headers }));
      },
      userToken: tokenOf(async () => 'opaque'),
      close: async () => undefined,
    };
    const { stdout } = await commandWorld(connection).run('--offline', '--json', 'user', 'show');
    expect(JSON.parse(stdout)).toMatchObject({ sub: null, name: null, roles: [{ role: 'viewer' }, {}] });
  });
});
