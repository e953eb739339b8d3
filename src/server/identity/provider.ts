import { createHmac, randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import {
  type Configuration,
  type DeviceCode,
  errors,
  type JWKS,
  type KoaContextWithOIDC,
  Provider,
} from 'oidc-provider';
import { StoreUnavailableError } from '../../allocator/store.ts';
import {
  ACCESS_TOKEN_TYPE,
  CI_CLIENT_ID,
  ID_TOKEN_TYPE,
  NOT_ACCEPTED,
  TOKEN_EXCHANGE_GRANT,
} from '../../contract/ci-rules.ts';
import type { UserClaims } from '../../contract/claims.ts';
import { isObject } from '../../contract/json.ts';
import { KEY_SET_PATH } from '../../contract/routes.ts';
import type { PrivateJwk } from '../../tokens/signing-key.ts';
import { TokenError } from '../../tokens/token-error.ts';
import type { Log } from '../log.ts';
import type { Users } from '../portal/users.ts';
import { type AdapterOptions, createAdapter, unavailable } from './adapter.ts';
import { AUTHORIZATION_PATH } from './attempt-limits.ts';
import { CODE_MASK } from './device-page.ts';
import { AnswerInMemory } from './provider-endpoints.ts';
import { hash } from './records.ts';
import { ExchangeRefused, type TokenExchange } from './token-exchange.ts';
import { ACCESS_TOKEN_TTL, ALL_SCOPES, CI_LIFETIME_DAYS, CLIENT_ID, UI_CLIENT_ID } from './user-token.ts';

const DAY_S = 86_400;

/** Lifetimes in seconds. */
const LIFETIME_S = {
  deviceCode: 600,
  authorizationCode: 60,
  refreshToken: 30 * DAY_S,
  ciRefreshToken: CI_LIFETIME_DAYS * DAY_S,
  /** A new grant lasts as long as the code that it is for, then as its tokens; see {@link prolongGrant}. */
  grant: 600,
  /** A login ends a year after it was approved, however often it is refreshed. */
  login: 365 * DAY_S,
} as const;

/** Options of {@link createProvider}. */
export interface ProviderOptions extends AdapterOptions {
  /** `{auth_url}`. */
  issuer: string;
  /** The `aud` of every access token: `{base_url}`. */
  audience: string;
  key: PrivateJwk;
  users: Pick<Users, 'withId'>;
  /** Lifetime of an access token in seconds. */
  accessTokenTtl?: number;
  /** Derives refresh tokens that must be the same on every replica. */
  secret: Uint8Array;
  /** Called for every new device code, before the client gets it. */
  onDeviceCode: (code: DeviceCode) => Promise<void>;
  /** Where a login to this server's own page goes on (`redirect_uri`); undefined where there is no page. */
  pageCallback?: string;
  /** Exchanges ID tokens of CI jobs; undefined where none are taken. */
  exchange?: TokenExchange;
  /** Verifies one of its own access tokens. @throws TokenError */
  verify: (token: string) => Promise<UserClaims>;
  log: Log;
}

const CROSS_ORIGIN = ['Access-Control-Allow-Origin', 'Access-Control-Expose-Headers', 'Vary'];

/** Members of the discovery document whose features are off here, or for this server's own page only. */
const NOT_OFFERED = [
  'authorization_endpoint',
  'code_challenge_methods_supported',
  'claims_parameter_supported',
  'authorization_response_iss_parameter_supported',
  'response_modes_supported',
  'request_uri_parameter_supported',
  'claim_types_supported',
];

/**
 * The certified provider, set up for device login, and for the page's login by authorization code: ES256 access tokens
 * with the claims of a user token (contract/README.md, "User token"), rotating refresh tokens, revocation. Its own pages and
 * interactions are not used.
 */
export function createProvider(options: ProviderOptions): Provider {
  const { issuer, secret, log, exchange, audience } = options;
  const provider = new Provider(issuer, configuration(options));
  // The headers come from provider-endpoints.ts, with the client's address in X-Forwarded-For.
  provider.proxy = true;
  // Every address comes from the issuer, whatever Host or request target arrives.
  Object.assign(provider.OIDCContext.prototype, {
    urlFor: (name: string, parameters?: Record<string, unknown>) => provider.urlFor(name, parameters),
  });
  Object.assign(provider.RefreshToken.prototype, {
    /** Derived from the token that is rotated: a second use within its grace gives the same successor. */
    generateTokenId(): string {
      const rotated = Provider.ctx?.oidc.entities.RotatedRefreshToken;
      if (!rotated) return randomBytes(32).toString('base64url');
      return createHmac('sha256', secret).update(rotated.jti).digest('base64url');
    },
  });
  if (exchange) registerExchange(provider, exchange, audience);
  provider.use(async (context: KoaContextWithOIDC, next) => {
    await next();
    // Pages of other sites must not read these answers.
    for (const name of CROSS_ORIGIN) context.remove(name);
    if (context.status === 503) context.set('Retry-After', '5');
    const revoked = await revokeByAccessToken(context, options);
    if (context.res instanceof AnswerInMemory) context.res.isRight = revoked ?? isRight(context);
    if (context.status === 200 && isObject(context.body)) await complete(context, context.body, options);
  });
  provider.on('server_error', (_context, error) => {
    log('error', 'bug', { why: error.stack ?? error.message });
  });
  // Without a listener the library would print the error besides our log.
  EventEmitter.prototype.on.call(provider, 'error', () => undefined);
  return provider;
}

/** Completes a successful answer with what the library leaves out. */
async function complete(
  context: KoaContextWithOIDC,
  body: Record<string, unknown>,
  options: ProviderOptions,
): Promise<void> {
  const { records, now, interval, exchange } = options;
  const { route, client, entities } = context.oidc;
  // The library lists the scopes of the access token only (RFC 6749 §5.1).
  if ('refresh_token' in body && 'scope' in body) body['scope'] = `${body['scope']} offline_access`;
  if (route === 'device_authorization') {
    body['interval'] = interval / 1000;
    if (entities.DeviceCode) await options.onDeviceCode(entities.DeviceCode);
  }
  if (route === 'token') await prolongGrant(context, options);
  // People who keep a machine's token as a secret want to know when to renew it. RFC 6749 has no member for that.
  if (route === 'token' && client?.clientId === CI_CLIENT_ID) {
    const { RefreshToken: used } = entities;
    if (used) await records.use(hash(used.jti), now());
    const left = used?.exp === undefined ? LIFETIME_S.ciRefreshToken : used.exp - Math.floor(now() / 1000);
    if ('refresh_token' in body) body['refresh_token_expires_in'] = left;
  }
  if (route === 'discovery') {
    for (const name of NOT_OFFERED) Reflect.deleteProperty(body, name);
    body['response_types_supported'] = [];
    body['grant_types_supported'] = exchange ? [...FOR_PROGRAMS, TOKEN_EXCHANGE_GRANT] : FOR_PROGRAMS;
  }
}

/** Takes token exchanges (RFC 8693 §2): a CI job's ID token for a user token. */
function registerExchange(provider: Provider, exchange: TokenExchange, audience: string): void {
  const handle = async (context: KoaContextWithOIDC): Promise<void> => {
    const { params = {} } = context.oidc;
    const { subject_token: idToken, subject_token_type: type, resource, experiment } = params;
    if (typeof idToken !== 'string' || type !== ID_TOKEN_TYPE) {
      throw new errors.InvalidRequest(
        `subject_token must be given, with subject_token_type ${ID_TOKEN_TYPE}`,
      );
    }
    if (resource !== undefined && resource !== audience) throw new errors.InvalidTarget();
    const wanted = typeof experiment === 'string' ? experiment : undefined;
    const { token, expiresIn, scope } = await exchange(idToken, wanted).catch(refuse);
    context.body = {
      access_token: token,
      issued_token_type: ACCESS_TOKEN_TYPE,
      token_type: 'Bearer',
      expires_in: expiresIn,
      scope,
    };
  };
  const parameters = ['subject_token', 'subject_token_type', 'resource', 'experiment'];
  provider.registerGrantType(TOKEN_EXCHANGE_GRANT, handle, parameters);
}

/** The answer to a job that gets no token. */
function refuse(error: unknown): never {
  if (error instanceof StoreUnavailableError) throw unavailable(error);
  if (!(error instanceof ExchangeRefused)) throw error;
  if (error.facts.isTemporary) throw unavailable(new Error("The CI's keys can't be had at the moment."));
  throw new errors.CustomOIDCProviderError('invalid_grant', error.facts.told ? error.message : NOT_ACCEPTED);
}

/**
 * Makes a grant last as long as the tokens of this answer: a refresh token's lifetime, or without one the access token's.
 * Codes that are approved and never redeemed leave nothing behind.
 */
async function prolongGrant(
  { oidc }: KoaContextWithOIDC,
  { records, accessTokenTtl = ACCESS_TOKEN_TTL }: ProviderOptions,
): Promise<void> {
  const { Grant: grant, RefreshToken: refreshToken } = oidc.entities;
  if (grant?.iat === undefined || grant.exp === undefined) return;
  const missing = Math.max(refreshToken?.remainingTTL ?? 0, accessTokenTtl) - grant.remainingTTL;
  const end = Math.min(grant.exp + missing, grant.iat + LIFETIME_S.login);
  if (end > grant.exp) await records.prolong('Grant', hash(grant.jti), end * 1000);
}

/**
 * Ends a login by its access token (RFC 7009 §2): the only token of a login without `offline_access`. The library
 * refuses tokens that it has not stored.
 *
 * @returns whether it was one of this server's tokens; undefined for any other request
 */
async function revokeByAccessToken(
  context: KoaContextWithOIDC,
  { records, verify }: ProviderOptions,
): Promise<boolean | undefined> {
  const { oidc, body } = context;
  if (oidc?.route !== 'revocation' || !isObject(body) || body['error'] !== 'unsupported_token_type')
    return undefined;
  const claims = await verify(String(oidc.params?.['token'])).catch((error: unknown) => {
    if (error instanceof TokenError) return undefined;
    throw error;
  });
  const sid = claims?.['sid'];
  const isOurs = typeof sid === 'string' && claims?.['client_id'] === oidc.client?.clientId;
  // A job's token is of a rule, which ends all of its jobs' tokens: the library's refusal of its type is true (§2.2.1).
  if (isOurs && claims?.['limited_to'] !== undefined) return true;
  if (isOurs) await records.remove('Grant', sid);
  // An invalid token is not an error (§2.2): its login has ended already.
  context.status = 200;
  context.body = '';
  return isOurs;
}

/** Errors that an honest client gets while it waits for a person's decision (RFC 8628 §3.5). They count as right. */
const HONEST_ERRORS = ['authorization_pending', 'slow_down', 'access_denied', 'expired_token'];

/** Whether a code or token was right; a revocation says 200 to any (RFC 7009 §2.2). */
function isRight({ status, body, oidc }: KoaContextWithOIDC): boolean {
  if (status >= 500) return true;
  if (status === 200) return oidc?.route !== 'revocation' || oidc.entities.RefreshToken !== undefined;
  return isObject(body) && HONEST_ERRORS.includes(String(body['error']));
}

/** The grants that programs use. */
const FOR_PROGRAMS = ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'];

function clientsOf({ pageCallback, exchange }: ProviderOptions): Configuration['clients'] {
  const programs = [CLIENT_ID, CI_CLIENT_ID].map((id) => ({
    client_id: id,
    client_name: id,
    application_type: 'native' as const,
    grant_types: id === CI_CLIENT_ID && exchange ? [...FOR_PROGRAMS, TOKEN_EXCHANGE_GRANT] : FOR_PROGRAMS,
    response_types: [],
    redirect_uris: [],
  }));
  if (pageCallback === undefined) return programs;
  const page = {
    client_id: UI_CLIENT_ID,
    client_name: UI_CLIENT_ID,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code' as const],
    redirect_uris: [pageCallback],
  };
  return [...programs, page];
}

function configuration(options: ProviderOptions): Configuration {
  const { audience, key, users, pageCallback, accessTokenTtl = ACCESS_TOKEN_TTL } = options;
  const jwks: JWKS = { keys: [{ ...key, kty: 'EC', alg: 'ES256', use: 'sig' }] };
  return {
    adapter: (model: string) => createAdapter(model, options),
    jwks,
    clients: clientsOf(options),
    // No client here has a secret.
    clientAuthMethods: ['none'],
    clientDefaults: { token_endpoint_auth_method: 'none', id_token_signed_response_alg: 'ES256' },
    clientBasedCORS: () => false,
    responseTypes: pageCallback === undefined ? [] : ['code'],
    pkce: { required: () => true },
    scopes: [...ALL_SCOPES.split(' '), 'offline_access'],
    claims: { openid: ['sub', 'preferred_username'] },
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    features: {
      devInteractions: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      userinfo: { enabled: false },
      revocation: {
        enabled: true,
        allowedPolicy: async (_context, client, token) => token.clientId === client.clientId,
      },
      deviceFlow: { enabled: true, mask: CODE_MASK, deviceInfo: (context) => ({ ip: context.ip }) },
      resourceIndicators: {
        enabled: true,
        defaultResource: async () => audience,
        useGrantedResource: async () => true,
        getResourceServerInfo: async (_context, resource) => {
          if (resource !== audience) throw new errors.InvalidTarget();
          return {
            scope: ALL_SCOPES,
            audience,
            accessTokenTTL: accessTokenTtl,
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: 'ES256', kid: key.kid } },
          };
        },
      },
    },
    formats: {
      customizers: {
        jwt: async (_context, _token, jwt) => {
          jwt.header = { typ: 'JWT' };
        },
      },
    },
    extraTokenClaims: async (context, token) => {
      const { DeviceCode, AuthorizationCode, RefreshToken } = context.oidc.entities;
      const accountId = 'accountId' in token ? String(token.accountId) : '';
      return {
        // The services look up by it whether the login was ended; see `createSessions`.
        sid: 'grantId' in token && token.grantId !== undefined ? hash(token.grantId) : undefined,
        auth_time: (RefreshToken ?? DeviceCode ?? AuthorizationCode)?.authTime,
        preferred_username: (await users.withId(accountId))?.name,
      };
    },
    findAccount: async (_context, id) => {
      const found = await users.withId(id);
      if (!found) return undefined;
      return { accountId: id, claims: async () => ({ sub: id, preferred_username: found.name }) };
    },
    issueRefreshToken: async (_context, client, source) =>
      client.grantTypeAllowed('refresh_token') && source.scopes.has('offline_access'),
    rotateRefreshToken: ({ oidc }) => oidc.client?.clientId !== CI_CLIENT_ID,
    expiresWithSession: async () => false,
    routes: {
      authorization: AUTHORIZATION_PATH,
      token: '/token',
      device_authorization: '/device/auth',
      code_verification: '/device',
      revocation: '/token/revocation',
      jwks: KEY_SET_PATH,
    },
    ttl: {
      AccessToken: accessTokenTtl,
      IdToken: accessTokenTtl,
      DeviceCode: LIFETIME_S.deviceCode,
      AuthorizationCode: LIFETIME_S.authorizationCode,
      RefreshToken: (_context, _token, client) =>
        client.clientId === CI_CLIENT_ID ? LIFETIME_S.ciRefreshToken : LIFETIME_S.refreshToken,
      Grant: LIFETIME_S.grant,
      Session: 1,
      Interaction: 1,
    },
  };
}
