import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CommitUnknownError, StoreUnavailableError } from '../../../src/allocator/store.ts';
import { ROUTES, type Route } from '../../../src/contract/routes.ts';
import { Counter, expositionText, Histogram } from '../../../src/server/metrics/instruments.ts';
import { processFamilies } from '../../../src/server/metrics/process-metrics.ts';
import { createServerMetrics, requestRoute } from '../../../src/server/metrics/server-metrics.ts';
import { anyText } from '../../fixtures/any-text.ts';
import { parseExposition, sampleOf } from '../../fixtures/exposition.ts';
import { send, startIdentity } from '../../fixtures/identity.ts';
import {
  addressOf,
  at,
  booked,
  booking,
  HOUR,
  hours,
  openWithLead,
  smallTopology,
} from '../../fixtures/service.ts';

const GROUPS = { projects: 'projects', experiments: 'experiments' };
const AT_ROOT = { prefix: '', groups: GROUPS };

describe('the route of a request', () => {
  const routes = Object.entries(ROUTES) as [keyof typeof ROUTES, Route][];
  test.each(routes)('%s is told by its template', (name, { service, path }) => {
    const address = addressOf(name, 'con_conn.example.org_01jd3x');
    expect(requestRoute(`${address}?start_now=true`, AT_ROOT)).toBe(
      `${service === 'portal' ? '/portal' : ''}${path}`,
    );
  });

  test.each([
    ['/api-docs/', '/api-docs'],
    ['/auth/authorize?state=x', '/auth/authorize'],
    ['/ui/api/links/be-gent1/pl-poznan1/slots?bandwidth=1', '/ui/*'],
    ['/auth/.well-known/jwks.json', '/auth/.well-known/jwks.json'],
    ['/auth/elsewhere', 'other'],
    ['/apis/v1alpha1/connectivity/a/b', 'other'],
    ['/eyJhbGciOiJFUzI1NiJ9.e30.AA', 'other'],
    ['http://evil.example/healthz', 'other'],
    ['*', 'other'],
    ['', 'other'],
  ])('%s: %s', (target, route) => {
    expect(requestRoute(target, AT_ROOT)).toBe(route);
  });

  test('below a path, and with other groups', () => {
    const served = { prefix: '/links', groups: { projects: 'p', experiments: 'e' } };
    expect(requestRoute('/links/healthz', served)).toBe('/healthz');
    expect(requestRoute('/healthz', served)).toBe('other');
    expect(requestRoute('/linkshealthz', served)).toBe('other');
    expect(requestRoute('/links/portal/apis/p/v1alpha1/projects', served)).toBe(
      '/portal/apis/{projects_api_group}/v1alpha1/projects/',
    );
  });
});

test('requests are counted when they are over, with how long they took', () => {
  let clock = 1000;
  const metrics = createServerMetrics({ elapsed: () => clock });
  metrics.serve(AT_ROOT);
  const read = () => parseExposition(metrics.text());
  expect(sampleOf(read(), 'slices_conn_http_requests_in_flight')).toBe(0);
  const first = metrics.requestBegan('GET', '/healthz');
  const second = metrics.requestBegan('BREW', '/coffee/1');
  expect(sampleOf(read(), 'slices_conn_http_requests_in_flight')).toBe(2);
  clock += 30;
  first(200);
  second(undefined);
  const labels = { route: '/healthz', method: 'GET' };
  expect(sampleOf(read(), 'slices_conn_http_requests_in_flight')).toBe(0);
  expect(sampleOf(read(), 'slices_conn_http_requests_total', { ...labels, status: '2xx' })).toBe(1);
  const other = { route: 'other', method: 'other', status: 'aborted' };
  expect(sampleOf(read(), 'slices_conn_http_requests_total', other)).toBe(1);
  expect(sampleOf(read(), 'slices_conn_http_request_duration_seconds_sum', labels)).toBeCloseTo(0.03);
});

test('commits, faults of the store and of key sets; counters are 0 before anything has happened', () => {
  const metrics = createServerMetrics();
  const kind = { kind: 'unavailable' };
  expect(sampleOf(parseExposition(metrics.text()), 'slices_conn_store_errors_total', kind)).toBe(0);
  metrics.allocator.committed(3, 20);
  metrics.allocator.committed(1, 5);
  metrics.storeFailed(new StoreUnavailableError('away'));
  metrics.storeFailed(new CommitUnknownError('away'));
  metrics.keySetFailed('https://login.example.org/.well-known/jwks.json');
  const found = parseExposition(metrics.text());
  expect(sampleOf(found, 'slices_conn_commit_size_sum')).toBe(4);
  expect(sampleOf(found, 'slices_conn_commit_size_count')).toBe(2);
  expect(sampleOf(found, 'slices_conn_commit_duration_seconds_sum')).toBeCloseTo(0.025);
  for (const kind of ['unavailable', 'commit_unknown']) {
    expect(sampleOf(found, 'slices_conn_store_errors_total', { kind })).toBe(1);
  }
  const url = 'https://login.example.org/.well-known/jwks.json';
  expect(sampleOf(found, 'slices_conn_key_set_fetch_failures_total', { url })).toBe(1);
});

test('the process itself', () => {
  let resets = 0;
  const families = processFamilies({
    mean: Number.NaN,
    max: 3e9,
    percentile: (percent) => percent * 1e9,
    reset: () => {
      resets += 1;
    },
  });
  const found = parseExposition(expositionText(families));
  expect(sampleOf(found, 'process_cpu_seconds_total')).toBeGreaterThan(0);
  expect(sampleOf(found, 'process_start_time_seconds')).toBeLessThan(Date.now() / 1000);
  expect(sampleOf(found, 'process_resident_memory_bytes')).toBeGreaterThan(1_000_000);
  expect(sampleOf(found, 'nodejs_eventloop_lag_mean_seconds')).toBe(0);
  expect(sampleOf(found, 'nodejs_eventloop_lag_p99_seconds')).toBe(99);
  expect(resets).toBe(1);
});

describe('a server', () => {
  test('counts the result of each booking, and no dry run', async () => {
    const metrics = createServerMetrics();
    const { lead } = await openWithLead({ metrics, topology: smallTopology(1) });
    const keyed = { 'Idempotency-Key': 'once' };
    expect((await lead.book(booking(), '', keyed)).status).toBe(201);
    await lead.book(booking(), '', keyed);
    await lead.book(booking({ bandwidth: '901' }));
    await lead.book(booking({ bandwidth: '1' }));
    await lead.book(booking({ bandwidth: '1' }), 'dry_run=true');
    const { id } = await booked(lead, { start_date: at(3 * HOUR), end_date: at(4 * HOUR) });
    await lead.update(id, { bandwidth: '200', tokens: [] });
    await lead.update(id, { bandwidth: '1001', tokens: [] });
    await lead.update(id, { bandwidth: '300', tokens: [] }, 'dry_run=true');
    await lead.update(id, { end_date: at(2 * HOUR), tokens: [] });
    const create = { ...booking({ bandwidth: '7', ...hours(5, 6) }), action: 'create' };
    const items = [create, { action: 'update', id, bandwidth: '5' }];
    for (const query of ['?dry_run=true', '', '']) {
      const body = { items, tokens: [] };
      await lead.send('POST', `${addressOf('batchReservations')}${query}`, {
        body,
        headers: { 'Idempotency-Key': 'batch' },
      });
    }
    const found = parseExposition(metrics.text());
    const told = found
      .get('slices_conn_bookings_total')
      ?.samples.map(({ labels, value }) => [labels['asked'], labels['result'], value])
      .filter(([, , value]) => value !== 0);
    expect(told).toEqual([
      ['create', 'accepted', 3],
      ['create', 'replayed', 2],
      ['create', 'bandwidth', 1],
      ['create', 'tags', 1],
      ['update', 'accepted', 2],
      ['update', 'replayed', 1],
      ['update', 'bandwidth', 1],
      ['update', 'rule', 1],
    ]);
  });

  test('counts every request on its socket, and names no person', async () => {
    const metrics = createServerMetrics();
    const server = await startIdentity({ metrics });
    const token = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ1c2VyX2hfMSJ9.c2ln';
    const secret = 'con_127.0.0.1_secret';
    await send(server, 'GET', addressOf('readReservation', secret), {
      headers: { authorization: `Bearer ${token}` },
    });
    await send(server, 'GET', `/${token}`);
    await send(server, 'GET', '/healthz');
    await send(server, 'GET', '/api-spec', { headers: { host: 'evil.example' } });
    await send(server, 'POST', '/auth/device/auth', { body: { client_id: 'slices-conn' } });
    const text = metrics.text();
    const found = parseExposition(text);
    const told = found
      .get('slices_conn_http_requests_total')
      ?.samples.map(({ labels, value }) =>
        [labels['method'], labels['route'], labels['status'], value].join(' '),
      );
    expect(told?.toSorted()).toEqual([
      'GET /api-spec 4xx 1',
      'GET /apis/v1alpha1/connectivity/{id} 4xx 1',
      'GET /healthz 2xx 1',
      'GET other 4xx 1',
      'POST /auth/device/auth 2xx 1',
    ]);
    for (const hidden of ['eyJ', 'secret', 'demo', 'user_', 'exp_']) expect(text).not.toContain(hidden);
  });
});

const name = 'slices_conn_things_total';

test('any text in a label or in the help can be read back (property)', () => {
  const text = fc.oneof(anyText(), fc.string({ unit: fc.constantFrom('\\', '"', '\n', 'n', ' ') }));
  fc.assert(
    fc.property(text, text, text, (help, one, other) => {
      const things = new Counter(name, help);
      things.add({ one, other });
      const found = parseExposition(expositionText([things.family()]));
      expect(found.get(name)).toEqual({
        type: 'counter',
        help,
        samples: [{ name, labels: { one, other }, value: 1 }],
      });
    }),
  );
});

test.each([0, -1, 0.1, 1e-9, 1e21, 1.5e300, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN])(
  '%d can be read back',
  (value) => {
    const gauge = new Counter('a_gauge', '');
    gauge.add({}, value);
    expect(sampleOf(parseExposition(expositionText([gauge.family()])), 'a_gauge')).toBe(value);
  },
);

test('a counter keeps label sets apart', () => {
  const things = new Counter(name, '', [{ kind: 'shown' }]);
  things.add({ kind: 'a', size: 'b' });
  things.add({ kind: 'a', size: 'b' });
  things.add({ kind: 'a b' });
  const found = parseExposition(expositionText([things.family()]));
  expect(sampleOf(found, name, { kind: 'shown' })).toBe(0);
  expect(sampleOf(found, name, { kind: 'a', size: 'b' })).toBe(2);
  expect(sampleOf(found, name, { kind: 'a b' })).toBe(1);
});

test('a histogram counts each value in every bucket whose bound is not smaller', () => {
  const sizes = new Histogram('sizes', '', [1, 2, 4]);
  for (const size of [1, 2, 2, 3, 4, 5]) sizes.observe(size);
  const found = parseExposition(expositionText([sizes.family()]));
  const buckets = ['1', '2', '4', '+Inf'].map((le) => sampleOf(found, 'sizes_bucket', { le }));
  expect(buckets).toEqual([1, 3, 5, 6]);
  expect(sampleOf(found, 'sizes_sum')).toBe(17);
  expect(sampleOf(found, 'sizes_count')).toBe(6);
});
