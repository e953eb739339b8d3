import { randomBytes } from 'node:crypto';
import type { UserClaims } from '../../contract/claims.ts';
import { HOUR } from '../../contract/durations.ts';
import { isWithin } from '../../contract/instants.ts';
import type { PrivateJwk } from '../../tokens/signing-key.ts';
import type { Log } from '../log.ts';
import type { Users } from '../portal/users.ts';
import type { Site } from '../ui/page.ts';
import { createApproval } from './approval.ts';
import {
  ATTEMPT_WINDOW,
  createAttemptCounter,
  createEndpointGuard,
  type EndpointGuard,
} from './attempt-limits.ts';
import { createAuthorizationPage } from './authorization-page.ts';
import { createDevicePage } from './device-page.ts';
import type { LoginPage } from './form-page.ts';
import { createProvider } from './provider.ts';
import {
  AUTHORIZATION_PATH,
  createProviderEndpoints,
  type ProviderEndpoints,
  providerInProcess,
} from './provider-endpoints.ts';
import type { IdentityRecords } from './records.ts';
import type { TokenExchange } from './token-exchange.ts';
import type { Person } from './user-token.ts';

/** Options of {@link createIdentityProvider}. */
export interface IdentityProviderOptions {
  /** `{auth_url}`. */
  issuer: string;
  /** `{base_url}`: the `aud` of user tokens. */
  audience: string;
  key: PrivateJwk;
  records: IdentityRecords;
  users: Users;
  /** Who serves the page. */
  site: Site;
  /** Exchanges ID tokens of CI jobs; undefined where none are taken. */
  exchange?: TokenExchange;
  /** Verifies one of its own access tokens. @throws TokenError */
  verify: (token: string) => Promise<UserClaims>;
  /** Where a login to this server's own page goes on; undefined where there is no page. */
  pageCallback?: string;
  /** Lifetime of a user token in seconds. */
  accessTokenTtl?: number;
  /** Approves every device code at once as this person: for scripts, on loopback only. */
  autoApprove?: Person;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  log: Log;
}

/** The identity provider: its OAuth endpoints, which need a socket, and the pages for people. */
export interface IdentityProvider {
  endpoints: ProviderEndpoints;
  /** The pages, by their paths below the issuer. */
  pages: Readonly<Record<string, LoginPage>>;
  /** Answers requests of this process to the endpoints, without a socket. */
  fetch(request: Request): Promise<Response>;
}

/** Least time between two polls (RFC 8628 §3.2), in milliseconds: 5 s, and 1 s where codes are approved at once. */
const INTERVAL = { people: 5000, scripts: 1000 } as const;

/**
 * The identity provider (contract/README.md, "The reference server"): device login by a certified library, which stores its
 * records through our adapter; the page for people is ours. Loaded only by a server with a socket.
 */
export async function createIdentityProvider(options: IdentityProviderOptions): Promise<IdentityProvider> {
  const { issuer, audience, records, now, autoApprove } = options;
  let purgedAt = Number.NEGATIVE_INFINITY;
  const purge = async (): Promise<void> => {
    if (isWithin(purgedAt, PURGE_EVERY, now())) return;
    purgedAt = now();
    await records.purge(purgedAt - PURGE_MARGIN, purgedAt - 2 * ATTEMPT_WINDOW);
  };
  await purge();
  const limits = createEndpointGuard(records, now);
  const guard: EndpointGuard = {
    ...limits,
    // Every request removes expired records now and then, so that the table does not grow without end.
    admit: async (...args) => {
      await purge();
      return limits.admit(...args);
    },
  };
  const provider = createProvider({
    ...options,
    interval: autoApprove ? INTERVAL.scripts : INTERVAL.people,
    secret: await records.secret('refresh-token-successor', randomBytes(32)),
    guard,
    onDeviceCode: async (code) => {
      if (autoApprove) await approval.approve(code, autoApprove);
    },
  });
  const approval = createApproval(provider, audience, options);
  const { users, site, pageCallback: callback, log } = options;
  const attempts = createAttemptCounter(records, now);
  const forPages = { provider, attempts, users, site, issuer };
  return {
    endpoints: createProviderEndpoints(provider, issuer, guard),
    pages: {
      '/device': createDevicePage({
        ...forPages,
        approval,
        secret: await records.secret('device-page', randomBytes(32)),
      }),
      ...(callback === undefined
        ? {}
        : {
            [AUTHORIZATION_PATH]: createAuthorizationPage({ ...forPages, audience, callback, now, log }),
          }),
    },
    fetch: providerInProcess(provider, issuer),
  };
}

/** How often expired records are removed, in milliseconds. */
const PURGE_EVERY = 600_000;

/**
 * An expired code is kept for an hour, so that its page can say that it expired. Milliseconds. With 6,000 codes in 10
 * minutes at most, and 10 minutes between two purges, there are never more than 54,000, of 4 KiB each.
 */
const PURGE_MARGIN = HOUR;
