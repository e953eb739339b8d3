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

/** A reader of one claim; see {@link claimedClaims}. */
const claim =
  <Value>(read: (claims: Readonly<Record<string, unknown>>) => Value) =>
  (token: string): Value =>
    read(claimedClaims(token));

/** The `sub` that a token claims; see {@link claimedClaims}. */
export const claimedSubject = claim(({ sub }) => text(sub));

/** The reservation's id that a token claims; undefined for text that is not an id, since people may be asked to type it. */
export const claimedReservation = claim(({ sub }) => (v.is(ReservationId, sub) ? sub : undefined));

/** The name that a token claims for its project or experiment; see {@link claimedClaims}. */
export const claimedName = claim(({ name }) => text(name));

/** The user whom a project's or an experiment's token claims to be for (`act`); see {@link claimedClaims}. */
export const claimedActor = claim(({ act }) => (isObject(act) ? text(act['sub']) : undefined));

/** The role of that user in the project or experiment, as the token claims it (`act`); see {@link claimedClaims}. */
export const claimedRole = claim(({ act }) => (isObject(act) ? text(act['role']) : undefined));

/** The user name that a user token claims (contract/README.md, "User token"); see {@link claimedClaims}. */
export const claimedUserName = claim(({ preferred_username }) => text(preferred_username));

/** When a token says that it expires, in milliseconds; see {@link claimedClaims}. */
export const claimedExpiry = claim(({ exp }) => milliseconds(exp));

/** When an experiment token says that its experiment expires (`exp_exp`), in milliseconds; see {@link claimedClaims}. */
export const claimedExperimentExpiry = claim(({ exp_exp }) =>
  parseInstant(text(exp_exp) ?? '', 'utc-if-absent'),
);

/** When a token says that it was issued, in milliseconds; see {@link claimedClaims}. */
export const claimedIssue = claim(({ iat }) => milliseconds(iat));

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function milliseconds(seconds: unknown): number | undefined {
  return typeof seconds === 'number' && seconds >= 0 && seconds <= LAST_SECOND ? seconds * 1000 : undefined;
}
