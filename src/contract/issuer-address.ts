import * as v from 'valibot';
import { UserId } from './fields.ts';
import { isProtected, UNPROTECTED } from './loopback.ts';

/** The kinds of tokens that a service may trust another issuer for. */
export const TRUSTED_KINDS = ['user', 'project', 'experiment'] as const;
/** One of {@link TRUSTED_KINDS}. */
export type TrustedKind = (typeof TRUSTED_KINDS)[number];

/** An issuer, and for which kinds of tokens it is trusted; every kind where none is named. */
export interface TrustedIssuer {
  /** Its `iss`: `https:`, or `http:` on loopback. */
  issuer: string;
  /** The tokens that it may issue. Default: all three. */
  kinds?: readonly TrustedKind[];
}

/** The issuers that are trusted for a kind of token. */
export function issuersFor(kind: TrustedKind, issuers: readonly TrustedIssuer[]): string[] {
  return issuers.filter(({ kinds = TRUSTED_KINDS }) => kinds.includes(kind)).map(({ issuer }) => issuer);
}

/** A kind of token that every reservation needs but no issuer is trusted for; undefined when each kind has an issuer. */
export function missingKind(issuers: readonly TrustedIssuer[]): TrustedKind | undefined {
  return (['user', 'experiment'] as const).find((kind) => issuersFor(kind, issuers).length === 0);
}

/**
 * Checks the address of an issuer whose keys are fetched: it must be `https:`, or `http:` on this machine,
 * without a user, a query or a fragment (THREATS.md 5; RFC 8414 §2).
 *
 * @returns the problem, as a sentence; undefined when the address is accepted
 */
export function issuerProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return 'It must be an https address.';
  if (!isProtected(url)) return `It must be an https address. ${UNPROTECTED}`;
  // An empty query or fragment counts too, and is lost in the parsed URL.
  if (url.username || url.password || /[?#]/.test(text)) {
    return 'It must be an address without a user, a query or a fragment.';
  }
  return undefined;
}

/** Whether a text has the form of a service's address: http or https, without user, query or fragment (RFC 8414 §2). */
export function isServiceAddress(text: string): boolean {
  if (!/^https?:\/\/[^\s\p{Cc}\p{Cf}?#]+$/iu.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '';
}

/** An issuer's address without the one slash that may end it: equal for issuers that are {@link sameIssuer}. */
export function issuerName(issuer: string): string {
  return issuer.endsWith('/') ? issuer.slice(0, -1) : issuer;
}

/**
 * Whether two texts name one issuer. They are compared as they stand (RFC 8414 §3.3), but for one slash at the end of
 * one of them: people and services write addresses with and without it (THREATS.md 4, 62).
 *
 * @example sameIssuer('https://login.example.org', 'https://login.example.org/') // true
 */
export function sameIssuer(one: string, other: string): boolean {
  return one === other || `${one}/` === other || one === `${other}/`;
}

/** The value for an issuer, under either spelling of {@link sameIssuer}; its own spelling first. */
export function forIssuer<Value>(issuers: ReadonlyMap<string, Value>, issuer: string): Value | undefined {
  return issuers.get(issuer) ?? issuers.get(issuer.endsWith('/') ? issuer.slice(0, -1) : `${issuer}/`);
}

/** A user of one issuer who may read and delete any reservation of a server. The operator names them; no role does. */
interface Administrator {
  /** The user token's `sub`. */
  user: string;
  /** The user token's `iss`; undefined stands for the identity provider that the server has of its own. */
  issuer?: string;
}

/**
 * Reads how an administrator is named: `USER_ID`, or `USER_ID@ISSUER_URL` for a user of an issuer that the server
 * trusts. With a user id alone, any trusted issuer could claim to speak for that user.
 *
 * @returns undefined when it is neither
 * @example readAdministrator('user_h_1@https://login.example.org') // { user: 'user_h_1', issuer: 'https://login.example.org' }
 */
export function readAdministrator(text: string): Administrator | undefined {
  const at = text.indexOf('@');
  const [user, issuer] = at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)];
  if (!v.is(UserId, user)) return undefined;
  if (issuer === undefined) return { user };
  return URL.canParse(issuer) && /^https?:$/.test(new URL(issuer).protocol) ? { user, issuer } : undefined;
}
