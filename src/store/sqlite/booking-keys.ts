import { type BookingKey, KEYS_LET_GO, type RememberedBooking } from '../../allocator/store.ts';
import type { SqliteTransaction } from './database.ts';

/** See `LinkTransaction.recall`. */
export function recall(
  sql: SqliteTransaction,
  { createdBy, experiment, key }: BookingKey,
  now: number,
): RememberedBooking | undefined {
  const row = sql.first(
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

/** See `LinkTransaction.remember`. */
export function remember(
  sql: SqliteTransaction,
  booking: RememberedBooking,
  now: number,
): RememberedBooking | undefined {
  const kept = sql.first(
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
  sql.run(
    `DELETE FROM idempotency_key WHERE (created_by, experiment, key) IN (
       SELECT created_by, experiment, key FROM idempotency_key WHERE expires_ms <= $1 ORDER BY expires_ms LIMIT $2)`,
    now,
    KEYS_LET_GO,
  );
  return undefined;
}
