import { Failure } from '../contract/failure.ts';
import type { Secret } from '../contract/secret.ts';

/**
 * A token as it stands in a header.
 *
 * @throws Failure `token_invalid` for text that no token has and no header can carry; the text is not repeated
 */
export function headerToken(token: Secret): string {
  const text = token.reveal();
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new Failure('token_invalid', 'What was given as a token is none.', {
    why: 'It holds white space or characters that no token has.',
  });
}

/** The `Authorization` of a request with a bearer token (RFC 6750 §2.1). @throws Failure `token_invalid` */
export function bearerHeader(token: Secret): string {
  return `Bearer ${headerToken(token)}`;
}
