import { base64url, type CryptoKey, importJWK, type JWK } from 'jose';
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

const KEY_OF: Record<Algorithm, { kty: string; crv?: string }> = {
  ES256: { kty: 'EC', crv: 'P-256' },
  ES384: { kty: 'EC', crv: 'P-384' },
  ES512: { kty: 'EC', crv: 'P-521' },
  EdDSA: { kty: 'OKP', crv: 'Ed25519' },
  Ed25519: { kty: 'OKP', crv: 'Ed25519' },
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
    (jwk.alg === undefined || modernName(jwk.alg) === modernName(algorithm)) &&
    (jwk.use === undefined || jwk.use === 'sig') &&
    (jwk.key_ops === undefined || jwk.key_ops.includes('verify'))
  );
}

/** `Ed25519` for both names of that algorithm (RFC 9864 §2.2); any other name as it is. */
function modernName(algorithm: string): string {
  return algorithm === 'EdDSA' ? 'Ed25519' : algorithm;
}

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
  const imported = new Map<string, Promise<CryptoKey>>();
  return {
    async find(kid, algorithm) {
      const name = `${algorithm} ${kid ?? ''}`;
      const known = imported.get(name);
      if (known) return known;
      const named = document.keys.filter((key) => key.kid === kid);
      if (kid === undefined && (named.length === 0 || distinct(document.keys).length > 1)) {
        throw new TokenError('key_unknown', 'The token names no key (kid).');
      }
      if (named.length === 0) throw keyUnknown();
      const fitting = named.filter((key) => keyFits(key, algorithm));
      const [jwk, other] = distinct(fitting);
      if (jwk === undefined) {
        throw new TokenError('algorithm', `The token's key is not one for ${algorithm}.`);
      }
      if (fitting.some((key) => PRIVATE_PARTS.some((name) => key[name] !== undefined))) {
        throw new TokenError(
          'key_unknown',
          'The key set gives away the private part of this key: anyone can sign with it.',
        );
      }
      if (other !== undefined) {
        throw new TokenError('key_unknown', 'The key set has several keys under the same kid.');
      }
      const key = importPublicKey(jwk, algorithm);
      imported.set(name, key);
      return key;
    },
  };
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

async function importPublicKey(jwk: PublicJwk, algorithm: Algorithm): Promise<CryptoKey> {
  let key: CryptoKey | Uint8Array;
  try {
    key = await importJWK(publicPartOf(jwk), algorithm);
  } catch (cause) {
    throw new TokenError('keys_invalid', "The issuer's key can't be read.", { cause });
  }
  if (key instanceof Uint8Array) throw new TokenError('algorithm', "A symmetric key can't verify a token.");
  const { publicExponent }: { name: string; publicExponent?: Uint8Array } = key.algorithm;
  if (publicExponent === undefined) return key;
  const exponent = numberIn(publicExponent);
  if (exponent % 2n === 0n || exponent <= 65_536n) {
    throw new TokenError('malformed', "The issuer's RSA key has an unsafe exponent.");
  }
  if (hasWeakPrimes(numberIn(base64url.decode(String(jwk['n']))))) {
    throw new TokenError('malformed', "The issuer's RSA key can be broken (ROCA, CVE-2017-15361).");
  }
  return key;
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
export function keyUnknown(): TokenError {
  return new TokenError(
    'key_unknown',
    'The token is signed with a key that its issuer does not publish. Was the server restarted with new keys?',
  );
}
