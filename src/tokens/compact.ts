import { base64url } from 'jose';
import { isObject, readJson } from '../contract/json.ts';
import { TokenError } from './token-error.ts';

/** The longest token that is read, in characters. A longer one is malformed. */
export const MAX_TOKEN_LENGTH = 65_536;

/** The two JSON objects of a compact JWS. Only their form is checked, not the signature. */
export interface CompactToken {
  header: Record<string, unknown>;
  claims: Record<string, unknown>;
}

/**
 * Reads a compact JWS (RFC 7515 §7.1) and accepts one spelling only: three parts of base64url, each the same as the
 * encoding of its own bytes (no padding, no white space, no unused bit set), and JSON objects that name each member
 * once. jose, which checks the signature afterwards, accepts several spellings of one token; services that compare or
 * remember tokens must not (contract/README.md, "Tokens").
 *
 * @throws TokenError `malformed`
 */
export function readCompact(token: string): CompactToken {
  if (token.length > MAX_TOKEN_LENGTH) throw malformed(`it is longer than ${MAX_TOKEN_LENGTH} characters`);
  const parts = token.split('.');
  const [header, payload, signature] = parts;
  if (parts.length !== 3 || header === undefined || payload === undefined || !signature) {
    throw malformed('it does not have three parts between dots');
  }
  canonicalBytes(signature, 'signature');
  return { header: objectIn(header, 'header'), claims: objectIn(payload, 'payload') };
}

/** Base64url without padding in its one spelling: the bits that the last character has too many are 0 (RFC 4648 §3.5). */
const CANONICAL = /^(?:[\w-]{4})*(?:[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])?$/;

function canonicalBytes(part: string, name: string): Uint8Array {
  if (!CANONICAL.test(part)) throw malformed(`its ${name} is not canonical base64url`);
  // Node's own way is several times faster; browsers and workers don't have it.
  return typeof Buffer === 'function' ? Buffer.from(part, 'base64url') : base64url.decode(part);
}

function objectIn(part: string, name: string): Record<string, unknown> {
  const reading = readJson(canonicalBytes(part, name));
  if (!reading.ok) {
    const why = {
      encoding: 'is not UTF-8',
      syntax: 'is not JSON',
      duplicate: 'names a member twice',
      nesting: 'is nested too deep',
    };
    throw malformed(`its ${name} ${why[reading.fault]}`);
  }
  if (!isObject(reading.value)) throw malformed(`its ${name} is not a JSON object`);
  return reading.value;
}

function malformed(why: string): TokenError {
  return new TokenError('malformed', `This is not a token: ${why}.`);
}
