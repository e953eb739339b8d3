import { Failure } from '../contract/failure.ts';
import { pastedToken } from '../contract/secret.ts';
import { TokenError, type TokenFault } from '../tokens/token-error.ts';
import { type Trust, verifyToken } from '../tokens/verify.ts';
import type { Context } from './context.ts';

/**
 * Verifies a token that a service has just issued.
 *
 * @param subject the `sub` that it must have
 * @returns its claims
 * @throws Failure `unverified`
 */
export async function verifiedToken(token: string, trust: Trust, subject: string): Promise<object> {
  const { claims } = await checkedToken(() => verifyToken(token, trust));
  if (claims['sub'] === subject) return claims;
  throw new Failure('unverified', 'The token has another subject than expected.');
}

/**
 * Runs a check of a token. A rejected token is a failure with exit code 9 (cli/README.md, "Exit codes").
 *
 * @throws Failure `unverified` for a TokenError; other errors pass
 */
export async function checkedToken<Answer>(check: () => Answer | Promise<Answer>): Promise<Answer> {
  try {
    return await check();
  } catch (error) {
    throw error instanceof TokenError ? unverified(error) : error;
  }
}

/** The failure of a token that does not verify. */
export function unverified(error: TokenError): Failure {
  return new Failure('unverified', 'The token does not verify.', { why: error.message, cause: error });
}

/** Whether a failure is that a token was rejected for this reason. */
export function isRejected(error: unknown, code: TokenFault): error is Failure {
  return error instanceof Failure && error.cause instanceof TokenError && error.cause.code === code;
}

/** The file beside a saved token that has its public key, as a key set. */
export function keyFileOf(tokenFile: string): string {
  return `${tokenFile}.jwks.json`;
}

/**
 * Reads a token from a file, or from standard input for `-`, which a terminal says. See
 * {@link pastedToken}.
 *
 * @throws Failure `unverified` for an empty file, or bytes that are not UTF-8
 */
export async function readTokenFile({ files, output, terminal }: Context, path: string): Promise<string> {
  const isTyped = path === '-' && terminal.stdinIsTerminal;
  if (isTyped) output.prompt('Paste the token, then press Enter and Ctrl-D. Ctrl-C gives up.');
  const read = () => files.read(path);
  const bytes = await (isTyped ? read() : output.waitFor(path === '-' ? 'standard input' : path, read));
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Failure('unverified', 'This is not a token.', { why: 'It is not text.' });
  }
  const token = pastedToken(text);
  if (token === '') throw new Failure('unverified', 'The token is missing.', { why: 'The input is empty.' });
  return token;
}
