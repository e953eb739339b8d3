import { html } from 'hono/html';
import { crossSite, refusal } from '../problem-error.ts';
import { PAGE_HEADERS, page, pageReply } from '../ui/page.ts';
import { grantOf, knownScopes, SCOPE_MEANING } from './approval.ts';
import { AUTHORIZATION_PATH, loginLimits } from './attempt-limits.ts';
import { choicesOf } from './device-page.ts';
import { formPage, type LoginPageOptions } from './form-page.ts';
import { pageLoginPage } from './pages.ts';
import type { IdentityAnswer } from './provider-endpoints.ts';
import { DEFAULT_SCOPE, type Person, UI_CLIENT_ID } from './user-token.ts';

/** The fields of the choice. */
const CHOICE = ['user', 'action'];

/** The longest state or nonce, in characters: they come back in an address. */
const MAX_TEXT = 256;

/**
 * The page on which a person logs in to this server's own page and chooses the user: the authorization endpoint (RFC 6749
 * §3.1), for that one client, with PKCE. The user is chosen at each login, as on the device page: there is no session with
 * the identity provider that another page could use. It works without JavaScript.
 *
 * A request for another client, or to go on at another address, is refused with a page and never redirected.
 *
 * @param callback where a login goes on: the only `redirect_uri`
 */
export function createAuthorizationPage(options: LoginPageOptions, callback: string): IdentityAnswer {
  const { count, users, site, issuer } = options;
  const { origin, pathname } = new URL(issuer + AUTHORIZATION_PATH);

  /** Sends the browser back to the client with an answer (RFC 6749 §4.1.2, RFC 9207 §2). */
  function resume(parameters: URLSearchParams, answer: Readonly<Record<string, string>>): Response {
    const target = new URL(callback);
    const state = parameters.get('state');
    const given = { ...answer, ...(state === null ? {} : { state }), iss: issuer };
    for (const [name, value] of Object.entries(given)) target.searchParams.set(name, value);
    return new Response(null, { status: 303, headers: { ...PAGE_HEADERS, location: target.href } });
  }

  return formPage(async ({ request, address, sent, parameters: asked }) => {
    if (asked.get('client_id') !== UI_CLIENT_ID || asked.get('redirect_uri') !== callback) {
      const body = html`<p>This login was not started by this server’s own page.</p><p>Go to <a href="${site.baseUrl}/">${site.baseUrl}</a>.</p>`;
      return pageReply(page(site, 'Log in', body), { status: 400 });
    }
    // The form sends them again, with the choice.
    const parameters = new URLSearchParams([...asked].filter(([name]) => !CHOICE.includes(name)));
    const fault = faultIn(parameters);
    if (fault !== undefined) return resume(parameters, fault);
    if (!sent) {
      const scopes = scopesIn(parameters).map((name) => ({ name, meaning: SCOPE_MEANING[name] ?? name }));
      const login = { client: UI_CLIENT_ID, scopes, people: await choicesOf(options), parameters };
      return pageReply(pageLoginPage({ site, action: pathname }, login));
    }
    // A browser says where a form was sent from, and lets no page change it. A form of another page chooses nothing here.
    if (request.headers.get('origin') !== origin) throw crossSite();
    if (asked.get('action') === 'deny') return resume(parameters, { error: 'access_denied' });
    const person = (await users.all()).find(({ id }) => id === asked.get('user'));
    if (asked.get('action') !== 'approve' || !person) {
      throw refusal('request_invalid', 'There is no such choice.');
    }
    const counted = await count(loginLimits(AUTHORIZATION_PATH, address));
    if (!counted.ok) return resume(parameters, { error: 'temporarily_unavailable' });
    return resume(parameters, { code: await codeFor(parameters, person, callback, options) });
  });
}

function scopesIn(parameters: URLSearchParams): string[] {
  return knownScopes(parameters.get('scope') ?? DEFAULT_SCOPE);
}

/** Makes the code of an approved login, which the client redeems at the token endpoint within a minute. */
async function codeFor(
  parameters: URLSearchParams,
  person: Person,
  redirectUri: string,
  options: LoginPageOptions,
): Promise<string> {
  const { provider, audience, now, log } = options;
  const scopes = scopesIn(parameters);
  const client = await provider.Client.find(UI_CLIENT_ID);
  if (!client) throw new Error(`there is no client ${UI_CLIENT_ID}`);
  const grant = grantOf(person, UI_CLIENT_ID, scopes, options);
  const code = new provider.AuthorizationCode({
    client,
    accountId: person.id,
    grantId: await grant.save(),
    scope: scopes.join(' '),
    resource: audience,
    redirectUri,
    nonce: parameters.get('nonce') ?? undefined,
    codeChallenge: parameters.get('code_challenge') ?? undefined,
    codeChallengeMethod: 'S256',
    authTime: Math.floor(now() / 1000),
    gty: 'authorization_code',
  });
  const value = await code.save();
  log('info', 'login', { by: person.id, name: person.name, client: UI_CLIENT_ID });
  return value;
}

/** The fault of a login that this server's page asks for, in the form of RFC 6749 §4.1.2.1. */
function faultIn(parameters: URLSearchParams): Readonly<Record<string, string>> | undefined {
  const invalid = (error_description: string) => ({ error: 'invalid_request', error_description });
  if (parameters.get('response_type') !== 'code') {
    return { error: 'unsupported_response_type', error_description: 'response_type must be code' };
  }
  if (parameters.get('code_challenge_method') !== 'S256')
    return invalid('code_challenge_method must be S256');
  if (!/^[\w-]{43}$/.test(parameters.get('code_challenge') ?? ''))
    return invalid('code_challenge is missing');
  for (const name of ['state', 'nonce']) {
    const { length } = parameters.get(name) ?? '';
    if (length === 0 || length > MAX_TEXT) return invalid(`${name} must have 1 to ${MAX_TEXT} characters`);
  }
  return undefined;
}
