import { connect } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { createServerMetrics } from '../../../src/server/metrics/server-metrics.ts';
import { anyText } from '../../fixtures/any-text.ts';
import { parseExposition, sampleOf } from '../../fixtures/exposition.ts';
import {
  answer,
  approve,
  Browser,
  DEVICE_GRANT,
  FORM_TYPE,
  type IdentityServer,
  PAGE,
  poll,
  post,
  refresh,
  revoke,
  send,
  sendRaw,
  startIdentity,
  startLogin,
  tokensIn,
  type WireReply,
} from '../../fixtures/identity.ts';
import { passingTime } from '../../fixtures/passing-time.ts';

/** Endpoints that take forms, and addresses that are only read. */
const FORMS = ['/auth/token', '/auth/device/auth', '/auth/token/revocation', PAGE];
const READ = ['/auth/.well-known/openid-configuration', '/auth/.well-known/oauth-authorization-server'];

let server: IdentityServer;
let host: string;
beforeAll(async () => {
  server = await startIdentity({ autoApprove: 'lead' });
  host = new URL(server.base).host;
});

/** A refusal that clients can read, without internal details. */
function expectPlain({ status, headers, text }: WireReply): void {
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(500);
  expectSilent(text);
  for (const name of ['server', 'x-powered-by']) expect(headers.get(name)).toBeNull();
}

/** Expects no stack, file path or library name. */
function expectSilent(text: string): void {
  expect(text).not.toMatch(
    /\bat .*:\d+:\d+|node_modules|node:internal|\.ts\b|\.js\b|\b(oidc-provider|koa|hono|sqlite)\b/i,
  );
}

/** A request as bytes that closes its connection. */
function raw(method: string, path: string, headers: readonly string[], body = ''): string {
  return [`${method} ${path} HTTP/1.1`, ...headers, 'Connection: close', '', body].join('\r\n');
}

const statusOf = (reply: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(reply)?.[1]);

describe.each(FORMS)('a form for %s', (path) => {
  test('with a doubled parameter is 400', async () => {
    for (const body of [
      'client_id=slices-conn&client_id=slices-conn',
      'client_id=slices-conn&unknown=1&unknown=2',
      'client_id=slices-conn&cl%69ent_id=slices-conn',
    ]) {
      const reply = await send(server, 'POST', path, { body });
      expect(reply.status, body).toBe(400);
      expectPlain(reply);
    }
  });

  test('of another media type is 415', async () => {
    const body = 'client_id=slices-conn';
    for (const type of ['application/json', 'multipart/form-data; boundary=x', '', `${FORM_TYPE}x`]) {
      const reply = await send(server, 'POST', path, { body, headers: { 'content-type': type } });
      expect(reply.status, type).toBe(415);
      expectPlain(reply);
    }
    expect(statusOf(await sendRaw(server, raw('POST', path, [`Host: ${host}`, 'Content-Length: 0'])))).toBe(
      415,
    );
  });

  test('that ends too early harms no other request', async () => {
    await new Promise<void>((resolve) => {
      const socket = connect(server.port, '127.0.0.1', () => {
        const head = [`Host: ${host}`, `Content-Type: ${FORM_TYPE}`, 'Content-Length: 1000'];
        socket.write(raw('POST', path, head, 'client_id='), () => socket.destroy());
      });
      socket.on('close', () => resolve());
    });
    expect((await startLogin(server)).interval).toBe(1);
  });
});

test.each([
  ...[...FORMS.filter((path) => path !== PAGE)].map((path) => [
    path,
    ['GET', 'HEAD', 'PUT', 'OPTIONS'],
    'POST',
  ]),
  ...READ.map((path) => [path, ['POST', 'PUT', 'DELETE', 'OPTIONS'], 'GET, HEAD']),
  [PAGE, ['PUT', 'DELETE', 'OPTIONS'], 'GET, HEAD, POST'],
] as [string, string[], string][])(
  'every address below /auth, %s refuses methods and names those that it knows',
  async (path, methods, allow) => {
    for (const method of methods) {
      const reply = await send(server, method, path);
      expect([method, reply.status, reply.headers.get('allow')]).toEqual([method, 405, allow]);
      expectPlain(reply);
    }
  },
);

test('a refusal before the provider has the form of an OAuth error', async () => {
  const json = { body: '{}', headers: { 'content-type': 'application/json' } };
  for (const reply of [
    await send(server, 'POST', '/auth/token', { body: 'scope=a&scope=b' }),
    await send(server, 'POST', '/auth/token', json),
    await send(server, 'GET', '/auth/token'),
    await send(server, 'POST', '/auth/token', { body: 'a'.repeat(20_000) }),
  ]) {
    expect(reply.headers.get('content-type')).toContain('application/json');
    expect(reply.headers.get('cache-control')).toContain('no-store');
    expect(answer(reply)).toMatch(/^4\d\d invalid_request$/);
  }
});

test('parameters outside the list never reach the provider', async () => {
  for (const fields of [
    { request: 'eyJhbGciOiJub25lIn0.e30.' },
    { request_uri: 'http://127.0.0.1:1/x' },
    { claims: '{"id_token":{"sub":{"value":"x"}}}' },
    { id_token_hint: 'x', max_age: '-1', prompt: 'none', client_secret: 'x', dpop_jkt: 'x' },
    {
      client_assertion: 'x',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    },
    { authorization_details: '[', __proto__x: 'y', constructor: 'x' },
  ] as Record<string, string>[]) {
    expect((await post(server, '/device/auth', { scope: 'openid', ...fields })).status).toBe(200);
  }
});

describe('fuzzed requests are answered below 500', () => {
  const odd = ['__proto__', '', 'toString', 'a'.repeat(10_000), '..%2f..', '%ff%fe', '%0d%0aX: y', '\u202e'];
  const names = ['client_id', 'scope', 'resource', 'grant_type', 'device_code', 'refresh_token', 'token'];
  const known = ['slices-conn', DEVICE_GRANT, 'refresh_token', 'eyJhbGciOiJub25lIn0.e30.', 'BBBB-BBBB-BBBB'];
  const name = fc.constantFrom(...names, 'user_code', 'csrf', 'action', 'user', 'claims', ...odd);
  const value = fc.oneof(fc.constantFrom(...known, ...odd), anyText());
  const fields = fc.array(fc.tuple(name, value), { maxLength: 6 });

  test('as forms and as queries: 150 of them', async () => {
    const own = await startIdentity({ autoApprove: 'admin' });
    const seen = new Set<number>();
    const request = fc.record({
      path: fc.constantFrom(...FORMS, ...READ),
      pairs: fields.map((pairs) => pairs.map(([one, other]) => `${one}=${other}`)),
      isOurs: fc.boolean(),
      inQuery: fc.boolean(),
      cookie: fc.webQueryParameters(),
      basic: value,
    });
    const property = fc.asyncProperty(request, async ({ path, pairs, isOurs, inQuery, cookie, basic }) => {
      const text = [...(isOurs ? ['client_id=slices-conn'] : []), ...pairs].join('&');
      const headers = {
        cookie: `slices-conn-device-${own.port}=${cookie}`,
        ...(isOurs ? {} : { authorization: `Basic ${Buffer.from(basic).toString('base64')}` }),
      };
      const query = text.replaceAll(/[^\x21-\x7e]/g, '%');
      const reply = inQuery
        ? await send(own, 'GET', `${path}?${query}`, { headers })
        : await send(own, 'POST', path, { body: text, headers });
      seen.add(reply.status);
      expect(reply.status).toBeLessThan(500);
      expectSilent(reply.text.replace(/<style>[\s\S]*<\/style>/, ''));
    });
    await fc.assert(property, { numRuns: 150 });
    expect(seen.size).toBeGreaterThan(3);
    expect(own.log.filter(({ level }) => level === 'error')).toEqual([]);
  });
});

test('the log holds no code, token or secret', async () => {
  const own = await startIdentity();
  const browser = new Browser(own);
  const login = await startLogin(own);
  await browser.open(`${PAGE}?user_code=${login.user_code}&user_code=x`);
  await approve(login, 'lead', browser);
  const tokens = tokensIn(await poll(own, login));
  const next = tokensIn(await refresh(own, String(tokens.refresh_token)));
  await refresh(own, String(tokens.refresh_token));
  await send(own, 'GET', '/portal/apis/projects/v1alpha1/projects/', {
    headers: { authorization: `Bearer ${tokens.access_token}` },
  });
  for (const [name, value] of Object.entries({ ...tokens, ...login })) {
    await send(own, 'GET', `/auth/token?${name}=${encodeURIComponent(String(value))}`);
    await send(own, 'GET', `/?${name}=${encodeURIComponent(String(value))}`);
  }
  await send(own, 'GET', `/auth/${tokens.access_token}`);
  await revoke(own, String(next.refresh_token));
  const written = JSON.stringify(own.log);
  expect(own.log.length).toBeGreaterThan(0);
  const secrets = Object.values({
    ...tokens,
    ...login,
    next: next.refresh_token,
    csrf: browser.hidden['csrf'],
  });
  const session = [...browser.cookies.values()].map((value) => value.split('.')[0]);
  const random = [...secrets, ...session, tokens.access_token.split('.')[2]].map(String);
  for (const secret of random.filter((text) => /^[\w-.]{14,}$/.test(text)))
    expect(written).not.toContain(secret);
});

describe('a locked database', () => {
  /** Runs something while another process' transaction holds the database. */
  async function whileLocked<Answer>(file: string, work: () => Promise<Answer>): Promise<Answer> {
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    try {
      return await passingTime(work);
    } finally {
      other.exec('ROLLBACK');
      other.close();
    }
  }

  const requests: [string, (own: IdentityServer, browser: Browser) => Promise<WireReply>][] = [
    ['a new login', (own) => post(own, '/device/auth', { scope: 'openid' })],
    ['a poll', (own) => poll(own, { device_code: 'x'.repeat(43) })],
    ['a refresh', (own) => refresh(own, 'x'.repeat(43))],
    ['a revocation', (own) => revoke(own, 'x'.repeat(43))],
    ['a look at a code', (own) => new Browser(own).open(`${PAGE}?user_code=BBBB-BBBB-BBBB`)],
    [
      'an approval',
      (_, browser) => browser.submit({ user: browser.people.ids.get('lead') ?? '', action: 'approve' }),
    ],
  ];

  test('makes each request 503 with Retry-After, counted, and the login can still be finished', async () => {
    const metrics = createServerMetrics();
    const own = await startIdentity({ metrics });
    const login = await startLogin(own);
    const browser = new Browser(own);
    await browser.open(login.verification_uri_complete);
    for (const [name, request] of requests) {
      const { status, headers, text } = await whileLocked(own.file, () => request(own, browser));
      expectSilent(text.replace(/<style>[\s\S]*<\/style>/, ''));
      expect([name, status, headers.has('retry-after')]).toEqual([name, 503, true]);
    }
    const kind = { kind: 'unavailable' };
    const failed = sampleOf(parseExposition(metrics.text()), 'slices_conn_store_errors_total', kind);
    expect(failed).toBe(requests.length);
    expect(answer(await poll(own, login))).toBe('400 authorization_pending');
    expect((await approve(login, 'lead', browser)).status).toBe(200);
    expect(answer(await poll(own, login))).toBe('200');
  });

  test('makes the very first request 503 too', async () => {
    const own = await startIdentity();
    const first = await whileLocked(own.file, () => post(own, '/device/auth', { scope: 'openid' }));
    expect([first.status, first.headers.has('retry-after')]).toEqual([503, true]);
  });
});
