import type { IdempotencyKey, IdempotencyRecord } from '../allocator/store.ts';
import { insertInto, type SqlReader, type SqlStatements } from './sql.ts';

/** Inserts keys. A key that is there already makes it fail: the caller has locked its keys, and found them free. */
export const IDEMPOTENCY_KEY = insertInto(
  'idempotency_key',
  `created_by text createdBy, experiment text, key text, fingerprint text, reservation text, items text,
   expires_ms bigint expires`,
);

/** See `ReservationStore.findKey`. */
export async function findKey(
  sql: SqlReader,
  { createdBy, experiment, key }: IdempotencyKey,
  now: number,
): Promise<IdempotencyRecord | undefined> {
  const row = await sql.first<Omit<IdempotencyRecord, 'reservations'> & { items: string }>(
    `SELECT created_by AS "createdBy", experiment, key, fingerprint, coalesce(items, reservation) AS items,
       expires_ms AS expires
     FROM idempotency_key
     WHERE created_by = $createdBy AND experiment = $experiment AND key = $key AND expires_ms > $now`,
    { createdBy, experiment, key, now },
  );
  if (!row) return undefined;
  const { items, ...rest } = row;
  return { ...rest, reservations: items.split(' ') };
}

/** The row of a key. Only that of a batch has a list of items; its reservation is the first of them. */
export function keyRow(record: IdempotencyRecord): object {
  const { reservations } = record;
  return {
    ...record,
    reservation: reservations[0],
    items: reservations.length > 1 ? reservations.join(' ') : null,
  };
}

/** Deletes a key if it has expired, so that it can be inserted again. */
export function deleteIfExpired(sql: SqlStatements, key: IdempotencyKey, now: number): Promise<void> {
  return sql.run(
    `DELETE FROM idempotency_key
     WHERE created_by = $createdBy AND experiment = $experiment AND key = $key AND expires_ms <= $now`,
    { ...key, now },
  );
}
