import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ROUTES, type Route, type RouteName, routePath } from '../../src/contract/routes.ts';

const routes = Object.entries(ROUTES) as [RouteName, Route][];

/** The endpoints of contract/README.md, "Endpoints". */
test('the route table has all endpoints of the API as it is given, and marks all others as extensions', () => {
  const listed = routes.flatMap(([, { extension, service, method, path }]) =>
    extension ? [] : [[service, method, path]],
  );
  expect(listed).toEqual([
    ['connectivity', 'POST', '/apis/v1alpha1/connectivity'],
    ['connectivity', 'GET', '/apis/v1alpha1/connectivity/{id}'],
    ['connectivity', 'PUT', '/apis/v1alpha1/connectivity/{id}'],
    ['connectivity', 'DELETE', '/apis/v1alpha1/connectivity/{id}'],
    ['connectivity', 'GET', '/.well-known/jwks.json'],
    ['portal', 'GET', '/apis/{projects_api_group}/v1alpha1/projects/'],
    ['portal', 'GET', '/apis/{projects_api_group}/v1alpha1/projects/{id}'],
    ['portal', 'GET', '/.well-known/jwks.json'],
  ]);
});

test('each request to a service matches one route at most', () => {
  const requests = routes.map(
    ([, { service, method, path }]) => `${service} ${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`,
  );
  expect(new Set(requests).size).toBe(requests.length);
});

test('a route that needs an experiment names the action that its role must allow, and key sets, metadata, status lists and health checks need nothing', () => {
  for (const [name, { credentials, action }] of routes) {
    if (credentials === 'experiment') expect([name, action]).toEqual([name, expect.any(String)]);
    const isOpen = /(?:KeySet|^keyHistory|^protectedResource|^statusList|^health|^readiness)$/.test(name);
    expect([name, credentials === 'none']).toEqual([name, isOpen]);
  }
});

const CONNECTIVITY = '/apis/v1alpha1/connectivity';

test.each([
  ['con_conn.example.org_01jd3x', 'con_conn.example.org_01jd3x'],
  ['a/b', 'a%2Fb'],
  ['../x', '..%2Fx'],
  ['a\\b', 'a%5Cb'],
  ['a?b', 'a%3Fb'],
  ['a#b', 'a%23b'],
  ['%2e%2e', '%252e%252e'],
  ['con_[::1]_x', 'con_%5B%3A%3A1%5D_x'],
  ['{id}', '%7Bid%7D'],
  ['$&', '%24%26'],
  ['a\r\nb', 'a%0D%0Ab'],
])('%j is encoded in an address', (id, encoded) => {
  expect(routePath('readReservation', { id })).toBe(`${CONNECTIVITY}/${encoded}`);
});

test('every part of an address is filled, and other values are ignored', () => {
  const values = { experiments_api_group: 'my group', id: 'exp_h_x' };
  expect(routePath('experimentToken', values)).toBe('/apis/my%20group/v1alpha1/experiments/exp_h_x');
  expect(routePath('createReservation', values)).toBe(CONNECTIVITY);
});

test.each<[RouteName, Record<string, string>, string]>([
  ['readReservation', { Id: 'x' }, 'id'],
  ['projectToken', { id: 'x' }, 'projects_api_group'],
  ['projectToken', { projects_api_group: 'x' }, 'id'],
  ...['', '.', '..'].map((id): [RouteName, { id: string }, string] => ['deleteReservation', { id }, 'id']),
])('%s throws for a part that is missing, or would change the address: %j', (name, values, part) => {
  const failure = { code: 'usage', message: expect.stringContaining(part) };
  expect(() => routePath(name, values)).toThrow(expect.objectContaining(failure));
});

test('a part stays one part of the address, and can be read back (property)', () => {
  const parts = fc.string({ unit: 'grapheme', minLength: 1 }).filter((part) => !['.', '..'].includes(part));
  fc.assert(
    fc.property(parts, (id) => {
      const { pathname } = new URL(routePath('deleteReservation', { id }), 'https://conn.example.org');
      const [, last = ''] = pathname.split(`${CONNECTIVITY}/`);
      expect([last.includes('/'), decodeURIComponent(last)]).toEqual([false, id]);
    }),
  );
});
