import type { IdempotencyRecord, ReservationRecord, StoreTransaction } from '../../src/allocator/store.ts';

/** Puts reservations as they are to stand, whatever was there under their ids. */
export function put(transaction: StoreTransaction, ...records: readonly ReservationRecord[]): Promise<void> {
  return transaction.write(
    { changes: records.map((record) => ({ action: 'update', record })), audit: [] },
    0,
  );
}

/** Cancels a reservation. */
export function cancel(transaction: StoreTransaction, record: ReservationRecord, now: number): Promise<void> {
  return transaction.write({ changes: [{ action: 'delete', record }], audit: [] }, now);
}

/** Books a reservation under a key. */
export function bookUnder(
  transaction: StoreTransaction,
  record: ReservationRecord,
  key: IdempotencyRecord,
  now: number,
): Promise<void> {
  return transaction.write({ changes: [{ action: 'create', record, key }], audit: [] }, now);
}
