/**
 * Why a token, or the keys for it, was rejected.
 *
 * | code | meaning |
 * |---|---|
 * | `malformed` | not a compact JWS of canonical base64url and strict JSON (RFC 7515 §5.2, RFC 8725 §2.4) |
 * | `algorithm` | an algorithm outside the allowlist, or not the key's own (RFC 8725 §3.1) |
 * | `key_unknown` | no `kid`, or the issuer has no key with it (contract/README.md, "Authentication" 4) |
 * | `signature` | the signature is not the key's over these bytes |
 * | `issuer` | this kind of token is not accepted from its `iss` |
 * | `audience` | `aud` does not name who it was checked for |
 * | `kind` | a token of another kind than is due, by its subject |
 * | `claims` | a required claim is missing or wrong |
 * | `expired` | `exp` is not after now (contract/README.md, "Authentication" 5) |
 * | `not_yet` | `iat` is after now |
 * | `revoked` | its reservation was deleted, or changed after it was signed |
 * | `keys_unreachable` | the issuer's key set could not be fetched: it may be later |
 * | `keys_invalid` | what stands at the address of the issuer's key set is none, or has a key that can't be used |
 */
export type TokenFault =
  | 'malformed'
  | 'algorithm'
  | 'key_unknown'
  | 'signature'
  | 'issuer'
  | 'audience'
  | 'kind'
  | 'claims'
  | 'expired'
  | 'not_yet'
  | 'revoked'
  | 'keys_unreachable'
  | 'keys_invalid';

/** A token that does not verify. The message never holds the token. */
export class TokenError extends Error {
  /** The first word of `toString`. */
  override readonly name = 'TokenError';
  /** The reason, for programs; see {@link TokenFault}. */
  readonly code: TokenFault;
  /** When it expired, in milliseconds; for `expired` only. */
  readonly expiresAt: number | undefined;

  constructor(code: TokenFault, message: string, options: ErrorOptions & { expiresAt?: number } = {}) {
    super(message, options);
    this.code = code;
    this.expiresAt = options.expiresAt;
  }
}
