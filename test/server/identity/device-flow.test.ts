import { createServer } from 'node:http';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import * as v from 'valibot';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { SessionList } from '../../../src/contract/directory.ts';
import { createReferenceServer } from '../../../src/reference-server.ts';
import { sessionId } from '../../../src/server/identity/sessions.ts';
import {
  answer,
  approve,
  Browser,
  DEVICE_GRANT,
  type IdentityServer,
  logIn,
  type Provider,
  partOf,
  poll,
  post,
  refresh,
  refreshTokenIn,
  SCOPE,
  send,
  sendRaw,
  startIdentity,
  startLogin,
  tally,
  tokensIn,
  type WireReply,
} from '../../fixtures/identity.ts';
import { listenOnLoopback } from '../../fixtures/loopback.ts';
import { usePostgres } from '../../fixtures/postgres.ts';
import { DAY, HOUR, LINKS } from '../../fixtures/service.ts';

const SECOND = 1000;
const DISCOVERY = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server'];

async function keySet(target: Provider): Promise<JSONWebKeySet> {
  const { status, text } = await send(target, 'GET', '/auth/.well-known/jwks.json');
  expect(status).toBe(200);
  return JSON.parse(text) as JSONWebKeySet;
}

async function discovered(target: Provider, path = DISCOVERY[0]): Promise<Record<string, unknown>> {
  const { status, text } = await send(target, 'GET', `/auth${path}`);
  expect(status).toBe(200);
  return v.parse(v.record(v.string(), v.unknown()), JSON.parse(text));
}

afterEach(() => void vi.useRealTimers());

/** Moves the clock of everything in this process, the provider's library included. Sockets keep their own time. */
function moveEverything(milliseconds: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + milliseconds });
}

describe('a device login', async () => {
  const shared = await startIdentity();
  const approving = await startIdentity({ autoApprove: 'lead' });

  test('from the code in the terminal to a session', async () => {
    const server = shared;
    const login = await startLogin(server);
    expect(login).toMatchObject({
      verification_uri: `${server.issuer}/device`,
      verification_uri_complete: `${server.issuer}/device?user_code=${login.user_code}`,
      expires_in: 600,
      interval: 5,
    });
    expect(login.device_code.length).toBeGreaterThanOrEqual(43);
    expect(answer(await poll(server, login))).toBe('400 authorization_pending');

    const browser = new Browser(server);
    await browser.open(login.verification_uri);
    expect(browser.reply.status).toBe(200);
    await browser.submit({ user_code: ` ${login.user_code.toLowerCase().replace('-', ' ')} ` });
    expect([...browser.people.ids.keys()]).toEqual(['lead', 'admin', 'member', 'viewer']);
    const user = browser.people.ids.get('member') ?? '';
    await browser.submit({ user, action: 'approve' });
    expect(browser.reply.status).toBe(200);
    expect(browser.reply.text).toContain('You are logged in');

    const reply = await poll(server, login);
    expect(reply.headers.get('cache-control')).toContain('no-store');
    const tokens = tokensIn(reply);
    expect(tokens).toMatchObject({ token_type: 'Bearer', expires_in: 3600 });
    expect(tokens.refresh_token?.length).toBeGreaterThanOrEqual(43);
    expect(partOf(tokens.access_token, 'payload')).toMatchObject({ sub: user, preferred_username: 'member' });
  });

  test('takes the client from a Basic header with an empty secret, as oidc-agent sends it', async () => {
    const server = shared;
    const ask = (path: string, client: string, body: Record<string, string>) =>
      send(server, 'POST', `/auth${path}`, {
        headers: { authorization: `Basic ${Buffer.from(client).toString('base64')}` },
        body,
      });
    const started = await ask('/device/auth', 'slices-conn:', { scope: SCOPE });
    expect(started.status).toBe(200);
    const login = JSON.parse(started.text);
    await approve(login, 'lead', new Browser(server));
    const device = { grant_type: DEVICE_GRANT, device_code: login.device_code };
    const tokens = tokensIn(await ask('/token', 'slices-conn:', { ...device, client_id: 'slices-conn' }));
    const again = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token ?? '' };
    expect((await ask('/token', 'slices-conn:', again)).status).toBe(200);
    expect((await ask('/token/revocation', 'slices-conn:', { token: 'x' })).status).toBe(200);
    // A client without a secret gives none, and there is one client in a request.
    expect((await ask('/device/auth', 'slices-conn:secret', { scope: SCOPE })).status).toBe(401);
    expect((await ask('/device/auth', 'other:', { scope: SCOPE })).status).toBe(401);
    const two = { scope: SCOPE, client_id: 'slices-conn-ci' };
    expect((await ask('/device/auth', 'slices-conn:', two)).status).toBe(400);
  });

  test('gives the user token of the specification', async () => {
    const server = shared;
    const began = Math.floor(Date.now() / SECOND);
    const { access_token: token, id_token: idToken } = await logIn(server, 'admin');
    const ended = Math.ceil(Date.now() / SECOND);
    expect(partOf(token, 'header')).toEqual({ alg: 'ES256', typ: 'JWT', kid: expect.any(String) });
    const keys = createLocalJWKSet(await keySet(server));
    const { payload } = await jwtVerify(token, keys, {
      issuer: server.issuer,
      audience: server.base,
      algorithms: ['ES256'],
      typ: 'JWT',
    });
    const { iat = 0, exp = 0, auth_time: authTime, ...others } = payload;
    expect(others).toMatchObject({
      iss: server.issuer,
      aud: server.base,
      sub: expect.stringMatching(/^user_127\.0\.0\.1_[0-9a-z]{26}$/),
      scope: 'openid userinfo projects sessions',
      preferred_username: 'admin',
    });
    for (const time of [iat, exp, authTime]) expect(Number.isInteger(time)).toBe(true);
    expect(exp - iat).toBe(3600);
    for (const time of [iat, Number(authTime)]) {
      expect(time).toBeGreaterThanOrEqual(began);
      expect(time).toBeLessThanOrEqual(ended);
    }
    expect(Number(authTime)).toBeLessThanOrEqual(iat);
    // Beside the specification's claims nothing but what RFC 9068 adds, and the session.
    const known = ['iss', 'aud', 'sub', 'scope', 'preferred_username', 'jti', 'client_id', 'sid'];
    expect(Object.keys(others).filter((name) => !known.includes(name))).toEqual([]);

    expect(idToken).toBeDefined();
    const identity = await jwtVerify(String(idToken), keys, {
      issuer: server.issuer,
      audience: 'slices-conn',
      algorithms: ['ES256'],
    });
    expect(identity.payload).toMatchObject({ sub: payload.sub });
  });

  test('that is not refreshed for thirty days is over', async () => {
    const server = await startIdentity();
    const [used, unused] = [await logIn(server), await logIn(server)];
    const day = 24 * 3600 * SECOND;
    moveEverything(29 * day);
    const { refresh_token: successor = '' } = tokensIn(await refresh(server, used.refresh_token));
    moveEverything(2 * day);
    expect(answer(await refresh(server, unused.refresh_token))).toBe('400 invalid_grant');
    expect(answer(await refresh(server, successor))).toBe('200');
  });

  test('that is denied ends with that word', async () => {
    const server = shared;
    const login = await startLogin(server);
    const browser = new Browser(server);
    await browser.open(login.verification_uri_complete);
    expect((await browser.submit({ action: 'deny' })).status).toBe(200);
    expect(answer(await poll(server, login))).toBe('400 access_denied');
    expect(answer(await poll(server, login))).toMatch(/^400 (access_denied|invalid_grant)$/);
    const another = new Browser(server);
    await another.open(login.verification_uri_complete);
    expect([another.reply.status, another.problem]).toEqual([400, expect.stringContaining('used already')]);
  });

  test('is over when its code expires, approved or not', async () => {
    const server = await startIdentity();
    const [approved, pending, last] = [
      await startLogin(server),
      await startLogin(server),
      await startLogin(server),
    ];
    const browser = new Browser(server);
    await approve(approved, 'lead', browser);
    await browser.open(pending.verification_uri_complete);
    const user = browser.people.ids.get('lead') ?? '';
    moveEverything(590 * SECOND);
    expect(answer(await poll(server, last))).toBe('400 authorization_pending');
    moveEverything(11 * SECOND);
    for (const login of [approved, pending])
      expect(answer(await poll(server, login))).toBe('400 expired_token');
    // A page that was left open does not bring it back.
    await browser.submit({ user, action: 'approve' });
    expect([browser.reply.status, browser.problem]).toEqual([400, expect.stringContaining('has expired')]);
    server.advance(5 * SECOND);
    expect(answer(await poll(server, pending))).toBe('400 expired_token');
  });

  test.each([
    ['openid offline_access userinfo projects root admin:all', 'openid userinfo projects', true],
    ['projects openid projects openid', 'openid projects', false],
    ['nothing-that-exists openid', 'openid', false],
  ])('that asks for %j gets %j', async (asked, granted, refreshed) => {
    const server = approving;
    const tokens = tokensIn(await poll(server, await startLogin(server, asked)));
    const scopes = (text: unknown): string[] => String(text).split(' ').toSorted();
    expect(scopes(partOf(tokens.access_token, 'payload')['scope'])).toEqual(scopes(granted));
    expect(tokens.refresh_token !== undefined).toBe(refreshed);
    const told = scopes(refreshed ? `${granted} offline_access` : granted);
    expect(scopes(tokens.scope)).toEqual(told);
    if (!refreshed) return;
    expect(scopes(tokensIn(await refresh(server, String(tokens.refresh_token))).scope)).toEqual(told);
  });

  test('that asks for no scope gets the default one', async () => {
    const { text } = await post(approving, '/device/auth', {});
    const tokens = tokensIn(await poll(approving, JSON.parse(text)));
    expect(partOf(tokens.access_token, 'payload')['scope']).toBe('openid userinfo projects');
  });

  test.each([
    ['an unknown client', { client_id: 'nobody' }, '401 invalid_client'],
    ['no client', { client_id: '' }, '400 invalid_request'],
    ['a foreign resource', { resource: 'https://elsewhere.example' }, '400 invalid_target'],
  ])('is refused for %s', async (_, fields, due) => {
    expect(answer(await post(shared, '/device/auth', { scope: SCOPE, ...fields }))).toBe(due);
  });

  test('can’t widen its scope or change its audience by a refresh', async () => {
    const narrow = tokensIn(await poll(approving, await startLogin(approving, 'openid offline_access')));
    const token = { grant_type: 'refresh_token', refresh_token: String(narrow.refresh_token) };
    const wider = await post(approving, '/token', { ...token, scope: 'openid offline_access projects' });
    expect(answer(wider)).toBe('400 invalid_scope');
    const elsewhere = await post(approving, '/token', { ...token, resource: 'https://elsewhere.example' });
    expect(answer(elsewhere)).toBe('400 invalid_target');
    expect(answer(await refresh(approving, token.refresh_token))).toBe('200');
  });
});

describe('the provider’s description', async () => {
  const server = await startIdentity();

  test('names the features of this server only', async () => {
    const { status, text } = await send(server, 'GET', `${DISCOVERY[1]}/auth`);
    expect([status, JSON.parse(text).issuer]).toEqual([200, server.issuer]);
    for (const path of DISCOVERY) {
      const document = await discovered(server, path);
      expect(document).toMatchObject({
        issuer: server.issuer,
        device_authorization_endpoint: `${server.issuer}/device/auth`,
        token_endpoint: `${server.issuer}/token`,
        revocation_endpoint: `${server.issuer}/token/revocation`,
        jwks_uri: `${server.issuer}/.well-known/jwks.json`,
        grant_types_supported: expect.toSatisfy(
          (types: string[]) =>
            [...types].sort().join(' ') === 'refresh_token urn:ietf:params:oauth:grant-type:device_code',
        ),
        id_token_signing_alg_values_supported: ['ES256'],
        scopes_supported: expect.arrayContaining(SCOPE.split(' ')),
      });
      const addresses = Object.entries(document).filter(([name]) => /(_endpoint|_uri)$/.test(name));
      for (const [name, address] of addresses) {
        const method = name === 'jwks_uri' ? 'GET' : 'POST';
        const { status } = await send(server, method, String(address), { body: {} });
        expect(status, name).not.toBe(404);
        expect(status, name).not.toBe(405);
      }
      expect(document['authorization_endpoint']).toBeUndefined();
    }
  });

  test('leaves nothing elsewhere', async () => {
    const library = ['/auth', '/me', '/session/end', '/jwks', '/reg', '/token/introspection'];
    for (const path of [...library, '/interaction/x', '/device/abc', '/Device', '/token/', '//token']) {
      expect((await send(server, 'GET', `/auth${path}`)).status, path).toBe(404);
      const { status } = await send(server, 'POST', `/auth${path}`, { body: { client_id: 'x' } });
      expect(status, path).toBe(404);
    }
  });

  test('gives the same addresses whatever headers say', async () => {
    const expected = await discovered(server);
    const host = new URL(server.base).host;
    const forged = [
      'X-Forwarded-Host: evil.example',
      'X-Forwarded-Prefix: /evil',
      'X-Original-URL: /evil',
      'Forwarded: host=evil.example;proto=https',
    ].join('\r\n');
    const reply = await sendRaw(
      server,
      `GET /auth${DISCOVERY[0]} HTTP/1.1\r\nHost: ${host}\r\n${forged}\r\nConnection: close\r\n\r\n`,
    );
    expect(reply).toMatch(/^HTTP\/1\.1 200/);
    expect(reply).not.toContain('evil');
    const body = 'client_id=slices-conn';
    const login = await sendRaw(
      server,
      `POST /auth/device/auth HTTP/1.1\r\nHost: ${host}\r\n${forged}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    );
    expect(login).toContain(`"verification_uri":"${server.issuer}/device"`);
    expect(login).not.toContain('evil');
    expect(await discovered(server)).toEqual(expected);
  });

  test('stands below a path, and behind another name than the socket’s', async () => {
    const base = 'https://conn.example.test/net/one';
    const below = await createReferenceServer({ baseUrl: base, autoApprove: 'lead' });
    const socket = createServer(below.listener);
    const port = await listenOnLoopback(socket);
    try {
      const target: Provider = { ...server, port, base: 'https://conn.example.test', issuer: `${base}/auth` };
      const reply = await send(target, 'GET', `/net/one/auth${DISCOVERY[0]}`);
      expect(JSON.parse(reply.text)).toMatchObject({
        issuer: `${base}/auth`,
        token_endpoint: `${base}/auth/token`,
        device_authorization_endpoint: `${base}/auth/device/auth`,
        revocation_endpoint: `${base}/auth/token/revocation`,
        jwks_uri: `${base}/auth/.well-known/jwks.json`,
      });
      const login = await send(target, 'POST', '/net/one/auth/device/auth', {
        body: { client_id: 'slices-conn' },
      });
      expect(JSON.parse(login.text)).toMatchObject({ verification_uri: `${base}/auth/device` });
      const tokens = await send(target, 'POST', '/net/one/auth/token', {
        body: {
          client_id: 'slices-conn',
          grant_type: DEVICE_GRANT,
          device_code: JSON.parse(login.text).device_code,
        },
      });
      expect(partOf(tokensIn(tokens).access_token, 'payload')).toMatchObject({
        iss: `${base}/auth`,
        aud: base,
      });
      const page = await send(target, 'GET', '/net/one/auth/device');
      expect(page.text).toContain('action="/net/one/auth/device"');
      expect(page.headers.get('set-cookie')).toMatch(
        /; Path=\/net\/one\/auth\/device; HttpOnly; Secure; SameSite=Lax$/,
      );
      expect((await send(target, 'GET', '/auth/device')).status).toBe(404);
    } finally {
      socket.close();
      await below.close();
    }
  });
});

const CLIENT = 'slices-conn-ci';

function refreshed(server: IdentityServer, token: string, client = CLIENT): Promise<WireReply> {
  return post(server, '/token', { client_id: client, grant_type: 'refresh_token', refresh_token: token });
}

/** Lets a machine act as the lead. */
async function machineToken(server: IdentityServer): Promise<{ token: string; reply: WireReply }> {
  const { device_code, verification_uri_complete } = await startLogin(server, SCOPE, CLIENT);
  await approve({ verification_uri_complete }, 'lead', new Browser(server));
  const reply = await post(server, '/token', { client_id: CLIENT, grant_type: DEVICE_GRANT, device_code });
  return { token: refreshTokenIn(reply), reply };
}

describe('a machine’s refresh token', () => {
  test('lasts 90 days, and is the same after each use', async () => {
    const server = await startIdentity();
    const { token, reply } = await machineToken(server);
    expect(JSON.parse(reply.text)).toMatchObject({ refresh_token_expires_in: 90 * 86_400 });
    moveEverything(89 * DAY);
    const later = await refreshed(server, token);
    expect(refreshTokenIn(later)).toBe(token);
    const { refresh_token_expires_in: left } = JSON.parse(later.text);
    expect(left).toBeGreaterThan(86_400 - 60);
    expect(left).toBeLessThanOrEqual(86_400);
    moveEverything(DAY);
    expect(answer(await refreshed(server, token))).toBe('400 invalid_grant');
  });

  test('is good for jobs that run side by side, for its own client only, and no person’s is good for that', async () => {
    const server = await startIdentity();
    const { token } = await machineToken(server);
    const replies = await Promise.all(Array.from({ length: 12 }, () => refreshed(server, token)));
    expect(tally(replies.map(answer))).toEqual({ 200: 12 });
    const accessTokens = new Set(replies.map((reply) => tokensIn(reply).access_token));
    expect(accessTokens.size).toBe(12);
    expect(answer(await refresh(server, token))).toBe('400 invalid_grant');
    const person = await startLogin(server);
    await approve(person, 'lead', new Browser(server));
    const { device_code } = person;
    const reply = await post(server, '/token', { grant_type: DEVICE_GRANT, device_code });
    expect(JSON.parse(reply.text)).not.toHaveProperty('refresh_token_expires_in');
    expect(answer(await refreshed(server, refreshTokenIn(reply)))).toBe('400 invalid_grant');
    expect(answer(await refreshed(server, token))).toBe('200');
  });
});

test('the page says that a machine will act without the person, and says it of machines only', async () => {
  const server = await startIdentity();
  const sentence = 'A machine will act as you, without you, for 90 days.';
  const browser = new Browser(server);
  const machine = await startLogin(server, SCOPE, CLIENT);
  const { text } = await browser.open(machine.verification_uri_complete);
  expect(text).toContain(sentence);
  expect(text).toContain('slices-conn user sessions');
  expect(text).not.toContain('until you log out');
  const person = await startLogin(server);
  expect((await browser.open(person.verification_uri_complete)).text).not.toContain(sentence);
});

const postgres = usePostgres();

describe.each(postgres.engines)('the logins of a user, on %s', (_, newDatabase) => {
  const start = async () => startIdentity({ database: await newDatabase() });
  const ask = (server: IdentityServer, token: string, method: string, id = '') =>
    send(server, method, `/portal/apis/v1alpha1/sessions${id}`, {
      headers: { authorization: `Bearer ${token}` },
    });
  const code = ({ status, text }: WireReply): string => `${status} ${JSON.parse(text).code}`;
  async function listed(server: IdentityServer, token: string) {
    const reply = await ask(server, token, 'GET');
    expect(reply.status, reply.text).toBe(200);
    return v.parse(SessionList, JSON.parse(reply.text)).items;
  }

  test('are listed, and each can be ended: a machine’s, a person’s, and no one else’s', async () => {
    const server = await start();
    const began = Math.floor(Date.now() / 1000) * 1000;
    const { token } = await machineToken(server);
    const person = await logIn(server);
    const other = await logIn(server, 'viewer');
    expect(await listed(server, other.access_token)).toMatchObject([
      { client_id: 'slices-conn', current: true },
    ]);

    moveEverything(10 * DAY);
    const { access_token: machineAccess } = tokensIn(await refreshed(server, token));
    const { access_token, refresh_token = '' } = tokensIn(await refresh(server, person.refresh_token));
    const sessions = await listed(server, access_token);
    expect(sessions).toHaveLength(2);
    const machine = sessions.find(({ client_id }) => client_id === CLIENT);
    const own = sessions.find(({ current }) => current);
    if (!machine || !own) throw new Error('one of them is not listed');
    expect([machine.current, own.client_id]).toEqual([false, 'slices-conn']);
    expect(machine.id).toMatch(/^[0-9a-f]{16}$/);
    const days = (text: string) => Math.round((Date.parse(text) - began) / DAY);
    expect([machine.created_at, machine.last_used_at, machine.expires_at].map(days)).toEqual([0, 10, 90]);
    expect([own.created_at, own.last_used_at, own.expires_at].map(days)).toEqual([0, 10, 40]);

    // Another user's token ends nothing.
    const stranger = tokensIn(await refresh(server, other.refresh_token)).access_token;
    expect((await ask(server, stranger, 'DELETE', `/${machine.id}`)).status).toBe(404);
    expect(answer(await refreshed(server, token))).toBe('200');

    expect((await ask(server, access_token, 'DELETE', `/${machine.id}`)).status).toBe(204);
    expect((await ask(server, access_token, 'DELETE', `/${machine.id}`)).status).toBe(404);
    expect(answer(await refreshed(server, token))).toBe('400 invalid_grant');
    expect((await ask(server, machineAccess, 'GET')).status).toBe(403);
    expect(await listed(server, access_token)).toEqual([own]);

    expect((await ask(server, access_token, 'DELETE', `/${own.id}`)).status).toBe(204);
    expect((await ask(server, access_token, 'GET')).status).toBe(403);
    expect(answer(await refresh(server, refresh_token))).toBe('400 invalid_grant');
  });

  test('without a refresh token end with their access token', async () => {
    const server = await start();
    const { device_code, verification_uri_complete } = await startLogin(server, 'openid sessions');
    await approve({ verification_uri_complete }, 'lead', new Browser(server));
    const { access_token } = tokensIn(
      await post(server, '/token', { grant_type: DEVICE_GRANT, device_code }),
    );
    const [session] = await listed(server, access_token);
    expect(Date.parse(session?.expires_at ?? '') - Date.parse(session?.created_at ?? '')).toBe(3_600_000);
    const person = await logIn(server);
    expect(await listed(server, person.access_token)).toHaveLength(2);
    moveEverything(3_601_000);
    const later = tokensIn(await refresh(server, person.refresh_token)).access_token;
    expect(await listed(server, later)).toMatchObject([{ current: true }]);
  });

  test('a login without the scope sessions lists none, and ends its own alone; a machine’s never has it (row 149)', async () => {
    const server = await start();
    const person = await logIn(server);
    const [own] = await listed(server, person.access_token);
    const asked = await startLogin(server, 'openid');
    await approve(asked, 'lead', new Browser(server));
    const narrow = tokensIn(await poll(server, asked));
    const { token } = await machineToken(server);
    const machine = tokensIn(await refreshed(server, token));
    for (const { access_token: weak } of [narrow, machine]) {
      expect(code(await ask(server, weak, 'GET'))).toBe('403 scope_missing');
      expect(code(await ask(server, weak, 'DELETE', `/${own?.id}`))).toBe('403 scope_missing');
      const id = sessionId(String(partOf(weak, 'payload')['sid']));
      expect((await ask(server, weak, 'DELETE', `/${id}`)).status).toBe(204);
    }
    expect(await listed(server, person.access_token)).toMatchObject([{ id: own?.id }]);
  });
});

/** For how many hours each grant lasts from now on, by the database. */
async function grantsOf({ file }: IdentityServer): Promise<number[]> {
  const select = "SELECT expires_ms FROM identity_record WHERE model = 'Grant' ORDER BY expires_ms";
  const rows = await postgres.ask(file, select);
  return rows.map((row) => Math.round((Number(row['expires_ms']) - Date.now()) / HOUR));
}

describe.each(postgres.engines)('on %s', (_, newDatabase) => {
  const start = async (options: { accessTokenTtl?: number } = {}): Promise<IdentityServer> =>
    startIdentity({ ...options, database: await newDatabase() });

  test('approvals whose codes are never redeemed leave nothing behind (THREATS.md 89)', async () => {
    const server = await start();
    for (let time = 0; time < 5; time += 1) {
      await approve(await startLogin(server), 'lead', new Browser(server));
    }
    const { refresh_token } = await logIn(server);
    expect(await grantsOf(server)).toEqual([0, 0, 0, 0, 0, (30 * DAY) / HOUR]);
    server.advance(2 * HOUR);
    await startLogin(server);
    expect(await grantsOf(server)).toEqual([(30 * DAY) / HOUR]);
    expect(answer(await refresh(server, refresh_token))).toBe('200');
  });

  test('a grant lasts as long as the access token where there is no refresh token', async () => {
    const server = await start({ accessTokenTtl: (6 * HOUR) / 1000 });
    const login = await startLogin(server, 'openid projects');
    await approve(login, 'lead', new Browser(server));
    const { access_token, refresh_token } = tokensIn(await poll(server, login));
    expect(refresh_token).toBeUndefined();
    expect(await grantsOf(server)).toEqual([6]);
    server.advance(5 * HOUR);
    await startLogin(server);
    const headers = { authorization: `Bearer ${access_token}` };
    expect((await send(server, 'GET', LINKS, { headers })).status).toBe(200);
  });

  test('each refresh prolongs it', async () => {
    const server = await start();
    const { refresh_token } = await logIn(server);
    await expireIn(server, HOUR);
    expect(await grantsOf(server)).toEqual([1]);
    const next = refreshTokenIn(await refresh(server, refresh_token));
    expect(await grantsOf(server)).toEqual([(30 * DAY) / HOUR]);
    expect(answer(await refresh(server, next))).toBe('200');
  });
});

/** Makes every grant end so many milliseconds from now. */
async function expireIn({ file }: IdentityServer, milliseconds: number): Promise<void> {
  const update = `UPDATE identity_record SET expires_ms = ${Date.now() + milliseconds} WHERE model = 'Grant'`;
  await postgres.ask(file, update);
}
