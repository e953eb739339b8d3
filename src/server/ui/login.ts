import { createHmac, randomBytes } from 'node:crypto';
import { Hono } from 'hono';
import { isProtected } from '../../contract/addresses.ts';
import { isWithin } from '../../contract/instants.ts';
import { jsonReply } from '../json-reply.ts';
import { sameSecret } from '../same-secret.ts';
import type { Site } from './page.ts';
import { LoginRefused, type LoginSecrets, type PageClient, type PageTokens } from './provider-client.ts';
import { cookieName, type PageSessions } from './sessions.ts';

/** Options of {@link createLogin}. */
export interface LoginOptions {
  site: Site;
  client: PageClient;
  sessions: PageSessions;
  /** Checks that the services here accept an access token. @throws ProblemError that says why they don't */
  accept: (access: string) => Promise<unknown>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** The header with what the page was given at the start of a login. */
const LOGIN_HEADER = 'Slices-Login';

/**
 * Whether browsers keep these cookies for an address: over TLS, and on this machine. They take no cookie with `Secure` over
 * plain http from elsewhere.
 */
export function cookiesWork(baseUrl: string): boolean {
  return isProtected(new URL(baseUrl));
}

/** How long a login may take, in milliseconds. */
const LOGIN_TIME_MS = 600_000;

/**
 * The login of the page, which asks for its parts itself: `/ui/login` says where to go at the identity provider,
 * `/ui/session` redeems the code that the browser came back with, `/ui/logout` ends the session.
 *
 * State, nonce and PKCE's verifier are derived from a random text, which the page keeps in its tab (sessionStorage) until it
 * comes back. So a login is ended only in the tab that started it. A cookie would not do: another server on this host could
 * read it, log in as itself with the same state, and send the browser back here; or plant its own. Nothing is stored for
 * logins that are never ended.
 *
 * The session's cookie is SameSite=Strict: no other site's page can use it.
 */
export function createLogin({ site, client, sessions, accept, now }: LoginOptions): Hono {
  const name = cookieName(site.baseUrl);
  const app = new Hono({ strict: false });

  /** @param begun a time in base 36 and a random text */
  function secretsOf(begun: string): LoginSecrets {
    const derive = (name: string): string =>
      createHmac('sha256', begun).update(`${name} ${site.baseUrl}`).digest('base64url');
    return { state: derive('state'), nonce: derive('nonce'), verifier: derive('verifier') };
  }

  /** The login that this tab has begun, if it has come back in time. */
  function begunIn(begun: string): LoginSecrets | undefined {
    const [, time = ''] = /^([0-9a-z]{1,11})\.[\w-]{43}$/.exec(begun) ?? [];
    return isWithin(Number.parseInt(time, 36), LOGIN_TIME_MS, now()) ? secretsOf(begun) : undefined;
  }

  app.post('/login', async () => {
    const begun = `${now().toString(36)}.${randomBytes(32).toString('base64url')}`;
    const { href } = await client.loginAddress(secretsOf(begun));
    return jsonReply({ address: href, begun });
  });

  app.post('/session', async ({ req }) => {
    const secrets = begunIn(req.header(LOGIN_HEADER) ?? '');
    const { search, searchParams } = new URL(req.url);
    if (!secrets || !sameSecret(searchParams.get('state') ?? '', secrets.state)) {
      return refusedHere('login_refused', 'This tab has not started it, or more than 10 minutes ago.');
    }
    let tokens: PageTokens;
    try {
      tokens = await client.redeem(search, secrets);
    } catch (error) {
      if (error instanceof LoginRefused) return refusedHere('login_refused', error.message);
      throw error;
    }
    await accept(tokens.access).catch(async (error: unknown) => {
      await client.revoke(tokens);
      throw error;
    });
    await sessions.end(req.raw);
    const { cookie, stored } = await sessions.start(tokens);
    return jsonReply({ session: stored }, { headers: { 'set-cookie': setCookie(name, cookie) } });
  });

  app.post('/logout', async ({ req }) => {
    await sessions.end(req.raw);
    return new Response(null, { status: 204, headers: { 'set-cookie': setCookie(name, '', 0) } });
  });
  return app;
}

/** Refuses what the page asks for. @param code the page's alone: the API has no such refusal */
export function refusedHere(code: 'cross_site' | 'login_refused', msg: string): Response {
  return jsonReply({ code, detail: [{ loc: [], msg, type: 'NotValid' }] }, { status: 403 });
}

/** A cookie of this host alone, which no script can read. @param maxAge seconds; default: until the browser is closed */
function setCookie(name: string, value: string, maxAge?: number): string {
  const age = maxAge === undefined ? '' : `; Max-Age=${maxAge}`;
  return `${name}=${value}; Path=/; HttpOnly; Secure; SameSite=Strict${age}`;
}
