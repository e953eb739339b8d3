import { isProtected, UNPROTECTED } from './loopback.ts';

/** The kinds of tokens that a service may trust another issuer for. */
export const TRUSTED_KINDS = ['user', 'project', 'experiment'] as const;
/** One of {@link TRUSTED_KINDS}. */
export type TrustedKind = (typeof TRUSTED_KINDS)[number];

/** An issuer, and for which kinds of tokens it is trusted; every kind where none is named. */
export interface TrustedIssuer {
  issuer: string;
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
 * without a user, a query or a fragment (HOSTILE.md 5; RFC 8414 §2).
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

/** An issuer's address without the one slash that may end it: equal for issuers that are {@link sameIssuer}. */
export function issuerName(issuer: string): string {
  return issuer.endsWith('/') ? issuer.slice(0, -1) : issuer;
}

/**
 * Whether two texts name one issuer. They are compared as they stand (RFC 8414 §3.3), but for one slash at the end of
 * one of them: people and services write addresses with and without it (HOSTILE.md 4, 62).
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
