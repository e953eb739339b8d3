import type * as Oauth from 'openid-client';
import { sameIssuer } from '../../contract/addresses.ts';
import { DAY } from '../../contract/durations.ts';
import { isObject, readJson, withoutNulls } from '../../contract/json.ts';
import { isTokenText } from '../../contract/secret.ts';
import { sharedCopy } from '../../tokens/shared-copy.ts';
import { refusal } from '../problem-error.ts';

/** The tokens of somebody who is logged in to the page. Times in milliseconds since the Unix epoch. */
export interface PageTokens {
  /** The user token. */
  access: string;
  /** Absent where the provider gives none: then the session ends with the user token. */
  refresh?: string;
  expiresAt: number;
  /** Absent where the provider does not say. */
  refreshExpiresAt?: number;
}

/** The texts that bind a login to the browser that started it: the state comes back in its address, the others in its tokens. */
export interface LoginSecrets {
  state: string;
  nonce: string;
  /** Of PKCE (RFC 7636 §4.1). */
  verifier: string;
}

/** The identity provider, as the page's own client sees it. */
export type PageClient = ReturnType<typeof createPageClient>;

/** Options of {@link createPageClient}. */
export interface PageClientOptions {
  clientId: string;
  /** `{base_url}/ui/callback`. */
  redirectUri: string;
  /** Asks the provider what it says about itself; see {@link discovered}. The answer is shared by all visitors. */
  metadata: () => Promise<Oauth.ServerMetadata>;
  /** Where the access token will be used (RFC 8707 §2), for providers that need to be told. */
  resource?: string;
  /** Sends requests to the provider. */
  fetch: (request: Request) => Promise<Response>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** A login that came to nothing; the message is for the person. */
export class LoginRefused extends Error {
  override readonly name = 'LoginRefused';
}

/** The scopes that the page asks for: the same as the command line. */
const SCOPE = 'openid offline_access userinfo projects';

/** Longest lifetime of a token that is accepted, in seconds: ten years. Larger numbers give dates that Date can't hold. */
const MAX_TOKEN_LIFETIME_S = 315_576_000;
/** The lifetime of an access token where the provider does not say, in seconds. */
const DEFAULT_TOKEN_LIFETIME_S = 300;

/** For how long a provider's description is used without a look at it, in milliseconds: 10 minutes. */
const FRESH_MS = 600_000;
/** For how long it is used while the provider can't be reached, in milliseconds: a day. */
const STALE_MS = DAY;
/** Least time between two requests for it, in milliseconds. */
const COOLDOWN_MS = 30_000;
/**
 * The page's own client, by a certified library that is loaded with the first login. The provider's metadata are shared between
 * all visitors, by the rules of {@link sharedCopy}: a visitor of `/ui/login` can't make this server ask for them each time.
 */
export function createPageClient(options: PageClientOptions) {
  const { clientId, redirectUri, resource, fetch, now, metadata: load } = options;
  const times = { freshFor: FRESH_MS, staleFor: STALE_MS, cooldown: COOLDOWN_MS, now };
  const metadata = sharedCopy({ load, ...times });
  const forResource: Record<string, string> = resource === undefined ? {} : { resource };

  async function connect(): Promise<{ oauth: typeof Oauth; config: Oauth.Configuration }> {
    const oauth = await import('openid-client');
    const copy = await metadata.usable();
    if (!copy) throw metadata.failure;
    const config = new oauth.Configuration(copy.value, clientId, undefined, oauth.None());
    // Which addresses may be plain http is checked where the provider is named.
    oauth.allowInsecureRequests(config);
    config[oauth.customFetch] = (url, { body, headers, method, signal }) =>
      fetch(
        new Request(url, {
          method,
          headers,
          redirect: 'manual',
          signal,
          ...(body === null || body === undefined ? {} : { body: String(body) }),
        }),
      );
    return { oauth, config };
  }

  return {
    /** Where the browser is sent to log in. */
    async loginAddress({ state, nonce, verifier }: LoginSecrets): Promise<URL> {
      const { oauth, config } = await connect();
      return oauth.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: SCOPE,
        state,
        nonce,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        // Without it a provider may leave out the refresh token (OpenID Connect Core §11).
        prompt: 'consent',
        ...forResource,
      });
    },

    /**
     * Redeems the code with which the browser came back.
     *
     * @param search the query of its request
     * @throws LoginRefused where there is none, or it is not of this login
     */
    async redeem(search: string, { state, nonce, verifier }: LoginSecrets): Promise<PageTokens> {
      const { oauth, config } = await connect();
      const checks = {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      };
      try {
        const came = new URL(redirectUri + search);
        return tokensIn(await oauth.authorizationCodeGrant(config, came, checks, forResource), now());
      } catch (error) {
        if (error instanceof oauth.AuthorizationResponseError) {
          throw new LoginRefused(
            error.error === 'access_denied'
              ? 'The login was cancelled.'
              : `The identity provider refused the login: ${error.error}.`,
          );
        }
        throw new LoginRefused('The identity provider’s answer is not of this login.', { cause: error });
      }
    },

    /** @returns undefined where the login has ended @throws Error where the provider can't say */
    async refresh(tokens: PageTokens): Promise<PageTokens | undefined> {
      if (tokens.refresh === undefined) return undefined;
      const { oauth, config } = await connect();
      try {
        return tokensIn(await oauth.refreshTokenGrant(config, tokens.refresh, forResource), now(), tokens);
      } catch (error) {
        if (error instanceof oauth.ResponseBodyError && error.error === 'invalid_grant') return undefined;
        // A provider may repeat the token in its error.
        const why = error instanceof oauth.ResponseBodyError ? error.error : (error as Error).name;
        throw refusal('unavailable', `The identity provider can't renew the login now (${why}).`);
      }
    },

    /** Ends a login, as far as the provider offers that. A failure is the provider's, and ends nothing here. */
    async revoke({ access, refresh }: PageTokens): Promise<void> {
      try {
        const { oauth, config } = await connect();
        if (config.serverMetadata().revocation_endpoint === undefined) return;
        const kind = refresh === undefined ? 'access_token' : 'refresh_token';
        await oauth.tokenRevocation(config, refresh ?? access, { token_type_hint: kind });
      } catch {
        // The session is over here; at the provider it ends by itself.
      }
    },
  };
}

/** The tokens of an answer. @param now milliseconds since the Unix epoch @param before what is renewed */
function tokensIn(reply: Oauth.TokenEndpointResponse, now: number, before?: PageTokens): PageTokens {
  const { access_token: access, expires_in = DEFAULT_TOKEN_LIFETIME_S } = reply;
  if (!isTokenText(access)) throw new TypeError("The access token has characters that a token can't have.");
  // No RFC has a member for it: the first name is GitHub's and Azure's, the second one Keycloak's.
  const left = Number(reply['refresh_token_expires_in'] ?? reply['refresh_expires_in'] ?? 0);
  const at = (seconds: number): number => now + Math.min(seconds, MAX_TOKEN_LIFETIME_S) * 1000;
  return {
    access,
    // A provider that does not rotate refresh tokens gives none with a new access token.
    refresh: reply.refresh_token ?? before?.refresh,
    expiresAt: at(expires_in),
    // Keycloak says 0 for a token without an end.
    refreshExpiresAt: left > 0 ? at(left) : undefined,
  };
}

/** The endpoints that get codes and tokens, or a person. */
const REMOTE_ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'revocation_endpoint'];

/**
 * The metadata that a foreign provider publishes about itself (OpenID Connect Discovery). Its endpoints must be at its
 * own origin, or they would receive codes and tokens that are for it (THREATS.md 4).
 *
 * @param authUrl `{auth_url}`
 * @param issuers what it may call itself; one slash at the end makes no difference
 * @throws ProblemError 503 where it can't be read or used
 */
export async function discovered(
  authUrl: string,
  issuers: readonly string[],
  fetch: (request: Request) => Promise<Response>,
): Promise<Oauth.ServerMetadata> {
  const unusable = (why: string) =>
    refusal('unavailable', `The identity provider at ${authUrl} can't be used for a login: ${why}`);
  const address = `${authUrl}/.well-known/openid-configuration`;
  const reply = await fetch(new Request(address, { redirect: 'manual' })).catch(() => undefined);
  if (reply?.status !== 200) throw unusable(`its description answers ${reply?.status ?? 'nothing'}.`);
  const reading = readJson(await reply.text());
  if (!reading.ok || !isObject(reading.value)) throw unusable('its description is not JSON.');
  const { issuer, ...described } = withoutNulls(reading.value);
  if (typeof issuer !== 'string' || ![authUrl, ...issuers].some((each) => sameIssuer(each, issuer))) {
    throw unusable('it calls itself something else.');
  }
  const origins = new Set([authUrl, ...issuers].map((each) => new URL(each).origin));
  for (const name of REMOTE_ENDPOINTS) {
    const endpoint = described[name];
    if (endpoint === undefined && name === 'revocation_endpoint') continue;
    if (typeof endpoint !== 'string' || !URL.canParse(endpoint) || !origins.has(new URL(endpoint).origin)) {
      throw unusable(`its ${name} is not at its own address.`);
    }
  }
  return { ...described, issuer };
}
