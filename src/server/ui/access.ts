import type { Hono } from 'hono';
import { issuersFor } from '../../contract/addresses.ts';
import { boundedFetch } from '../../contract/bounded.ts';
import type { UserClaims } from '../../contract/claims.ts';
import { authenticateUser, type ServiceTrust } from '../credentials.ts';
import { AUTHORIZATION_PATH } from '../identity/attempt-limits.ts';
import { UI_CLIENT_ID } from '../identity/user-token.ts';
import type { ServiceAddresses } from '../keys/service-issuer.ts';
import type { Log } from '../log.ts';
import type { ApiGroups } from '../routing.ts';
import { type ForeignIssuers, ISSUER_TIMEOUT, MAX_ISSUER_REPLY, trustedIssuers } from '../trust.ts';
import { cookiesWork, createLogin } from './login.ts';
import type { Site } from './page.ts';
import { createPassedRequests } from './passed-requests.ts';
import { createPageClient, discovered, type PageClientOptions } from './provider-client.ts';
import { createPageSessions, type PageSessionStore } from './sessions.ts';

/** The identity provider that the page logs in at: this server's own, in this process, or that of foreign issuers. */
export interface PageProvider extends Pick<PageClientOptions, 'fetch'> {
  /** Of foreign issuers: its client for the page, its metadata, and the `resource` of its tokens. `fetch` then reaches their portal too. */
  foreignProvider?: Pick<PageClientOptions, 'clientId' | 'metadata' | 'resource'>;
}

/** Options of {@link createPageAccess}. */
export interface PageAccessOptions {
  site: Site;
  addresses: ServiceAddresses;
  groups: ApiGroups;
  /** Answers a request to this server, in this process. */
  within: (request: Request) => Promise<Response>;
  trust: ServiceTrust;
  store: PageSessionStore;
  /** Undefined where the page has no client there. */
  provider: PageProvider | undefined;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  log: Log;
}

/** Where a login to the page goes on: the `redirect_uri` of its client. */
export function pageCallback(baseUrl: string): string {
  return `${baseUrl}/ui/callback`;
}

/**
 * The identity provider of foreign issuers.
 *
 * @param authUrl `{auth_url}`
 * @param clientId the page's own client there
 * @returns undefined where the page has no client there
 */
export function foreignPageProvider(
  trust: ForeignIssuers,
  authUrl: string,
  clientId: string | undefined,
): PageProvider | undefined {
  if (clientId === undefined) return undefined;
  const send = boundedFetch(trust.fetch ?? ((request) => fetch(request)), {
    timeout: ISSUER_TIMEOUT,
    most: MAX_ISSUER_REPLY,
  });
  const issuers = issuersFor('user', trustedIssuers(trust));
  const { audience } = trust;
  return {
    fetch: send,
    foreignProvider: {
      clientId,
      metadata: () => discovered(authUrl, issuers, send),
      // RFC 8707 §2: an absolute address.
      ...(audience !== undefined && URL.canParse(audience) ? { resource: audience } : {}),
    },
  };
}

/** The parts that logins to the page need; undefined where there is no client, or browsers would keep no cookie. */
export function createPageAccess(options: PageAccessOptions): { login: Hono; requests: Hono } | undefined {
  const { site, addresses, groups, within, trust, store, provider, now, log } = options;
  if (!provider || !cookiesWork(site.baseUrl)) return undefined;
  const issuer = addresses.identity;
  const client = createPageClient({
    redirectUri: pageCallback(site.baseUrl),
    fetch: provider.fetch,
    now,
    ...(provider.foreignProvider ?? {
      clientId: UI_CLIENT_ID,
      metadata: async () => ({
        issuer,
        authorization_endpoint: issuer + AUTHORIZATION_PATH,
        token_endpoint: `${issuer}/token`,
        revocation_endpoint: `${issuer}/token/revocation`,
        id_token_signing_alg_values_supported: ['ES256'],
        authorization_response_iss_parameter_supported: true,
      }),
    }),
  });
  const sessions = createPageSessions({ store, baseUrl: site.baseUrl, client, now, log });
  const accept = (access: string): Promise<UserClaims> =>
    authenticateUser(
      new Request(site.baseUrl, { headers: { authorization: `Bearer ${access}` } }),
      trust,
      'projects',
    );
  const portal = provider.foreignProvider ? provider.fetch : within;
  return {
    login: createLogin({ site, client, sessions, accept, now }),
    requests: createPassedRequests({ addresses, groups, within, portal, accept, sessions, now }),
  };
}
