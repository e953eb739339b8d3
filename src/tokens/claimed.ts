import { decodeJwt } from 'jose';
import * as v from 'valibot';
import { LAST_SECOND } from '../contract/claims.ts';
import { ReservationId } from '../contract/fields.ts';
import { parseInstant } from '../contract/instants.ts';
import { isObject } from '../contract/json.ts';

/**
 * The claims of a token, not verified: only to name a reservation that must not be lost, and to show people what a token
 * claims. Empty for a token that can't be read, such as an opaque one.
 */
export function claimedClaims(token: string): Readonly<Record<string, unknown>> {
  try {
    return decodeJwt(token);
  } catch {
    return {};
  }
}

/** The `sub` that a token claims; see {@link claimedClaims}. */
export function claimedSubject(token: string): string | undefined {
  return text(claimedClaims(token)['sub']);
}

/** The reservation's id that a token claims; undefined for text that is not an id, since people may be asked to type it. */
export function claimedReservation(token: string): string | undefined {
  const sub = claimedSubject(token);
  return v.is(ReservationId, sub) ? sub : undefined;
}

/** The name that a token claims for its project or experiment; see {@link claimedClaims}. */
export function claimedName(token: string): string | undefined {
  return text(claimedClaims(token)['name']);
}

/** The user whom a project's or an experiment's token claims to be for (`act`); see {@link claimedClaims}. */
export function claimedActor(token: string): string | undefined {
  return ofActor(token, 'sub');
}

/** The role of that user in the project or experiment, as the token claims it (`act`); see {@link claimedClaims}. */
export function claimedRole(token: string): string | undefined {
  return ofActor(token, 'role');
}

function ofActor(token: string, member: 'sub' | 'role'): string | undefined {
  const { act } = claimedClaims(token);
  return isObject(act) ? text(act[member]) : undefined;
}

/** The user name that a user token claims (contract/README.md, "User token"); see {@link claimedClaims}. */
export function claimedUserName(token: string): string | undefined {
  return text(claimedClaims(token)['preferred_username']);
}

/** When a token says that it expires, in milliseconds; see {@link claimedClaims}. */
export function claimedExpiry(token: string): number | undefined {
  return seconds(claimedClaims(token)['exp']);
}

/** When an experiment token says that its experiment expires (`exp_exp`), in milliseconds; see {@link claimedClaims}. */
export function claimedExperimentExpiry(token: string): number | undefined {
  return parseInstant(text(claimedClaims(token)['exp_exp']) ?? '', 'utc-if-absent');
}

/** When a token says that it was issued, in milliseconds; see {@link claimedClaims}. */
export function claimedIssue(token: string): number | undefined {
  return seconds(claimedClaims(token)['iat']);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function seconds(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= LAST_SECOND ? value * 1000 : undefined;
}
