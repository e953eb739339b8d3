import { Failure, failureOrThrow, ownCommand, shellWord } from '../../contract/failure.ts';
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
import { claimedKind, type VerifiedToken } from '../../tokens/verify.ts';
import { isTyped } from '../command-line.ts';
import type { Context } from '../context.ts';
import { openProfiles } from '../global-options.ts';
import { unverified } from '../tokens.ts';

/** The session with whose trust a saved token is verified: with `--offline` the built-in server's. */
export function sessionForTokens({ flags, session }: Context): Promise<Session> {
  return session(flags.offline ? OFFLINE : undefined);
}

/**
 * Verifies a token that a person has. Its issuer must be one of the profile's services. With `--offline` the
 * stored key sets are used, and the built-in server is trusted too (cli/README.md, "Global flags").
 *
 * @param session of {@link sessionForTokens}
 * @param how `source` has the keys or the issuer, in place of the profile's services; with `evenExpired` it may have expired,
 *   and all else is checked
 * @throws Failure `unverified`; `keys_unreachable` where no keys can be had
 */
export async function verifySaved(
  context: Context,
  session: Session,
  token: string,
  { source = {}, evenExpired = false }: { source?: VerificationSource; evenExpired?: boolean } = {},
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
  return verified().catch((error: unknown) => {
    throw error instanceof TokenError ? explained(context, session, token, error) : error;
  });
}

/** The failure of a token that does not verify, with what a person can do: a verifier's own messages repeat no claim. */
function explained(
  { flags, typed }: Context,
  { profile: { name, baseUrl } }: Session,
  token: string,
  error: TokenError,
): Failure {
  const { code, message, cause } = error;
  const { iss, ...claims } = claimedClaims(token);
  const kind = claimedKind(claims);
  /** Advice where the command has the flag. */
  const by = (flag: string, advice: string): string =>
    typed.command.options.some(({ long }) => long === flag) ? ` ${advice}` : '';
  const failure = unverified(error);
  if (code === 'keys_unreachable') {
    const fix = cause instanceof Failure ? cause.facts.fix : undefined;
    const why = message + by('--jwks', 'Where its key set is in a file, --jwks FILE takes it from there.');
    return new Failure(code, 'The token could not be verified.', { why, fix, retryable: true, cause: error });
  }
  if (code === 'issuer' && iss === OFFLINE_URL && !flags.offline) {
    const why = 'The token says that it is of the built-in server, which is trusted with --offline only.';
    return failure.with({ why, fix: ownCommand('--offline', ...typed.texts) });
  }
  if (code === 'issuer' && isTyped(typed, 'issuer'))
    return failure.with({
      why: `${message} The token says ${JSON.stringify(iss)}.`,
      fix: { issuer: undefined },
    });
  if (code === 'issuer') {
    const own = kind === 'user' ? `, or slices-conn profile set ${shellWord(name)} issuer=URL` : '';
    const chosen = `The token says ${JSON.stringify(iss)}. --profile chooses the services that are trusted.`;
    const why = `${message} ${chosen}${by('--issuer', `To accept that issuer: --issuer URL${own}.`)}`;
    return failure.with({ why, fix: 'slices-conn profile list' });
  }
  if (code !== 'signature' && code !== 'key_unknown') return failure;
  const isShown = code === 'key_unknown' && iss === baseUrl && kind === 'connectivity';
  const ofUser =
    'Each user has a built-in server of their own, with its key below HOME or XDG_STATE_HOME: with sudo it is root’s.';
  return failure.with({
    why: iss === OFFLINE_URL ? `${message} ${ofUser}` : message,
    fix: isShown ? ownCommand('show', String(claims['sub'])) : undefined,
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
  // A profile in use that can't be read is a failure: else a token of its service would seem to have an unknown issuer.
  const used = await profiles.resolve(flags.profile);
  const names = flags.profile === undefined ? profiles.names() : [];
  // Another one that is not complete has no keys either.
  const others = await Promise.all(names.map((name) => profiles.resolve(name).catch(failureOrThrow)));
  const stored = keySetFiles(env.folders.cache);
  const onStale = (url: string, age: number): void => output.notice(staleKeys(url, age));
  const keysOf = (issuer: string): KeySet => keptKeys(issuer, { stored, now, onStale });
  const trusted = [used, ...others].flatMap((profile) =>
    profile instanceof Failure ? [] : [trustIn(profile, keysOf, now)],
  );
  const builtIn = session.trust('service').issuers;
  // The built-in server's own keys go before copies of them.
  return [[...trusted, session.trust].reduce(union), (issuer) => builtIn.get(issuer) ?? keysOf(issuer)];
}
