import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { getCookie } from 'hono/cookie';
import { html } from 'hono/html';
import { isProtected } from '../../contract/loopback.ts';
import { PROBLEM_STATUS } from '../../contract/problems.ts';
import { ProblemError } from '../problem-error.ts';
import { isCrossSite } from '../request-form.ts';
import { PAGE_HEADERS, page, pageReply, type Site } from './page.ts';
import { LoginRefused, type LoginSecrets, type PageClient, type PageTokens } from './provider-client.ts';
import type { PageSessions } from './sessions.ts';

/** Options of {@link createLogin}. */
export interface LoginOptions {
  site: Site;
  client: PageClient;
  sessions: PageSessions;
  /** Checks that the services here accept an access token. @throws ProblemError that says why they don't */
  accept: (tokens: PageTokens) => Promise<unknown>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** The names of the page's cookies. Their prefix makes browsers accept them from this very host only, and over TLS only. */
export interface CookieNames {
  session: string;
  /** For the minutes of a login. */
  login: string;
}

/**
 * Cookies know neither ports nor, with this prefix, paths: their names hold a part of the base address's hash, so that two
 * servers at one host don't overwrite each other's.
 */
export function cookieNames(baseUrl: string): CookieNames {
  const part = createHash('sha256').update(baseUrl).digest('hex').slice(0, 12);
  return { session: `__Host-slices-conn-${part}`, login: `__Host-slices-conn-login-${part}` };
}

/**
 * Whether browsers keep these cookies for an address: over TLS, and on this machine. They take no cookie with `Secure` over
 * plain http from elsewhere.
 */
export function cookiesWork(baseUrl: string): boolean {
  return isProtected(new URL(baseUrl));
}

/** How long a login may take, in milliseconds. */
const LOGIN_TIME = 600_000;

/**
 * The login of the page: `/ui/login` sends the browser to the identity provider, `/ui/callback` takes it back, `/ui/logout`
 * ends the session. State, nonce and PKCE's verifier are derived from a random text in a cookie of the login's own, so that
 * only the browser that started a login can end it; nothing is stored for logins that are never ended.
 *
 * The session's cookie is SameSite=Strict: no other site's page can use it. The login's is Lax, since the provider's page may
 * be of another site. After it the browser gets a page of ours that goes on to the first one: after a redirect from another
 * site the new cookie would not be sent.
 */
export function createLogin({ site, client, sessions, accept, now }: LoginOptions): Hono {
  const names = cookieNames(site.baseUrl);
  const { origin } = new URL(site.baseUrl);
  const first = `${site.baseUrl}/`;
  const app = new Hono({ strict: false });

  /** @param begun a time in base 36 and a random text */
  function secretsOf(begun: string): LoginSecrets {
    const derive = (name: string): string =>
      createHmac('sha256', begun).update(`${name} ${site.baseUrl}`).digest('base64url');
    return { state: derive('state'), nonce: derive('nonce'), verifier: derive('verifier') };
  }

  /** The login that this browser has begun, if it has come back in time. */
  function begunIn(context: Context): LoginSecrets | undefined {
    const begun = getCookie(context, names.login) ?? '';
    const [, time = ''] = /^([0-9a-z]{1,11})\.[\w-]{43}$/.exec(begun) ?? [];
    const age = now() - Number.parseInt(time, 36);
    return age >= 0 && age <= LOGIN_TIME ? secretsOf(begun) : undefined;
  }

  const failed = (why: string, headers = new Headers()): Promise<Response> =>
    pageReply(
      page(
        site,
        'You are not logged in',
        html`<p>${why}</p><p><a href="${first}ui/login">Log in again</a>, or go to <a href="${first}">the first page</a>.</p>`,
      ),
      { status: 403, headers },
    );

  app.get('/login', async ({ req }) => {
    // A login that another page has started is not one that the person wanted.
    if (isCrossSite((name) => req.header(name), origin)) return redirect(first);
    const begun = `${now().toString(36)}.${randomBytes(32).toString('base64url')}`;
    const { href } = await client.loginAddress(secretsOf(begun));
    return redirect(href, cookie(names.login, begun, 'Lax', LOGIN_TIME / 1000));
  });

  app.get('/callback', async (context) => {
    const secrets = begunIn(context);
    const { search, searchParams } = new URL(context.req.url);
    if (!secrets || !same(searchParams.get('state') ?? '', secrets.state)) {
      return failed('This login was not started in this browser, or more than 10 minutes ago.');
    }
    const ended = new Headers({ 'set-cookie': cookie(names.login, '', 'Lax', 0) });
    try {
      const tokens = await client.redeem(search, secrets);
      await accept(tokens).catch(async (error: unknown) => {
        await client.revoke(tokens);
        throw error;
      });
      await endOf(context);
      ended.append('set-cookie', cookie(names.session, await sessions.start(tokens), 'Strict'));
      ended.set('refresh', `0; url=${first}`);
      const here = html`<p>Go on to <a href="${first}">the first page</a>.</p>`;
      return await pageReply(page(site, 'You are logged in', here), { headers: ended });
    } catch (error) {
      const isTold = error instanceof LoginRefused || (error instanceof ProblemError && !isOurs(error));
      if (isTold) return failed(error.message, ended);
      throw error;
    }
  });

  /** Ends the session that a browser has had until now. */
  async function endOf(context: Context): Promise<void> {
    const id = getCookie(context, names.session);
    if (id !== undefined) await sessions.end(id);
  }

  app.post('/logout', async (context) => {
    await endOf(context);
    return new Response(null, {
      status: 204,
      headers: { 'cache-control': 'no-store', 'set-cookie': cookie(names.session, '', 'Strict', 0) },
    });
  });
  return app;
}

/** A cookie of this host alone, which no script can read. @param maxAge seconds; default: until the browser is closed */
function cookie(name: string, value: string, sameSite: 'Lax' | 'Strict', maxAge?: number): string {
  const age = maxAge === undefined ? '' : `; Max-Age=${maxAge}`;
  return `${name}=${value}; Path=/; HttpOnly; Secure; SameSite=${sameSite}${age}`;
}

function redirect(location: string, setCookie?: string): Response {
  return new Response(null, {
    status: 302,
    headers: {
      ...PAGE_HEADERS,
      location,
      ...(setCookie === undefined ? {} : { 'set-cookie': setCookie }),
    },
  });
}

/** Whether a failure is this server's, which says nothing about the login. */
function isOurs({ problems: [{ code }] }: ProblemError): boolean {
  return PROBLEM_STATUS[code] >= 500;
}

function same(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
