import { type BookingKey, KEYS_LET_GO, type RememberedBooking } from '../allocator/store.ts';
import type { SqlStatements } from './sql.ts';

/** See `LinkTransaction.recall`. */
export async function recall(
  sql: SqlStatements,
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
 * See `LinkTransaction.remember`. Of two transactions that hold different links and take one key, the second waits in
 * the first statement for the first's end. A key that turns out to be taken is locked by that statement until the
 * transaction ends, so nobody lets go of it before it is read.
 *
 * @param letGo lets go of keys that expired by `$1`, `$2` at most
 */
export async function remember(
  sql: SqlStatements,
  booking: RememberedBooking,
  { now, letGo }: { now: number; letGo: string },
): Promise<RememberedBooking | undefined> {
  const kept = await sql.first(
    `INSERT INTO idempotency_key (created_by, experiment, key, fingerprint, reservation, expires_ms)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (created_by, experiment, key) DO UPDATE SET fingerprint = $4, reservation = $5, expires_ms = $6
       WHERE idempotency_key.expires_ms <= $7
     RETURNING key`,
    booking.createdBy,
    booking.experiment,
    booking.key,
    booking.fingerprint,
    booking.reservation,
    booking.expires,
    now,
  );
  if (!kept) return recall(sql, booking, now);
  await sql.run(letGo, now, KEYS_LET_GO);
  return undefined;
}
