import { setTimeout as sleep } from 'node:timers/promises';
import * as oauth from 'openid-client';
import { Failure } from '../contract/failure.ts';
import { isObject, readJson } from '../contract/json.ts';
import type { Fetch } from './exchange.ts';

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
/** Longest pause between two polls, in seconds. */
const MAX_PAUSE = 60;

/** A client of an OAuth 2.0 identity provider over any `fetch`: device login, refresh, revocation. */
export function createIdentityClient(options: IdentityClientOptions): IdentityClient {
  const { authUrl, clientId, now } = options;
  let discovered: Promise<oauth.Configuration> | undefined;
  const configuration = () => (discovered ??= discover(options));

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
          // Whether plain http is allowed is the transport's to say: on loopback only.
          execute: [oauth.allowInsecureRequests],
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
    if (address === undefined || (URL.canParse(address) && new URL(address).origin === origin)) continue;
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
    await sleep(Math.max(0, Math.min(pause * 1000, left)), undefined, { signal });
    if (now() >= expiresAt) throw codeExpired();
    try {
      return await oauth.genericGrantRequest(config, DEVICE_GRANT, { device_code: deviceCode });
    } catch (error) {
      signal.throwIfAborted();
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

function replyOf(error: unknown): Response | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ('response' in cause && cause.response instanceof Response) return cause.response;
    if (cause.cause instanceof Response) return cause.cause;
  }
  return undefined;
}

/** No reply at all, or one that says "later". */
function isPassing(error: unknown): boolean {
  const reply = replyOf(error);
  if (reply) return reply.status === 429 || reply.status === 408 || reply.status >= 500;
  const failure = transportFailure(error);
  return failure?.code === 'network' || failure?.code === 'timeout';
}

function retryAfter(error: unknown): number {
  const text = replyOf(error)?.headers.get('retry-after') ?? '';
  return /^\d{1,3}$/.test(text) ? Number(text) : 0;
}

/** What our own transport threw, however the library wrapped it. */
function transportFailure(error: unknown): Failure | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof Failure) return cause;
  }
  return undefined;
}

function failureOf(error: unknown, authUrl: string): Failure {
  const own = transportFailure(error);
  if (own) return own;
  const reply = replyOf(error);
  if (reply && (reply.status >= 500 || reply.status === 429)) {
    return new Failure('unavailable', `The identity provider ${authUrl} is not available at the moment.`, {
      httpStatus: reply.status,
      retryable: true,
    });
  }
  if (error instanceof oauth.ResponseBodyError) return refused(error);
  return invalid(error instanceof Error ? error.message : String(error));
}

function refused({ error, error_description, status }: oauth.ResponseBodyError): Failure {
  const why = error_description === undefined ? error : `${error}: ${error_description}`;
  if (error === 'access_denied') {
    return new Failure('login_denied', 'The login was denied.', {
      httpStatus: status,
      fix: 'slices-conn login',
    });
  }
  if (error === 'expired_token') return codeExpired();
  if (error === 'invalid_grant') {
    return new Failure('not_logged_in', 'The session is over.', {
      why,
      httpStatus: status,
      fix: 'slices-conn login',
    });
  }
  return new Failure('request_rejected', 'The identity provider refused the request.', {
    why,
    httpStatus: status,
  });
}

function codeExpired(): Failure {
  return new Failure('code_expired', 'The code has expired before anybody entered it.', {
    fix: 'slices-conn login',
  });
}

function invalid(why: string): Failure {
  return new Failure('reply_invalid', 'What the identity provider answers is not what it should be.', {
    why,
  });
}
