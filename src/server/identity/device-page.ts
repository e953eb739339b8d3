import { randomBytes } from 'node:crypto';
import { html } from 'hono/html';
import { parse, serialize } from 'hono/utils/cookie';
import type { DeviceCode } from 'oidc-provider';
import { CI_CLIENT_ID } from '../../contract/ci-rules.ts';
import { roleAllows } from '../../words/problems.ts';
import { refusal } from '../problem-error.ts';
import { isCrossSite } from '../request-form.ts';
import { sameSecret } from '../same-secret.ts';
import { type Html, pageReply } from '../ui/page.ts';
import { approve, deny, grantedScopes, SCOPE_MEANING } from './approval.ts';
import { type AttemptLimit, addressLimits } from './attempt-limits.ts';
import { formPage, type LoginPageOptions } from './form-page.ts';
import {
  type Choice,
  CODE_PROBLEMS,
  codePage,
  confirmationPage,
  deniedPage,
  type FormContext,
  loggedInPage,
} from './pages.ts';
import type { IdentityAnswer } from './provider-endpoints.ts';
import { hash } from './records.ts';
import { CI_LIFETIME_DAYS, type Person } from './user-token.ts';

/**
 * The wrong user codes that are allowed within a window (RFC 8628 §5.1). The blocks around an address have limits that
 * follow from its own, see {@link addressLimits}.
 *
 * There is no limit for all addresses together: one attacker who reached it would keep everyone from logging in. The code is long
 * enough without it. Twelve letters of twenty make 52 bits. A server answers fewer than 10,000 guesses a second, which are
 * 6 million in the ten minutes that a code lives; the chance that they hit one of a hundred open codes is below one in six
 * million.
 */
export const GUESS_LIMITS = { session: 5, address: 20 };

/**
 * The limits of guesses of user codes: by address with the blocks around it, and by browser session (RFC 8628 §5.1). The
 * address comes first, so that one address can't fill the table with sessions.
 */
export function guessLimits(session: string, address: string, limits = GUESS_LIMITS): AttemptLimit[] {
  return [...addressLimits('address', address, limits.address), [`session ${hash(session)}`, limits.session]];
}

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
export function createDevicePage(options: LoginPageOptions): IdentityAnswer {
  const { issuer, site, provider, count, users } = options;
  const { origin, pathname, port, protocol } = new URL(`${issuer}/device`);
  // Cookies know no ports: two servers on one machine would overwrite each other's.
  const cookie = `slices-conn-device-${port || 'default'}`;

  return formPage(async ({ request, address, sent, parameters }) => {
    const given = parse(request.headers.get('cookie') ?? '', cookie)[cookie] ?? '';
    const isKnown = /^[\w-]{43}$/.test(given);
    const session = isKnown ? given : randomBytes(32).toString('base64url');
    const setCookie = serialize(cookie, session, {
      path: pathname,
      httpOnly: true,
      sameSite: 'Lax',
      secure: protocol === 'https:',
    });
    const form: FormContext = { site, action: pathname, csrf: hash(`form ${session}`) };
    const show = (status: number, page: Html, headers: Record<string, string> = {}) =>
      pageReply(page, { status, headers: { ...headers, 'set-cookie': setCookie } });
    const entered = parameters.get('user_code') ?? '';
    const again = (status: number, problem?: Html, headers: Record<string, string> = {}) =>
      show(status, codePage(form, { code: typed(entered), problem }), headers);

    // Whether the form was shown by this page in the same browser. Some browsers send no Origin.
    const isFromHere = (request.headers.get('origin') ?? origin) === origin;
    const isOwnForm = isFromHere && isKnown && sameSecret(parameters.get('csrf') ?? '', form.csrf);
    if (sent && !isOwnForm) return again(403, CODE_PROBLEMS.stale);
    if (entered.trim() === '') return again(200);
    // A lookup would count as a guess: any page could use up the guesses of its visitor's address (THREATS.md 58).
    if (!sent && isCrossSite((name) => request.headers.get(name), origin)) return again(200);

    const attempt = await count(guessLimits(session, address));
    if (!attempt.ok) {
      const { retryAfter } = attempt;
      const minutes = Math.ceil(retryAfter / 60);
      const problem = html`Too many wrong codes. Try again in ${minutes} minute${minutes === 1 ? '' : 's'}.`;
      return again(429, problem, { 'retry-after': String(retryAfter) });
    }
    const userCode = lettersOf(entered);
    if (userCode.length !== CODE_LENGTH) return again(400, CODE_PROBLEMS.malformed);
    const code = await provider.DeviceCode.findByUserCode(userCode, { ignoreExpiration: true });
    if (!code) return again(400, CODE_PROBLEMS.unknown);
    await attempt.takeBack();
    if (code.isExpired) return again(400, CODE_PROBLEMS.expired);
    if (code.accountId || code.error || code.consumed) return again(400, CODE_PROBLEMS.used);

    const action = sent ? parameters.get('action') : null;
    if (action === null) return show(200, await confirmation(form, code, options));
    if (action === 'deny') {
      return (await deny(code)) ? show(200, deniedPage(site)) : again(400, CODE_PROBLEMS.used);
    }
    const person = (await users.all()).find(({ id }) => id === parameters.get('user'));
    if (action !== 'approve' || !person) throw refusal('request_invalid', 'There is no such choice.');
    return (await approve(code, person, options))
      ? show(200, loggedInPage(site, shown(code), person.name))
      : again(400, CODE_PROBLEMS.used);
  });
}

async function confirmation(form: FormContext, code: DeviceCode, options: LoginPageOptions): Promise<Html> {
  const client = await options.provider.Client.find(String(code.clientId));
  const forMachine = code.clientId === CI_CLIENT_ID;
  return confirmationPage(form, {
    client: client?.clientName ?? String(code.clientId),
    machineDays: forMachine ? CI_LIFETIME_DAYS : undefined,
    userCode: shown(code),
    address: String(code.deviceInfo?.['ip'] ?? 'an unknown address'),
    // How long a machine's login lasts is said already.
    scopes: grantedScopes(code)
      .filter((name) => !forMachine || name !== 'offline_access')
      .map((name) => ({ name, meaning: SCOPE_MEANING[name] ?? name })),
    people: await choicesOf(options),
  });
}

function shown({ userCode = '' }: DeviceCode): string {
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
