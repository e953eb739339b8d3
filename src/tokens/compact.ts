import { isObject, readJson } from '../contract/json.ts';
import { TokenError } from './token-error.ts';

/** The longest token that is looked at, in characters; what is longer is no token of these services. */
export const MAX_TOKEN_LENGTH = 65_536;

/** A compact JWS taken apart, nothing of it checked beyond its form. */
export interface CompactToken {
  header: Record<string, unknown>;
  claims: Record<string, unknown>;
  /** What the signature is over: header and payload as they travel (RFC 7515 §5.1). */
  signed: Buffer;
  signature: Buffer;
}

/**
 * Takes a compact JWS apart as strictly as its signer put it together: three parts of base64url that are what
 * encoding their own bytes gives back (no padding, no white space, no stray bit), and objects whose members are
 * named once. jose accepts several spellings of one token; two services that compare or cache tokens must not
 * (DESIGN.md, "Tokens").
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
  return {
    signature: canonicalBytes(signature, 'signature'),
    header: objectIn(header, 'header'),
    claims: objectIn(payload, 'payload'),
    signed: Buffer.from(token.slice(0, header.length + 1 + payload.length)),
  };
}

function canonicalBytes(part: string, name: string): Buffer {
  const bytes = Buffer.from(part, 'base64url');
  if (bytes.toString('base64url') !== part) throw malformed(`its ${name} is not canonical base64url`);
  return bytes;
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
