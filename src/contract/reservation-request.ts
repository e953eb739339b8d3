import * as v from 'valibot';
import { isoDuration, readIsoDuration } from './durations.ts';
import { Failure } from './failure.ts';
import { formatInstant, parseInstant } from './instants.ts';
import type { Reservation, ReservationRequestBody } from './reservation.ts';

/**
 * A new reservation. Times in milliseconds, bandwidth in Mbps.
 *
 * With `duration` (milliseconds, at least 1000) or `volume` (bytes) the service looks for the period, which lies within
 * `start` and `end`: extensions, which a service may lack; see `ServiceFeatures`.
 *
 * @example
 * // Two hours of 9 Gbps, as soon as possible this week:
 * { site1: 'be-gent1', site2: 'se-kth', bandwidth: 9000, start: 'now', end: friday, duration: 7_200_000 }
 * // 50 TB by Friday, as fast as the link allows:
 * { site1: 'be-gent1', site2: 'se-kth', volume: 50e12, start: 'now', end: friday }
 */
export interface ReservationRequest {
  site1: string;
  site2: string;
  /**
   * A name of the user's choice (cli/README.md, "Commands"). A service without names ignores it; then only the ledger of the
   * machine that asked knows it.
   */
  name?: string;
  /** With `volume` the most that it may use, by default the link's capacity; else it is required. */
  bandwidth?: number;
  /** `now`: at the time of the request (`start_now`). With `duration` or `volume`: not before. */
  start: number | 'now';
  /** With `duration` or `volume`: not after. */
  end: number;
  /** The earliest period of this length is booked. */
  duration?: number;
  /** What is to be carried, at one constant rate: of all rates and periods, the one that finishes first is booked. */
  volume?: number;
}

/** A change to a reservation. Absent members stay. */
export interface ReservationChange {
  bandwidth?: number;
  start?: number | 'now';
  end?: number;
}

/** A reservation as it was asked for, with times as text (cli/README.md, "Output", list items). */
export const Requested = v.object({
  site1: v.string(),
  site2: v.string(),
  /** Mbps. Null: as much as the link has, for a volume. */
  bandwidth: v.nullable(v.number()),
  /** Null: at the time of the request. With a duration or a volume: not before. */
  start_date: v.nullable(v.string()),
  /** With a duration or a volume: not after. */
  end_date: v.string(),
  /** Where the earliest period of a duration was asked for: the duration, such as `PT2H`. */
  duration: v.optional(v.string()),
  /** Where a volume was asked for: the bytes to be carried by the end. */
  volume: v.optional(v.number()),
  /** The reservation's name, where one was asked for. */
  name: v.optional(v.string()),
});
/** See {@link Requested}. */
export type Requested = v.InferOutput<typeof Requested>;

/** Two durations that differ by no more than this count as the same, in milliseconds. */
const SAME_DURATION = 5000;

/** A request as the ledger keeps it. @throws Failure `usage` for a request without a bandwidth, or for both searches */
export function requestedOf(reservation: ReservationRequest): Requested {
  const { site1, site2, bandwidth, start, end, duration, volume, name } = reservation;
  if (duration !== undefined && volume !== undefined) {
    throw new Failure('usage', 'A reservation is for a duration or for a volume, not for both.');
  }
  if (bandwidth === undefined && volume === undefined) {
    throw new Failure('usage', 'A reservation needs a bandwidth, unless it is for a volume.');
  }
  return {
    site1,
    site2,
    bandwidth: bandwidth ?? null,
    start_date: start === 'now' ? null : formatInstant(start),
    end_date: formatInstant(end),
    ...(duration === undefined ? {} : { duration: isoDuration(duration) }),
    volume,
    name,
  };
}

/** The body of a request to create or update, as it travels. */
export function toBody(reservation: ReservationRequest, tokens: string[]): ReservationRequestBody {
  const { bandwidth, volume, ...rest } = requestedOf(reservation);
  return {
    ...rest,
    ...(bandwidth === null ? {} : { bandwidth: String(bandwidth) }),
    ...(volume === undefined ? {} : { volume: String(volume) }),
    tokens,
  };
}

/** The query of a request to create or update: begins with `?`, or is empty. */
export function queryOf({ start, duration }: ReservationRequest, { dryRun = false } = {}): string {
  const said = [
    ...(start === 'now' ? ['start_now=true'] : []),
    ...(duration === undefined ? [] : ['earliest=true']),
    ...(dryRun ? ['dry_run=true'] : []),
  ];
  return said.length > 0 ? `?${said.join('&')}` : '';
}

/** The reverse of {@link requestedOf}. */
export function asReservation(requested: Requested): ReservationRequest {
  const { site1, site2, bandwidth, start_date, end_date, duration, volume, name } = requested;
  const start = start_date === null ? 'now' : instantOf(start_date);
  const asked = {
    site1,
    site2,
    start,
    end: instantOf(end_date),
    name,
  } as const;
  if (volume !== undefined) return { ...asked, volume, ...(bandwidth === null ? {} : { bandwidth }) };
  const lasting = duration === undefined ? undefined : readIsoDuration(duration);
  return { ...asked, bandwidth: bandwidth ?? 0, duration: lasting };
}

/** The whole reservation that an update asks for: members that do not change are taken from `current`. */
export function updated(
  current: Reservation,
  change: ReservationChange,
): ReservationRequest & { bandwidth: number } {
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
export function meets(found: Reservation, wanted: ReservationRequest): boolean {
  const sameStart = wanted.start === 'now' || instantOf(found.start_date) === wanted.start;
  return found.bandwidth === wanted.bandwidth && sameStart && instantOf(found.end_date) === wanted.end;
}

/**
 * Whether two requests under one idempotency key ask for the same reservation. `--start +2h --for 1h` typed again later
 * gives other times: the same words mean what they meant at first. Without the words, `--start-now --for 2h` gives another
 * end, but the same duration.
 *
 * @param askedAt when the first was made, in milliseconds
 * @param now when the second is made, in milliseconds
 * @param isTypedAlike whether the times were given in the same words
 */
export function isSameRequest(
  before: Requested,
  askedAt: number,
  again: Requested,
  now: number,
  isTypedAlike = false,
): boolean {
  const { start_date } = again;
  const members = ['site1', 'site2', 'bandwidth', 'duration', 'volume', 'name'] as const;
  if (members.some((member) => before[member] !== again[member])) return false;
  if (isTypedAlike) return true;
  if (before.start_date !== start_date) return false;
  if (before.end_date === again.end_date) return true;
  const [lasted, lasts] = [instantOf(before.end_date) - askedAt, instantOf(again.end_date) - now];
  return start_date === null && Math.abs(lasted - lasts) <= SAME_DURATION;
}

/** An instant of a reply or of the ledger, in milliseconds: UTC where no zone is named. NaN for other text. */
export function instantOf(text: string): number {
  return parseInstant(text, 'utc-if-absent') ?? Number.NaN;
}
