import { randomBytes } from 'node:crypto';
import { HOUR } from '../../contract/durations.ts';
import { isWithin } from '../../contract/instants.ts';
import type { Users } from '../portal/users.ts';
import type { Site } from '../ui/page.ts';
import { approve } from './approval.ts';
import {
  ATTEMPT_WINDOW,
  AUTHORIZATION_PATH,
  createAttemptCounter,
  endpointLimits,
} from './attempt-limits.ts';
import { createAuthorizationPage } from './authorization-page.ts';
import { createDevicePage } from './device-page.ts';
import { createProvider, type ProviderOptions } from './provider.ts';
import { createProviderEndpoints, type IdentityAnswer } from './provider-endpoints.ts';
import type { Person } from './user-token.ts';

/** Options of {@link createIdentityProvider}. */
export interface IdentityProviderOptions
  extends Omit<ProviderOptions, 'interval' | 'secret' | 'onDeviceCode'> {
  users: Users;
  /** Who serves the page. */
  site: Site;
  /** Approves every device code at once as this person: for scripts, on loopback only. */
  autoApprove?: Person;
}

/** The identity provider: its OAuth endpoints and the pages for people. */
export type IdentityProvider = Awaited<ReturnType<typeof createIdentityProvider>>;

/** Least time between two polls (RFC 8628 §3.2), in milliseconds: 5 s, and 1 s where codes are approved at once. */
const INTERVAL = { people: 5000, scripts: 1000 } as const;

/**
 * The identity provider (contract/README.md, "The reference server"): device login by a certified library, which stores its
 * records through our adapter; the page for people is ours. Loaded only by a server with a socket.
 */
export async function createIdentityProvider(options: IdentityProviderOptions) {
  const { issuer, records, now, autoApprove, pageCallback } = options;
  const count = createAttemptCounter(records, now);
  let purgedAt = Number.NEGATIVE_INFINITY;
  const purge = async (): Promise<void> => {
    if (isWithin(purgedAt, PURGE_EVERY, now())) return;
    purgedAt = now();
    await records.purge(purgedAt - PURGE_MARGIN, purgedAt - 2 * ATTEMPT_WINDOW);
  };
  await purge();
  const provider = createProvider({
    ...options,
    interval: autoApprove ? INTERVAL.scripts : INTERVAL.people,
    secret: await records.secret('refresh-token-successor', randomBytes(32)),
    onDeviceCode: async (code) => {
      if (autoApprove) await approve(code, autoApprove, forPages);
    },
  });
  const forPages = { ...options, provider, count };
  const { endpoints, fetch } = createProviderEndpoints(provider, issuer, async (path, address) => {
    // Every request removes expired records now and then, so that the table does not grow without end.
    await purge();
    return count(endpointLimits(path, address));
  });
  /** Each by its path below the issuer. */
  const answers: Record<string, IdentityAnswer> = { ...endpoints, '/device': createDevicePage(forPages) };
  if (pageCallback !== undefined) {
    answers[AUTHORIZATION_PATH] = createAuthorizationPage(forPages, pageCallback);
  }
  return { answers, fetch };
}

/** How often expired records are removed, in milliseconds. */
const PURGE_EVERY = 600_000;

/**
 * An expired code is kept for an hour, so that its page can say that it expired. Milliseconds. With 6,000 codes in 10
 * minutes at most, and 10 minutes between two purges, there are never more than 54,000, of 4 KiB each.
 */
const PURGE_MARGIN = HOUR;
