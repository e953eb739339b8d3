import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { calculateJwkThumbprint } from 'jose';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { KeySetDocument } from '../../src/contract/claims.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import { DOCS_FILES } from '../../src/server/docs/files.ts';
import { anyText } from '../fixtures/any-text.ts';
import { passingTime } from '../fixtures/passing-time.ts';
import {
  addressOf,
  at,
  booking,
  CONNECTIVITY,
  DAY,
  EXPERIMENTS,
  endpointsOf,
  HOUR,
  LINKS,
  openWithLead,
  outcome,
  PROJECTS,
  problemIn,
  reservationIn,
  SIGNED,
  smallTopology,
} from '../fixtures/service.ts';

const { service, lead } = await openWithLead();
const reservation = reservationIn(await lead.book()).id;

const IDENTITY_KEYS = '/auth/.well-known/jwks.json';
const KEY_SETS = ['/.well-known/jwks.json', '/portal/.well-known/jwks.json', IDENTITY_KEYS];
const ENDPOINTS = endpointsOf(service, reservation);
/** The endpoints that a load balancer asks, under any Host. */
const HEALTH = [addressOf('health'), addressOf('readiness')];
/** Every address that answers GET without a token in the body. */
const READABLE = [
  ...ENDPOINTS.filter(
    ({ route, name }) => route.method === 'GET' && !/^(?:project|experiment)Token$/.test(name),
  ).map(({ address }) => address),
  '/api-spec',
  '/api-docs',
];

const twice = ENDPOINTS.flatMap(({ route, address }) =>
  Object.keys(route.query ?? {}).map((parameter) => ({ method: route.method, address, parameter })),
);
test.each(twice)(
  'row 32: a doubled query parameter: $method $address, $parameter: 400',
  async ({ method, address, parameter }) => {
    const body = method === 'GET' ? {} : { body: booking() };
    const [path] = address.split('?');
    const reply = await lead.send(method, `${path}?${parameter}=true&${parameter}=true`, body);
    expect(outcome(reply)).toBe('400 request_invalid');
    expect(problemIn(reply).detail[0]?.msg).toContain(parameter);
  },
);

test.each(['localhost', 'offline.localhost:8080', 'offline.localhost.', '[::1]'])(
  'row 32: a wrong Host, %s: 421, and nothing is changed',
  async (host) => {
    const reply = await lead.send('POST', `http://${host}${CONNECTIVITY}`, { body: booking() });
    expect(outcome(reply)).toBe('421 host_unknown');
    for (const address of [IDENTITY_KEYS, '/', '/nowhere', `${PROJECTS}x`]) {
      expect((await lead.send('GET', `http://${host}${address}`)).status).toBe(421);
    }
    expect(service.rows().reservations).toBe(1);
  },
);

describe('another method than those of an address', () => {
  const methods = Map.groupBy(ENDPOINTS, ({ address }) => address.split('?')[0] ?? '');
  test.each([...methods.keys()])('%s: 405 with Allow', async (address) => {
    const known = (methods.get(address) ?? []).map(({ route }) => route.method as string);
    const allow = [...known, ...(known.includes('GET') ? ['HEAD'] : [])].toSorted();
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'].filter(
      (each) => !known.includes(each),
    )) {
      for (const at of [address, `${address.replace(/\/$/, '')}/`]) {
        const reply = await lead.send(method, at);
        expect(outcome(reply)).toBe('405 method_not_allowed');
        expect(reply.headers.get('allow')?.split(', ').toSorted()).toEqual(allow);
      }
    }
  });

  test('does nothing where there is no endpoint in the table', async () => {
    for (const address of ['/', '/api-spec', '/api-docs', IDENTITY_KEYS]) {
      const reply = await lead.send('POST', address);
      expect([outcome(reply), reply.headers.get('allow')]).toEqual(['405 method_not_allowed', 'GET, HEAD']);
    }
  });
});

test.each([
  ...['/nowhere', '/apis/v1/connectivity', '/apis/v1alpha1/Connectivity', `/${CONNECTIVITY}`],
  ...[`${CONNECTIVITY}/${reservation}/tags`, '/portal', `/portal${CONNECTIVITY}`, '/portal/api-spec'],
  ...['/auth/jwks.json', '/api-docs/nothing.js', '/api-docs/..%2fopenapi.json', '/.well-known/'],
  ...['/%00', '/%ff'],
])('nothing is at %s: 404 with a problem body', async (address) => {
  const reply = await lead.send('GET', address);
  expect(outcome(reply)).toBe('404 not_found');
});

test.each(READABLE)(
  'GET %s: the same with a slash at the end, HEAD without the body, 421 under another Host',
  async (address) => {
    const [path = '', query = ''] = address.split('?');
    const bare = path.replace(/\/$/, '');
    const [without, withSlash] = [
      await lead.send('GET', `${bare}?${query}`),
      await lead.send('GET', `${bare}/?${query}`),
    ];
    expect(outcome(without)).toBe('200');
    expect([withSlash.status, withSlash.body]).toEqual([without.status, without.body]);
    await expectHead(address);
    const elsewhere = await lead.send('GET', `http://evil.example${address}`);
    expect(elsewhere.status).toBe(HEALTH.includes(address) ? 200 : 421);
  },
);

/** RFC 9110 §9.3.2; the fixture checks that there is no body. */
async function expectHead(address: string): Promise<void> {
  const [head, get] = [
    await lead.send('HEAD', address, { headers: SIGNED }),
    await lead.send('GET', address, { headers: SIGNED }),
  ];
  expect(head.status).toBe(get.status);
  expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'));
}

test.each([`${PROJECTS}${service.project}`, `${CONNECTIVITY}/x`, '/portal/nowhere', IDENTITY_KEYS])(
  'HEAD answers as GET: %s',
  expectHead,
);

test('POST, PUT and DELETE are the same with a slash at the end', async () => {
  const created = await lead.send('POST', `${CONNECTIVITY}/`, { body: booking() });
  const { id } = reservationIn(created);
  expect(created.headers.get('location')).toBe(`${CONNECTIVITY}/${id}`);
  expect(outcome(await lead.send('PUT', `${CONNECTIVITY}/${id}/`, { body: {} }))).toBe('200');
  expect(outcome(await lead.send('DELETE', `${CONNECTIVITY}/${id}/`))).toBe('204');
  const body = { name: 'bare', project_id: service.project, expires_at: at(DAY) };
  const made = await lead.send('POST', EXPERIMENTS.slice(0, -1), { body });
  expect(made.headers.get('location')).toMatch(
    /^\/portal\/apis\/experiments\/v1alpha1\/experiments\/exp_[^/]+$/,
  );
});

describe('pages of other origins can read public keys and the description, and call nothing', () => {
  const headers = { origin: 'https://app.example' };
  test.each([...KEY_SETS, '/api-spec'])('%s may be read, without credentials', async (address) => {
    const reply = await service.send('GET', address, { headers });
    expect(reply.headers.get('access-control-allow-origin')).toBe('*');
    expect(reply.headers.has('access-control-allow-credentials')).toBe(false);
  });

  test('others may not be read, and a preflight is not answered', async () => {
    const replies = [
      await lead.send('GET', '/api-docs', { headers }),
      await lead.send('GET', PROJECTS, { headers }),
      await lead.send('GET', '/nowhere', { headers }),
      await lead.send('OPTIONS', CONNECTIVITY, {
        headers: { ...headers, 'access-control-request-method': 'GET' },
      }),
    ];
    for (const reply of replies) {
      expect([...reply.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
    }
  });
});

test.each(['/api-docs', '/api-docs/'])(
  'the description of the API: %s is a page that loads only its own files',
  async (address) => {
    const reply = await service.send('GET', address);
    expect(reply.headers.get('content-type')).toMatch(/^text\/html/);
    expect(reply.headers.get('content-security-policy')).toMatch(
      /default-src 'none'.*frame-ancestors 'none'/,
    );
    const loaded = [...String(reply.body).matchAll(/(?:src|href)="([^"]+)"/g)].map(
      ([, link = '']) => new URL(link, service.base + address).href,
    );
    const due = ['/', '/api-spec', ...Object.keys(DOCS_FILES).map((name) => `/api-docs/${name}`)];
    expect([...new Set(loaded)].filter((address) => !address.startsWith('data:')).toSorted()).toEqual(
      due.map((path) => `${service.base}${path}`).toSorted(),
    );
  },
);

test.each(KEY_SETS)(
  'the key set %s holds one public ES256 key, its thumbprint as kid, and nothing private',
  async (address) => {
    const { keys } = v.parse(KeySetDocument, (await service.send('GET', address)).body);
    const [key, ...others] = keys;
    if (!key) throw new Error('no key');
    expect(others).toEqual([]);
    expect(key).toEqual({
      kty: 'EC',
      crv: 'P-256',
      alg: 'ES256',
      use: 'sig',
      kid: await calculateJwkThumbprint(v.parse(v.record(v.string(), v.string()), key)),
      x: expect.stringMatching(/^[\w-]{43}$/),
      y: expect.stringMatching(/^[\w-]{43}$/),
    });
  },
);

test('the log’s durations are of a clock that is never set (THREATS.md 85)', async () => {
  let clock = Date.now();
  const lines: Record<string, unknown>[] = [];
  const server = await createReferenceServer({
    // Set back by an hour each time that it is read.
    now: () => {
      clock -= HOUR;
      return clock;
    },
    log: (_level, _event, fields) => lines.push(fields),
  });
  await server.fetch(new Request(`${server.addresses.connectivity}/nowhere`));
  await server.close();
  const ms = lines.map((fields) => fields['ms']);
  expect(ms).toEqual([expect.any(Number)]);
  expect(Number(ms[0])).toBeGreaterThanOrEqual(0);
});

describe('the log', async () => {
  const { service: logged, lead: caller } = await openWithLead();
  const own = reservationIn(await caller.book()).id;
  const canaries = Object.entries({
    user: await logged.userToken('lead'),
    'another user': await logged.userToken('viewer'),
    experiment: await logged.experimentToken('lead'),
    project: await logged.projectToken('lead'),
    connectivity: String((await caller.read(own, SIGNED)).body),
  });
  /** Which tokens the log holds, or their claims or signature. */
  const told = (): string[] => {
    const text = JSON.stringify(logged.log);
    const isTold = (token: string) =>
      token
        .split('.')
        .slice(1)
        .some((part) => text.includes(part));
    return canaries.filter(([, token]) => isTold(token)).map(([name]) => name);
  };

  test('has each change and each refusal with its answer, and no read that was answered', async () => {
    await caller.update(own, { bandwidth: '100' });
    const changed = logged.log.at(-1);
    const fields = { method: 'PUT', path: `${CONNECTIVITY}/${own}`, status: 200, ms: expect.any(Number) };
    expect(changed).toEqual({ level: 'info', event: 'request', fields });
    await caller.read(own);
    expect(logged.log.at(-1)).toBe(changed);
    await caller.book(booking({ bandwidth: '0' }));
    expect(logged.log.at(-1)?.fields).toMatchObject({ status: 422, code: 'bandwidth_invalid' });
  });

  test('holds no token, valid or not, from any place of a request', async () => {
    for (const [, token] of canaries) {
      await caller.read(token);
      await caller.book(booking({ tokens: [token] }));
      await caller.book(booking({ site1: token, bandwidth: token, start_date: token }));
      await caller.update(own, { tokens: [token, token.slice(0, -4)] });
      await caller.list(`cursor=${token}&state=${token}`);
      await caller.list(`limit=${token}`);
      for (const authorization of [token, `Bearer ${token}`, `Bearer ${token}x`, `Basic ${token}`]) {
        await caller.send('GET', LINKS, { headers: { authorization } });
        await caller.send('GET', EXPERIMENTS, { headers: { authorization } });
        await caller.book(booking(), '', { 'slices-experiment-token': authorization });
      }
    }
    expect(logged.log.length).toBeGreaterThan(10 * canaries.length);
    expect(told()).toEqual([]);
  });
});

test('row 41: a database that another process keeps locked: 503 with Retry-After, and no rows are left', async () => {
  const { service: busy, lead: caller } = await openWithLead();
  const before = busy.rows();
  const another = new DatabaseSync(busy.file);
  another.exec('BEGIN EXCLUSIVE');
  const reply = await passingTime(() => caller.book());
  another.exec('ROLLBACK');
  another.close();
  expect(outcome(reply)).toBe('503 unavailable');
  expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(busy.rows()).toEqual(before);
  expect(busy.log).toContainEqual(expect.objectContaining({ event: 'store_unavailable' }));
  expect(outcome(await caller.book())).toBe('201');
});

/** How many requests are made up; more by `npm run prove`. */
const BODIES = Number(process.env['PROVE_BODIES'] ?? 300);

describe('row 36: no request gets 500 (the fixture checks it)', () => {
  const hostile = fc.oneof(anyText(), fc.stringMatching(/^[0-9]{1,20}$/), fc.jsonValue());
  const mostly = (...good: unknown[]) =>
    fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...good) }, hostile);
  const like = fc
    .record(
      {
        site1: mostly('be-gent1', 'pl-poznan1', 'be-gent1', 'fr-lille'),
        site2: mostly('pl-poznan1', 'be-gent1', 'pl-poznan1', 'fr-lille'),
        bandwidth: mostly('1', '100', '1000', '1001'),
        start_date: mostly(null, at(-1), at(0), at(HOUR), at(2 * HOUR)),
        end_date: mostly(at(HOUR), at(2 * HOUR), at(3 * HOUR), at(90 * DAY), at(90 * DAY + 1)),
        tokens: mostly([]),
        note: hostile,
      },
      { requiredKeys: [] },
    )
    .map((body) => ({ ...booking(), ...body }));
  const broken = fc
    .tuple(like, fc.nat(), fc.nat(9), anyText({ maxLength: 9 }))
    .map(([body, place, cut, text]) => {
      const json = JSON.stringify(body);
      const from = place % json.length;
      return json.slice(0, from) + text + json.slice(from + cut);
    });
  const bodies = fc.oneof(
    { weight: 4, arbitrary: like.map((body) => JSON.stringify(body)) },
    { weight: 2, arbitrary: broken },
    fc.json(),
    fc.uint8Array({ maxLength: 99 }),
  );
  const queries = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('', 'start_now=true', 'dry_run=true') },
    fc.webQueryParameters(),
  );

  test(`${BODIES} bodies similar to valid ones`, async () => {
    const { service: fuzzed, lead: caller } = await openWithLead({ topology: smallTopology(9) });
    const own = reservationIn(await caller.book()).id;
    const answered = new Set<string>();
    const property = fc.asyncProperty(bodies, queries, fc.boolean(), async (body, query, update) => {
      const reply = update ? await caller.update(own, body, query) : await caller.book(body, query);
      expect(reply.status).toBeOneOf([200, 201, 400, 403, 422]);
      answered.add(outcome(reply));
    });
    // One is sound for sure.
    const sound = JSON.stringify({ ...booking(), start_date: at(500 * HOUR), end_date: at(501 * HOUR) });
    await fc.assert(property, { numRuns: BODIES, examples: [[sound, '', false]] });
    // Some requests were decided and accepted.
    expect([...answered]).toEqual(
      expect.arrayContaining(['200', '201', '422 bandwidth_unavailable Bandwidth']),
    );
    const { reservations, hops } = fuzzed.rows();
    expect(hops).toBe(reservations);
  });

  test('300 addresses', async () => {
    const methods = fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS');
    const under = fc.constantFrom('', CONNECTIVITY, PROJECTS, EXPERIMENTS, '/api-spec', '/auth');
    const property = fc.asyncProperty(
      methods,
      under,
      fc.webPath(),
      fc.webQueryParameters(),
      async (method, prefix, path, query) => {
        const body = method === 'POST' || method === 'PUT' ? { body: '{}' } : {};
        const { status } = await lead.send(method, `${prefix}${path}?${query}`, body);
        expect(status).toBeLessThan(500);
      },
    );
    await fc.assert(property, { numRuns: 300 });
  });
});
