import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { DeviceCode, Provider } from 'oidc-provider';
import { refusal } from '../problem-error.ts';
import { type Approval, grantedScopes, SCOPE_MEANING } from './approval.ts';
import { readForm, singleParameters } from './form.ts';
import { isFromElsewhere } from './from-elsewhere.ts';
import { closingPage, codePage, confirmationPage, type FormContext, PAGE_HEADERS } from './pages.ts';
import type { Throttle } from './throttle.ts';
import type { Person } from './user-token.ts';

/** What the device page needs. */
export interface DevicePageOptions {
  provider: Provider;
  approval: Approval;
  throttle: Throttle;
  people: () => Promise<readonly Person[]>;
  /** `{auth_url}`. */
  issuer: string;
  /** Binds a form to the browser that it was shown in. */
  secret: Uint8Array;
}

/** Answers the device page. `address` is the browser's. */
export type DevicePage = (request: Request, address: string) => Promise<Response>;

/** A browser as the cookie knows it: a random name, and who logged in last. */
interface Browser {
  session: string;
  lastUser: string | undefined;
  /** Whether the cookie came with the request. */
  known: boolean;
}

/** What became of a code that was entered. */
type Found =
  | { state: 'pending'; code: DeviceCode }
  | { state: 'unknown' | 'expired' | 'used' }
  | { state: 'throttled'; retryAfter: number };

/** The most of a code that comes with an address is shown again, in characters. */
const MAX_ENTERED = 20;

const SAYS = {
  unknown: 'There is no such code. Compare it with the one in your terminal.',
  expired: 'This code has expired. Run slices-conn login again.',
  used: 'This code was used already. Run slices-conn login again.',
} as const;

/**
 * The page on which a person enters or confirms the code, chooses the user, and lets the client in or not (RFC 8628
 * §3.3). Every confirmation names client, scopes and code and lets the user be changed, even when the code came with
 * the address (§5.4). It works without JavaScript.
 */
export function createDevicePage(options: DevicePageOptions): DevicePage {
  const { provider, approval, throttle, issuer, secret } = options;
  const { origin, pathname, port, protocol } = new URL(`${issuer}/device`);
  // Cookies know no ports: two servers on one machine would overwrite each other's.
  const cookieName = `slices-conn-device-${port || 'default'}`;

  const csrfFor = ({ session }: Browser): string =>
    createHmac('sha256', secret).update(session).digest('base64url');

  function browserOf(request: Request): Browser {
    const cookies = (request.headers.get('cookie') ?? '').split(/; */);
    const value = cookies.find((cookie) => cookie.startsWith(`${cookieName}=`))?.slice(cookieName.length + 1);
    const [, session, lastUser] = /^([\w-]{43})(?:\.([\w-]{1,512}))?$/.exec(value ?? '') ?? [];
    return session === undefined
      ? { session: randomBytes(32).toString('base64url'), lastUser: undefined, known: false }
      : { session, lastUser: lastUser && Buffer.from(lastUser, 'base64url').toString(), known: true };
  }

  function html(
    browser: Browser,
    status: number,
    body: string,
    headers: Record<string, string> = {},
  ): Response {
    const { session, lastUser } = browser;
    // A name may hold what a cookie can't.
    const name = lastUser === undefined ? '' : `.${Buffer.from(lastUser).toString('base64url')}`;
    const value = `${session}${name}`;
    const secure = protocol === 'https:' ? '; Secure' : '';
    const cookie = `${cookieName}=${value}; Path=${pathname}; HttpOnly; SameSite=Lax${secure}`;
    return new Response(body, { status, headers: { ...PAGE_HEADERS, ...headers, 'set-cookie': cookie } });
  }

  async function find(entered: string, browser: Browser, address: string): Promise<Found> {
    const attempt = await throttle(browser.session, address);
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

  async function confirmation(form: FormContext, code: DeviceCode, browser: Browser): Promise<string> {
    const client = await provider.Client.find(String(code.clientId));
    const people = await options.people();
    return confirmationPage(form, {
      client: client?.clientName ?? String(code.clientId),
      userCode: shown(code),
      address: String(code.deviceInfo?.['ip'] ?? 'an unknown address'),
      scopes: grantedScopes(code).map((name) => ({ name, meaning: SCOPE_MEANING[name] ?? name })),
      people,
      chosen: people.find(({ name }) => name === browser.lastUser)?.id,
    });
  }

  async function decide(action: string, code: DeviceCode, parameters: URLSearchParams, browser: Browser) {
    if (action === 'deny') {
      const denied = await approval.deny(code);
      return denied && html(browser, 200, closingPage('Login denied', 'Nobody was logged in.'));
    }
    const people = await options.people();
    const person = people.find(({ id }) => id === parameters.get('user'));
    if (action !== 'approve' || !person) throw refusal('request_invalid', 'There is no such choice.');
    const approved = await approval.approve(code, person);
    const text = `The terminal with the code ${shown(code)} is logged in as ${person.name}.`;
    return (
      approved && html({ ...browser, lastUser: person.name }, 200, closingPage('You are logged in', text))
    );
  }

  return async (request, address) => {
    const browser = browserOf(request);
    const form = { action: pathname, csrf: csrfFor(browser) };
    const sent = request.method === 'POST';
    const parameters = sent ? await readForm(request) : singleParameters(new URL(request.url).searchParams);
    if (sent) {
      const from = request.headers.get('origin') ?? origin;
      if (from !== origin || !browser.known || !same(parameters.get('csrf') ?? '', form.csrf)) {
        return html(browser, 403, codePage(form, { problem: 'The page was too old. Enter the code again.' }));
      }
    }
    const entered = parameters.get('user_code') ?? '';
    if (entered.trim() === '') return html(browser, 200, codePage(form));
    if (!sent && isFromElsewhere((name) => request.headers.get(name), origin)) {
      // Looked up, it would be a guess: any page could use up the guesses of its visitor's address (HOSTILE.md 58).
      return html(browser, 200, codePage(form, { code: entered.slice(0, MAX_ENTERED) }));
    }
    const found = await find(entered, browser, address);
    if (found.state === 'throttled') {
      const retryAfter = { 'retry-after': String(found.retryAfter) };
      const minutes = Math.ceil(found.retryAfter / 60);
      const text = `Too many wrong codes. Try again in ${minutes} minute${minutes === 1 ? '' : 's'}.`;
      return html(browser, 429, codePage(form, { problem: text }), retryAfter);
    }
    if (found.state !== 'pending') return html(browser, 400, codePage(form, { problem: SAYS[found.state] }));
    const action = sent ? parameters.get('action') : null;
    if (action === null) return html(browser, 200, await confirmation(form, found.code, browser));
    const decided = await decide(action, found.code, parameters, browser);
    return decided || html(browser, 400, codePage(form, { problem: SAYS.used }));
  };
}

function shown({ userCode }: DeviceCode): string {
  const code = userCode ?? '';
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}

function same(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
