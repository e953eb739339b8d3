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
 * remember tokens must not (DESIGN.md, "Tokens").
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

function canonicalBytes(part: string, name: string): Uint8Array {
  try {
    const bytes = base64url.decode(part);
    if (base64url.encode(bytes) === part) return bytes;
  } catch {
    // What can't be decoded is not canonical either.
  }
  throw malformed(`its ${name} is not canonical base64url`);
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
