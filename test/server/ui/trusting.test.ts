import { createHash } from 'node:crypto';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { EVENT_PAUSE } from '../../../src/contract/events.ts';
import { createReferenceServer, type ReferenceServer } from '../../../src/reference-server.ts';
import { cookieName } from '../../../src/server/ui/sessions.ts';
import { booking } from '../../fixtures/service.ts';
import { IDS, keySetOf, makeToken, NOW } from '../../fixtures/tokens.ts';
import { experiment, KEY_SETS, LOGIN, loginKey, PORTAL, portalKey, user } from '../../fixtures/trusting.ts';

const BASE = 'http://offline.localhost';
const CLIENT = 'page-of-ghent';
const CALLBACK = `${BASE}/ui/callback`;
const AUTH = LOGIN.replace(/\/$/, '');
const EXPERIMENTS = `${PORTAL}/apis/experiments/v1alpha1/experiments/`;

const ours = { 'sec-fetch-site': 'same-origin', 'x-slices-conn': 'ui' };
const nobody = { user: null, experiments: [] };
const opened: ReferenceServer[] = [];
afterEach(() => void vi.useRealTimers());
afterAll(async () => {
  for (const server of opened) await server.close();
});

/** How an identity provider and a portal by another hand differ; the provider does not rotate refresh tokens. */
interface Habits {
  token?: () => string;
  /** Answers in place of theirs what it returns. */
  instead?: (url: string) => Promise<Response> | undefined;
}

/** What the provider says about itself. */
const DESCRIPTION = `${AUTH}/.well-known/openid-configuration`;
const described = {
  issuer: LOGIN,
  authorization_endpoint: `${AUTH}/authorize`,
  token_endpoint: `${AUTH}/oauth/token`,
  revocation_endpoint: `${AUTH}/oauth/revoke`,
  id_token_signing_alg_values_supported: ['RS256', 'ES256'],
  jwks_uri: 'https://keys.example.invalid/jwks.json',
};

/** A service that trusts them, and a browser at its page. */
async function world({ token = () => user(), instead = () => undefined }: Habits = {}) {
  const asked: { url: string; form: URLSearchParams }[] = [];
  const logins = new Map<string, URLSearchParams>();
  const portalAsked: string[] = [];
  let descriptions = 0;
  const issued = new Set<string>();
  const accessToken = (): string => {
    const made = token();
    issued.add(`Bearer ${made}`);
    return made;
  };

  function answerToken(form: URLSearchParams): Response {
    if (form.get('grant_type') === 'refresh_token') {
      if (form.get('refresh_token') !== 'refresh-1')
        return Response.json({ error: 'invalid_grant' }, { status: 400 });
      return Response.json({ access_token: accessToken(), token_type: 'bearer', expires_in: 300 });
    }
    const login = logins.get(form.get('code') ?? '');
    logins.delete(form.get('code') ?? '');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (!login || login.get('code_challenge') !== challenge || form.get('redirect_uri') !== CALLBACK) {
      return Response.json({ error: 'invalid_grant' }, { status: 400 });
    }
    const seconds = Math.floor(Date.now() / 1000);
    const idToken = {
      ...{ iss: LOGIN, aud: CLIENT, sub: IDS.user, nonce: login.get('nonce') },
      ...{ iat: seconds, exp: seconds + 60 },
    };
    return Response.json({
      access_token: accessToken(),
      token_type: 'bearer',
      expires_in: 300,
      refresh_token: 'refresh-1',
      id_token: makeToken(loginKey, idToken),
    });
  }

  async function elsewhere(request: Request): Promise<Response> {
    const { url } = request;
    if (url === DESCRIPTION) descriptions += 1;
    const other = instead(url);
    if (other) return other;
    if (url === KEY_SETS[PORTAL]) return Response.json(keySetOf(portalKey));
    if (url === KEY_SETS[LOGIN]) return Response.json(keySetOf(loginKey));
    if (url === DESCRIPTION) return Response.json(described);
    if (url.startsWith(PORTAL)) {
      portalAsked.push(`${request.headers.get('accept')} ${url}`);
      if (!issued.has(request.headers.get('authorization') ?? '')) return new Response(null, { status: 401 });
      if (url === EXPERIMENTS) {
        const demo = { id: IDS.experiment, project_id: IDS.project, name: 'demo', role: 'lead', owner: null };
        return Response.json({ experiments: [demo] });
      }
      if (url === EXPERIMENTS + IDS.experiment) return new Response(experiment());
      return Response.json({ projects: [{ id: IDS.project, name: 'fibre' }, 7, { name: null }] });
    }
    const form = new URLSearchParams(await request.text());
    asked.push({ url, form });
    // As the public client that it is.
    expect([form.get('client_id'), request.headers.has('authorization')]).toEqual([CLIENT, false]);
    if (url === `${AUTH}/oauth/token`) return answerToken(form);
    return new Response(null, { status: url === `${AUTH}/oauth/revoke` ? 200 : 404 });
  }

  let clock = NOW;
  const server = await createReferenceServer({
    baseUrl: BASE,
    trust: { issuers: [LOGIN, PORTAL], audience: 'https://conn.example.org', fetch: elsewhere },
    ui: { clientId: CLIENT },
    now: () => clock,
  });
  opened.push(server);
  const cookies = new Map<string, string>();
  let session = '';
  const secret = () => ({
    ...(session === '' ? {} : { 'slices-session': session }),
    ...(cookies.size === 0 ? {} : { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') }),
  });
  const send = async (method: string, path: string, headers: Record<string, string> = {}, body?: unknown) => {
    const request = new Request(path.startsWith(BASE) ? path : BASE + path, {
      method,
      headers: {
        ...headers,
        ...secret(),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const reply = await server.fetch(request);
    for (const cookie of reply.headers.getSetCookie()) {
      const [name = '', value = ''] = cookie.split(';')[0]?.split('=') ?? [];
      cookies.set(name, value);
    }
    const text = await reply.text();
    return { status: reply.status, headers: reply.headers, text };
  };
  /** The provider's answer to a login that the person grants: where the browser goes on. */
  const granted = (location: string, code = 'code-1'): string => {
    const login = new URL(location).searchParams;
    logins.set(code, login);
    return `${CALLBACK}?${new URLSearchParams({ code, state: login.get('state') ?? '' })}`;
  };
  const begin = async (): Promise<{ address: string; begun: string }> =>
    JSON.parse((await send('POST', '/ui/login', ours)).text);
  const end = async (back: string, begun: string) => {
    const { search } = new URL(back);
    const reply = await send('POST', `/ui/session${search}`, { ...ours, 'slices-login': begun });
    if (reply.status === 200) ({ session } = JSON.parse(reply.text));
    return reply;
  };
  const logIn = async () => {
    const { address, begun } = await begin();
    return end(granted(address), begun);
  };
  const moveTo = (offset: number): void => {
    clock = NOW + offset;
  };
  /** The page's stream of events. */
  const events = () =>
    server.fetch(
      new Request(`${BASE}/ui/api/events?links=true`, {
        headers: { ...secret(), 'slices-experiment': IDS.experiment },
      }),
    );
  return {
    events,
    moveTo,
    descriptions: () => descriptions,
    asked,
    portalAsked,
    send,
    granted,
    begin,
    end,
    logIn,
  };
}

/** A provider whose description is this; its own where there is none. */
const describing = (answer: () => Promise<Response> | undefined): Habits => ({
  instead: (url) => (url === DESCRIPTION ? answer() : undefined),
});

const booked = booking();

describe('the page of a server that trusts an identity provider not built like ours', () => {
  test('logs in there, with PKCE, state and nonce, as its own public client', async () => {
    const { moveTo, asked, portalAsked, send, begin, logIn } = await world();
    const address = new URL((await begin()).address);
    expect(address.origin + address.pathname).toBe(`${AUTH}/authorize`);
    expect(Object.fromEntries(address.searchParams)).toEqual({
      client_id: CLIENT,
      redirect_uri: CALLBACK,
      response_type: 'code',
      scope: 'openid offline_access userinfo projects',
      prompt: 'consent',
      resource: 'https://conn.example.org',
      code_challenge_method: 'S256',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect((await logIn()).status).toBe(200);
    expect(JSON.parse((await send('GET', '/ui/api/session')).text)).toEqual({
      user: { id: IDS.user, name: expect.any(String) },
      experiments: [
        {
          id: IDS.experiment,
          name: 'demo',
          project: { id: IDS.project, name: 'fibre' },
          role: 'lead',
          expires_at: '',
        },
      ],
    });
    const acting = { ...ours, 'slices-experiment': IDS.experiment };
    for (const _ of [1, 2]) {
      expect((await send('POST', '/ui/api/connectivity', acting, booked)).status).toBe(201);
    }
    const fetched = portalAsked.filter((each) => each.startsWith('application/jwt '));
    expect(fetched).toEqual([`application/jwt ${EXPERIMENTS}${IDS.experiment}`]);
    // Its access token is renewed there, with the refresh token that it gave at first.
    moveTo(296_000);
    expect((await send('GET', '/ui/api/links')).status).toBe(200);
    moveTo(592_000);
    expect((await send('GET', '/ui/api/links')).status).toBe(200);
    expect((await send('POST', '/ui/logout', ours)).status).toBe(204);
    expect(asked.map(({ form }) => form.get('grant_type') ?? form.get('token'))).toEqual([
      'authorization_code',
      'refresh_token',
      'refresh_token',
      'refresh-1',
    ]);
    expect(JSON.parse((await send('GET', '/ui/api/session')).text)).toEqual(nobody);
  });

  test('row 140: a stream ends with its session, although its tokens go on', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { events, send, logIn } = await world();
    await logIn();
    const reply = await events();
    expect(reply.headers.get('cache-control')).toBe('no-store, no-transform');
    expect(reply.headers.get('x-accel-buffering')).toBe('no');
    const decoded = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
    /** Reads on until the stream has said so. */
    const until = async (what: string): Promise<void> => {
      for (let said = ''; !said.includes(what); ) {
        const read = await decoded?.read();
        if (!read || read.done) throw new Error(`It ended after ${said}`);
        said += read.value;
      }
    };
    await until('event: cursor');
    const acting = { ...ours, 'slices-experiment': IDS.experiment };
    await send('POST', '/ui/api/connectivity', acting, booked);
    await until('"type":"created"');
    vi.advanceTimersByTime(EVENT_PAUSE);
    await until('event: cursor');
    await send('POST', '/ui/logout', ours);
    vi.advanceTimersByTime(EVENT_PAUSE);
    await expect(until('nothing more')).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('takes no code that is not of this login, and no token that is not for its services', async () => {
    const one = await world();
    const foreign = one.granted((await one.begin()).address);
    expect((await one.end(foreign, '')).status).toBe(403);
    expect((await one.end(foreign, (await one.begin()).begun)).status).toBe(403);
    const other = await world({ token: () => user({ aud: 'another service' }) });
    const refused = await other.logIn();
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('user token')]);
    expect(other.asked.at(-1)?.url).toBe(`${AUTH}/oauth/revoke`);
  });

  test('one request for all visitors asks what the provider says about itself (THREATS.md 94)', async () => {
    const { send, descriptions, moveTo, logIn } = await world();
    const visits = await Promise.all(Array.from({ length: 20 }, () => send('POST', '/ui/login', ours)));
    expect(new Set(visits.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await logIn()).status).toBe(200);
    expect(descriptions()).toBe(1);
    moveTo(599_999);
    await send('POST', '/ui/login', ours);
    expect(descriptions()).toBe(1);
    moveTo(600_000);
    await Promise.all(Array.from({ length: 20 }, () => send('POST', '/ui/login', ours)));
    expect(descriptions()).toBe(2);
  });

  test('a provider that is away is asked every half minute, and what it said is used for a day', async () => {
    let isAway = false;
    const away = () => (isAway ? Promise.resolve(new Response(null, { status: 503 })) : undefined);
    const { send, descriptions, moveTo } = await world(describing(away));
    const visit = async () => (await send('POST', '/ui/login', ours)).status;
    expect(await visit()).toBe(200);
    isAway = true;
    moveTo(3_600_000);
    expect(await Promise.all([visit(), visit(), visit()])).toEqual([200, 200, 200]);
    expect(descriptions()).toBe(2);
    moveTo(3_630_000);
    expect(await visit()).toBe(200);
    expect(descriptions()).toBe(3);
    moveTo(86_400_000);
    expect(await visit()).toBe(503);
    isAway = false;
    expect(await visit()).toBe(503);
    expect(descriptions()).toBe(4);
    moveTo(86_430_000);
    expect(await visit()).toBe(200);
  });

  test.each([{ issuer: 'https://evil.example' }, { token_endpoint: 'https://evil.example/token' }])(
    'logs in nowhere where the provider says %o',
    async (changes) => {
      const { send } = await world(describing(async () => Response.json({ ...described, ...changes })));
      expect((await send('POST', '/ui/login', ours)).status).toBe(503);
    },
  );

  test('does not read without end what a provider answers (THREATS.md 83)', async () => {
    let read = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        read += 65_536;
        controller.enqueue(new Uint8Array(65_536));
      },
    });
    const { send } = await world(describing(async () => new Response(endless)));
    expect((await send('POST', '/ui/login', ours)).status).toBe(503);
    expect(read).toBeLessThan(2_000_000);
  });

  test('does not wait without end for a provider (THREATS.md 83)', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const asked = Promise.withResolvers<void>();
    const never = () => {
      asked.resolve();
      return new Promise<never>(() => undefined);
    };
    const { send } = await world(describing(never));
    const reply = send('POST', '/ui/login', ours);
    await asked.promise;
    vi.advanceTimersByTime(5000);
    expect((await reply).status).toBe(503);
  });

  test('asks the portal once for the token that many requests wait for, and again after a failure (THREATS.md 84)', async () => {
    let isAway = false;
    const { send, logIn, portalAsked } = await world({
      instead: (url) =>
        isAway && url === EXPERIMENTS + IDS.experiment
          ? Promise.resolve(new Response(null, { status: 500 }))
          : undefined,
    });
    await logIn();
    const acting = { ...ours, 'slices-experiment': IDS.experiment };
    const list = async () => (await send('GET', '/ui/api/connectivity', acting)).status;
    const many = () => Promise.all(Array.from({ length: 20 }, list));
    isAway = true;
    expect(new Set(await many())).toEqual(new Set([503]));
    isAway = false;
    expect(new Set(await many())).toEqual(new Set([200]));
    const fetched = portalAsked.filter((each) => each.startsWith('application/jwt '));
    expect(fetched).toHaveLength(1);
  });

  test('is to be read only where it has no client there, or cookies would not be kept', async () => {
    const trust = { issuers: [LOGIN, PORTAL] };
    const servers = await Promise.all([
      createReferenceServer({ baseUrl: BASE, trust }),
      createReferenceServer({ baseUrl: 'http://conn.example.org' }),
    ]);
    for (const server of servers) {
      const base = server.addresses.connectivity;
      const reply = await server.fetch(new Request(`${base}/ui/api/network`));
      expect(await reply.json()).toMatchObject({ login: false });
      for (const path of ['/ui/login', '/ui/callback', '/ui/api/links']) {
        expect((await server.fetch(new Request(base + path))).status).toBe(404);
      }
      const session = await server.fetch(new Request(`${base}/ui/api/session`));
      expect(await session.json()).toEqual(nobody);
      await server.close();
    }
    await expect(createReferenceServer({ ui: { clientId: CLIENT } })).rejects.toThrow(RangeError);
    expect(cookieName(BASE)).toMatch(/^__Host-/);
  });
});
