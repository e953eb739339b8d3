import * as v from 'valibot';
import type { NewReservation, ReservationChange } from '../../client/connectivity.ts';
import { formatInstant, parseInstant } from '../../contract/instants.ts';
import type { Reservation } from '../../contract/reservation.ts';

/** What was asked for, as it was sent (CLI.md, "Output", list items). */
export const Requested = v.object({
  site1: v.string(),
  site2: v.string(),
  /** Mbps. */
  bandwidth: v.number(),
  /** Null: at the time of the request. */
  start_date: v.nullable(v.string()),
  end_date: v.string(),
});
/** See {@link Requested}. */
export type Requested = v.InferOutput<typeof Requested>;

/** How far two durations that a person gave as the same may be apart, in milliseconds. */
const SAME_DURATION = 5000;

/** A request as it is sent. */
export function requestedOf({ site1, site2, bandwidth, start, end }: NewReservation): Requested {
  return {
    site1,
    site2,
    bandwidth,
    start_date: start === 'now' ? null : formatInstant(start),
    end_date: formatInstant(end),
  };
}

/** The request that was sent. */
export function asReservation({ site1, site2, bandwidth, start_date, end_date }: Requested): NewReservation {
  return {
    site1,
    site2,
    bandwidth,
    start: start_date === null ? 'now' : instant(start_date),
    end: instant(end_date),
  };
}

/** What an update asks for, whole: what does not change is as it stands. */
export function changed(current: Reservation, change: ReservationChange): NewReservation {
  return {
    site1: current.site1,
    site2: current.site2,
    bandwidth: change.bandwidth ?? current.bandwidth,
    start: change.start ?? instant(current.start_date),
    end: change.end ?? instant(current.end_date),
  };
}

/** Whether a reservation is as an update asked for it. */
export function meets(found: Reservation, wanted: NewReservation): boolean {
  const sameStart = wanted.start === 'now' || instant(found.start_date) === wanted.start;
  return found.bandwidth === wanted.bandwidth && sameStart && instant(found.end_date) === wanted.end;
}

/**
 * Whether two requests under one key ask for the same. Words such as `--start-now --for 2h`, typed again later, mean the
 * same duration from another now.
 *
 * @param askedAt when the first was made, in milliseconds
 * @param now when the second is made, in milliseconds
 */
export function isSameRequest(before: Requested, askedAt: number, again: Requested, now: number): boolean {
  const { site1, site2, bandwidth, start_date } = again;
  const sameLink = before.site1 === site1 && before.site2 === site2 && before.bandwidth === bandwidth;
  if (!sameLink || before.start_date !== start_date) return false;
  if (before.end_date === again.end_date) return true;
  const [lasted, lasts] = [instant(before.end_date) - askedAt, instant(again.end_date) - now];
  return start_date === null && Math.abs(lasted - lasts) <= SAME_DURATION;
}

function instant(text: string): number {
  return parseInstant(text, 'utc-if-absent') ?? Number.NaN;
}
