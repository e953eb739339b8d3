import { readAdministrator } from '../../contract/administrators.ts';
import { issuerName } from '../../contract/issuer-address.ts';
import { MAX_REASON } from '../../contract/parameters.ts';
import { withoutTokens } from '../../contract/secret.ts';
import type { Caller } from '../credentials.ts';
import { refusal } from '../problem-error.ts';

/** Whether a caller acts as one of a server's administrators. */
export type IsAdministrator = (caller: Caller) => boolean;

/**
 * A server's administrators, as its operator named them. A caller is one who proves to be that user by a user token of
 * that issuer, and brings no experiment token: with one it acts in that experiment, by its role there.
 *
 * @param named see {@link readAdministrator}
 * @param issuer the issuer of those who are named without one; undefined where there are several
 * @throws RangeError when one is named in neither form, or without an issuer where there are several
 */
export function administratorsNamed(named: readonly string[], issuer: string | undefined): IsAdministrator {
  const known = new Set(
    named.map((text) => {
      const read = readAdministrator(text);
      if (!read) throw new RangeError(`${JSON.stringify(text)} names no administrator`);
      const from = read.issuer ?? issuer;
      if (from === undefined) throw new RangeError(`${text} may be a user of several issuers`);
      return keyOf(read.user, from);
    }),
  );
  return ({ user, userIssuer, experiment }) =>
    experiment === undefined && userIssuer !== undefined && known.has(keyOf(user, userIssuer));
}

/** An id holds no space. */
function keyOf(user: string, issuer: string): string {
  return `${user} ${issuerName(issuer)}`;
}

/**
 * Reads an administrator's reason for a deletion, `?reason=`; tokens in it, pasted by mistake, are masked.
 *
 * @throws ProblemError 400 when it is missing, too long, or holds characters that don't print
 */
export function readReason(request: Request): string {
  const reason = new URL(request.url).searchParams.get('reason')?.trim() ?? '';
  const { length } = [...reason];
  if (length >= 1 && length <= MAX_REASON && !/[\p{Cc}\p{Bidi_Control}]/u.test(reason))
    return withoutTokens(reason);
  throw refusal(
    'request_invalid',
    `An administrator says why a reservation is released: ?reason= with 1 to ${MAX_REASON} characters that print.`,
  );
}
