import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { type Context, Hono } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import { html } from 'hono/html';
import type { DeviceCode, Provider } from 'oidc-provider';
import { roleAllows } from '../../words/roles.ts';
import { problemReply, refusal } from '../problem-error.ts';
import { isCrossSite } from '../request-form.ts';
import { readForm, singleParameters } from '../request-reading.ts';
import { type Html, PAGE_HEADERS, type Site } from '../ui/page.ts';
import { type Approval, grantedScopes, SCOPE_MEANING } from './approval.ts';
import { type AttemptCounter, type AttemptLimit, addressLimits } from './attempt-limits.ts';
import {
  type Choice,
  CODE_PROBLEMS,
  codePage,
  confirmationPage,
  deniedPage,
  type FormContext,
  loggedInPage,
} from './pages.ts';
import { hash } from './records.ts';
import { CI_CLIENT_ID, CI_LIFETIME_DAYS, type Person } from './user-token.ts';

/** Options of {@link createDevicePage}. */
export interface DevicePageOptions {
  provider: Provider;
  approval: Approval;
  attempts: AttemptCounter;
  people: () => Promise<readonly Person[]>;
  /** The experiments that a person is in, with the role. */
  experimentsOf: (person: string) => Promise<readonly { name: string; role: string }[]>;
  site: Site;
  /** `{auth_url}`. */
  issuer: string;
  /** Binds a form to the browser that it was shown in. */
  secret: Uint8Array;
}

/** Answers a request for a page on which people log in. `address` is the browser's. @throws ProblemError for an unreadable form */
export type DevicePage = (request: Request, address: string) => Promise<Response>;

/** How many wrong user codes are allowed within a window (RFC 8628 §5.1). */
export interface GuessLimits {
  session: number;
  /** Of an address or a /64; those of the blocks around it follow from it, see {@link addressLimits}. */
  address: number;
}

/**
 * There is no limit for all addresses together: whoever reached it would keep everyone from logging in. The code is long
 * enough without it. Twelve letters of twenty make 52 bits. A server answers fewer than 10,000 guesses a second, which are
 * 6 million in the ten minutes that a code lives; the chance that they hit one of a hundred open codes is below one in six
 * million.
 */
export const GUESS_LIMITS: GuessLimits = { session: 5, address: 20 };

/**
 * The limits of guesses of user codes: by address with the blocks around it, and by browser session (RFC 8628 §5.1). The
 * address comes first, so that one address can't fill the table with sessions.
 */
export function guessLimits(session: string, address: string, limits = GUESS_LIMITS): AttemptLimit[] {
  return [...addressLimits('address', address, limits.address), [`session ${hash(session)}`, limits.session]];
}

/** What the cookie holds of a browser: a random name, and the user who logged in last. */
interface Browser {
  session: string;
  lastUser: string | undefined;
  /** Proof of the last decision, which that person made here; see `markOf`. */
  mark: string | undefined;
  /** Whether the cookie came with the request. */
  known: boolean;
}

/** The state of a code that was entered. */
type Found =
  | { state: 'pending'; code: DeviceCode }
  | { state: 'malformed' | 'unknown' | 'expired' | 'used' }
  | { state: 'throttled'; retryAfter: number };

/** The form of a user code, each star a letter of twenty that make no words (RFC 8628 §6.1). */
export const CODE_MASK = '****-****-****';

/** Letters of a code. */
const CODE_LENGTH = CODE_MASK.replaceAll('-', '').length;

/** How many characters of a code that was typed, or came with a link, are shown in the form. */
const MAX_ENTERED = 20;

/**
 * The page on which a person enters or confirms the code, chooses the user, and approves or denies the login (RFC 8628
 * §3.3). Every confirmation names client, scopes and code and lets the user be changed, even when the code came with
 * the address (§5.4). It works without JavaScript.
 */
export function createDevicePage(options: DevicePageOptions): DevicePage {
  const { provider, approval, attempts, issuer, secret, site } = options;
  const { origin, pathname, port, protocol } = new URL(`${issuer}/device`);
  // Cookies know no ports: two servers on one machine would overwrite each other's.
  const cookieName = `slices-conn-device-${port || 'default'}`;

  const csrfFor = ({ session }: Browser): string =>
    createHmac('sha256', secret).update(session).digest('base64url');

  function browserOf(context: Context): Browser {
    const value = getCookie(context, cookieName) ?? '';
    const [, session, lastUser, mark] =
      /^([\w-]{43})(?:\.([\w-]{0,512}))?(?:\.([\w-]{43}))?$/.exec(value) ?? [];
    return session === undefined
      ? {
          session: randomBytes(32).toString('base64url'),
          lastUser: undefined,
          mark: undefined,
          known: false,
        }
      : {
          session,
          lastUser: lastUser ? Buffer.from(lastUser, 'base64url').toString() : undefined,
          mark,
          known: true,
        };
  }

  /** Proves that a code was decided on in this browser, so that a page that is loaded again says the same again. */
  const markOf = ({ session, lastUser = '' }: Browser, userCode: string, action: string): string =>
    createHmac('sha256', secret).update([session, userCode, action, lastUser].join(' ')).digest('base64url');

  /** The page of a decision that was made in this browser before. @param action the one that is asked for now, if any */
  async function decidedBefore(
    browser: Browser,
    userCode: string,
    action: string | null,
    user: string | null,
  ) {
    const { mark, lastUser } = browser;
    if (mark === undefined) return undefined;
    const decided = ['approve', 'deny'].find((each) => same(mark, markOf(browser, userCode, each)));
    if (decided === undefined || (action !== null && action !== decided)) return undefined;
    if (decided === 'deny' || lastUser === undefined) return deniedPage(site);
    const asked = action && (await options.people()).find(({ id }) => id === user)?.name;
    return action && asked !== lastUser ? undefined : loggedInPage(site, withDashes(userCode), lastUser);
  }

  /** Answers with a page, and renews the cookie. */
  function show(
    context: Context,
    browser: Browser,
    status: 200 | 400 | 403 | 429,
    page: Html,
    headers: Record<string, string> = {},
  ) {
    const { session, lastUser = '', mark } = browser;
    // A name may hold characters that a cookie can't.
    const name = Buffer.from(lastUser).toString('base64url');
    const value = [session, ...(name || mark ? [name] : []), ...(mark ? [mark] : [])].join('.');
    const secure = protocol === 'https:';
    setCookie(context, cookieName, value, {
      path: pathname,
      httpOnly: true,
      sameSite: 'Lax',
      secure,
    });
    return context.html(page, status, { ...PAGE_HEADERS, ...headers });
  }

  async function find(userCode: string, browser: Browser, address: string): Promise<Found> {
    const attempt = await attempts.count(guessLimits(browser.session, address));
    if (!attempt.ok) return { state: 'throttled', retryAfter: attempt.retryAfter };
    if (userCode.length !== CODE_LENGTH) return { state: 'malformed' };
    const code = await provider.DeviceCode.findByUserCode(userCode, { ignoreExpiration: true });
    if (!code) return { state: 'unknown' };
    await attempt.takeBack();
    if (code.isExpired) return { state: 'expired' };
    return code.accountId || code.error || code.consumed ? { state: 'used' } : { state: 'pending', code };
  }

  async function confirmation(form: FormContext, code: DeviceCode, browser: Browser): Promise<Html> {
    const client = await provider.Client.find(String(code.clientId));
    const forMachine = code.clientId === CI_CLIENT_ID;
    const people = await choicesOf(options);
    return confirmationPage(form, {
      client: client?.clientName ?? String(code.clientId),
      ...(forMachine ? { machineDays: CI_LIFETIME_DAYS } : {}),
      userCode: shown(code),
      address: String(code.deviceInfo?.['ip'] ?? 'an unknown address'),
      // How long a machine's login lasts is said already.
      scopes: grantedScopes(code)
        .filter((name) => !forMachine || name !== 'offline_access')
        .map((name) => ({ name, meaning: SCOPE_MEANING[name] ?? name })),
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
    const form = { site, action: pathname, csrf: csrfFor(browser) };
    const sent = req.method === 'POST';
    const parameters = sent ? await readForm(req.raw) : singleParameters(new URL(req.url).searchParams);
    const entered = parameters.get('user_code') ?? '';
    const again = (status: 200 | 400 | 403 | 429, problem?: Html, headers: Record<string, string> = {}) =>
      show(context, browser, status, codePage(form, { code: typed(entered), problem }), headers);
    if (sent) {
      const from = req.header('origin') ?? origin;
      if (from !== origin || !browser.known || !same(parameters.get('csrf') ?? '', form.csrf)) {
        return again(403, CODE_PROBLEMS.stale);
      }
    }
    if (entered.trim() === '') return again(200);
    // A lookup would count as a guess: any page could use up the guesses of its visitor's address (THREATS.md 58).
    if (!sent && isCrossSite((name) => req.header(name), origin)) return again(200);
    const userCode = lettersOf(entered);
    const action = sent ? parameters.get('action') : null;
    const before = await decidedBefore(browser, userCode, action, parameters.get('user'));
    if (before) return show(context, browser, 200, before);
    const found = await find(userCode, browser, context.env.address);
    if (found.state === 'throttled') {
      const minutes = Math.ceil(found.retryAfter / 60);
      const problem = html`Too many wrong codes. Try again in ${minutes} minute${minutes === 1 ? '' : 's'}.`;
      return again(429, problem, { 'retry-after': String(found.retryAfter) });
    }
    if (found.state !== 'pending') return again(400, CODE_PROBLEMS[found.state]);
    if (action === null) return show(context, browser, 200, await confirmation(form, found.code, browser));
    const decided = await decide(action, found.code, parameters.get('user'));
    if (!decided) return again(400, CODE_PROBLEMS.used);
    const person = decided === 'denied' ? browser : { ...browser, lastUser: decided.name };
    const remembered = { ...person, mark: markOf(person, userCode, action) };
    const last =
      decided === 'denied' ? deniedPage(site) : loggedInPage(site, shown(found.code), decided.name);
    return show(context, remembered, 200, last);
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
  return withDashes(userCode ?? '');
}

function withDashes(userCode: string): string {
  return userCode.match(/.{1,4}/g)?.join('-') ?? '';
}

/** The letters of a code as it was entered, in capitals. */
function lettersOf(entered: string): string {
  return entered.replace(/[a-z]/g, (letter) => letter.toUpperCase()).replace(/[^A-Z]/g, '');
}

/** What was entered, as the form shows it again: letters, digits, spaces and dashes. */
function typed(entered: string): string {
  return entered.replace(/[^\p{L}\p{N} -]/gu, '').slice(0, MAX_ENTERED);
}

/** The users of whom a person chooses one, with what each may do. */
export async function choicesOf({
  people,
  experimentsOf,
}: Pick<DevicePageOptions, 'people' | 'experimentsOf'>): Promise<Choice[]> {
  return Promise.all(
    (await people()).map(async (person) => ({
      ...person,
      may: whatMay(person, await experimentsOf(person.id)),
    })),
  );
}

/** What a person may do, by their roles in experiments, such as `viewer in demo: may look, not book`. */
function whatMay({ name }: Person, experiments: readonly { name: string; role: string }[]): string {
  if (experiments.length === 0) return 'in no experiment';
  return [...Map.groupBy(experiments, ({ role }) => role)]
    .map(([text, those]) => {
      const allowed = roleAllows(text);
      const place = `${text === name ? '' : `${text} `}in ${those.map((each) => each.name).join(', ')}`;
      return allowed === undefined ? place : `${place}: ${allowed}`;
    })
    .join('; ');
}

function same(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
