import { readCompact } from '../../tokens/compact.ts';
import type { KeySet } from '../../tokens/key-set.ts';
import { type VerifiedToken, verifyToken } from '../../tokens/verifier.ts';
import { claimedKind, type TokenKind, type Trust } from '../../tokens/verify.ts';

/** Which keys to verify with, where the profile's own services are not meant. */
export interface VerificationSource {
  /** The keys to use, whoever published them. */
  keys?: KeySet;
  /** The one issuer to accept. */
  issuer?: string;
}

/**
 * Verifies a token of any kind. Its issuer must be the one of the profile that issues such tokens, unless the caller
 * names another or brings the keys; then the token's own `iss` must still be the one named, where one is.
 *
 * @param issuerKeys the keys of an issuer that the caller named
 * @throws TokenError with the reason
 */
export async function verifyAny(
  token: string,
  trust: Readonly<Record<TokenKind, Trust>>,
  source: VerificationSource,
  issuerKeys: (issuer: string) => KeySet,
): Promise<VerifiedToken> {
  const { claims } = readCompact(token);
  const own = trust[claimedKind(claims)];
  if (source.keys === undefined && source.issuer === undefined) return verifyToken(token, own);
  const issuer = source.issuer ?? String(claims['iss']);
  const keys = source.keys ?? issuerKeys(issuer);
  return verifyToken(token, { ...own, issuers: new Map([[issuer, keys]]) });
}
