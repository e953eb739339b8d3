import * as v from 'valibot';
import type { ConnectivityClaims } from '../contract/claims.ts';
import { isoDuration } from '../contract/durations.ts';
import { Failure } from '../contract/failure.ts';
import { ReservationId } from '../contract/fields.ts';
import { formatInstant } from '../contract/instants.ts';
import { isObject, readJson } from '../contract/json.ts';
import { type Reservation, ReservationReply } from '../contract/reservation.ts';
import type { ReservationRequest } from '../contract/reservation-request.ts';
import { claimedReservation } from '../tokens/claimed.ts';
import { TokenError } from '../tokens/token-error.ts';
import { type Trust, verifyConnectivityToken } from '../tokens/verify.ts';
import { readAs } from './exchange.ts';
import type { Reply } from './reply-failure.ts';

/** A reservation, and the signed token that proves it. */
export interface ProvenReservation {
  reservation: Reservation;
  /** Whether the answer held a token that verified; false only where the caller allowed unsigned answers. */
  verified: boolean;
  token: string | null;
  claims: ConnectivityClaims | null;
}

/**
 * The values that an answer must have. Absent members may have any value. Times in milliseconds, bandwidth in Mbps.
 *
 * With `duration` or `volume` the service chose the period: then it must lie within `start` and `end`, last exactly for
 * the duration, or have at most the bandwidth and carry the volume.
 */
export interface Expectation {
  id?: string;
  sites?: readonly [string, string];
  bandwidth?: number;
  /** Exactly, or between two instants for a start of now, since two clocks may differ. */
  start?: number | Range;
  end?: number;
  /** Milliseconds. */
  duration?: number;
  /** Bytes. */
  volume?: number;
  experiment?: string;
  /** Where the answer has one. */
  name?: string;
}

/** Two instants, both included. */
export interface Range {
  from: number;
  to: number;
}

/**
 * What a reservation that was asked for must be.
 *
 * @param now when a start of now may be
 */
export function expectationOf(
  { site1, site2, bandwidth, start, end, duration, volume, name }: ReservationRequest,
  now: Range,
): Expectation {
  return {
    sites: [site1, site2],
    start: start === 'now' ? now : start,
    end,
    bandwidth,
    duration,
    volume,
    name,
  };
}

/**
 * Verifies a connectivity token, and checks that it names the reservation, sites, bandwidth and period of the request.
 * A valid token about another reservation is refused (THREATS.md 23).
 *
 * @throws Failure `unverified` with the id of the reservation that the token names, so that it is not lost;
 *   or a failure to fetch the keys
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
      reservation,
      cause: error,
    });
  }
  const reservation = claims.connectivity;
  checkExpectation(reservation, expected);
  return { reservation, verified: true, token, claims };
}

/** Compares a reservation with the request. @throws Failure `unverified` naming the first difference */
export function checkExpectation(reservation: Reservation, expected: Expectation): void {
  const difference = differenceFrom(reservation, expected);
  if (difference === undefined) return;
  throw new Failure('unverified', 'The service answered about another reservation than the one requested.', {
    why: difference,
    reservation: reservation.id,
  });
}

/** The first difference between a reservation and the request, as a sentence; undefined where it is what was asked for. */
export function differenceFrom(reservation: Reservation, expected: Expectation): string | undefined {
  const { id, sites, experiment, duration, volume, name } = expected;
  const { site1, site2 } = reservation;
  if (id !== undefined && reservation.id !== id) return `It is about ${reservation.id}, not ${id}.`;
  if (sites && (site1 !== sites[0] || site2 !== sites[1])) {
    return `It is for ${site1} – ${site2}, not ${sites.join(' – ')}.`;
  }
  const searched = duration !== undefined || volume !== undefined;
  const difference = searched ? outsideOf(reservation, expected) : notExactly(reservation, expected);
  if (difference !== undefined) return difference;
  if (experiment !== undefined && reservation.experiment_id !== experiment) {
    return `It belongs to ${reservation.experiment_id}, not to ${experiment}.`;
  }
  // A service without names answers without one.
  if (name !== undefined && reservation.name !== undefined && reservation.name !== name) {
    return `Its name is ${reservation.name}, not ${name}.`;
  }
  return undefined;
}

/** For a request that names bandwidth and period: they must be equal. */
function notExactly(reservation: Reservation, { bandwidth, start, end }: Expectation): string | undefined {
  if (bandwidth !== undefined && reservation.bandwidth !== bandwidth) {
    return `It is for ${reservation.bandwidth} Mbps, not ${bandwidth}.`;
  }
  if (start !== undefined && !startsAt(reservation, start)) {
    const due = typeof start === 'number' ? `at ${formatInstant(start)}` : 'now';
    return `It starts at ${reservation.start_date}, not ${due}.`;
  }
  if (end !== undefined && Date.parse(reservation.end_date) !== end) {
    return `It ends at ${reservation.end_date}, not at ${formatInstant(end)}.`;
  }
  return undefined;
}

/** For a request that lets the service choose: the reservation must lie within what was asked for. */
function outsideOf(
  reservation: Reservation,
  { bandwidth, start, end, duration, volume }: Expectation,
): string | undefined {
  const [starts, ends] = [Date.parse(reservation.start_date), Date.parse(reservation.end_date)];
  const lasts = Math.max(0, ends - starts);
  const earliest = typeof start === 'number' ? start : start?.from;
  if (earliest !== undefined && starts < earliest) {
    return `It starts at ${reservation.start_date}, before ${typeof start === 'number' ? formatInstant(start) : 'now'}.`;
  }
  if (end !== undefined && ends > end) {
    return `It ends at ${reservation.end_date}, after ${formatInstant(end)}.`;
  }
  if (duration !== undefined && lasts !== duration) {
    return `It lasts for ${isoDuration(lasts)}, not for ${isoDuration(duration)}.`;
  }
  const isTooWide =
    volume === undefined
      ? reservation.bandwidth !== bandwidth
      : reservation.bandwidth > (bandwidth ?? Number.POSITIVE_INFINITY);
  if (bandwidth !== undefined && isTooWide) {
    return `It is for ${reservation.bandwidth} Mbps, not ${volume === undefined ? '' : 'at most '}${bandwidth}.`;
  }
  if (volume !== undefined && bytesCarried(reservation.bandwidth, lasts) < BigInt(volume)) {
    return `It is for ${reservation.bandwidth} Mbps for ${isoDuration(lasts)}, which does not carry ${volume} bytes.`;
  }
  return undefined;
}

/** The bytes that a rate in Mbps carries in so many milliseconds: 125 in each, for each Mbps. Exact, so not a number. */
function bytesCarried(bandwidth: number, milliseconds: number): bigint {
  return BigInt(bandwidth) * BigInt(milliseconds) * 125n;
}

function startsAt({ start_date }: Reservation, due: number | Range): boolean {
  const start = Date.parse(start_date);
  return typeof due === 'number' ? start === due : due.from <= start && start <= due.to;
}

/**
 * Reads the reservation of a reply that holds no token.
 *
 * @param id the reservation that must not be lost when the reply can't be read
 * @throws Failure `reply_invalid` with `maybeDone`: the request may still have taken effect
 */
export function readReservation(reply: Reply, id?: string): Reservation {
  try {
    return readAs(ReservationReply, reply, 'reservation');
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw error.with({ maybeDone: true, reservation: id });
  }
}

/** The reservation's id in a reply that can't be read otherwise, so that the reservation is not lost. */
export function claimedId({ text }: Reply): string | undefined {
  const reading = readJson(text);
  const id = reading.ok && isObject(reading.value) ? reading.value['id'] : undefined;
  return v.is(ReservationId, id) ? id : undefined;
}

/**
 * Checks the reply to a deletion: a page comes from a proxy or a login, not from the service.
 *
 * @param id the reservation
 * @throws Failure `reply_invalid` with `maybeDone` for a page
 */
export function checkDeletion({ type }: Reply, id: string): void {
  if (type !== 'text/html') return;
  throw new Failure('reply_invalid', 'The service answered with a page.', {
    why: 'The page does not say whether the reservation was deleted.',
    maybeDone: true,
    reservation: id,
  });
}

/** Whether an answer must be signed. */
export interface ProofOptions {
  /** Accept an unsigned answer: it comes back with `verified: false`. Default false. */
  allowUnsigned?: boolean;
}

/** How a link is booked. */
export interface ReserveOptions extends ProofOptions {
  /** Sent as `Idempotency-Key`. A service that honours it books the same request under the same key once. */
  idempotencyKey?: string;
  /**
   * When the request was first sent under its key, in milliseconds; default: now. The answer to a repeated request is the
   * first one's reservation: a start of now was then.
   */
  firstSentAt?: number;
}

/** Checks the answer to a dry run like any other. @throws Failure `unverified`, which names no reservation: none exists */
export function asRehearsed(reservation: Reservation, expected: Expectation): Reservation {
  try {
    checkExpectation(reservation, expected);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { reservation: _none, ...facts } = error.facts;
    throw new Failure(error.code, error.message, facts);
  }
  return reservation;
}
