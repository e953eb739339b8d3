import { constants, KeyObject, type VerifyKeyObjectInput, verify } from 'node:crypto';
import type { CryptoKey } from 'jose';
import type { Algorithm } from './algorithms.ts';
import { derFromJws } from './ecdsa-signature.ts';

/** What an algorithm is made of (RFC 7518 §3.3 to §3.5; RFC 8037 §3.1): the key's as WebCrypto calls it. */
interface Scheme {
  name: string;
  namedCurve?: string;
  /** The digest, as WebCrypto calls it where the key is bound to one, and as `node:crypto` does. */
  keyHash?: string;
  digest: string | null;
  /** The signature's length in bytes, where the algorithm alone fixes it. */
  length?: number;
  /** What OpenSSL must be told besides key and digest. */
  options?: Omit<VerifyKeyObjectInput, 'key'>;
}

const ecdsa = (namedCurve: string, digest: string, length: number): Scheme => ({
  name: 'ECDSA',
  namedCurve,
  digest,
  length,
});

const SCHEMES: Record<Algorithm, Scheme> = {
  ES256: ecdsa('P-256', 'sha256', 64),
  ES384: ecdsa('P-384', 'sha384', 96),
  ES512: ecdsa('P-521', 'sha512', 132),
  EdDSA: { name: 'Ed25519', digest: null, length: 64 },
  PS256: {
    name: 'RSA-PSS',
    keyHash: 'SHA-256',
    digest: 'sha256',
    options: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST },
  },
  RS256: { name: 'RSASSA-PKCS1-v1_5', keyHash: 'SHA-256', digest: 'sha256' },
};

/** The shortest RSA modulus, in bits (RFC 7518 §3.3). */
const MIN_MODULUS = 2048;

/** Whether an RSA exponent is odd and over 2^16 (FIPS 186-5 §5.4): with 1, every message is its own signature. */
function isSoundExponent(bytes: Uint8Array): boolean {
  const value = BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
  return value % 2n === 1n && value > 65_536n;
}

/** A key that was found fit for an algorithm, as `node:crypto` takes it. */
interface FitKey {
  algorithm: Algorithm;
  input: KeyObject | VerifyKeyObjectInput;
}

const fitKeys = new WeakMap<CryptoKey, FitKey>();

/**
 * Whether bytes were signed by the holder of a key's private part.
 *
 * `node:crypto` checks on this thread, since WebCrypto's hand-over to another and back costs as much as the check of a
 * P-256 signature. It gets the key alone and the signature in DER: with `{ key, dsaEncoding }` in the key's place,
 * Node 24 makes and drops two errors a call, which costs a third of it again.
 *
 * @throws TypeError when the key is not one for this algorithm: private or secret, of another type or curve, bound to
 *   another digest, not meant for verifying, or an RSA key of fewer than 2048 bits or with an unsound exponent
 */
export function isSignedBy(
  key: CryptoKey,
  algorithm: Algorithm,
  signed: Uint8Array,
  signature: Uint8Array,
): boolean {
  const { name, digest, length } = SCHEMES[algorithm];
  const { input } = fitKey(key, algorithm);
  if (length !== undefined && signature.byteLength !== length) return false;
  return verify(digest, signed, input, name === 'ECDSA' ? derFromJws(signature) : signature);
}

function fitKey(key: CryptoKey, algorithm: Algorithm): FitKey {
  const known = fitKeys.get(key);
  if (known?.algorithm === algorithm) return known;
  const scheme = SCHEMES[algorithm];
  if (!fits(key, scheme)) throw new TypeError(`the key is not one for ${algorithm}`);
  const object = KeyObject.from(key);
  const fit: FitKey = { algorithm, input: scheme.options ? { key: object, ...scheme.options } : object };
  fitKeys.set(key, fit);
  return fit;
}

function fits({ type, usages, algorithm }: CryptoKey, due: Scheme): boolean {
  const has: {
    name: string;
    namedCurve?: string;
    hash?: { name: string };
    modulusLength?: number;
    publicExponent?: Uint8Array;
  } = algorithm;
  return (
    type === 'public' &&
    usages.includes('verify') &&
    has.name === due.name &&
    has.namedCurve === due.namedCurve &&
    has.hash?.name === due.keyHash &&
    (has.modulusLength === undefined || has.modulusLength >= MIN_MODULUS) &&
    (has.publicExponent === undefined || isSoundExponent(has.publicExponent))
  );
}
