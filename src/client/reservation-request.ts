import * as v from 'valibot';
import { formatInstant, parseInstant } from '../contract/instants.ts';
import type { Reservation } from '../contract/reservation.ts';

/** A new reservation. Times in milliseconds, bandwidth in Mbps. */
export interface NewReservation {
  site1: string;
  site2: string;
  bandwidth: number;
  /** `now`: at the time of the request (`start_now`). */
  start: number | 'now';
  end: number;
}

/** A change to a reservation. Absent members stay. */
export interface ReservationChange {
  bandwidth?: number;
  start?: number | 'now';
  end?: number;
}

/** A reservation as it was asked for, with times as text (CLI.md, "Output", list items). */
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

/** Two durations that differ by no more than this count as the same, in milliseconds. */
const SAME_DURATION = 5000;

/** The members that a request's body and the ledger have in common. */
export function requestedOf({ site1, site2, bandwidth, start, end }: NewReservation): Requested {
  return {
    site1,
    site2,
    bandwidth,
    start_date: start === 'now' ? null : formatInstant(start),
    end_date: formatInstant(end),
  };
}

/** The reverse of {@link requestedOf}. */
export function asReservation({ site1, site2, bandwidth, start_date, end_date }: Requested): NewReservation {
  return {
    site1,
    site2,
    bandwidth,
    start: start_date === null ? 'now' : instantOf(start_date),
    end: instantOf(end_date),
  };
}

/** The whole reservation that an update asks for: members that do not change are taken from `current`. */
export function updated(current: Reservation, change: ReservationChange): NewReservation {
  return {
    site1: current.site1,
    site2: current.site2,
    bandwidth: change.bandwidth ?? current.bandwidth,
    start: change.start ?? instantOf(current.start_date),
    end: change.end ?? instantOf(current.end_date),
  };
}

/** A reservation's period in milliseconds. */
export function periodOf({ start_date, end_date }: Reservation): { start: number; end: number } {
  return { start: instantOf(start_date), end: instantOf(end_date) };
}

/** Whether a reservation has the bandwidth and period that an update asked for. A start of `now` fits any start. */
export function meets(found: Reservation, wanted: NewReservation): boolean {
  const sameStart = wanted.start === 'now' || instantOf(found.start_date) === wanted.start;
  return found.bandwidth === wanted.bandwidth && sameStart && instantOf(found.end_date) === wanted.end;
}

/**
 * Whether two requests under one idempotency key ask for the same reservation. `--start-now --for 2h` typed again later
 * gives another end, but the same duration.
 *
 * @param askedAt when the first was made, in milliseconds
 * @param now when the second is made, in milliseconds
 */
export function isSameRequest(before: Requested, askedAt: number, again: Requested, now: number): boolean {
  const { site1, site2, bandwidth, start_date } = again;
  const sameLink = before.site1 === site1 && before.site2 === site2 && before.bandwidth === bandwidth;
  if (!sameLink || before.start_date !== start_date) return false;
  if (before.end_date === again.end_date) return true;
  const [lasted, lasts] = [instantOf(before.end_date) - askedAt, instantOf(again.end_date) - now];
  return start_date === null && Math.abs(lasted - lasts) <= SAME_DURATION;
}

/** An instant of a reply or of the ledger, in milliseconds: UTC where no zone is named. NaN for other text. */
export function instantOf(text: string): number {
  return parseInstant(text, 'utc-if-absent') ?? Number.NaN;
}
