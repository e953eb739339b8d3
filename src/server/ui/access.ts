import type { Hono } from 'hono';
import { issuersFor } from '../../contract/addresses.ts';
import { boundedFetch } from '../../contract/bounded.ts';
import type { UserClaims } from '../../contract/claims.ts';
import { authenticateUser, type ServiceTrust } from '../credentials.ts';
import { AUTHORIZATION_PATH } from '../identity/attempt-limits.ts';
import { UI_CLIENT_ID } from '../identity/user-token.ts';
import type { ServiceAddresses } from '../keys/service-issuer.ts';
import type { ApiGroups } from '../routing.ts';
import { type ForeignIssuers, ISSUER_TIMEOUT, MAX_ISSUER_REPLY, trustedIssuers } from '../trust.ts';
import { cookiesWork, createLogin } from './login.ts';
import type { Site } from './page.ts';
import { createPassedRequests } from './passed-requests.ts';
import { createPageClient, discovered } from './provider-client.ts';
import { createPageSessions, type PageSessionStore } from './sessions.ts';

/** Options of {@link createPageAccess}. */
export interface PageAccessOptions {
  site: Site;
  addresses: ServiceAddresses;
  groups: ApiGroups;
  /** Answers a request to this server, in this process. */
  within: (request: Request) => Promise<Response>;
  trust: ServiceTrust;
  store: PageSessionStore;
  /** The issuers that are trusted elsewhere, and the page's own client at their identity provider, if it has one. */
  foreign?: { issuers: ForeignIssuers; clientId: string | undefined } | undefined;
  /** Sends a request to this server's own identity provider, in this process. */
  askProvider: (request: Request) => Promise<Response>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** Where a login to the page goes on: the `redirect_uri` of its client. */
export function pageCallback(baseUrl: string): string {
  return `${baseUrl}/ui/callback`;
}

/** The identity provider of issuers elsewhere, whose requests reach their portal too. @param authUrl `{auth_url}` */
function foreignProvider({ audience, ...trust }: ForeignIssuers, clientId: string, authUrl: string) {
  const send = boundedFetch(trust.fetch ?? ((request) => fetch(request)), {
    timeout: ISSUER_TIMEOUT,
    most: MAX_ISSUER_REPLY,
  });
  const issuers = issuersFor('user', trustedIssuers(trust));
  return {
    fetch: send,
    clientId,
    metadata: () => discovered(authUrl, issuers, send),
    // RFC 8707 §2: an absolute address.
    ...(audience !== undefined && URL.canParse(audience) ? { resource: audience } : {}),
  };
}

/** This server's own identity provider, in this process. @param issuer `{auth_url}` */
function ownProvider(issuer: string, askProvider: PageAccessOptions['askProvider']) {
  return {
    fetch: askProvider,
    clientId: UI_CLIENT_ID,
    metadata: async () => ({
      issuer,
      authorization_endpoint: issuer + AUTHORIZATION_PATH,
      token_endpoint: `${issuer}/token`,
      revocation_endpoint: `${issuer}/token/revocation`,
      id_token_signing_alg_values_supported: ['ES256'],
      authorization_response_iss_parameter_supported: true,
    }),
  };
}

/** The parts that logins to the page need; undefined where there is no client, or browsers would keep no cookie. */
export function createPageAccess(options: PageAccessOptions): { login: Hono; requests: Hono } | undefined {
  const { site, addresses, groups, within, trust, store, foreign, now } = options;
  if ((foreign && foreign.clientId === undefined) || !cookiesWork(site.baseUrl)) return undefined;
  const provider =
    foreign?.clientId === undefined
      ? ownProvider(addresses.identity, options.askProvider)
      : foreignProvider(foreign.issuers, foreign.clientId, addresses.identity);
  const client = createPageClient({ redirectUri: pageCallback(site.baseUrl), now, ...provider });
  const sessions = createPageSessions({ store, baseUrl: site.baseUrl, client, now });
  const accept = (access: string): Promise<UserClaims> =>
    authenticateUser(
      new Request(site.baseUrl, { headers: { authorization: `Bearer ${access}` } }),
      trust,
      'projects',
    );
  const portal = foreign ? provider.fetch : within;
  return {
    login: createLogin({ site, client, sessions, accept, now }),
    requests: createPassedRequests({ addresses, groups, within, portal, accept, sessions, now }),
  };
}
