import { describe, expect, test } from 'vitest';
import { createReferenceServer } from '../../src/reference-server.ts';
import { addressOf, openService } from '../fixtures/service.ts';
import { LOGIN, openTrusting, PORTAL } from '../fixtures/trusting.ts';

const METADATA = addressOf('protectedResource');

describe('the metadata of the service (RFC 9728)', () => {
  test('name its identity provider, its portal, and how to log in; any page may read them', async () => {
    const service = await openService();
    const { body, headers, status } = await service.send('GET', METADATA);
    expect([status, body]).toEqual([
      200,
      {
        resource: service.base,
        authorization_servers: [`${service.base}/auth`],
        scopes_supported: ['openid', 'userinfo', 'projects', 'sessions'],
        portal_url: `${service.base}/portal`,
        client_id: 'slices-conn',
        projects_api_group: 'projects',
        experiments_api_group: 'experiments',
      },
    ]);
    expect(headers.get('access-control-allow-origin')).toBe('*');
  });

  test('name the portal and the identity provider that the operator trusts', async () => {
    const { service } = await openTrusting();
    expect((await service.send('GET', METADATA)).body).toMatchObject({
      authorization_servers: [LOGIN.replace(/\/$/, '')],
      scopes_supported: ['openid', 'userinfo', 'projects'],
      portal_url: PORTAL,
    });
  });

  test('are below a base address with a path, with the API groups of the server', async () => {
    const baseUrl = 'http://offline.localhost/conn';
    const server = await createReferenceServer({ baseUrl, projectsApiGroup: 'p2' });
    const reply = await server.fetch(new Request(baseUrl + METADATA));
    expect(await reply.json()).toMatchObject({ resource: baseUrl, projects_api_group: 'p2' });
    await server.close();
  });
});
