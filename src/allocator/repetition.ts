import type { BookingKey, RememberedBooking, ReservationRecord } from './store.ts';

/** How long a booking's key stands for its reservation (DESIGN.md, "List, links, …"): 24 h, in milliseconds. */
export const KEY_LIFETIME = 24 * 3600 * 1000;

/** A request under a key, and what tells it from other requests under the same key. */
export interface KeyedRequest extends BookingKey {
  /** Equal for equal requests. */
  fingerprint: string;
}

/** The answer to a request under a key that stands for a reservation already. */
export type Repetition =
  /** The same request: its reservation, as it stands now. */
  | { ok: true; record: ReservationRecord; repeated: true }
  /** The same request, whose reservation was deleted since. */
  | { ok: false; reason: 'deleted'; reservation: string }
  /** Another request. */
  | { ok: false; reason: 'key_taken' };

/**
 * What a request is answered whose key is not free.
 *
 * @param earlier what the key stands for
 * @param record its reservation; undefined when it was deleted since
 */
export function repetitionOf(
  earlier: RememberedBooking,
  { fingerprint }: KeyedRequest,
  record: ReservationRecord | undefined,
): Repetition {
  if (earlier.fingerprint !== fingerprint) return { ok: false, reason: 'key_taken' };
  return record
    ? { ok: true, record, repeated: true }
    : { ok: false, reason: 'deleted', reservation: earlier.reservation };
}
