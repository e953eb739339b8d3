import type { BookingKey, RememberedBooking } from '../allocator/store.ts';
import type { SqlInsert, SqlReader, SqlStatements, SqlValue } from './sql.ts';

/** A key that is there already makes this fail: whoever claimed it before knows that it is free. */
export const KEY: SqlInsert = {
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

/** The row of a key that was claimed in the same transaction, and found free. */
export function keyRow(booking: RememberedBooking): SqlValue[] {
  const { createdBy, experiment, key, fingerprint, reservation, expires } = booking;
  return [createdBy, experiment, key, fingerprint, reservation, expires];
}

/** Makes room for a key where one has expired. */
export function letExpiredGo(
  sql: SqlStatements,
  { createdBy, experiment, key }: BookingKey,
  now: number,
): Promise<void> {
  return sql.run(
    `DELETE FROM idempotency_key WHERE created_by = $1 AND experiment = $2 AND key = $3 AND expires_ms <= $4`,
    createdBy,
    experiment,
    key,
    now,
  );
}
