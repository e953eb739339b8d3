import type { PublicJwk } from '../contract/claims.ts';

/** The one algorithm that the portal, the identity provider and an own issuer sign with (SPEC.md, "Authentication" 4, 6). */
export const ISSUER_ALGORITHMS = ['ES256'] as const;

/**
 * The algorithms that may sign a connectivity token; SPEC.md leaves them open ("Authentication" 8): asymmetric
 * algorithms only, each with the one type of key it belongs to. Never `none`, never HMAC.
 */
export const SERVICE_ALGORITHMS = ['ES256', 'ES384', 'ES512', 'EdDSA', 'PS256', 'RS256'] as const;

/** An algorithm that some kind of token may be signed with. */
export type Algorithm = (typeof SERVICE_ALGORITHMS)[number];

const KEY_OF: Record<Algorithm, { kty: string; crv?: string }> = {
  ES256: { kty: 'EC', crv: 'P-256' },
  ES384: { kty: 'EC', crv: 'P-384' },
  ES512: { kty: 'EC', crv: 'P-521' },
  EdDSA: { kty: 'OKP', crv: 'Ed25519' },
  PS256: { kty: 'RSA' },
  RS256: { kty: 'RSA' },
};

/**
 * Whether a public key may verify signatures of this algorithm: its type and curve fit, and what it says of its
 * own `alg`, `use` and `key_ops` does not forbid it (RFC 7517 §4.2 to §4.4; RFC 8725 §3.1).
 */
export function keyFits(jwk: PublicJwk, algorithm: Algorithm): boolean {
  const due = KEY_OF[algorithm];
  return (
    jwk.kty === due.kty &&
    (due.crv === undefined || jwk.crv === due.crv) &&
    (jwk.alg === undefined || jwk.alg === algorithm || (algorithm === 'EdDSA' && jwk.alg === 'Ed25519')) &&
    (jwk.use === undefined || jwk.use === 'sig') &&
    (jwk.key_ops === undefined || jwk.key_ops.includes('verify'))
  );
}
