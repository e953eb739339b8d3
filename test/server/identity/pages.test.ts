import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  answer,
  approve,
  Browser,
  PAGE,
  partOf,
  poll,
  send,
  startIdentity,
  startLogin,
  tokensIn,
  type WireReply,
} from '../../fixtures/identity.ts';

afterEach(() => void vi.useRealTimers());

/** For tests that send no wrong code: those are counted. */
const shared = await startIdentity();

/** A server, a pending code, and a browser on its confirmation page. */
async function atConfirmation(server = shared) {
  const login = await startLogin(server);
  const browser = new Browser(server);
  await browser.open(login.verification_uri_complete);
  expect(browser.reply.status).toBe(200);
  return { server, login, browser };
}

/** Checks the headers and the HTML that every page has (THREATS.md 30). */
function expectGuarded({ headers, text }: WireReply): void {
  expect(headers.get('x-frame-options')).toBe('DENY');
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  expect(headers.get('cache-control')).toContain('no-store');
  expect(headers.get('referrer-policy')).toMatch(/^(same-origin|no-referrer|strict-origin)$/);
  expect(headers.get('content-type')).toMatch(/^text\/html; ?charset=utf-8$/i);
  const policy = new Map(
    (headers.get('content-security-policy') ?? '').split(';').map((directive) => {
      const [name = '', ...values] = directive.trim().split(/ +/);
      return [name, values.join(' ')];
    }),
  );
  expect(Object.fromEntries(policy)).toMatchObject({
    'default-src': "'none'",
    'form-action': "'self'",
    'base-uri': "'none'",
    'frame-ancestors': "'none'",
  });
  expect([...policy.values()].join(' ')).not.toMatch(/unsafe|\*/);
  expect(policy.get('script-src') ?? "'none'").toBe("'none'");
  // The policy names the hash of the one style.
  const style = /<style>([\s\S]*?)<\/style>/.exec(text)?.[1] ?? '';
  expect(policy.get('style-src')).toBe(`'sha256-${createHash('sha256').update(style).digest('base64')}'`);
  expect(text).not.toMatch(/<script|\sstyle=|\son\w+=|javascript:|https?:\/\//i);
  const [cookie, ...others] = headers.getSetCookie();
  expect(others).toEqual([]);
  expect(cookie).toMatch(/^slices-conn-device-\d+=[\w-]{43}; Path=\/auth\/device; HttpOnly; SameSite=Lax$/);
}

describe('the confirmation page', () => {
  test('names client, code, scopes and people, even when the code came with the address', async () => {
    const { login, browser } = await atConfirmation();
    const { text } = browser.reply;
    const scopes = ['openid', 'offline_access', 'userinfo', 'projects'];
    for (const due of ['slices-conn', login.user_code, '127.0.0.1', ...scopes]) expect(text).toContain(due);
    expect([...browser.people.ids.keys()]).toEqual(['lead', 'admin', 'member', 'viewer']);
    expect(browser.people.chosen).toEqual(['lead']);
    expect(browser.hidden).toMatchObject({ user_code: login.user_code });
    expect(text).toMatch(/<button type="submit" name="action" value="approve">/);
    expect(text).toMatch(/<button [^>]*name="action" value="deny">/);
    expectGuarded(browser.reply);
  });

  test('names only the requested scopes that are known', async () => {
    const login = await startLogin(shared, 'openid projects <b>bold</b>');
    const { text } = await new Browser(shared).open(login.verification_uri_complete);
    const named = [...text.matchAll(/\(<code>([^<]*)<\/code>\)/g)].map(([, scope]) => scope);
    expect([named, text.includes('<b>')]).toEqual([['openid', 'projects'], false]);
  });

  test('approves nothing when it is only opened', async () => {
    const { server, login, browser } = await atConfirmation();
    const user = browser.people.ids.get('lead') ?? '';
    const address = `${login.verification_uri_complete}&action=approve&user=${user}&csrf=${browser.hidden['csrf']}`;
    expect((await browser.open(address)).status).toBe(200);
    expect((await send(server, 'HEAD', address, { headers: browser.cookieHeader })).status).toBe(200);
    expect(answer(await poll(server, login))).toBe('400 authorization_pending');
  });

  test('lets the user be changed at a second login in one browser', async () => {
    const { server, login, browser } = await atConfirmation();
    await approve(login, 'member', browser);
    const next = await startLogin(server);
    await browser.open(next.verification_uri_complete);
    expect([...browser.people.ids.keys()]).toEqual(['lead', 'admin', 'member', 'viewer']);
    await approve(next, 'viewer', browser);
    // The first session still belongs to the first user.
    for (const [of, due] of [
      [next, 'viewer'],
      [login, 'member'],
    ] as const) {
      const { access_token } = tokensIn(await poll(server, of));
      expect(partOf(access_token, 'payload')['preferred_username']).toBe(due);
    }
  });

  test('logs in nobody unknown, and has exactly two choices', async () => {
    const { server, login, browser } = await atConfirmation();
    const user = browser.people.ids.get('lead') ?? '';
    const wrong: Record<string, string>[] = [
      { action: 'approve' },
      { action: 'approve', user: 'user_127.0.0.1_00000000000000000000000000' },
      { action: 'approve', user: 'lead' },
      { action: 'approve', user: '__proto__' },
      { action: 'APPROVE', user },
    ];
    for (const fields of wrong) {
      await browser.open(login.verification_uri_complete);
      expect((await browser.submit(fields)).status, JSON.stringify(fields)).toBe(400);
    }
    expect(answer(await poll(server, login))).toBe('400 authorization_pending');
  });
});

describe('the confirmation in words', () => {
  test('says what each user may do, where', async () => {
    const { browser } = await atConfirmation();
    const words = [...browser.reply.text.matchAll(/required> (\w+)<small>([^<]*)<\/small>/g)];
    expect(words.map(([, name, may]) => `${name} ${may}`)).toEqual([
      'lead in demo: may book, change and delete',
      'admin in demo: may change and delete, not book',
      'member in demo: may not see its reservations',
      'viewer in demo: may look, not book',
    ]);
  });

  test.each([
    ['slices-conn', 'slices-conn'],
    ['Ghent <testbed>', 'Ghent &lt;testbed&gt;'],
  ])('says who serves it: %s', async (name, shown) => {
    const server = await startIdentity(name === 'slices-conn' ? {} : { name });
    const { text } = await new Browser(server).open(PAGE);
    expect(text).toContain(`<strong>${shown}</strong> at ${new URL(server.base).host}`);
  });
});

const fieldOf = ({ reply }: Browser) => /name="user_code" value="([^"]*)"/.exec(reply.text)?.[1];

test.each([
  ['BBBB-BBBB-BBBB', 'There is no such code', 'BBBB-BBBB-BBBB'],
  ['bcdf ghj', 'A code is twelve letters, such as WDJB-MJHT-QXZP', 'bcdf ghj'],
  ['\u202eBBBB-BBBB-BBBB"><b>', 'A code is twelve letters', 'BBBB-BBBB-BBBBb'],
])('a mistake in a code: %s: said, and what was typed is kept', async (entered, problem, kept) => {
  const browser = new Browser(await startIdentity());
  await browser.open(PAGE);
  expect((await browser.submit({ user_code: entered })).status).toBe(400);
  expect(browser.problem).toContain(problem);
  expect(fieldOf(browser)).toBe(kept);
});

describe('a decision', () => {
  type Forge = (browser: Browser, other: Browser) => Promise<WireReply>;
  const forgeries: Record<string, Forge> = {
    'without a form token': (browser) => sendChoice(browser, { csrf: undefined }),
    'with an invented form token': (browser) => sendChoice(browser, { csrf: 'A'.repeat(43) }),
    'with a form token of other letters': (browser) => sendChoice(browser, { csrf: 'é'.repeat(43) }),
    'with another browser’s form token': (browser, { hidden }) =>
      sendChoice(browser, { csrf: hidden['csrf'] }),
    'without a cookie': (browser) => sendChoice(browser, {}, { cookie: '' }),
    'with another browser’s cookie': (browser, { cookieHeader: { cookie = '' } }) =>
      sendChoice(browser, {}, { cookie }),
    'from a foreign origin': (browser) => sendChoice(browser, {}, { origin: 'http://evil.example' }),
    'from an opaque origin': (browser) => sendChoice(browser, {}, { origin: 'null' }),
    'from another port': (browser) => sendChoice(browser, {}, { origin: 'http://127.0.0.1:1' }),
    'from another scheme': (browser) =>
      sendChoice(browser, {}, { origin: browser.target.base.replace('http:', 'https:') }),
  };

  /** The choice of the person `lead` as the form would send it, but for these changes. */
  async function sendChoice(
    browser: Browser,
    changes: Readonly<Record<string, string | undefined>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<WireReply> {
    const fields = { ...browser.hidden, user: browser.people.ids.get('lead'), action: 'approve', ...changes };
    const body = new URLSearchParams();
    for (const [name, value] of Object.entries(fields)) if (value !== undefined) body.set(name, value);
    const { origin } = new URL(browser.target.base);
    return send(browser.target, 'POST', PAGE, {
      body,
      headers: { origin, ...browser.cookieHeader, ...headers },
    });
  }

  test('that is forged is refused, and the unchanged form still works', async () => {
    const { server, login, browser } = await atConfirmation();
    const other = new Browser(server);
    await other.open(PAGE);
    for (const [how, forge] of Object.entries(forgeries)) {
      expect((await forge(browser, other)).status, how).toBe(403);
    }
    expect(answer(await poll(server, login))).toBe('400 authorization_pending');
    expect(server.log.filter(({ level }) => level === 'error')).toEqual([]);
    expect((await sendChoice(browser, {})).status).toBe(200);
    expect(answer(await poll(server, login))).toBe('200');
  });

  test('without an Origin, as some browsers send it, is accepted, also by another server with the same database', async () => {
    const { server, login, browser } = await atConfirmation();
    const replica = await server.replica();
    const user = browser.people.ids.get('lead') ?? '';
    const body = { ...browser.hidden, user, action: 'approve' };
    expect((await send(replica, 'POST', PAGE, { body, headers: browser.cookieHeader })).status).toBe(200);
    expect(answer(await poll(server, login))).toBe('200');
  });
});

describe('every page', () => {
  test('has its security headers: form, confirmation, result, each refusal', async () => {
    const { server, login, browser } = await atConfirmation(await startIdentity());
    const user = browser.people.ids.get('lead') ?? '';
    const seen: [number, string | undefined][] = [];
    const look = (reply: WireReply): void => {
      expectGuarded(reply);
      seen.push([reply.status, browser.problem]);
    };
    look(await browser.open(PAGE));
    look(await browser.open(`${PAGE}?user_code=`));
    look(await browser.open(login.verification_uri_complete));
    look(await browser.submit({ csrf: 'x', user, action: 'approve' }));
    look(await browser.open(`${PAGE}?user_code=BBBB-BBBB-BBBB`));
    look(await approve(login, 'admin', browser));
    look(await browser.open(login.verification_uri_complete));
    const [late, denied] = [await startLogin(server), await startLogin(server)];
    await browser.open(denied.verification_uri_complete);
    look(await browser.submit({ action: 'deny' }));
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 601_000 });
    look(await browser.open(late.verification_uri_complete));
    for (let turn = 0; turn < 5; turn += 1) await browser.open(`${PAGE}?user_code=BBBB-BBBB-BBBB`);
    look(await browser.open(late.verification_uri_complete));
    const said = (problem = '') => /too old|no such code|used already|expired|Too many/.exec(problem)?.[0];
    expect(seen.map(([status, problem]) => `${status} ${said(problem) ?? ''}`.trim())).toEqual([
      ...['200', '200', '200', '403 too old', '400 no such code'],
      ...['200', '400 used already', '200', '400 expired', '429 Too many'],
    ]);
  });

  test('that refuses a request as a whole can’t be framed or taken for something else', async () => {
    const server = await startIdentity();
    const requests: [number, string, string, Parameters<typeof send>[3]][] = [
      [400, 'GET', `${PAGE}?user_code=a&user_code=b`, {}],
      [405, 'DELETE', PAGE, {}],
      [403, 'POST', PAGE, { headers: { origin: 'http://evil.example' }, body: { user_code: 'x' } }],
      [415, 'POST', PAGE, { headers: { 'content-type': 'application/json' }, body: '{}' }],
    ];
    for (const [due, method, address, request] of requests) {
      const reply = await send(server, method, address, request);
      expect(reply.status).toBe(due);
      expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
      expect(reply.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    }
  });

  test.each(['"><script>alert(1)</script>', "'><img src=x onerror=alert(1)>", '\u202egnp.exe'])(
    'escapes the entered code: %s',
    async (entered) => {
      const browser = new Browser(await startIdentity());
      expect((await browser.open(`${PAGE}?user_code=${encodeURIComponent(entered)}`)).status).toBe(400);
      expectGuarded(browser.reply);
      expect((await browser.submit({ user_code: entered })).status).toBe(400);
      expectGuarded(browser.reply);
    },
  );

  test.each(['陈', 'Ann\r\nSet-Cookie: x=y', '"><img src=x>&amp;'])(
    'escapes a user’s name, and such a user can log in: %j',
    async (name) => {
      const { server, login, browser } = await atConfirmation(await startIdentity());
      const beside = new DatabaseSync(server.file);
      beside.prepare('UPDATE person SET name = ? WHERE name = ?').run(name, 'viewer');
      beside.close();
      const user = browser.people.ids.get('viewer') ?? '';
      await browser.open(login.verification_uri_complete);
      expect(browser.reply.text).not.toContain('<img');
      const reply = await browser.submit({ user, action: 'approve' });
      expect([reply.status, reply.text.includes('<img')]).toEqual([200, false]);
      expect(reply.headers.getSetCookie()).toEqual([
        expect.stringMatching(/^[^;]*; Path=\/auth\/device; HttpOnly; SameSite=Lax$/),
      ]);
      expect(answer(await poll(server, login))).toBe('200');
      // The next login in this browser works too.
      expect((await approve(await startLogin(server), 'lead', browser)).status).toBe(200);
    },
  );
});

describe('the cookie', () => {
  test('that is none of ours is replaced', async () => {
    const name = `slices-conn-device-${shared.port}`;
    for (const value of ['', 'abc', 'A'.repeat(5000), `${'A'.repeat(43)}.<script>`, '__proto__']) {
      const reply = await send(shared, 'GET', PAGE, { headers: { cookie: `a=b; ${name}=${value}; c` } });
      expect(reply.status).toBe(200);
      expectGuarded(reply);
      expect(reply.headers.get('set-cookie')?.startsWith(`${name}=${value};`)).toBe(false);
    }
  });
});
