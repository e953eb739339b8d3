import type { ConnectivityClaims } from '../contract/claims.ts';
import { Failure } from '../contract/failure.ts';
import { formatInstant } from '../contract/instants.ts';
import type { Reservation } from '../contract/reservation.ts';
import { TokenError } from '../tokens/token-error.ts';
import { type Trust, verifyConnectivityToken } from '../tokens/verify.ts';
import { claimedReservation } from './claimed.ts';

/** A reservation, and the signed token that proves it. */
export interface ProvenReservation {
  reservation: Reservation;
  /** Whether a token was there and verified; without one only where the caller allowed it. */
  verified: boolean;
  token: string | null;
  claims: ConnectivityClaims | null;
}

/** What was asked for, to hold an answer against. What is absent was not asked. Times in milliseconds. */
export interface Expectation {
  id?: string;
  sites?: readonly [string, string];
  bandwidth?: number;
  /** Exactly, or within an hour of when it was asked for now: two clocks may differ. */
  start?: number | { near: number };
  end?: number;
  experiment?: string;
}

/**
 * Verifies a connectivity token and that it says what was asked for: another reservation, other sites, another
 * bandwidth or period is a lie, however well it is signed (HOSTILE.md 23).
 *
 * @throws Failure `unverified` with the id of the reservation that the token names, so that it is not lost;
 *   or keys that can't be had
 */
export async function proveReservation(
  token: string,
  trust: Trust,
  expected: Expectation = {},
): Promise<ProvenReservation> {
  let claims: ConnectivityClaims;
  try {
    claims = await verifyConnectivityToken(token, trust, expected.id);
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    const reservation = expected.id ?? claimedReservation(token);
    throw new Failure('unverified', "The service's signed answer does not verify.", {
      why: error.message,
      ...(reservation === undefined ? {} : { reservation }),
      cause: error,
    });
  }
  const reservation = claims.connectivity;
  checkExpectation(reservation, expected);
  return { reservation, verified: true, token, claims };
}

/** Holds a reservation against what was asked. @throws Failure `unverified` naming the first difference */
export function checkExpectation(reservation: Reservation, expected: Expectation): void {
  const difference = differenceFrom(reservation, expected);
  if (difference === undefined) return;
  throw new Failure('unverified', 'The service answered about something else than what was asked.', {
    why: difference,
    reservation: reservation.id,
  });
}

function differenceFrom(reservation: Reservation, expected: Expectation): string | undefined {
  const { id, sites, bandwidth, start, end, experiment } = expected;
  const { site1, site2 } = reservation;
  if (id !== undefined && reservation.id !== id) return `It is about ${reservation.id}, not ${id}.`;
  if (sites && (site1 !== sites[0] || site2 !== sites[1])) {
    return `It is for ${site1} – ${site2}, not ${sites.join(' – ')}.`;
  }
  if (bandwidth !== undefined && reservation.bandwidth !== bandwidth) {
    return `It is for ${reservation.bandwidth} Mbps, not ${bandwidth}.`;
  }
  if (start !== undefined && !startsAt(reservation, start)) {
    const due =
      typeof start === 'number' ? `at ${formatInstant(start)}` : `now, ${formatInstant(start.near)}`;
    return `It starts at ${reservation.start_date}, not ${due}.`;
  }
  if (end !== undefined && Date.parse(reservation.end_date) !== end) {
    return `It ends at ${reservation.end_date}, not at ${formatInstant(end)}.`;
  }
  if (experiment !== undefined && reservation.experiment_id !== experiment) {
    return `It belongs to ${reservation.experiment_id}, not to ${experiment}.`;
  }
  return undefined;
}

const HOUR = 3_600_000;

function startsAt({ start_date }: Reservation, due: number | { near: number }): boolean {
  const start = Date.parse(start_date);
  return typeof due === 'number' ? start === due : Math.abs(start - due.near) <= HOUR;
}
