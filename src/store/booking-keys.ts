import { type BookingKey, KEYS_LET_GO, type RememberedBooking } from '../allocator/store.ts';
import type { SqlInsert, SqlReader, SqlStatements } from './sql.ts';

/** A key that is there already makes this fail: whoever claimed it before knows that it is free. */
const KEY: SqlInsert = {
  into: 'idempotency_key',
  columns: {
    created_by: 'text',
    experiment: 'text',
    key: 'text',
    fingerprint: 'text',
    reservation: 'text',
    expires_ms: 'bigint',
  },
};

/** See `ReservationStore.recall`. */
export async function recall(
  sql: SqlReader,
  { createdBy, experiment, key }: BookingKey,
  now: number,
): Promise<RememberedBooking | undefined> {
  const row = await sql.first(
    `SELECT fingerprint, reservation, expires_ms FROM idempotency_key
     WHERE created_by = $1 AND experiment = $2 AND key = $3 AND expires_ms > $4`,
    createdBy,
    experiment,
    key,
    now,
  );
  return (
    row && {
      createdBy,
      experiment,
      key,
      fingerprint: String(row['fingerprint']),
      reservation: String(row['reservation']),
      expires: Number(row['expires_ms']),
    }
  );
}

/**
 * Keeps keys that were claimed in the same transaction and found free, in place of what had expired.
 *
 * @param letGo lets go of keys that expired by `$1`, `$2` at most
 * @returns the statements, which may be on their way together
 */
export function keep(
  sql: SqlStatements,
  bookings: readonly RememberedBooking[],
  { now, letGo }: { now: number; letGo: string },
): Promise<void>[] {
  return [
    ...bookings.map(({ createdBy, experiment, key }) =>
      sql.run(
        `DELETE FROM idempotency_key
         WHERE created_by = $1 AND experiment = $2 AND key = $3 AND expires_ms <= $4`,
        createdBy,
        experiment,
        key,
        now,
      ),
    ),
    sql.insert(
      KEY,
      bookings.map((each) => [
        each.createdBy,
        each.experiment,
        each.key,
        each.fingerprint,
        each.reservation,
        each.expires,
      ]),
    ),
    sql.run(letGo, now, KEYS_LET_GO),
  ];
}
