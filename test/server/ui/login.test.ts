import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { UI_CLIENT_ID } from '../../../src/server/identity/user-token.ts';
import { cookieName } from '../../../src/server/ui/sessions.ts';
import { Browser, type IdentityServer, send, startIdentity } from '../../fixtures/identity.ts';
import {
  approvePageLogin,
  asPage,
  beginPageLogin,
  copyBrowser,
  endPageLogin,
  locationOf,
  logInToPage,
} from '../../fixtures/page.ts';

const server = await startIdentity();
const cookie = cookieName(server.base);

const sessionOf = async (browser: Browser) => JSON.parse((await asPage(browser, 'GET', '/api/session')).text);
const nobody = { user: null, experiments: [] };

/** A booking as the page asks for it, as a user in their experiment. */
async function book(browser: Browser, headers: Readonly<Record<string, string>> = {}) {
  const [{ id }] = (await sessionOf(browser)).experiments;
  return asPage(browser, 'POST', '/api/connectivity?start_now=true', {
    headers: { 'slices-experiment': id, ...headers },
    body: {
      site1: 'be-gent1',
      site2: 'pl-poznan1',
      bandwidth: '100',
      start_date: null,
      end_date: new Date(Date.now() + 3_600_000).toISOString(),
      tokens: [],
    },
  });
}

async function loggedIn(user: string, at: IdentityServer | Browser['target'] = server): Promise<Browser> {
  const browser = new Browser(at);
  await logInToPage(browser, user);
  return browser;
}

const lead = await loggedIn('lead');

describe('login, book, extend, delete, logout', () => {
  test('nothing but the listed requests is passed on', async () => {
    for (const request of [
      'GET /api/connectivity/x/y',
      'PATCH /api/connectivity',
      'GET /api/../portal/sessions',
      'GET /api/sessions',
      'POST /api/links',
    ]) {
      const [method = '', path = ''] = request.split(' ');
      expect((await asPage(lead, method, path)).status, request).toBeGreaterThanOrEqual(400);
    }
  });

  test('a list in a query is passed on', async () => {
    const path = '/api/links/use?points=1&link=be-gent1,pl-poznan1&link=be-gent1,fr-lille';
    expect(JSON.parse((await asPage(lead, 'GET', path)).text).items).toHaveLength(2);
  });

  test('a token that comes from outside is not passed on', async () => {
    const headers = { authorization: 'Bearer made.up.token', 'slices-experiment-token': 'made.up.token' };
    expect((await asPage(lead, 'GET', '/api/links', { headers })).status).toBe(200);
    expect((await asPage(new Browser(server), 'GET', '/api/links', { headers })).status).toBe(403);
  });
});

test('a dry run that is refused is answered 200 with its problem; what is sent to be done is 422', async () => {
  const [{ id }] = (await sessionOf(lead)).experiments;
  const ask = (method: string, path: string, body: object) =>
    asPage(lead, method, `/api/connectivity${path}`, { headers: { 'slices-experiment': id }, body });
  const [start_date, end_date] = [1, 2].map((hour) => new Date(Date.now() + hour * 3_600_000).toISOString());
  const asked = {
    site1: 'be-gent1',
    site2: 'pl-poznan1',
    bandwidth: '100',
    start_date,
    end_date,
    tokens: [],
  };
  const booked = await ask('POST', '', asked);
  expect(booked.status).toBe(201);
  const path = `/${JSON.parse(booked.text).id}`;
  for (const [method, at, body] of [
    ['POST', '', { ...asked, bandwidth: '999999' }],
    ['PUT', path, { bandwidth: '999999', tokens: [] }],
  ] as const) {
    const refused = await ask(method, at, body);
    expect(refused.status).toBe(422);
    const tried = await ask(method, `${at}?dry_run=true`, body);
    expect([tried.status, JSON.parse(tried.text)]).toEqual([
      200,
      { ok: false, problem: JSON.parse(refused.text) },
    ]);
    const accepted = await ask(method, `${at}?dry_run=true`, { ...body, bandwidth: '1' });
    expect([accepted.status, JSON.parse(accepted.text)]).toMatchObject([200, { bandwidth: 1 }]);
  }
  expect((await ask('PUT', '/con_none?dry_run=true', { bandwidth: '1', tokens: [] })).status).toBe(404);
  expect((await ask('DELETE', path, {})).status).toBe(204);
});

describe('its cookie', () => {
  test('is of this host alone, over TLS, no script reads it, and it is half of the secret', async () => {
    const browser = new Browser(server);
    await beginPageLogin(browser);
    expect(browser.reply.headers.getSetCookie()).toEqual([]);
    const ended = await logInToPage(browser);
    expect(ended.headers.getSetCookie()).toEqual([
      expect.stringMatching(new RegExp(`^${cookie}=[\\w-]{43}; Path=/; HttpOnly; Secure; SameSite=Strict$`)),
    ]);
    expect(browser.storage.get('session')).toMatch(/^[\w-]{43}$/);
    expect(ended.text).not.toContain(browser.cookies.get(cookie));
    expect(ended.headers.get('cache-control')).toBe('no-store');
  });

  test('alone reads nothing, does nothing and ends nothing; the other half alone neither', async () => {
    const { experiments } = await sessionOf(lead);
    for (const half of ['cookies', 'storage'] as const) {
      const thief = new Browser(server);
      for (const [name, value] of lead[half]) thief[half].set(name, value);
      expect(await sessionOf(thief)).toEqual(nobody);
      const headers = { 'slices-experiment': experiments[0].id };
      for (const path of ['/api/links', '/api/connectivity']) {
        expect((await asPage(thief, 'GET', path, { headers })).status).toBe(403);
      }
      expect((await asPage(thief, 'POST', '/api/connectivity', { headers, body: {} })).status).toBe(403);
      expect((await asPage(thief, 'POST', '/logout')).status).toBe(204);
    }
    expect(await sessionOf(lead)).toMatchObject({ user: { name: 'lead' } });
  });

  test('of another base path is another', () => {
    expect(cookie).toMatch(/^__Host-/);
    expect(cookieName(`${server.base}/lab`)).not.toBe(cookie);
  });
});

describe('a foreign page', () => {
  const FOREIGN: Record<string, string>[] = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
  ];
  const changes: Record<string, string>[] = [
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': '' },
    { 'x-slices-conn': '' },
    { 'x-slices-conn': 'curl' },
  ];

  test.each([...FOREIGN, ...changes])(
    'changes nothing with %o: no booking, login or logout',
    async (headers) => {
      const refused = [await book(lead, headers), await asPage(lead, 'POST', '/logout', { headers })];
      for (const path of ['/login', '/session?code=x&state=y']) {
        refused.push(await asPage(new Browser(server), 'POST', path, { headers }));
      }
      for (const { status, text } of refused)
        expect([status, JSON.parse(text).code]).toEqual([403, 'cross_site']);
      expect(await sessionOf(lead)).toMatchObject({ user: { name: 'lead' } });
    },
  );

  test.each(FOREIGN)('that reads %o gets nothing', async (headers) => {
    for (const path of ['/api/session', '/api/network', '/api/links']) {
      const refused = await asPage(lead, 'GET', path, { headers });
      expect([refused.status, refused.headers.get('cross-origin-resource-policy')]).toEqual([
        403,
        'same-origin',
      ]);
      expect([...refused.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
    }
  });
});

describe('a login by somebody else', () => {
  test('a code that was injected into one’s own login is refused', async () => {
    const attacker = new URL(await approvePageLogin(new Browser(server), 'admin'));
    const victim = new Browser(server);
    const own = new URL(await approvePageLogin(victim, 'lead'));
    own.searchParams.set('code', attacker.searchParams.get('code') ?? '');
    expect((await endPageLogin(victim, own.href)).status).toBe(403);
    expect(await sessionOf(victim)).toEqual(nobody);
  });

  test('a login is ended once, and does not keep for long', async () => {
    const browser = new Browser(server);
    const back = await approvePageLogin(browser, 'lead');
    const copy = new Browser(server);
    copyBrowser(browser, copy);
    expect((await endPageLogin(browser, back)).status).toBe(200);
    expect((await endPageLogin(copy, back)).status).toBe(403);
    // The code was used twice: the login that it has made is over too.
    expect(await sessionOf(browser)).toEqual(nobody);
    const late = new Browser(server);
    const end = new URL(await approvePageLogin(late, 'lead'));
    const [time = '', random = ''] = (late.storage.get('login') ?? '').split('.');
    for (const aged of [601_000, -1000]) {
      const begun = `${(Number.parseInt(time, 36) - aged).toString(36)}.${random}`;
      late.storage.set('login', begun);
      // The state that belongs to it: its age is all that is wrong.
      const state = createHmac('sha256', begun).update(`state ${server.base}`).digest('base64url');
      end.searchParams.set('state', state);
      const refused = await endPageLogin(late, end.href);
      expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('10 minutes')]);
    }
  });

  test('a second login in one browser ends the first session', async () => {
    const browser = await loggedIn('lead');
    const first = new Browser(server);
    copyBrowser(browser, first);
    await logInToPage(browser, 'viewer');
    expect(await sessionOf(browser)).toMatchObject({ user: { name: 'viewer' } });
    expect(await sessionOf(first)).toEqual(nobody);
  });
});

describe('the page of the identity provider', () => {
  const started = async (changes: Readonly<Record<string, string | null>>) => {
    const address = new URL(await beginPageLogin(new Browser(server)));
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) address.searchParams.delete(name);
      else address.searchParams.set(name, value);
    }
    return address.href;
  };

  test.each([
    [{ redirect_uri: 'https://evil.example/' }],
    [{ redirect_uri: `${server.base}/ui/callback/../../elsewhere` }],
    [{ client_id: 'slices-conn' }],
  ])('is no open redirect: %o', async (changes) => {
    const reply = await send(server, 'GET', await started(changes));
    expect([reply.status, reply.headers.get('location')]).toEqual([400, null]);
  });

  test.each([
    [{ code_challenge: null }],
    [{ code_challenge_method: 'plain' }],
    [{ response_type: 'token' }],
    [{ nonce: null }],
    [{ state: '' }],
  ])('asks nobody for a login without PKCE, state and nonce: %o', async (changes) => {
    const location = new URL(locationOf(await send(server, 'GET', await started(changes))));
    expect(location.href.startsWith(`${server.base}/ui/callback?`)).toBe(true);
    expect(location.searchParams.get('error')).toMatch(/^invalid_request$|^unsupported_response_type$/);
  });

  test('takes no choice from a foreign page', async () => {
    for (const headers of [{}, { origin: 'https://evil.example' }, { origin: 'null' }]) {
      const browser = new Browser(server);
      await browser.open(await started({}));
      const user = browser.people.ids.get('lead') ?? '';
      expect((await browser.submit({ user, action: 'approve' }, headers)).status).toBe(400);
    }
  });

  test('may be left: the login was cancelled', async () => {
    const browser = new Browser(server);
    await browser.open(await beginPageLogin(browser));
    const back = locationOf(await browser.submit({ action: 'deny' }));
    const refused = await endPageLogin(browser, back);
    expect([refused.status, refused.text]).toEqual([
      403,
      expect.stringContaining('The login was cancelled.'),
    ]);
  });
});

describe('a session', () => {
  test('stolen secret after logout opens nothing', async () => {
    const browser = await loggedIn('lead');
    const thief = new Browser(server);
    copyBrowser(browser, thief);
    expect(await sessionOf(thief)).toMatchObject({ user: { name: 'lead' } });
    expect((await asPage(browser, 'POST', '/logout')).status).toBe(204);
    expect(await sessionOf(thief)).toEqual(nobody);
    expect((await asPage(thief, 'GET', '/api/links')).status).toBe(403);
  });

  test('is listed among the user’s own, and ends when it is revoked there, and with a logout', async () => {
    const before = new Set((await sessionsOf(await loggedIn('viewer'))).map(({ id }) => id));
    const browser = await loggedIn('viewer');
    const [own, ...others] = (await sessionsOf(browser)).filter(({ id }) => !before.has(id));
    expect([own, others]).toMatchObject([{ client_id: UI_CLIENT_ID }, []]);
    const headers = { authorization: `Bearer ${await server.server.signIn('viewer')}` };
    const path = `/portal/apis/v1alpha1/sessions/${own?.id}`;
    expect((await send(server, 'DELETE', path, { headers })).status).toBe(204);
    expect(await sessionOf(browser)).toEqual(nobody);
    const last = await loggedIn('viewer');
    expect((await asPage(last, 'POST', '/logout')).status).toBe(204);
    expect(await sessionsOf(await loggedIn('viewer'))).toHaveLength(before.size + 1);
  });

  async function sessionsOf(browser: Browser): Promise<{ id: string; client_id: string }[]> {
    const { user } = await sessionOf(browser);
    const headers = { authorization: `Bearer ${await server.server.signIn(user.name)}` };
    return JSON.parse((await send(server, 'GET', '/portal/apis/v1alpha1/sessions', { headers })).text).items;
  }
});
