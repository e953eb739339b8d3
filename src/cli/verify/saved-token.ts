import { Failure, failureOrThrow, ownCommand } from '../../contract/failure.ts';
import {
  keptKeys,
  keySetFiles,
  type TrustByKind,
  trustIn,
  union,
  type VerificationSource,
  verifyAny,
} from '../../session/login/trust.ts';
import { OFFLINE, OFFLINE_URL } from '../../session/profiles/profile-keys.ts';
import { type Session, staleKeys } from '../../session/session.ts';
import { claimedClaims, claimedExpiry } from '../../tokens/claimed.ts';
import type { KeySet } from '../../tokens/key-set.ts';
import { TokenError } from '../../tokens/token-error.ts';
import type { VerifiedToken } from '../../tokens/verify.ts';
import type { Context } from '../context.ts';
import { openProfiles } from '../global-options.ts';
import { checkedToken } from '../tokens.ts';

/** The session with whose trust a saved token is verified: with `--offline` the built-in server's. */
export function sessionForTokens({ flags, session }: Context): Promise<Session> {
  return session(flags.offline ? OFFLINE : undefined);
}

/** How a saved token is verified. */
interface SavedTokenOptions {
  /** The keys or the issuer, in place of the profile's services. */
  source?: VerificationSource;
  /** Whether it may have expired. All else is checked. Default false. */
  evenExpired?: boolean;
}

/**
 * Verifies a token that a person has. Its issuer must be one of the profile's services. With `--offline` the
 * stored key sets are used, and the built-in server is trusted too (cli/README.md, "Global flags").
 *
 * @param session of {@link sessionForTokens}
 * @throws Failure `unverified`; `keys_unreachable` where no keys can be had
 */
export async function verifySaved(
  context: Context,
  session: Session,
  token: string,
  { source = {}, evenExpired = false }: SavedTokenOptions = {},
): Promise<VerifiedToken> {
  const expiry = evenExpired ? claimedExpiry(token) : undefined;
  /** The same issuers, with another clock for a token that may have expired. */
  const at = (trust: TrustByKind): TrustByKind =>
    expiry === undefined
      ? trust
      : (kind) => ({ ...trust(kind), now: () => Math.min(context.clock.now(), expiry - 1) });
  const verified = async (): Promise<VerifiedToken> => {
    const [trust, keysOf] = context.flags.offline
      ? await offlineTrust(context, session)
      : [session.trust, (issuer: string) => session.keysOf(issuer)];
    return verifyAny(token, at(trust), source, keysOf);
  };
  return checkedToken(verified).catch((error: unknown) => {
    throw error instanceof Failure && error.cause instanceof TokenError
      ? explained(context, error, error.cause, token)
      : error;
  });
}

/** A failure to verify with advice about the issuer that the token claims, or as one to get keys. */
function explained(
  { flags, typed }: Context,
  error: Failure,
  { code, message, cause }: TokenError,
  token: string,
): Failure {
  if (code === 'keys_unreachable') {
    const fix = cause instanceof Failure ? cause.facts.fix : undefined;
    const facts = { ...error.facts, fix, retryable: true };
    return new Failure('keys_unreachable', 'The token could not be verified.', facts);
  }
  const { iss } = claimedClaims(token);
  if (code === 'issuer' && iss === OFFLINE_URL && !flags.offline) {
    return error.with({
      why: 'The token says that it is of the built-in server, which is trusted with --offline only.',
      fix: ownCommand('--offline', ...typed.texts),
      cause: undefined,
    });
  }
  if (code === 'issuer') {
    return error.with({
      why: `${message} The token says ${JSON.stringify(iss)}. --profile chooses the services that are trusted.`,
      fix: 'slices-conn profile list',
    });
  }
  if (iss !== OFFLINE_URL || !['signature', 'key_unknown'].includes(code)) return error;
  return error.with({
    why: `${message} Each user has a built-in server of their own, with its key below HOME or XDG_STATE_HOME: with sudo it is root’s.`,
  });
}

/**
 * The issuers for --offline: the built-in server, and the profiles' services with the stored key sets. Any other issuer's keys
 * are those stored here, too.
 */
async function offlineTrust(
  context: Context,
  session: Session,
): Promise<[TrustByKind, (issuer: string) => KeySet]> {
  const { env, clock, flags, output } = context;
  const { now } = clock;
  const profiles = await openProfiles(context);
  const chosen = await profiles.resolve(flags.profile);
  const names = flags.profile === undefined ? profiles.names() : [];
  // One that is not complete has no keys either.
  const others = await Promise.all(names.map((name) => profiles.resolve(name).catch(failureOrThrow)));
  const stored = keySetFiles(env.folders.cache);
  const onStale = (url: string, age: number): void => output.notice(staleKeys(url, age));
  const keysOf = (issuer: string): KeySet => keptKeys(issuer, { stored, now, onStale });
  const trusted = [chosen, ...others].flatMap((profile) =>
    profile instanceof Failure ? [] : [trustIn(profile, keysOf, now)],
  );
  const builtIn = session.trust('service').issuers;
  // The built-in server's own keys go before copies of them.
  return [[...trusted, session.trust].reduce(union), (issuer) => builtIn.get(issuer) ?? keysOf(issuer)];
}
