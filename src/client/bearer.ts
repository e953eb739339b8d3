import { Failure } from '../contract/failure.ts';
import { Secret } from '../contract/secret.ts';

/** A token's text: a plain string, or a Secret, which is never printed. */
export type TokenText = string | Secret;

/**
 * A token as the clients take it: its text, or a function that gives it. The function is asked for each request, so
 * that a token can be replaced before it expires. White space around the text is dropped.
 */
export type TokenInput = TokenText | (() => TokenText | Promise<TokenText>);

/** Calls the function where one is given, and drops white space. @throws Failure `usage` for anything else than a {@link TokenInput} */
export async function readTokenInput(input: TokenInput): Promise<Secret> {
  const given: unknown = typeof input === 'function' ? await input() : input;
  if (given instanceof Secret) return given;
  if (typeof given === 'string') return new Secret(given.trim());
  throw new Failure(
    'usage',
    `A token must be a text, or a function that gives one; this is ${typeof given}.`,
  );
}

/**
 * A token as it stands in a header.
 *
 * @throws Failure `token_invalid` for text that a header can't carry; the failure does not repeat the text
 */
export function headerToken(token: Secret): string {
  const text = token.reveal();
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new Failure('token_invalid', 'This is not a token.', {
    why: 'It contains white space or characters that a token never contains.',
  });
}

/** The `Authorization` of a request with a bearer token (RFC 6750 §2.1). @throws Failure `token_invalid` */
export function bearerHeader(token: Secret): string {
  return `Bearer ${headerToken(token)}`;
}
