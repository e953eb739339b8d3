import * as v from 'valibot';
import type { ConnectivityClaims } from '../contract/claims.ts';
import { HOUR, isoDuration } from '../contract/durations.ts';
import { Failure, shellWord } from '../contract/failure.ts';
import { ReservationId } from '../contract/fields.ts';
import { formatInstant } from '../contract/instants.ts';
import { isObject, readJson } from '../contract/json.ts';
import {
  RESERVATION_TEXTS,
  type Reservation,
  ReservationReply,
  routeFault,
} from '../contract/reservation.ts';
import { periodOf, type ReservationRequest } from '../contract/reservation-request.ts';
import { JWT_TYPE } from '../contract/routes.ts';
import { claimedReservation } from '../tokens/claimed.ts';
import { TokenError } from '../tokens/token-error.ts';
import { type Trust, verifyConnectivityToken } from '../tokens/verify.ts';
import { routeFaultText } from '../words/links.ts';
import { readAs, tokenIn } from './exchange.ts';
import type { Reply } from './reply-failure.ts';
import type { ServiceRequests } from './service-requests.ts';

/** A reservation, and the signed token that proves it. */
export interface ProvenReservation {
  /** As the service says. */
  reservation: Reservation;
  /** Whether the answer held a token that verified; false only where the caller allowed unsigned answers. */
  verified: boolean;
  /** The signed reservation; null where the service gave none. */
  token: string | null;
  /** The claims of the token; null without one. */
  claims: ConnectivityClaims | null;
}

/** The reservation that an answer must be about. Absent members may have any value. */
export interface Due {
  /**
   * The request that it answers. Where it names its bandwidth and period, the reservation has exactly these. With a
   * duration or a volume the service chose: then the reservation lies within the request's period, lasts exactly for the
   * duration, or has at most the bandwidth and carries the volume.
   */
  request?: ReservationRequest;
  /** For a start of now: the instants between which it lies, both included, in milliseconds. */
  now?: { from: number; to: number };
  id?: string;
  experiment?: string;
}

/** How far this machine's clock may be from the service's for a start of now: an hour, in milliseconds. */
const START_NOW_TOLERANCE_MS = HOUR;

/** When a request that starts now may start: since it was first sent, with a tolerance for two clocks. Milliseconds. */
export function startNowBetween(firstSentAt: number, now: number): { from: number; to: number } {
  return {
    from: Math.min(firstSentAt, now) - START_NOW_TOLERANCE_MS,
    to: now + START_NOW_TOLERANCE_MS,
  };
}

/**
 * The reservation that an answer proves: its token verifies, and is about the request (THREATS.md 23). Where the answer
 * holds no token, the reservation is read again.
 *
 * @throws Failure `unverified`, `unsigned` or `reply_invalid` with the id of the reservation, so that it is not lost; or a
 *   failure to fetch the keys
 */
export async function prove(
  { send, trust }: Pick<ServiceRequests, 'send' | 'trust'>,
  answer: Reply,
  due: Due,
  { allowUnsigned = false }: ProofOptions = {},
): Promise<ProvenReservation> {
  const token = tokenIn(answer);
  if (token !== undefined) return proveToken(token, trust, due);
  const id = due.id ?? unsignedId(answer, due);
  const reading = send('readReservation', { tokens: 'both', accept: JWT_TYPE, values: { id } });
  const again = await reading.catch((error: unknown) => {
    throw error instanceof Failure ? error.with({ reservation: id }) : error;
  });
  const second = tokenIn(again);
  if (second !== undefined) return proveToken(second, trust, { ...due, id });
  const reservation = readReservation(again, id);
  checkDifference(reservation, { ...due, id });
  if (allowUnsigned) return { reservation, verified: false, token: null, claims: null };
  throw new Failure('unsigned', 'The service answered without a signed token.', {
    why: 'Without a signature, nothing proves that the answer comes from the service.',
    // The same command with --allow-unsigned would book again (THREATS.md 45).
    fix: `slices-conn show ${shellWord(id)} --allow-unsigned`,
    reservation: id,
  });
}

/** The id in the unsigned answer to a create, which says what was asked for. @throws Failure `unverified`, `reply_invalid` */
function unsignedId(answer: Reply, due: Due): string {
  const reservation = readReservation(answer, claimedId(answer));
  checkDifference(reservation, due);
  return reservation.id;
}

/** The answer to a dry run, which nothing signs. @throws Failure `unverified`, which names no reservation: none exists */
export function rehearsed(reservation: Reservation, due: Due): ProvenReservation {
  checkDifference(reservation, due);
  return { reservation, verified: false, token: null, claims: null };
}

async function proveToken(token: string, trust: Trust, due: Due): Promise<ProvenReservation> {
  let claims: ConnectivityClaims;
  try {
    claims = await verifyConnectivityToken(token, trust, due.id);
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    const reservation = due.id ?? claimedReservation(token);
    throw new Failure('unverified', "The service's signed answer does not verify.", {
      why: error.message,
      reservation,
      cause: error,
    });
  }
  checkDifference(claims.connectivity, due);
  return { reservation: claims.connectivity, verified: true, token, claims };
}

/** @throws Failure `unverified` naming the first difference */
function checkDifference(reservation: Reservation, due: Due): void {
  const difference = differenceFrom(reservation, due);
  if (difference === undefined) return;
  throw new Failure('unverified', 'The service answered about another reservation than the one requested.', {
    why: difference,
    reservation: due.id ?? reservation.id,
    // The answer to a create names no reservation that was known before.
    isOther: due.id === undefined,
  });
}

/** The first difference between a reservation and what it must be, as a sentence; undefined where there is none. */
export function differenceFrom(reservation: Reservation, due: Due): string | undefined {
  const { id, request, experiment } = due;
  if (id !== undefined && reservation.id !== id) return `It is about ${reservation.id}, not ${id}.`;
  const difference = request && differenceFromRequest(reservation, request, due.now);
  if (difference !== undefined) return difference;
  if (experiment !== undefined && reservation.experiment_id !== experiment) {
    return `It belongs to ${reservation.experiment_id}, not to ${experiment}.`;
  }
  return undefined;
}

/** As {@link Due.request} says: with a duration or a volume, the service has chosen within the request. */
function differenceFromRequest(
  reservation: Reservation,
  request: ReservationRequest,
  now: Due['now'],
): string | undefined {
  const { site1, site2, bandwidth, start, end, duration, volume } = request;
  if (reservation.site1 !== site1 || reservation.site2 !== site2) {
    return `It is for ${reservation.site1} – ${reservation.site2}, not ${site1} – ${site2}.`;
  }
  const fault = routeFault(reservation, request);
  if (fault) return routeFaultText(fault);
  const rate = `It is for ${reservation.bandwidth} Mbps`;
  if (volume === undefined && reservation.bandwidth !== bandwidth) return `${rate}, not ${bandwidth}.`;
  if (bandwidth !== undefined && reservation.bandwidth > bandwidth) {
    return `${rate}, not at most ${bandwidth}.`;
  }
  const isSearch = duration !== undefined || volume !== undefined;
  const period = periodOf(reservation);
  const [from, to] = start === 'now' ? [now?.from ?? period.start, now?.to ?? period.start] : [start, start];
  if (period.start < from || (!isSearch && period.start > to)) {
    const due = start === 'now' ? 'now' : `${isSearch ? '' : 'at '}${formatInstant(start)}`;
    return `It starts at ${reservation.start_date}, ${isSearch ? 'before' : 'not'} ${due}.`;
  }
  if (isSearch ? period.end > end : period.end !== end) {
    return `It ends at ${reservation.end_date}, ${isSearch ? 'after' : 'not at'} ${formatInstant(end)}.`;
  }
  const lasts = Math.max(0, period.end - period.start);
  if (duration !== undefined && lasts !== duration) {
    return `It lasts for ${isoDuration(lasts)}, not for ${isoDuration(duration)}.`;
  }
  if (volume !== undefined && BigInt(reservation.bandwidth) * BigInt(lasts) * 125n < BigInt(volume)) {
    return `${rate} for ${isoDuration(lasts)}, which does not carry ${volume} bytes.`;
  }
  for (const text of RESERVATION_TEXTS) {
    const [due, said] = [request[text], reservation[text]];
    // A service without names or other texts answers without them.
    if (due !== undefined && said !== undefined && said !== due) return `Its ${text} is ${said}, not ${due}.`;
  }
  return undefined;
}

/**
 * Reads the reservation of a reply that holds no token.
 *
 * @param id the reservation that must not be lost when the reply can't be read
 * @throws Failure `reply_invalid`; whether the request has changed something, its caller knows
 */
export function readReservation(reply: Reply, id?: string): Reservation {
  try {
    return readAs(ReservationReply, reply, 'reservation');
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw error.with({ reservation: id });
  }
}

/** The reservation's id in a reply that can't be read otherwise, so that the reservation is not lost. */
function claimedId({ text }: Reply): string | undefined {
  const reading = readJson(text);
  const id = reading.ok && isObject(reading.value) ? reading.value['id'] : undefined;
  return v.is(ReservationId, id) ? id : undefined;
}

/** Whether an answer must be signed. */
export interface ProofOptions {
  /** Accept an unsigned answer: it comes back with `verified: false`. Default false. */
  allowUnsigned?: boolean;
}
