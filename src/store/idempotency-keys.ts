import type { IdempotencyKey, IdempotencyRecord } from '../allocator/store.ts';
import { insertInto, type SqlReader, type SqlStatements, type SqlValue } from './sql.ts';

/** Inserts keys. A key that is there already makes it fail: the caller has locked its keys, and found them free. */
export const IDEMPOTENCY_KEY = insertInto(
  'idempotency_key',
  `created_by text, experiment text, key text, fingerprint text, reservation text, items text, expires_ms bigint`,
);

/** See `ReservationStore.findKey`. */
export async function findKey(
  sql: SqlReader,
  { createdBy, experiment, key }: IdempotencyKey,
  now: number,
): Promise<IdempotencyRecord | undefined> {
  const row = await sql.first(
    `SELECT fingerprint, coalesce(items, reservation) AS items, expires_ms FROM idempotency_key
     WHERE created_by = $createdBy AND experiment = $experiment AND key = $key AND expires_ms > $now`,
    { createdBy, experiment, key, now },
  );
  return (
    row && {
      createdBy,
      experiment,
      key,
      fingerprint: String(row['fingerprint']),
      reservations: String(row['items']).split(' '),
      expires: Number(row['expires_ms']),
    }
  );
}

/** The row of a key. Only that of a batch has a list of items; its reservation is the first of them. */
export function keyRow(record: IdempotencyRecord): SqlValue[] {
  const { createdBy, experiment, key, fingerprint, reservations, expires } = record;
  const [first = '', ...others] = reservations;
  const items = others.length > 0 ? reservations.join(' ') : null;
  return [createdBy, experiment, key, fingerprint, first, items, expires];
}

/** Deletes a key if it has expired, so that it can be inserted again. */
export function deleteIfExpired(sql: SqlStatements, key: IdempotencyKey, now: number): Promise<void> {
  return sql.run(
    `DELETE FROM idempotency_key
     WHERE created_by = $createdBy AND experiment = $experiment AND key = $key AND expires_ms <= $now`,
    { ...key, now },
  );
}
