import { Failure, ownCommand } from '../../contract/failure.ts';
import {
  byKind,
  type TrustByKind,
  union,
  type VerificationSource,
  verifyAny,
} from '../../session/login/trust.ts';
import { OFFLINE, OFFLINE_URL } from '../../session/profiles/profile-keys.ts';
import type { Session } from '../../session/session.ts';
import { claimedClaims, claimedExpiry } from '../../tokens/claimed.ts';
import type { KeySet } from '../../tokens/key-set.ts';
import { TokenError } from '../../tokens/token-error.ts';
import type { VerifiedToken } from '../../tokens/verify.ts';
import type { Invocation } from '../invocation.ts';
import { checkedToken } from '../tokens.ts';

/** The session with whose trust a saved token is verified: with `--offline` the built-in server's. */
export function sessionForTokens({ flags, session }: Invocation): Promise<Session> {
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
  invocation: Invocation,
  session: Session,
  token: string,
  { source = {}, evenExpired = false }: SavedTokenOptions = {},
): Promise<VerifiedToken> {
  const expiry = evenExpired ? claimedExpiry(token) : undefined;
  const at = (trust: TrustByKind): TrustByKind =>
    expiry === undefined ? trust : seenAt(trust, () => Math.min(invocation.now(), expiry - 1));
  const verified = async (): Promise<VerifiedToken> => {
    if (!invocation.flags.offline) return session.verify(token, source, at(session.trust));
    const [trust, keysOf] = await offlineTrust(invocation, session);
    return verifyAny(token, at(trust), source, keysOf);
  };
  return checkedToken(verified).catch((error: unknown) => {
    if (
      error instanceof Failure &&
      error.cause instanceof TokenError &&
      error.cause.code === 'keys_unreachable'
    ) {
      const { cause, facts } = error;
      const fix =
        cause instanceof TokenError && cause.cause instanceof Failure ? cause.cause.facts.fix : undefined;
      throw new Failure('keys_unreachable', 'The token could not be verified.', {
        ...facts,
        fix,
        retryable: true,
        cause,
      });
    }
    throw ofBuiltInServer(invocation, error, token);
  });
}

/** Adds advice to a failure about a token that claims to be from a built-in server. */
function ofBuiltInServer({ flags, typed }: Invocation, error: unknown, token: string): unknown {
  if (!(error instanceof Failure && error.cause instanceof TokenError)) return error;
  const { code, message } = error.cause;
  if (claimedClaims(token)['iss'] !== OFFLINE_URL) return error;
  if (code === 'issuer' && !flags.offline) {
    return new Failure('unverified', error.message, {
      why: 'The token says that it is of the built-in server, which is trusted with --offline only.',
      fix: ownCommand('--offline', ...typed),
    });
  }
  if (code !== 'signature' && code !== 'key_unknown') return error;
  return error.with({
    why: `${message} Each user has a built-in server of their own, with its key below HOME or XDG_STATE_HOME: with sudo it is root’s.`,
  });
}

/** The issuers for --offline: the built-in server, and the profiles' services with the stored key sets. */
async function offlineTrust(
  invocation: Invocation,
  session: Session,
): Promise<[TrustByKind, (issuer: string) => KeySet]> {
  const { trust, keysOf } = await invocation.keptTrust();
  const builtIn = session.trust.service.issuers;
  // The built-in server's own keys go before copies of them.
  return [union(trust, session.trust), (issuer) => builtIn.get(issuer) ?? keysOf(issuer)];
}

/** The same issuers, with another clock for a token's times. */
function seenAt(trust: TrustByKind, now: () => number): TrustByKind {
  return byKind((kind) => ({ ...trust[kind], now }));
}
