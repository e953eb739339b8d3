import * as oauth from 'openid-client';
import { ID_TOKEN_TYPE, TOKEN_EXCHANGE_GRANT } from '../contract/ci-rules.ts';
import { Failure } from '../contract/failure.ts';
import { issuerName } from '../contract/issuer-address.ts';
import { isTokenText, Secret, withoutSecrets } from '../contract/secret.ts';
import type { Fetch } from '../contract/sending.ts';
import {
  codeExpired,
  failureOf,
  invalid,
  isTemporary,
  noLogin,
  refused,
  retryAfter,
  saidBy,
} from './identity-failure.ts';
import { lenientReply, publishedMetadata } from './identity-replies.ts';

/** The needs of the identity provider's client. */
interface IdentityClientOptions {
  fetch: Fetch;
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
  /** Revokes a token (RFC 7009), and with a refresh token its session. @returns false where the provider offers no revocation */
  revoke(token: Secret, kind: 'refresh_token' | 'access_token'): Promise<boolean>;
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
/** The library's own time limit, in seconds: longer than any limit of ours. */
const LIBRARY_TIMEOUT_S = 3600;
/** Longest pause between two polls, in seconds. */
const MAX_POLL_PAUSE_S = 60;

/** A client of an OAuth 2.0 identity provider over any `fetch`: device login, refresh, revocation. */
export function createIdentityClient(options: IdentityClientOptions): IdentityClient {
  const { authUrl, audience, clientId, now, sleep } = options;
  const resource: Record<string, string> = audience === undefined ? {} : { resource: audience };
  let discovered: Promise<oauth.Configuration> | undefined;
  // A failed discovery is not kept: the next call tries again.
  const configuration = () =>
    (discovered ??= discover(options).catch((error: unknown) => {
      discovered = undefined;
      throw error;
    }));

  return {
    async startLogin(scope) {
      const config = await configuration();
      const metadata = config.serverMetadata();
      if (metadata.device_authorization_endpoint === undefined)
        throw noLogin(authUrl, 'device_authorization_endpoint (RFC 8628)');
      // Some providers demand it of every client, in the device grant too (RFC 7636).
      const verifier = metadata.supportsPKCE('S256') ? new Secret(oauth.randomPKCECodeVerifier()) : undefined;
      const started = await asked(
        async () =>
          oauth.initiateDeviceAuthorization(config, {
            scope: scopesFor(metadata, scope),
            ...resource,
            ...(await challengeOf(verifier)),
          }),
        authUrl,
      );
      const { device_code, expires_in, interval = 5 } = started;
      if (!(expires_in > 0 && expires_in <= MAX_CODE_LIFETIME_S)) {
        throw invalid(`The code would be valid for ${expires_in} s.`);
      }
      const addresses = [started.verification_uri, started.verification_uri_complete ?? ''];
      if (addresses.some(({ length }) => length > MAX_ADDRESS)) {
        throw invalid(`The address to open has more than ${MAX_ADDRESS} characters.`);
      }
      if (started.user_code.length > MAX_USER_CODE) {
        throw invalid(`The code to enter has more than ${MAX_USER_CODE} characters.`);
      }
      const expiresAt = now() + expires_in * 1000;
      return {
        userCode: started.user_code,
        verificationUri: started.verification_uri,
        verificationUriComplete: started.verification_uri_complete,
        expiresAt,
        wait: async (signal) =>
          issued(
            await poll(config, {
              deviceCode: new Secret(device_code),
              verifier,
              resource,
              interval,
              expiresAt,
              now,
              sleep,
              signal,
            }),
            now(),
          ),
      };
    },

    async refresh(refreshToken) {
      const config = await configuration();
      return issued(
        await asked(() => oauth.refreshTokenGrant(config, refreshToken.reveal(), resource), authUrl),
        now(),
      );
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
      return issued(
        await asked(() => oauth.genericGrantRequest(config, TOKEN_EXCHANGE_GRANT, parameters), authUrl),
        now(),
      );
    },

    async revoke(token, kind) {
      const config = await configuration();
      if (config.serverMetadata().revocation_endpoint === undefined) return false;
      const hint = { token_type_hint: kind };
      await asked(() => oauth.tokenRevocation(config, token.reveal(), hint), authUrl);
      return true;
    },
  };

  async function discover({ fetch }: IdentityClientOptions): Promise<oauth.Configuration> {
    const metadata = await asked(() => publishedMetadata(options), authUrl);
    const config = new oauth.Configuration(metadata, clientId, undefined, oauth.None());
    // The transport decides whether plain http is allowed: on loopback, or where the profile allows it.
    oauth.allowInsecureRequests(config);
    // The transport limits how long to wait; the library's own limit must not end a request before.
    config.timeout = LIBRARY_TIMEOUT_S;
    config[oauth.customFetch] = (url, init) => sendForm(fetch, url, init);
    return config;
  }
}

/** The scopes to ask a provider for: `sessions` is an extension, which others may refuse (RFC 6749 §5.2, `invalid_scope`). */
function scopesFor({ scopes_supported: known = [] }: oauth.ServerMetadata, wanted: string): string {
  const asked = wanted.split(' ').filter((scope) => scope !== 'sessions' || known.includes(scope));
  return asked.join(' ');
}

/** The challenge for a verifier (RFC 7636 §4.3). */
async function challengeOf(verifier: Secret | undefined): Promise<Record<string, string>> {
  if (verifier === undefined) return {};
  const code_challenge = await oauth.calculatePKCECodeChallenge(verifier.reveal());
  return { code_challenge, code_challenge_method: 'S256' };
}

async function sendForm(
  fetch: Fetch,
  url: string,
  { body, headers, method, signal }: oauth.CustomFetchOptions,
): Promise<Response> {
  const reply = await fetch(
    new Request(url, {
      method,
      headers,
      redirect: 'manual',
      signal,
      ...(body === null || body === undefined ? {} : { body: String(body) }),
    }),
  );
  const form = body instanceof URLSearchParams ? body : new URLSearchParams();
  return lenientReply(await withoutSent(reply, form), form);
}

/** Masks the codes and tokens that were sent: a provider may repeat them in its error. */
async function withoutSent(reply: Response, form: URLSearchParams): Promise<Response> {
  if (reply.status < 400) return reply;
  const { status, headers } = reply;
  const secrets = ['device_code', 'code_verifier', 'refresh_token', 'subject_token', 'token'].flatMap(
    (name) => form.get(name) || [],
  );
  const hidden = secrets.map((secret) => new Secret(secret));
  return new Response(withoutSecrets(await reply.text(), hidden), { status, headers });
}

interface Polling {
  deviceCode: Secret;
  /** Of the challenge that the device request held (RFC 7636 §4.5). */
  verifier: Secret | undefined;
  /** Sent with each poll. */
  resource: Readonly<Record<string, string>>;
  /** Seconds. */
  interval: number;
  expiresAt: number;
  now: () => number;
  sleep: IdentityClientOptions['sleep'];
  signal: AbortSignal;
}

/** RFC 8628 §3.5: `slow_down` adds five seconds for good; lost connections and busy replies are retried. */
async function poll(config: oauth.Configuration, polling: Polling): Promise<oauth.TokenEndpointResponse> {
  const { deviceCode, verifier, resource, expiresAt, now, sleep, signal } = polling;
  let { interval } = polling;
  let pause = interval;
  let failures = 0;
  for (;;) {
    const left = expiresAt - now();
    try {
      await sleep(Math.max(0, Math.min(pause * 1000, left)), signal);
      if (now() >= expiresAt) throw codeExpired();
      const asking = oauth.genericGrantRequest(config, DEVICE_GRANT, {
        device_code: deviceCode.reveal(),
        ...resource,
        ...(verifier ? { code_verifier: verifier.reveal() } : {}),
      });
      return await unlessAborted(asking, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Failure && error.code === 'code_expired') throw error;
      const answer = error instanceof oauth.ResponseBodyError && error.status < 500 && error.status !== 429;
      if (answer) {
        // There is no session yet that could have ended: the invalid grant is the code.
        if (error.error === 'invalid_grant') throw codeExpired();
        if (error.error !== 'authorization_pending' && error.error !== 'slow_down') throw refused(error);
        if (error.error === 'slow_down') interval += 5;
        failures = 0;
        pause = interval;
      } else if (isTemporary(error)) {
        failures += 1;
        pause = Math.max(Math.min(interval * 2 ** failures, MAX_POLL_PAUSE_S), retryAfter(error));
      } else {
        throw failureOf(error, '');
      }
    }
  }
}

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

async function asked<Answer>(ask: () => Promise<Answer>, authUrl: string): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    throw failureOf(error, authUrl, await saidBy(error));
  }
}
