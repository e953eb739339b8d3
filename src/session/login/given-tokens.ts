import { isServiceAddress } from '../../contract/addresses.ts';
import { formatDuration, SECOND } from '../../contract/durations.ts';
import { Failure, type FailureCode, type FailureFacts } from '../../contract/failure.ts';
import { inOneText, instant, type Said, sentence } from '../../contract/said.ts';
import type { Secret } from '../../contract/secret.ts';
import { claimedClaims, claimedExpiry } from '../../tokens/claimed.ts';
import { claimedKind, kindText, type TokenKind } from '../../tokens/verify.ts';
import type { TokenSource } from './token-source.ts';

/** A token that a command asked a source for. */
export interface TakenToken {
  /** The kind of token that it is sent as. */
  kind: 'user' | 'experiment';
  source: TokenSource;
  /** Undefined where the source gave none. */
  token?: Secret;
}

/** The codes of failures that another token would have prevented. */
const OF_TOKENS: readonly FailureCode[] = [
  'token_missing',
  'token_invalid',
  'token_expired',
  'scope_missing',
];

/**
 * A failure of a token that the environment or a program gave: it says where that is from and what it holds, and leads to
 * another token there. A login would not help, since commands would go on to send the given one. Of a login's own token
 * it leads to the next login. Other failures stay as they are.
 *
 * @param taken the tokens that the command asked for
 * @param now milliseconds
 */
export function tokenExplained(error: unknown, taken: readonly TakenToken[], now: number): unknown {
  if (!(error instanceof Failure) || !OF_TOKENS.includes(error.code)) return error;
  const given = taken.filter(
    ({ source: { variable, origin } }) => variable !== undefined || origin === 'command',
  );
  const refused = error.facts.details?.map(({ facts }) => facts?.['token']) ?? [];
  const named = given.filter(({ token }) => token && refused.includes(heldKind(token)));
  // A token in the place of another kind is at fault, unless the service names another one.
  const misplaced = (named.length > 0 ? named : given).filter(isMisplaced);
  const meant = misplaced.length > 0 ? misplaced : named.length > 0 ? named : given;
  const [first] = meant;
  // A login's own token: a new login replaces it.
  if (!first) return error.facts.fix === undefined ? error.with({ fix: 'slices-conn login' }) : error;
  return error.with({
    why: inOneText(error.facts.why, ...meant.flatMap((one) => toldOf(one, now))),
    fix: fixFor(error, first),
  });
}

function fixFor({ code, facts }: Failure, first: TakenToken): FailureFacts['fix'] {
  // What is exchanged anew would have no more scopes.
  if (code === 'scope_missing' && exchangedBy(first.source)) return undefined;
  // A source that gave none may have said itself what to do.
  return first.token || facts.fix === undefined ? nextStepFor(first) : facts.fix;
}

/** Whether a token is known to be of another kind than it is sent as. */
export function isMisplaced({ kind, token }: Pick<TakenToken, 'kind' | 'token'>): boolean {
  const held = token && heldKind(token);
  return held !== undefined && held !== 'service' && held !== kind;
}

/** A sentence that describes a text that should be a token, without any part of the text. @param now milliseconds */
export function heldText(token: Secret, now: number): Said {
  const kind = heldKind(token);
  if (kind === undefined) return 'a text that is not a JWT.';
  const text = token.reveal();
  const { iss } = claimedClaims(text);
  const what = kind === 'service' ? 'a JWT of no user, project or experiment' : `${kindText(kind)} (a JWT)`;
  const whose = typeof iss === 'string' && isServiceAddress(iss) ? `${what} of ${iss}.` : `${what}.`;
  const expiry = claimedExpiry(text);
  if (expiry === undefined || expiry > now) return whose;
  const age = formatDuration(Math.max(SECOND, now - expiry));
  return sentence`${whose} It expired ${age} ago (${instant(expiry)}).`;
}

/** The kind that a token claims to be; undefined for a text that is no JWT. */
export function heldKind(token: Secret): TokenKind | undefined {
  const claims = claimedClaims(token.reveal());
  return Object.keys(claims).length === 0 ? undefined : claimedKind(claims);
}

function toldOf({ kind, source, token }: TakenToken, now: number): Said[] {
  if (!token) return [];
  const { variable, where } = source;
  const held = heldText(token, now);
  const exchanged = exchangedBy(source);
  if (exchanged) return [sentence`${exchanged.given} was exchanged for ${held}`];
  const due = heldKind(token) === kind ? '' : ` It must be ${kindText(kind)}.`;
  if (variable === undefined) return [sentence`The program ${where} gave ${held}${due}`];
  const place = variable === where ? variable : `The file ${where} that ${variable} names`;
  return [sentence`${place} holds ${held}${due} Put a new one there, or unset it.`];
}

function nextStepFor({ kind, source }: TakenToken): string {
  const { variable, where } = source;
  if (variable === undefined) return where;
  const exchanged = exchangedBy(source);
  if (exchanged) return exchanged.fix;
  // The portal gives experiment tokens by itself.
  return kind === 'user' ? `unset ${variable} && slices-conn login` : `unset ${variable}`;
}

/** The token that a source exchanges for user tokens, in words, and the command that gives another; undefined where it exchanges nothing. */
function exchangedBy({ variable = '' }: TokenSource): { given: string; fix: string } | undefined {
  if (variable.startsWith('SLICES_CONN_REFRESH_TOKEN')) {
    return { given: `The refresh token in ${variable}`, fix: 'slices-conn login --ci' };
  }
  if (!/^(?:ACTIONS|SLICES_CONN)_ID_TOKEN/.test(variable)) return undefined;
  return { given: 'The ID token of this CI job', fix: 'slices-conn experiment ci list' };
}
