import { webcrypto } from 'node:crypto';
import { compactVerify } from 'jose';
import { describe, expect, test } from 'vitest';
import { keepForSigning, signCompact } from '../../src/tokens/sign.ts';

const P256 = { name: 'ECDSA', namedCurve: 'P-256' };
const { publicKey, privateKey } = await webcrypto.subtle.generateKey(P256, true, ['sign', 'verify']);

describe('signCompact', async () => {
  const { subtle } = webcrypto;
  const jwk = await subtle.exportKey('jwk', privateKey);
  const kept = await subtle.importKey('jwk', jwk, P256, false, ['sign']);
  keepForSigning(kept, jwk);
  test.each([
    ['a key', privateKey],
    ['a key that was kept for it', kept],
  ])('what it signs with %s, jose verifies (many signatures)', async (_, key) => {
    for (let round = 0; round < 300; round += 1) {
      const claims = { round, text: 'значение 😀', absent: undefined };
      const token = await signCompact({ kid: 'key1', typ: 'JWT' }, claims, key);
      const verified = await compactVerify(token, publicKey, { algorithms: ['ES256'] });
      expect(verified.protectedHeader).toEqual({ alg: 'ES256', kid: 'key1', typ: 'JWT' });
      expect(JSON.parse(new TextDecoder().decode(verified.payload))).toEqual({ round, text: 'значение 😀' });
    }
  });

  test('refuses a public key, a key on another curve, for another purpose, and one that may not sign', async () => {
    const p384 = await subtle.generateKey({ ...P256, namedCurve: 'P-384' }, true, ['sign', 'verify']);
    const rsa = {
      name: 'RSA-PSS',
      modulusLength: 2048,
      publicExponent: Uint8Array.of(1, 0, 1),
      hash: 'SHA-256',
    };
    const pss = await subtle.generateKey(rsa, true, ['sign', 'verify']);
    const exchange = await subtle.generateKey({ ...P256, name: 'ECDH' }, true, ['deriveBits']);
    for (const key of [publicKey, p384.privateKey, pss.privateKey, exchange.privateKey]) {
      await expect(signCompact({}, {}, key)).rejects.toThrow(TypeError);
    }
  });
});
