import { Failure } from '../contract/failure.ts';
import { TokenError } from '../tokens/token-error.ts';
import { verifyToken } from '../tokens/verifier.ts';
import type { Trust } from '../tokens/verify.ts';

/**
 * The claims of a token that a service has just given out, verified.
 *
 * @param subject whom it must be about
 * @throws Failure `unverified`
 */
export async function verifiedToken(token: string, trust: Trust, subject: string): Promise<object> {
  const { claims } = await checkedToken(() => verifyToken(token, trust));
  if (claims['sub'] === subject) return claims;
  throw new Failure('unverified', 'The token is about something else than what was asked.');
}

/**
 * Runs a check of a token; a token that it rejects is a failure with exit 9 (CLI.md, "Exit codes").
 *
 * @throws Failure `unverified` for a TokenError; other errors pass
 */
export async function checkedToken<Answer>(check: () => Answer | Promise<Answer>): Promise<Answer> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    throw new Failure('unverified', 'The token does not verify.', { why: error.message, cause: error });
  }
}
