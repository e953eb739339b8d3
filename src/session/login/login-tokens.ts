import type { IdentityClient, IssuedTokens } from '../../client/identity.ts';
import { MINUTE } from '../../contract/durations.ts';
import { Failure, mayBeRepeated } from '../../contract/failure.ts';
import { isWithin } from '../../contract/instants.ts';
import type { Secret } from '../../contract/secret.ts';
import { claimedExpiry, claimedIssue } from '../../tokens/claimed.ts';
import { renewing } from '../../tokens/shared-copy.ts';
import type { Profile } from '../profiles/profiles.ts';
import { type Credentials, isAlmostOver, type StoredCredentials } from './credentials.ts';
import type { TokenSource } from './token-source.ts';

/** Whether a token is almost over by its own claims; see {@link isAlmostOver}. @param now milliseconds */
export function isSpent(token: Secret, now: number): boolean {
  const text = token.reveal();
  return isAlmostOver({ issuedAt: claimedIssue(text) ?? 0, expiresAt: claimedExpiry(text) }, now);
}

/**
 * The same source, asked once in a command however often its token is sent, and again when that is almost
 * over: a command may run for hours. A source that gives short tokens only is asked once a minute.
 *
 * @param now milliseconds
 */
export function remembered(source: TokenSource, now: () => number): TokenSource {
  const isGood = (token: Secret, askedAt: number): boolean =>
    source.isFixed || isWithin(askedAt, MINUTE, now()) || !isSpent(token, now());
  return { ...source, get: renewing(() => source.get(), isGood, now) };
}

/**
 * The same source, whose token is kept on this machine until it is almost over: a program may take seconds to give one. A token
 * that does not say when it ends is not kept.
 *
 * @param credentials where it is kept. Where that can't be written, the source is asked each time
 * @param now milliseconds
 */
export function keptToken(source: TokenSource, credentials: Credentials, now: () => number): TokenSource {
  return {
    ...source,
    async get() {
      let given: Secret | undefined;
      try {
        const kept = await credentials.renewed(now, async () => {
          given = await source.get();
          const expiresAt = claimedExpiry(given.reveal());
          if (expiresAt === undefined) return undefined;
          return storedFrom({ accessToken: given, refreshToken: undefined, expiresAt }, now());
        });
        return given ?? kept?.accessToken ?? source.get();
      } catch (error) {
        if (given) return given;
        if (error instanceof Failure && error.code === 'state_unusable') return source.get();
        throw error;
      }
    },
  };
}

/** The identity provider of a profile, as far as it is asked. */
export interface ProviderOptions<Asked extends keyof IdentityClient> {
  profile: Profile;
  identity: () => Promise<Pick<IdentityClient, Asked>>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** A login at a provider, and where it is kept. */
export type LoginOptions<Asked extends keyof IdentityClient> = ProviderOptions<Asked> & {
  credentials: Credentials;
};

/**
 * The user token of the profile's login, refreshed when it is almost over. The one place where a token is
 * refreshed: one process at a time, each looking first at what the one before it left (THREATS.md 13, 14,
 * 18), and after the disk has taken a file as large as the answer.
 *
 * @throws Failure `not_logged_in`, `token_expired` with what to type; `unavailable` or `network` when the
 *   provider can't be asked, `state_unusable` when its answer could not be stored: each leaves the session as it is
 */
export async function loginToken(options: LoginOptions<'refresh'>): Promise<Secret> {
  const { profile, credentials, now } = options;
  const stored = credentials.known();
  if (!stored) throw notLoggedIn(profile);
  try {
    const refreshed = await credentials.renewed(now, async (current, takeRoom) => {
      if (!current) throw notLoggedIn(profile);
      return refresh(current, takeRoom, options);
    });
    return refreshed.accessToken;
  } catch (error) {
    const isUnkept = error instanceof Failure && error.code === 'state_unusable';
    // The disk may have room again before the token is over.
    if (isUnkept && stored.expiresAt !== undefined && stored.expiresAt > now()) return stored.accessToken;
    throw error;
  }
}

async function refresh(
  current: StoredCredentials,
  takeRoom: () => void,
  { profile, credentials, identity, now }: LoginOptions<'refresh'>,
): Promise<StoredCredentials> {
  const stillValid = current.expiresAt === undefined || current.expiresAt > now();
  if (current.refreshToken === undefined) {
    if (stillValid) return current;
    throw new Failure('token_expired', `Your login to ${profile.baseUrl} has expired.`, {
      fix: 'slices-conn login',
    });
  }
  try {
    const client = await identity();
    // Once it is sent, only the answer is worth anything.
    takeRoom();
    const tokens = await client.refresh(current.refreshToken);
    const { portalTokens, loggedInAt } = current;
    const renewed = { ...storedFrom(tokens, now()), portalTokens, loggedInAt };
    // Without a new refresh token the old one stays (RFC 6749 §6).
    return { ...renewed, refreshToken: tokens.refreshToken ?? current.refreshToken };
  } catch (error) {
    // A refresh whose answer got lost can be repeated (THREATS.md 31).
    if (mayBeRepeated(error)) {
      // The provider may be back before the token is over.
      if (stillValid) return current;
      const { message, code, facts } = error;
      const { httpStatus } = facts;
      throw new Failure(code, "Your login can't be renewed at the moment.", {
        why: message,
        retryable: true,
        httpStatus,
      });
    }
    const over = error instanceof Failure && error.code === 'not_logged_in';
    const again = over ? credentials.read() : undefined;
    // Another machine that shares this home folder may have been first; its lock is not always seen from
    // here.
    if (again && again.refreshToken?.reveal() !== current.refreshToken.reveal()) return again;
    throw error;
  }
}

/** Credentials as a login or a refresh gives them. @param now milliseconds */
export function storedFrom(tokens: IssuedTokens, now: number): StoredCredentials {
  const { accessToken, refreshToken, expiresAt } = tokens;
  return {
    accessToken,
    issuedAt: now,
    loggedInAt: now,
    portalTokens: {},
    refreshToken,
    expiresAt,
  };
}

/** The failure of a command that needs a login. */
export function notLoggedIn({ name, baseUrl, redirectedBy = [] }: Profile): Failure {
  const why = `The token commands of profile ${name} are for its own services, but ${redirectedBy.join(' and ')} names another.`;
  return new Failure('not_logged_in', `You are not logged in to ${baseUrl}.`, {
    why: redirectedBy.length === 0 ? undefined : why,
    fix: redirectedBy.length === 0 ? 'slices-conn login' : `unset ${redirectedBy.join(' ')}`,
  });
}

/** The tokens that the portal gave the user who is logged in, until they are almost over. */
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
    const stored = credentials.known();
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
        // Another user may have logged in meanwhile, or this one out: the token is not theirs.
        if (!current || current.loggedInAt !== login) return current;
        return { ...current, portalTokens: { ...good(current.portalTokens, now()), [id]: token } };
      });
    },
  };
}

function good(tokens: Readonly<Record<string, Secret>>, now: number): Record<string, Secret> {
  return Object.fromEntries(
    Object.entries(tokens).filter(([, token]) => {
      const isDated = [claimedIssue, claimedExpiry].every((claimed) => claimed(token.reveal()) !== undefined);
      return isDated && !isSpent(token, now);
    }),
  );
}
