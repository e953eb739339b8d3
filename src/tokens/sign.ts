import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type { CryptoKey, JWK } from 'jose';
import { jwsFromDer } from './ecdsa-signature.ts';

const keptKeys = new WeakMap<CryptoKey, KeyObject>();

/**
 * Keeps the numbers of a key that can't be exported where `node:crypto` can sign with them, and nobody can read them.
 *
 * @param jwk the private key that `key` was made from
 */
export function keepForSigning(key: CryptoKey, jwk: JWK): void {
  keptKeys.set(key, createPrivateKey({ key: jwk, format: 'jwk' }));
}

/**
 * A compact JWS signed with ES256 (RFC 7515 §3.1; RFC 7518 §3.4). With a key that was kept for it, `node:crypto` signs on
 * this thread, for a fifth of what WebCrypto needs to hand the work to another; with any other key, WebCrypto does.
 *
 * @param header goes out as it is, after `alg`
 * @param claims whatever `JSON.stringify` takes
 * @throws TypeError when the key is no private key on P-256 that may sign
 */
export async function signCompact(
  header: Readonly<Record<string, string>>,
  claims: Readonly<Record<string, unknown>>,
  key: CryptoKey,
): Promise<string> {
  const signed = `${encoded({ alg: 'ES256', ...header })}.${encoded(claims)}`;
  const signature = await signatureOf(Buffer.from(signed), key);
  return `${signed}.${signature.toString('base64url')}`;
}

function encoded(part: Readonly<Record<string, unknown>>): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

async function signatureOf(bytes: Buffer, key: CryptoKey): Promise<Buffer> {
  const kept = keptKeys.get(key);
  if (kept) return jwsFromDer(sign('sha256', bytes, kept), 32);
  const { name, namedCurve }: { name: string; namedCurve?: string } = key.algorithm;
  if (key.type !== 'private' || !key.usages.includes('sign') || name !== 'ECDSA' || namedCurve !== 'P-256') {
    throw new TypeError('the key is not one to sign ES256 with');
  }
  return Buffer.from(await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, key, bytes));
}
