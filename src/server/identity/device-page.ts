import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import type { DeviceCode, Provider } from 'oidc-provider';
import { addressBlock } from '../client-address.ts';
import { problemReply, refusal } from '../problem-error.ts';
import { isCrossSite } from '../request-form.ts';
import { readForm, singleParameters } from '../request-reading.ts';
import { type Approval, grantedScopes, SCOPE_MEANING } from './approval.ts';
import type { AttemptCounter, AttemptLimit } from './attempt-limits.ts';
import {
  closingPage,
  codePage,
  confirmationPage,
  type FormContext,
  type Html,
  PAGE_HEADERS,
} from './pages.ts';
import { hash } from './records.ts';
import { CI_CLIENT_ID, CI_LIFETIME_DAYS, type Person } from './user-token.ts';

/** Options of {@link createDevicePage}. */
export interface DevicePageOptions {
  provider: Provider;
  approval: Approval;
  attempts: AttemptCounter;
  people: () => Promise<readonly Person[]>;
  /** `{auth_url}`. */
  issuer: string;
  /** Binds a form to the browser that it was shown in. */
  secret: Uint8Array;
}

/** Answers a request for the device page. `address` is the browser's. @throws ProblemError for an unreadable form */
export type DevicePage = (request: Request, address: string) => Promise<Response>;

/** How many wrong user codes are allowed within a window (RFC 8628 §5.1). */
export interface GuessLimits {
  session: number;
  address: number;
  global: number;
}

/**
 * Eight letters of twenty make 34 bits of code. With a thousand guesses in ten minutes, the lifetime of a code, the chance
 * to hit one of a hundred open codes is about one in 250,000.
 */
export const GUESS_LIMITS: GuessLimits = { session: 5, address: 20, global: 1000 };

/**
 * The limits of guesses of user codes: by address (of IPv6 by /64), by browser session and in all (HOSTILE.md 29). The
 * address comes first, so that one address can neither use up the limit for all nor fill the table with sessions.
 */
export function guessLimits(session: string, address: string, limits = GUESS_LIMITS): AttemptLimit[] {
  return [
    [`address ${addressBlock(address)}`, limits.address],
    [`session ${hash(session)}`, limits.session],
    ['all', limits.global],
  ];
}

/** What the cookie holds of a browser: a random name, and the user who logged in last. */
interface Browser {
  session: string;
  lastUser: string | undefined;
  /** Whether the cookie came with the request. */
  known: boolean;
}

/** The state of a code that was entered. */
type Found =
  | { state: 'pending'; code: DeviceCode }
  | { state: 'unknown' | 'expired' | 'used' }
  | { state: 'throttled'; retryAfter: number };

/** How many characters of a code from a link are shown in the form. */
const MAX_ENTERED = 20;

const PROBLEMS = {
  unknown: 'There is no such code. Compare it with the one in your terminal.',
  expired: 'This code has expired. Run slices-conn login again.',
  used: 'This code was used already. Run slices-conn login again.',
} as const;

/**
 * The page on which a person enters or confirms the code, chooses the user, and approves or denies the login (RFC 8628
 * §3.3). Every confirmation names client, scopes and code and lets the user be changed, even when the code came with
 * the address (§5.4). It works without JavaScript.
 */
export function createDevicePage(options: DevicePageOptions): DevicePage {
  const { provider, approval, attempts, issuer, secret } = options;
  const { origin, pathname, port, protocol } = new URL(`${issuer}/device`);
  // Cookies know no ports: two servers on one machine would overwrite each other's.
  const cookieName = `slices-conn-device-${port || 'default'}`;

  const csrfFor = ({ session }: Browser): string =>
    createHmac('sha256', secret).update(session).digest('base64url');

  function browserOf(context: Context): Browser {
    const value = getCookie(context, cookieName) ?? '';
    const [, session, lastUser] = /^([\w-]{43})(?:\.([\w-]{1,512}))?$/.exec(value) ?? [];
    return session === undefined
      ? { session: randomBytes(32).toString('base64url'), lastUser: undefined, known: false }
      : { session, lastUser: lastUser && Buffer.from(lastUser, 'base64url').toString(), known: true };
  }

  /** Answers with a page, and renews the cookie. */
  function show(
    context: Context,
    browser: Browser,
    status: 200 | 400 | 403 | 429,
    page: Html,
    headers: Record<string, string> = {},
  ) {
    const { session, lastUser } = browser;
    // A name may hold characters that a cookie can't.
    const name = lastUser === undefined ? '' : `.${Buffer.from(lastUser).toString('base64url')}`;
    const secure = protocol === 'https:';
    setCookie(context, cookieName, session + name, {
      path: pathname,
      httpOnly: true,
      sameSite: 'Lax',
      secure,
    });
    return context.html(page, status, { ...PAGE_HEADERS, ...headers });
  }

  async function find(entered: string, browser: Browser, address: string): Promise<Found> {
    const attempt = await attempts.count(guessLimits(browser.session, address));
    if (!attempt.ok) return { state: 'throttled', retryAfter: attempt.retryAfter };
    const userCode = entered.replace(/[a-z]/g, (letter) => letter.toUpperCase()).replace(/[^A-Z]/g, '');
    const code =
      userCode.length === 8
        ? await provider.DeviceCode.findByUserCode(userCode, { ignoreExpiration: true })
        : undefined;
    if (!code) return { state: 'unknown' };
    await attempt.takeBack();
    if (code.isExpired) return { state: 'expired' };
    return code.accountId || code.error || code.consumed ? { state: 'used' } : { state: 'pending', code };
  }

  async function confirmation(form: FormContext, code: DeviceCode, browser: Browser): Promise<Html> {
    const client = await provider.Client.find(String(code.clientId));
    const people = await options.people();
    return confirmationPage(form, {
      client: client?.clientName ?? String(code.clientId),
      ...(code.clientId === CI_CLIENT_ID ? { machineDays: CI_LIFETIME_DAYS } : {}),
      userCode: shown(code),
      address: String(code.deviceInfo?.['ip'] ?? 'an unknown address'),
      scopes: grantedScopes(code).map((name) => ({ name, meaning: SCOPE_MEANING[name] ?? name })),
      people,
      chosen: people.find(({ name }) => name === browser.lastUser)?.id,
    });
  }

  /** @returns the user who is logged in now, `denied`, or undefined when the code was decided on before */
  async function decide(action: string, code: DeviceCode, user: string | null) {
    if (action === 'deny') return (await approval.deny(code)) ? 'denied' : undefined;
    const person = (await options.people()).find(({ id }) => id === user);
    if (action !== 'approve' || !person) throw refusal('request_invalid', 'There is no such choice.');
    return (await approval.approve(code, person)) ? person : undefined;
  }

  const app = new Hono<{ Bindings: { address: string } }>();
  app.on(['GET', 'POST'], '*', async (context) => {
    const { req } = context;
    const browser = browserOf(context);
    const form = { action: pathname, csrf: csrfFor(browser) };
    const again = (status: 200 | 400 | 403, problem?: string) =>
      show(context, browser, status, codePage(form, problem === undefined ? {} : { problem }));
    const sent = req.method === 'POST';
    const parameters = sent ? await readForm(req.raw) : singleParameters(new URL(req.url).searchParams);
    if (sent) {
      const from = req.header('origin') ?? origin;
      if (from !== origin || !browser.known || !same(parameters.get('csrf') ?? '', form.csrf)) {
        return again(403, 'The page was too old. Enter the code again.');
      }
    }
    const entered = parameters.get('user_code') ?? '';
    if (entered.trim() === '') return again(200);
    if (!sent && isCrossSite((name) => req.header(name), origin)) {
      // A lookup would count as a guess: any page could use up the guesses of its visitor's address (HOSTILE.md 58).
      return show(context, browser, 200, codePage(form, { code: entered.slice(0, MAX_ENTERED) }));
    }
    const found = await find(entered, browser, context.env.address);
    if (found.state === 'throttled') {
      const minutes = Math.ceil(found.retryAfter / 60);
      const problem = `Too many wrong codes. Try again in ${minutes} minute${minutes === 1 ? '' : 's'}.`;
      const retryAfter = { 'retry-after': String(found.retryAfter) };
      return show(context, browser, 429, codePage(form, { problem }), retryAfter);
    }
    if (found.state !== 'pending') return again(400, PROBLEMS[found.state]);
    const action = sent ? parameters.get('action') : null;
    if (action === null) return show(context, browser, 200, await confirmation(form, found.code, browser));
    const decided = await decide(action, found.code, parameters.get('user'));
    if (!decided) return again(400, PROBLEMS.used);
    if (decided === 'denied') {
      return show(context, browser, 200, closingPage('Login denied', 'Nobody was logged in.'));
    }
    const text = `The terminal with the code ${shown(found.code)} is logged in as ${decided.name}.`;
    return show(context, { ...browser, lastUser: decided.name }, 200, closingPage('You are logged in', text));
  });
  app.notFound(() => {
    const refused = refusal('method_not_allowed', 'This address allows GET, HEAD, POST only.');
    return problemReply(refused, { ...PAGE_HEADERS, allow: 'GET, HEAD, POST' });
  });
  app.onError((error) => {
    throw error;
  });
  return async (request, address) => app.fetch(request, { address });
}

function shown({ userCode }: DeviceCode): string {
  const code = userCode ?? '';
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}

function same(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
