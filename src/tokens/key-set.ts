import { base64url, type CryptoKey, createLocalJWKSet, errors, type JWK } from 'jose';
import * as v from 'valibot';
import { type KeySetDocument, PublicJwk } from '../contract/claims.ts';
import { isObject, withoutNulls } from '../contract/json.ts';
import { TokenError } from './token-error.ts';

/** The one algorithm that the portal, the identity provider and an own issuer sign with (contract/README.md, "Authentication" 4, 6). */
export const ISSUER_ALGORITHMS = ['ES256'] as const;

/**
 * The algorithms that may sign a connectivity token; the API leaves them open (contract/README.md, "Authentication" 8): asymmetric
 * algorithms only, each with the one type of key it belongs to. Never `none`, never HMAC.
 */
export const SERVICE_ALGORITHMS = ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'PS256', 'RS256'] as const;

/** An algorithm that some kind of token may be signed with. */
export type Algorithm = (typeof SERVICE_ALGORITHMS)[number];

/** An issuer's public keys, wherever they come from. */
export interface KeySet {
  /**
   * The key with this `kid` that fits the algorithm (contract/README.md, "Authentication" 4).
   *
   * @param kid undefined for a token that names no key: then the only key of the set, if that has no `kid` either
   *   (THREATS.md 21)
   * @throws TokenError `key_unknown` when the issuer has none, or gives its private part away (THREATS.md 62), `algorithm` when its key is of another type,
   *   `keys_unreachable` when the set can't be had, `keys_invalid` when it is none
   */
  find(kid: string | undefined, algorithm: Algorithm): Promise<CryptoKey>;
  /**
   * Another key under the same `kid`, for a token whose signature `refused` did not make: an issuer that began anew may
   * sign with another key under the name of the old one. Absent where keys are never fetched.
   *
   * @returns undefined where the issuer still publishes `refused`, and where its keys were fetched just now
   * @throws TokenError as {@link KeySet.find} does
   */
  findOther?(
    kid: string | undefined,
    algorithm: Algorithm,
    refused: CryptoKey,
  ): Promise<CryptoKey | undefined>;
}

/**
 * Reads a key set document. An unreadable key is ignored: it may be of a future kind (RFC 7517 §5). A member that is null is absent.
 *
 * @param value parsed JSON
 * @throws TokenError `keys_invalid` when it is not a key set
 */
export function readKeySet(value: unknown): KeySetDocument {
  const result = v.safeParse(v.looseObject({ keys: v.array(v.unknown()) }), value);
  if (result.success) {
    const keys = result.output.keys.filter(isObject).map(withoutNulls);
    return { keys: keys.filter((key) => v.is(PublicJwk, key)) };
  }
  throw new TokenError('keys_invalid', 'This is not a JSON Web Key Set: it has no list of keys.');
}

/** A key set in memory: from a file, or a service's own. Nothing is fetched (contract/README.md, "Endpoints"). */
export function localKeySet(document: KeySetDocument): KeySet {
  const fitting = createLocalJWKSet({ keys: document.keys.map(candidateOf) });
  return {
    async find(kid, algorithm) {
      const named = document.keys.filter((key) => key.kid === kid);
      if (kid === undefined && (named.length === 0 || distinct(document.keys).length > 1)) {
        throw new TokenError('key_unknown', 'The token names no key (kid).');
      }
      if (named.length === 0) throw keyUnknown();
      try {
        const key = await fitting(kid === undefined ? { alg: algorithm } : { alg: algorithm, kid }).catch(
          (error: unknown) => listedTwice(error, named),
        );
        if (named.some((jwk) => PRIVATE_PARTS.some((name) => jwk[name] !== undefined))) {
          throw new TokenError(
            'key_unknown',
            'The key set gives away the private part of this key: anyone can sign with it.',
          );
        }
        for (const jwk of named) if (jwk.kty === 'RSA') checkNumbers(jwk);
        return key;
      } catch (cause) {
        throw unusableKey(cause, algorithm);
      }
    },
  };
}

/** The key that the set lists several times, and no other under its kid. @throws the error, where it is about something else */
async function listedTwice(error: unknown, named: readonly PublicJwk[]): Promise<CryptoKey> {
  if (error instanceof errors.JWKSMultipleMatchingKeys && distinct(named).length === 1)
    for await (const key of error) return key;
  throw error;
}

/** Why there is no key for a token. */
function unusableKey(cause: unknown, algorithm: Algorithm): TokenError {
  if (cause instanceof TokenError) return cause;
  if (cause instanceof errors.JWKSNoMatchingKey)
    return new TokenError('algorithm', `The token's key is not one for ${algorithm}.`);
  if (cause instanceof errors.JWKSMultipleMatchingKeys)
    return new TokenError('key_unknown', 'The key set has several keys under the same kid.');
  return new TokenError('keys_invalid', "The issuer's key can't be read.", { cause });
}

/** The keys of a list, each of them once: some issuers list one twice, such as for two algorithms. */
function distinct(keys: readonly PublicJwk[]): PublicJwk[] {
  const numbers = ({ kid, kty, crv, x, y, n, e }: PublicJwk) => JSON.stringify([kid, kty, crv, x, y, n, e]);
  return [...new Map(keys.map((key) => [numbers(key), key])).values()];
}

/** Members that only a private or secret key has (RFC 7518 §6). */
const PRIVATE_PARTS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const;

/** The public members of a key: its numbers, kid, and use. Private members must not get into a key set. */
export function publicPartOf(jwk: PublicJwk): JWK & { kty: string } {
  const found: JWK & { kty: string } = { kty: jwk.kty };
  for (const name of ['kid', 'alg', 'use', 'crv', 'x', 'y', 'n', 'e'] as const) {
    if (typeof jwk[name] === 'string') found[name] = jwk[name];
  }
  return found;
}

/** What jose chooses a key by, and imports. */
function candidateOf(jwk: PublicJwk): JWK & { kty: string } {
  const { alg, ...found } = publicPartOf(jwk);
  return {
    ...found,
    // One algorithm has two names (RFC 9864 §2.2), and a curve of its own.
    ...(alg === undefined || alg === 'EdDSA' || alg === 'Ed25519' ? {} : { alg }),
    // A key may be for more than WebCrypto lets it be imported for.
    ...(jwk.key_ops ? { key_ops: jwk.key_ops.filter((use) => use === 'verify') } : {}),
  };
}

/** @throws TokenError `malformed` for an RSA key that proves nothing (THREATS.md 62) */
function checkNumbers(jwk: PublicJwk): void {
  const [exponent, modulus] = [jwk['e'], jwk['n']].map((part) => numberIn(base64url.decode(String(part))));
  if (exponent === undefined || exponent % 2n === 0n || exponent <= 65_536n) {
    throw new TokenError('malformed', "The issuer's RSA key has an unsafe exponent.");
  }
  if (modulus === undefined || hasWeakPrimes(modulus)) {
    throw new TokenError('malformed', "The issuer's RSA key can be broken (ROCA, CVE-2017-15361).");
  }
}

const numberIn = (bytes: Uint8Array): bigint => bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);

/**
 * Whether a modulus is of primes as the chips of CVE-2017-15361 made them (ROCA): such a one is a power of 65537 by every small
 * prime. Of other moduli, fewer than one in 10^8 is.
 */
function hasWeakPrimes(modulus: bigint): boolean {
  return SMALL_PRIMES.every((prime) => {
    const rest = Number(modulus % BigInt(prime));
    for (let power = 1, tried = 0; tried < prime; power = (power * 65_537) % prime, tried += 1) {
      if (power === rest) return true;
    }
    return false;
  });
}

/** The odd primes up to 167, of which even the shortest such keys are made. */
const SMALL_PRIMES = Array.from({ length: 83 }, (_, index) => 2 * index + 3).filter((number, index, odds) =>
  odds.slice(0, index).every((smaller) => number % smaller !== 0),
);

/** The error for a `kid` that the issuer does not publish. */
function keyUnknown(): TokenError {
  return new TokenError(
    'key_unknown',
    'The token is signed with a key that its issuer does not publish. Was the server restarted with new keys?',
  );
}
