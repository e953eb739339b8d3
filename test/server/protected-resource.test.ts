import { describe, expect, test } from 'vitest';
import { createReferenceServer } from '../../src/reference-server.ts';
import {
  addressOf,
  CONNECTIVITY,
  endpointsOf,
  LINKS,
  openService,
  outcome,
  PROJECTS,
} from '../fixtures/service.ts';
import { IDS } from '../fixtures/tokens.ts';
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

describe('a refusal for want of a token says where they are', async () => {
  const service = await openService();
  const due = `Bearer resource_metadata="${service.base}/.well-known/oauth-protected-resource"`;
  const endpoints = endpointsOf(service, IDS.reservation).filter(({ route }) => route.credentials !== 'none');

  test.each(endpoints)('$name', async ({ route, address }) => {
    // With a body a token may be in that.
    const body = route.request === undefined ? {} : { body: { items: [], tokens: [] } };
    const reply = await service.send(route.method, address, body);
    expect(outcome(reply)).toBe('403 token_missing');
    // The portal is another resource.
    const isOurs = route.service === 'connectivity';
    expect(reply.headers.get('www-authenticate')).toBe(isOurs ? due : 'Bearer');
  });

  test('of an experiment too; one of a token that is not accepted says so, and no other refusal does', async () => {
    const { headers } = await service.send('GET', CONNECTIVITY, {
      headers: { authorization: `Bearer ${await service.userToken('lead')}` },
    });
    expect(headers.get('www-authenticate')).toBe(due);
    const others = [
      service.send('GET', LINKS, { headers: { authorization: 'Bearer a.b.c' } }),
      service.send('GET', PROJECTS, { headers: { authorization: 'Bearer a.b.c' } }),
      service.send('GET', '/nothing'),
    ];
    const found = (await Promise.all(others)).map((reply) => reply.headers.get('www-authenticate'));
    expect(found).toEqual([
      due.replace('Bearer ', 'Bearer error="invalid_token", '),
      'Bearer error="invalid_token"',
      null,
    ]);
  });
});
