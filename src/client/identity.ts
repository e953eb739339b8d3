import * as oauth from 'openid-client';
import { issuerName } from '../contract/addresses.ts';
import { ID_TOKEN_TYPE, TOKEN_EXCHANGE_GRANT } from '../contract/ci-rules.ts';
import { isTokenText, Secret, withoutSecrets } from '../contract/secret.ts';
import type { Send } from '../contract/sending.ts';
import { renewing } from '../tokens/shared-copy.ts';
import { replyTo } from './exchange.ts';
import {
  codeExpired,
  failureOf,
  invalid,
  lenientReply,
  noLogin,
  ProviderAway,
  publishedMetadata,
  refused,
} from './identity-replies.ts';

/** The needs of the identity provider's client. */
interface IdentityClientOptions {
  send: Send;
  /** `{auth_url}`: where the provider publishes its metadata. */
  authUrl: string;
  /**
   * The provider's name for itself (`iss`). Its endpoints may be at this origin too. Default: `authUrl`; one slash at the end
   * makes no difference.
   */
  issuer?: string;
  clientId: string;
  /** Where the access token will be used (RFC 8707 §2), for providers that need to be told. */
  audience?: string;
  /** The profile that these values are from, for the next steps in messages. */
  name: string;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Waits so many milliseconds, or rejects when the signal is aborted. */
  sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** Tokens as a login or a refresh gives them. */
export interface IssuedTokens {
  accessToken: Secret;
  refreshToken: Secret | undefined;
  /** Milliseconds; undefined where the provider does not tell. */
  expiresAt: number | undefined;
  /** When the refresh token expires, in milliseconds; undefined where the provider does not tell. */
  refreshExpiresAt?: number;
}

/** A device login that waits for a person (RFC 8628 §3.2). */
export interface DeviceLogin {
  userCode: string;
  verificationUri: string;
  /** The same with the code in it, where the provider gives one. */
  verificationUriComplete: string | undefined;
  /** When the code expires, in milliseconds. */
  expiresAt: number;
  /**
   * Polls until the person has decided (RFC 8628 §3.4). After a lost connection, 5xx or 429 it polls again.
   *
   * @throws Failure `login_denied`, `code_expired`; the signal's reason when it is aborted
   */
  wait(signal: AbortSignal): Promise<IssuedTokens>;
}

/** The identity provider, seen from a client. Every method throws Failure. */
export interface IdentityClient {
  /** @param scope words separated by spaces; `sessions` is left out where the provider does not list it */
  startLogin(scope: string): Promise<DeviceLogin>;
  /** @throws Failure `not_logged_in` when the session is over, `unavailable` when the provider can't say now */
  refresh(refreshToken: Secret): Promise<IssuedTokens>;
  /**
   * Exchanges the ID token of a CI job for a user token (RFC 8693).
   *
   * @param idToken asked for where the provider offers the exchange, for the audience: what the provider calls itself
   * @param experiment the id or name of the wanted experiment, where there may be several
   * @returns undefined where the provider offers none
   * @throws Failure `not_logged_in` for a job that is not let in
   */
  exchange(
    idToken: (audience: string) => Promise<Secret>,
    service: { resource: string; experiment?: string },
  ): Promise<IssuedTokens | undefined>;
  /** Ends a login, by its refresh token if any (RFC 7009). @returns false where the provider offers no revocation */
  revoke(tokens: Pick<IssuedTokens, 'accessToken' | 'refreshToken'>): Promise<boolean>;
}

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

/** Longest lifetime of a code that is accepted, in seconds: a day. */
const MAX_CODE_LIFETIME_S = 86_400;
/** Longest lifetime of a token that is accepted, in seconds: ten years. Larger numbers give dates that Date can't hold. */
const MAX_TOKEN_LIFETIME_S = 315_576_000;
/** Longest address that a person is asked to open, in characters. */
const MAX_ADDRESS = 2048;
/** Longest code that a person is asked to enter, in characters. */
const MAX_USER_CODE = 256;
/** The library's own time limit, in seconds: longer than any limit of the transport, which must end a request first. */
const LIBRARY_TIMEOUT_S = 3600;
/** Longest pause between two polls, in seconds. */
const MAX_POLL_PAUSE_S = 60;

/** A client of an OAuth 2.0 identity provider: device login, refresh, exchange, revocation. */
export function createIdentityClient(options: IdentityClientOptions): IdentityClient {
  const { authUrl, audience, now, sleep } = options;
  const resource: Record<string, string> = audience === undefined ? {} : { resource: audience };
  const configuration = renewing(() => discover(options));

  /** Tokens as the library gives them, or the failure for its error. */
  async function granted(asking: Promise<oauth.TokenEndpointResponse>): Promise<IssuedTokens> {
    return issued(await asking.catch(toFailure), now());
  }

  /** RFC 8628 §3.5: `slow_down` adds five seconds for good; lost connections and busy replies are retried. */
  async function poll(
    config: oauth.Configuration,
    form: Record<string, string>,
    { expiresAt, signal, ...pace }: { interval: number; expiresAt: number; signal: AbortSignal },
  ): Promise<oauth.TokenEndpointResponse> {
    let { interval } = pace;
    let pause = interval;
    let failures = 0;
    for (;;) {
      await sleep(Math.max(0, Math.min(pause * 1000, expiresAt - now())), signal);
      if (now() >= expiresAt) throw codeExpired();
      try {
        return await unlessAborted(oauth.genericGrantRequest(config, DEVICE_GRANT, form), signal);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof oauth.ResponseBodyError) {
          // There is no session yet that could have ended: the invalid grant is the code.
          if (error.error === 'invalid_grant') throw codeExpired();
          if (error.error !== 'authorization_pending' && error.error !== 'slow_down') throw refused(error);
          if (error.error === 'slow_down') interval += 5;
          failures = 0;
          pause = interval;
          continue;
        }
        const failure = failureOf(error);
        if (!['network', 'timeout', 'unavailable'].includes(failure.code)) throw failure;
        failures += 1;
        const asked = failure instanceof ProviderAway ? failure.pause : 0;
        pause = Math.max(Math.min(interval * 2 ** failures, MAX_POLL_PAUSE_S), asked);
      }
    }
  }

  return {
    async startLogin(scope) {
      const config = await configuration();
      const metadata = config.serverMetadata();
      if (metadata.device_authorization_endpoint === undefined)
        throw noLogin(authUrl, 'device_authorization_endpoint (RFC 8628)');
      const { scopes_supported: known = [] } = metadata;
      // Some providers demand it of every client, in the device grant too (RFC 7636).
      const verifier = metadata.supportsPKCE('S256') ? oauth.randomPKCECodeVerifier() : undefined;
      const started = await oauth
        .initiateDeviceAuthorization(config, {
          // `sessions` is an extension, which other providers may refuse (RFC 6749 §5.2, `invalid_scope`).
          scope: scope
            .split(' ')
            .filter((word) => word !== 'sessions' || known.includes(word))
            .join(' '),
          ...resource,
          ...(verifier === undefined
            ? {}
            : {
                code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
                code_challenge_method: 'S256',
              }),
        })
        .catch(toFailure);
      const { device_code, user_code, verification_uri, expires_in, interval = 5 } = started;
      if (!(expires_in > 0 && expires_in <= MAX_CODE_LIFETIME_S)) {
        throw invalid(`The code would be valid for ${expires_in} s.`);
      }
      const addresses = [verification_uri, started.verification_uri_complete ?? ''];
      if (addresses.some(({ length }) => length > MAX_ADDRESS)) {
        throw invalid(`The address to open has more than ${MAX_ADDRESS} characters.`);
      }
      if (user_code.length > MAX_USER_CODE) {
        throw invalid(`The code to enter has more than ${MAX_USER_CODE} characters.`);
      }
      const expiresAt = now() + expires_in * 1000;
      const form = { device_code, ...resource, ...(verifier ? { code_verifier: verifier } : {}) };
      return {
        userCode: user_code,
        verificationUri: verification_uri,
        verificationUriComplete: started.verification_uri_complete,
        expiresAt,
        wait: async (signal) => issued(await poll(config, form, { interval, expiresAt, signal }), now()),
      };
    },

    async refresh(refreshToken) {
      return granted(oauth.refreshTokenGrant(await configuration(), refreshToken.reveal(), resource));
    },

    async exchange(idToken, { resource: service, experiment }) {
      const config = await configuration();
      const { grant_types_supported: grants = [] } = config.serverMetadata();
      if (!grants.includes(TOKEN_EXCHANGE_GRANT)) return undefined;
      const parameters = {
        subject_token: (await idToken(issuerName(options.issuer ?? authUrl))).reveal(),
        subject_token_type: ID_TOKEN_TYPE,
        resource: service,
        ...(experiment === undefined ? {} : { experiment }),
      };
      return granted(oauth.genericGrantRequest(config, TOKEN_EXCHANGE_GRANT, parameters));
    },

    async revoke({ accessToken, refreshToken }) {
      const config = await configuration();
      if (config.serverMetadata().revocation_endpoint === undefined) return false;
      const hint = { token_type_hint: refreshToken ? 'refresh_token' : 'access_token' };
      await oauth.tokenRevocation(config, (refreshToken ?? accessToken).reveal(), hint).catch(toFailure);
      return true;
    },
  };
}

async function discover(options: IdentityClientOptions): Promise<oauth.Configuration> {
  const { send, authUrl, clientId } = options;
  const metadata = await publishedMetadata(options);
  const config = new oauth.Configuration(metadata, clientId, undefined, oauth.None());
  // The transport decides whether plain http is allowed: on loopback, or where the profile allows it.
  oauth.allowInsecureRequests(config);
  config.timeout = LIBRARY_TIMEOUT_S;
  config[oauth.customFetch] = async (url, { body, headers, method, signal }) => {
    const form = body instanceof URLSearchParams ? body : new URLSearchParams();
    const request = { method, url, headers, signal, body: form.toString() };
    const { reply } = await replyTo(send, request);
    // A provider may repeat the codes and tokens that were sent in its error. A refresh may well answer with what was sent.
    const secrets = SENT_SECRETS.flatMap((name) => form.get(name) || []).map((text) => new Secret(text));
    const text = reply.status < 400 ? reply.text : withoutSecrets(reply.text, secrets);
    return lenientReply({ ...reply, text }, form, authUrl);
  };
  return config;
}

function toFailure(error: unknown): never {
  throw failureOf(error);
}

/** The members of a form that are secret. */
const SENT_SECRETS = ['device_code', 'code_verifier', 'refresh_token', 'subject_token', 'token'];

/** Rejects as soon as the signal is aborted, without waiting for the answer. */
async function unlessAborted<Answer>(asking: Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  const { promise, reject } = Promise.withResolvers<never>();
  const giveUp = (): void => reject(signal.reason);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    return await Promise.race([asking, promise]);
  } finally {
    signal.removeEventListener('abort', giveUp);
    asking.catch(() => undefined);
  }
}

function issued(tokens: oauth.TokenEndpointResponse, now: number): IssuedTokens {
  const { access_token, refresh_token, expires_in } = tokens;
  for (const [name, token] of Object.entries({ access_token, refresh_token })) {
    if (token !== undefined && !isTokenText(token)) {
      throw invalid(`Its ${name} has characters that a token can't have.`);
    }
  }
  // No RFC has a member for it: the first name is GitHub's and Azure's, the second one Keycloak's.
  const refreshFor = Number(tokens['refresh_token_expires_in'] ?? tokens['refresh_expires_in'] ?? 0);
  return {
    accessToken: new Secret(access_token),
    refreshToken: refresh_token === undefined ? undefined : new Secret(refresh_token),
    expiresAt: expires_in === undefined ? undefined : now + Math.min(expires_in, MAX_TOKEN_LIFETIME_S) * 1000,
    // Keycloak says 0 for a token without an end.
    refreshExpiresAt: refreshFor > 0 ? now + Math.min(refreshFor, MAX_TOKEN_LIFETIME_S) * 1000 : undefined,
  };
}
