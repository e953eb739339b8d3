import { type CryptoKey, exportJWK, generateKeyPair, importJWK, importPKCS8, type JWK } from 'jose';
import type { PublicJwk } from '../contract/claims.ts';
import { isObject } from '../contract/json.ts';

/** The key id under which an own issuer publishes its key (contract/README.md, "Authentication" 6). */
export const DEFAULT_KID = 'key1';

/** An ES256 key pair that signs tokens. */
export interface SigningKey {
  /** The `kid` header of its tokens. */
  kid: string;
  /** Signs; it can't be read. */
  privateKey: CryptoKey;
  /** The public part, for the key set. */
  publicJwk: PublicJwk;
}

/** A private key as a JWK on disk (RFC 7517); kept secret by its file's mode. */
export type PrivateJwk = JWK & { kid: string };

/** A key that could not be read, or is not an ES256 private key. */
export class KeyFormatError extends Error {
  /** The first word of `toString`. */
  override readonly name = 'KeyFormatError';
}

/** Makes a P-256 key pair (contract/README.md, "Authentication" 6) and its private JWK for keeping. */
export async function generateSigningKey(kid: string = DEFAULT_KID): Promise<PrivateJwk> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg: 'ES256', use: 'sig' };
}

/**
 * Reads a private key for ES256: a JWK (an object or its JSON text), or PKCS#8 in PEM. The kid is the JWK's own,
 * else `key1`.
 *
 * @throws KeyFormatError when it is not a private key on P-256
 */
export async function importSigningKey(key: string | JWK): Promise<SigningKey> {
  const jwk: unknown = typeof key === 'string' ? await readPrivateJwk(key) : key;
  if (!isObject(jwk)) throw new KeyFormatError('The key is not a JWK.');
  const { kty, crv, x, y, d, kid = DEFAULT_KID, alg = 'ES256', use = 'sig' } = jwk;
  if (kty !== 'EC' || crv !== 'P-256' || alg !== 'ES256') {
    throw new KeyFormatError('The key is not an elliptic-curve key on P-256, which ES256 needs.');
  }
  if (use !== 'sig') throw new KeyFormatError('The key is not meant for signing.');
  if (typeof kid !== 'string' || kid === '') throw new KeyFormatError("The key's kid is not a text.");
  if (typeof x !== 'string' || typeof y !== 'string' || typeof d !== 'string')
    throw new KeyFormatError('The key has no private part.');
  let privateKey: CryptoKey | Uint8Array;
  try {
    privateKey = await importJWK({ kty, crv, x, y, d }, 'ES256');
  } catch {
    throw new KeyFormatError("The key's numbers do not make a P-256 key.");
  }
  if (privateKey instanceof Uint8Array) throw new KeyFormatError("A symmetric key can't sign ES256.");
  return { kid, privateKey, publicJwk: { kty, crv, x, y, kid, alg: 'ES256', use: 'sig' } };
}

/** An error of the reader is not passed on: it may quote the key. */
async function readPrivateJwk(text: string): Promise<unknown> {
  const trimmed = text.trim();
  try {
    if (!trimmed.startsWith('-----BEGIN')) return JSON.parse(trimmed);
    return await exportJWK(await importPKCS8(trimmed, 'ES256', { extractable: true }));
  } catch {
    throw new KeyFormatError('The key is neither a JWK nor PKCS#8 in PEM for ES256.');
  }
}
