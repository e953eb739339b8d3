import { createHmac, randomBytes } from 'node:crypto';
import { html } from 'hono/html';
import { parse, serialize } from 'hono/utils/cookie';
import type { DeviceCode } from 'oidc-provider';
import { CI_CLIENT_ID } from '../../contract/ci-rules.ts';
import { roleAllows } from '../../words/roles.ts';
import { refusal } from '../problem-error.ts';
import { isCrossSite } from '../request-form.ts';
import { sameSecret } from '../same-secret.ts';
import { type Html, pageReply } from '../ui/page.ts';
import { type Approval, grantedScopes, SCOPE_MEANING } from './approval.ts';
import { type AttemptLimit, addressLimits } from './attempt-limits.ts';
import { type FormRequest, formPage, type LoginPage, type LoginPageOptions } from './form-page.ts';
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
import { CI_LIFETIME_DAYS, type Person } from './user-token.ts';

/** Options of {@link createDevicePage}. */
export interface DevicePageOptions extends LoginPageOptions {
  approval: Approval;
  /** Binds a form to the browser that it was shown in. */
  secret: Uint8Array;
}

/** The wrong user codes that are allowed within a window (RFC 8628 §5.1). */
export interface GuessLimits {
  session: number;
  /** Of an address or a /64; those of the blocks around it follow from it, see {@link addressLimits}. */
  address: number;
}

/**
 * There is no limit for all addresses together: one attacker who reached it would keep everyone from logging in. The code is long
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

/** A browser, as its cookie names it. */
interface Browser {
  /** A random name. */
  session: string;
  /** The name of the user who logged in last. */
  lastUser?: string;
  /** Proof of the last decision, which that person made here; see `markOf`. */
  mark?: string;
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

/** The most characters of an entered code that the form shows again. */
const MAX_ENTERED = 20;

/**
 * The page on which a person enters or confirms the code, chooses the user, and approves or denies the login (RFC 8628
 * §3.3). Every confirmation names client, scopes and code and lets the user be changed, even when the code came with
 * the address (§5.4). It works without JavaScript.
 */
export function createDevicePage(options: DevicePageOptions): LoginPage {
  const { issuer, secret, site } = options;
  const { origin, pathname } = new URL(`${issuer}/device`);
  const cookie = browserCookie(issuer);

  return formPage(async (asked) => {
    const { request, address, sent, parameters } = asked;
    const browser = cookie.read(request);
    const csrf = createHmac('sha256', secret).update(browser.session).digest('base64url');
    const form = { site, action: pathname, csrf };
    const show = (status: number, page: Html, headers: Record<string, string> = {}, seen = browser) =>
      pageReply(page, { status, headers: { ...headers, 'set-cookie': cookie.write(seen) } });
    const entered = parameters.get('user_code') ?? '';
    const again = (status: number, problem?: Html, headers: Record<string, string> = {}) =>
      show(status, codePage(form, { code: typed(entered), problem }), headers);
    if (sent && !isOwnForm(asked, browser, { origin, csrf })) return again(403, CODE_PROBLEMS.stale);
    if (entered.trim() === '') return again(200);
    // A lookup would count as a guess: any page could use up the guesses of its visitor's address (THREATS.md 58).
    if (!sent && isCrossSite((name) => request.headers.get(name) ?? undefined, origin)) return again(200);
    const userCode = lettersOf(entered);
    const [action, user] = [sent ? parameters.get('action') : null, parameters.get('user')];
    const before = await decidedBefore(browser, userCode, { action, user }, options);
    if (before) return show(200, before);
    const found = await findCode(userCode, browser, address, options);
    if (found.state === 'throttled') {
      const minutes = Math.ceil(found.retryAfter / 60);
      const problem = html`Too many wrong codes. Try again in ${minutes} minute${minutes === 1 ? '' : 's'}.`;
      return again(429, problem, { 'retry-after': String(found.retryAfter) });
    }
    if (found.state !== 'pending') return again(400, CODE_PROBLEMS[found.state]);
    if (action === null) return show(200, await confirmation(form, found.code, browser, options));
    const decided = await decide(action, found.code, user, options);
    if (!decided) return again(400, CODE_PROBLEMS.used);
    const person = decided === 'denied' ? browser : { ...browser, lastUser: decided.name };
    const last =
      decided === 'denied' ? deniedPage(site) : loggedInPage(site, shown(found.code), decided.name);
    return show(200, last, {}, { ...person, mark: markOf(person, userCode, action, secret) });
  });
}

/** The cookie of a browser: a random name, the user who logged in last, and the mark of the last decision. */
function browserCookie(issuer: string): { read(request: Request): Browser; write(browser: Browser): string } {
  const { pathname, port, protocol } = new URL(`${issuer}/device`);
  // Cookies know no ports: two servers on one machine would overwrite each other's.
  const name = `slices-conn-device-${port || 'default'}`;
  return {
    read(request) {
      const value = parse(request.headers.get('cookie') ?? '', name)[name] ?? '';
      const [, session, lastUser, mark] =
        /^([\w-]{43})(?:\.([\w-]{0,512}))?(?:\.([\w-]{43}))?$/.exec(value) ?? [];
      if (session === undefined) return { session: randomBytes(32).toString('base64url'), known: false };
      return {
        session,
        lastUser: lastUser && Buffer.from(lastUser, 'base64url').toString(),
        mark,
        known: true,
      };
    },
    write({ session, lastUser = '', mark }) {
      // A name may hold characters that a cookie can't.
      const user = Buffer.from(lastUser).toString('base64url');
      const value = [session, ...(user || mark ? [user] : []), ...(mark ? [mark] : [])].join('.');
      return serialize(name, value, {
        path: pathname,
        httpOnly: true,
        sameSite: 'Lax',
        secure: protocol === 'https:',
      });
    },
  };
}

/** Whether a form was shown by this page in the same browser. */
function isOwnForm(
  { request, parameters }: FormRequest,
  browser: Browser,
  { origin, csrf }: { origin: string; csrf: string },
): boolean {
  const from = request.headers.get('origin') ?? origin;
  return from === origin && browser.known && sameSecret(parameters.get('csrf') ?? '', csrf);
}

/** Proves that a code was decided on in this browser, so that a page that is loaded again says the same again. */
function markOf(
  { session, lastUser = '' }: Browser,
  userCode: string,
  action: string,
  secret: Uint8Array,
): string {
  return createHmac('sha256', secret)
    .update([session, userCode, action, lastUser].join(' '))
    .digest('base64url');
}

/** The page of a decision that was made in this browser before; `asked` is the one that is asked for now, if any. */
async function decidedBefore(
  browser: Browser,
  userCode: string,
  asked: { action: string | null; user: string | null },
  { site, users, secret }: DevicePageOptions,
): Promise<Html | undefined> {
  const { mark, lastUser } = browser;
  if (mark === undefined) return undefined;
  const decided = ['approve', 'deny'].find((each) =>
    sameSecret(mark, markOf(browser, userCode, each, secret)),
  );
  if (decided === undefined || (asked.action !== null && asked.action !== decided)) return undefined;
  if (decided === 'deny' || !lastUser) return deniedPage(site);
  const named = asked.action && (await users.all()).find(({ id }) => id === asked.user)?.name;
  return asked.action && named !== lastUser ? undefined : loggedInPage(site, withDashes(userCode), lastUser);
}

async function findCode(
  userCode: string,
  browser: Browser,
  address: string,
  { provider, attempts }: DevicePageOptions,
): Promise<Found> {
  const attempt = await attempts.count(guessLimits(browser.session, address));
  if (!attempt.ok) return { state: 'throttled', retryAfter: attempt.retryAfter };
  if (userCode.length !== CODE_LENGTH) return { state: 'malformed' };
  const code = await provider.DeviceCode.findByUserCode(userCode, { ignoreExpiration: true });
  if (!code) return { state: 'unknown' };
  await attempt.takeBack();
  if (code.isExpired) return { state: 'expired' };
  return code.accountId || code.error || code.consumed ? { state: 'used' } : { state: 'pending', code };
}

async function confirmation(
  form: FormContext,
  code: DeviceCode,
  browser: Browser,
  options: DevicePageOptions,
): Promise<Html> {
  const client = await options.provider.Client.find(String(code.clientId));
  const forMachine = code.clientId === CI_CLIENT_ID;
  const people = await choicesOf(options);
  return confirmationPage(form, {
    client: client?.clientName ?? String(code.clientId),
    machineDays: forMachine ? CI_LIFETIME_DAYS : undefined,
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
async function decide(
  action: string,
  code: DeviceCode,
  user: string | null,
  { approval, users }: DevicePageOptions,
): Promise<Person | 'denied' | undefined> {
  if (action === 'deny') return (await approval.deny(code)) ? 'denied' : undefined;
  const person = (await users.all()).find(({ id }) => id === user);
  if (action !== 'approve' || !person) throw refusal('request_invalid', 'There is no such choice.');
  return (await approval.approve(code, person)) ? person : undefined;
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

/** The entered code as the form shows it again: letters, digits, spaces and dashes. */
function typed(entered: string): string {
  return entered.replace(/[^\p{L}\p{N} -]/gu, '').slice(0, MAX_ENTERED);
}

/** The users of whom a person chooses one, with what each may do. */
export async function choicesOf({ users }: Pick<LoginPageOptions, 'users'>): Promise<Choice[]> {
  return Promise.all(
    (await users.all()).map(async (person) => ({
      ...person,
      may: whatMay(person, await users.experimentsOf(person.id)),
    })),
  );
}

/** The rights of a person, by their roles in experiments, such as `viewer in demo: may look, not book`. */
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
