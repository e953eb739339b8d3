import { setTimeout as sleep } from 'node:timers/promises';
import * as oauth from 'openid-client';
import { Failure } from '../contract/failure.ts';
import { isObject, readJson } from '../contract/json.ts';
import type { Fetch } from './exchange.ts';
import { codeExpired, failureOf, invalid, isPassing, refused, retryAfter } from './identity-failure.ts';

/** What the identity provider's client needs. */
export interface IdentityClientOptions {
  fetch: Fetch;
  /** `{auth_url}`, without a trailing slash. */
  authUrl: string;
  clientId: string;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** Tokens as a login or a refresh gives them. */
export interface IssuedTokens {
  accessToken: string;
  refreshToken: string | undefined;
  /** Milliseconds; undefined where the provider does not tell. */
  expiresAt: number | undefined;
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
   * Polls until the person has decided (RFC 8628 §3.4). Lost connections, 5xx and 429 are waited out.
   *
   * @throws Failure `login_denied`, `code_expired`; the signal's reason when it is aborted
   */
  wait(signal: AbortSignal): Promise<IssuedTokens>;
}

/** The identity provider, seen from a client. Every method throws Failure. */
export interface IdentityClient {
  startLogin(scope: string): Promise<DeviceLogin>;
  /** @throws Failure `not_logged_in` when the session is over, `unavailable` when that can't be told now */
  refresh(refreshToken: string): Promise<IssuedTokens>;
  /** Ends a session (RFC 7009). @returns false where the provider offers no revocation */
  revoke(refreshToken: string): Promise<boolean>;
}

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

/** Longest lifetime of a code that is believed, in seconds: a day. */
const MAX_EXPIRES_IN = 86_400;
/** In seconds. */
const LIBRARY_TIMEOUT = 3600;
/** Longest pause between two polls, in seconds. */
const MAX_PAUSE = 60;

/** A client of an OAuth 2.0 identity provider over any `fetch`: device login, refresh, revocation. */
export function createIdentityClient(options: IdentityClientOptions): IdentityClient {
  const { authUrl, clientId, now } = options;
  let discovered: Promise<oauth.Configuration> | undefined;
  // A failure is not kept: the provider may be back for the next question.
  const configuration = () =>
    (discovered ??= discover(options).catch((error: unknown) => {
      discovered = undefined;
      throw error;
    }));

  return {
    async startLogin(scope) {
      const config = await configuration();
      const started = await asked(() => oauth.initiateDeviceAuthorization(config, { scope }), authUrl);
      const { device_code, expires_in, interval = 5 } = started;
      if (!(expires_in > 0 && expires_in <= MAX_EXPIRES_IN)) {
        throw invalid(`The code would be valid for ${expires_in} s.`);
      }
      const expiresAt = now() + expires_in * 1000;
      return {
        userCode: started.user_code,
        verificationUri: started.verification_uri,
        verificationUriComplete: started.verification_uri_complete,
        expiresAt,
        wait: async (signal) =>
          issued(await poll(config, { deviceCode: device_code, interval, expiresAt, now, signal }), now()),
      };
    },

    async refresh(refreshToken) {
      const config = await configuration();
      return issued(await asked(() => oauth.refreshTokenGrant(config, refreshToken), authUrl), now());
    },

    async revoke(refreshToken) {
      const config = await configuration();
      if (config.serverMetadata().revocation_endpoint === undefined) return false;
      const hint = { token_type_hint: 'refresh_token' };
      await asked(() => oauth.tokenRevocation(config, refreshToken, hint), authUrl);
      return true;
    },
  };

  async function discover({ fetch }: IdentityClientOptions): Promise<oauth.Configuration> {
    const config = await asked(
      () =>
        oauth.discovery(new URL(authUrl), clientId, undefined, oauth.None(), {
          // Whether plain http is allowed is the transport's to say: on loopback, or where the profile does.
          execute: [oauth.allowInsecureRequests],
          // How long to wait is the transport's to say too; the library's own limit is put out of the way.
          timeout: LIBRARY_TIMEOUT,
          [oauth.customFetch]: (url, init) => sendForm(fetch, url, init),
        }),
      authUrl,
    );
    checkEndpoints(config.serverMetadata(), authUrl);
    return config;
  }
}

/** An endpoint elsewhere would be handed codes and tokens (HOSTILE.md 4). */
function checkEndpoints(metadata: oauth.ServerMetadata, authUrl: string): void {
  const { origin } = new URL(authUrl);
  for (const name of [
    'device_authorization_endpoint',
    'token_endpoint',
    'revocation_endpoint',
    'jwks_uri',
  ] as const) {
    const address = metadata[name];
    if (address === undefined) {
      if (name === 'revocation_endpoint' || name === 'jwks_uri') continue;
      throw invalid(`It has no ${name}.`);
    }
    if (URL.canParse(address) && new URL(address).origin === origin) continue;
    throw invalid(`Its ${name} is at another address than itself.`);
  }
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
      ...(signal ? { signal } : {}),
      ...(body === null || body === undefined ? {} : { body: String(body) }),
    }),
  );
  return withLenientInterval(reply);
}

/** `interval` "5" is 5 and 0 is 1 (HOSTILE.md 9); the library takes neither. */
async function withLenientInterval(reply: Response): Promise<Response> {
  if (reply.status !== 200) return reply;
  const reading = readJson(await reply.clone().text());
  if (!reading.ok || !isObject(reading.value) || reading.value['device_code'] === undefined) return reply;
  const { interval } = reading.value;
  const number = typeof interval === 'string' && /^\d{1,6}$/.test(interval) ? Number(interval) : interval;
  return Response.json({ ...reading.value, interval: number === 0 ? 1 : number }, { status: 200 });
}

interface Polling {
  deviceCode: string;
  /** Seconds. */
  interval: number;
  expiresAt: number;
  now: () => number;
  signal: AbortSignal;
}

/** RFC 8628 §3.5: `slow_down` adds five seconds for good; what is only lost or busy is tried again, later. */
async function poll(config: oauth.Configuration, polling: Polling): Promise<oauth.TokenEndpointResponse> {
  const { deviceCode, expiresAt, now, signal } = polling;
  let { interval } = polling;
  let pause = interval;
  let failures = 0;
  for (;;) {
    const left = expiresAt - now();
    try {
      await sleep(Math.max(0, Math.min(pause * 1000, left)), undefined, { signal });
      if (now() >= expiresAt) throw codeExpired();
      const asking = oauth.genericGrantRequest(config, DEVICE_GRANT, { device_code: deviceCode });
      return await unlessAborted(asking, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Failure && error.code === 'code_expired') throw error;
      const answer = error instanceof oauth.ResponseBodyError && error.status < 500 && error.status !== 429;
      if (answer) {
        if (error.error !== 'authorization_pending' && error.error !== 'slow_down') throw refused(error);
        if (error.error === 'slow_down') interval += 5;
        failures = 0;
        pause = interval;
      } else if (isPassing(error)) {
        failures += 1;
        pause = Math.max(Math.min(interval * 2 ** failures, MAX_PAUSE), retryAfter(error));
      } else {
        throw failureOf(error, '');
      }
    }
  }
}

/** Who gives up does not wait for an answer that is still due. */
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
  return {
    accessToken: access_token,
    refreshToken: refresh_token,
    expiresAt: expires_in === undefined ? undefined : now + expires_in * 1000,
  };
}

async function asked<Answer>(ask: () => Promise<Answer>, authUrl: string): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    throw failureOf(error, authUrl);
  }
}
