import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ROUTES, type Route, type RouteName, routePath } from '../../src/contract/routes.ts';

const BASE = 'https://conn.example.org';
const pathOf = (name: RouteName, values: Record<string, string>) =>
  new URL(BASE + routePath(name, values)).pathname;

/** The endpoints of contract/README.md, "Endpoints". */
test('the route table has all endpoints of the API as it is given, and marks all others as extensions', () => {
  const routes: Route[] = Object.values(ROUTES);
  const listed = routes
    .filter(({ extension }) => !extension)
    .map((route) => [route.service, route.method, route.path]);
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
  const routes: Route[] = Object.values(ROUTES);
  const requests = routes.map(
    ({ service, method, path }) => `${service} ${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`,
  );
  expect(new Set(requests).size).toBe(requests.length);
});

test('a route that needs an experiment names the action that its role must allow, and key sets, metadata, status lists and health checks need nothing', () => {
  for (const [name, route] of Object.entries(ROUTES) as [string, Route][]) {
    if (route.credentials === 'experiment') expect([name, route.action]).toEqual([name, expect.any(String)]);
    expect([name, route.credentials === 'none']).toEqual([
      name,
      /(?:KeySet|^keyHistory|^protectedResource|^statusList|^health|^readiness)$/.test(name),
    ]);
  }
});

describe('routePath', () => {
  const connectivity = '/apis/v1alpha1/connectivity';
  test.each<[string, string]>([
    ['con_conn.example.org_01jd3x', 'con_conn.example.org_01jd3x'],
    ['a/b', 'a%2Fb'],
    ['../x', '..%2Fx'],
    ['a\\b', 'a%5Cb'],
    ['a?b', 'a%3Fb'],
    ['a#b', 'a%23b'],
    ['a b', 'a%20b'],
    ['%2e%2e', '%252e%252e'],
    ['a+b', 'a%2Bb'],
    ['con_[::1]_x', 'con_%5B%3A%3A1%5D_x'],
    ['ö', '%C3%B6'],
    ['{id}', '%7Bid%7D'],
    ['$&', '%24%26'],
    ['a\r\nb', 'a%0D%0Ab'],
  ])('%j is encoded', (id, encoded) => {
    expect(routePath('readReservation', { id })).toBe(`${connectivity}/${encoded}`);
  });

  test('fills every part', () => {
    const values = { experiments_api_group: 'my group', id: 'exp_h_x' };
    expect(routePath('experimentToken', values)).toBe('/apis/my%20group/v1alpha1/experiments/exp_h_x');
    expect(routePath('listProjects', { projects_api_group: 'projects' })).toBe(
      '/apis/projects/v1alpha1/projects/',
    );
  });

  test('needs no values without parts, and ignores more values', () => {
    expect(routePath('createReservation')).toBe(connectivity);
    expect(routePath('createReservation', { id: 'x' })).toBe(connectivity);
  });

  test.each<[RouteName, Record<string, string>, string]>([
    ['readReservation', {}, 'id'],
    ['readReservation', { Id: 'x' }, 'id'],
    ['projectToken', { id: 'x' }, 'projects_api_group'],
    ['projectToken', { projects_api_group: 'x' }, 'id'],
  ])('%s throws without a part: %j', (name, values, missing) => {
    expect(() => routePath(name, values)).toThrow(expect.objectContaining({ code: 'usage' }));
    expect(() => routePath(name, values)).toThrow(missing);
  });

  test('a part stays one part of the address, and can be read back (property)', () => {
    const parts = fc.string({ unit: 'grapheme', minLength: 1 }).filter((part) => !['.', '..'].includes(part));
    fc.assert(
      fc.property(parts, (id) => {
        const segments = pathOf('deleteReservation', { id }).split('/');
        expect(segments).toHaveLength(5);
        expect(decodeURIComponent(segments[4] ?? '')).toBe(id);
      }),
    );
  });

  test.each(['', '.', '..'])('a part that would change the address is refused: %j', (id) => {
    expect(() => routePath('deleteReservation', { id })).toThrow(expect.objectContaining({ code: 'usage' }));
  });
});
