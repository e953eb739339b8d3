import { createServer } from 'node:http';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import * as v from 'valibot';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createReferenceServer } from '../../../src/reference-server.ts';
import {
  answer,
  approve,
  Browser,
  DEVICE_GRANT,
  logIn,
  type Provider,
  partOf,
  poll,
  post,
  refresh,
  SCOPE,
  send,
  sendRaw,
  startIdentity,
  startLogin,
  tokensIn,
} from '../../fixtures/identity.ts';
import { listenOnLoopback } from '../../fixtures/loopback.ts';

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
