import { claimedExpiry, claimedIssue } from '../../client/claimed.ts';
import type { Secret } from '../../contract/secret.ts';
import type { Credentials } from './credentials.ts';
import { isAlmostOver } from './lifetime.ts';

/** The project and experiment tokens that the portal gave the user who is logged in, until they are almost over. */
export interface PortalTokens {
  /** @param id a project's or an experiment's */
  read(id: string): Secret | undefined;
  /** All that are good still, by id. */
  all(): ReadonlyMap<string, Secret>;
  keep(id: string, token: Secret): Promise<void>;
}

/** See {@link PortalTokens}; kept with the login, and forgotten with it. @param now milliseconds */
export function portalTokens(credentials: Credentials, now: () => number): PortalTokens {
  let login: number | undefined;
  const all = (): ReadonlyMap<string, Secret> => {
    const stored = credentials.read();
    login ??= stored?.loggedInAt;
    if (stored?.loggedInAt !== login) return new Map();
    return new Map(Object.entries(good(stored?.portalTokens ?? {}, now())));
  };
  return {
    all,
    read: (id) => all().get(id),
    async keep(id, token) {
      all();
      await credentials.change((current) => {
        // Somebody else may have logged in, or out, in the meantime: then it is not theirs.
        if (!current || current.loggedInAt !== login) return current;
        return { ...current, portalTokens: { ...good(current.portalTokens, now()), [id]: token } };
      });
    },
  };
}

function good(tokens: Readonly<Record<string, Secret>>, now: number): Record<string, Secret> {
  return Object.fromEntries(
    Object.entries(tokens).filter(([, token]) => {
      const [issuedAt, expiresAt] = [claimedIssue(token.reveal()), claimedExpiry(token.reveal())];
      return issuedAt !== undefined && expiresAt !== undefined && !isAlmostOver({ issuedAt, expiresAt }, now);
    }),
  );
}
