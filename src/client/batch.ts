import * as v from 'valibot';
import { type BatchItemBody, BatchResultsReply, MAX_ITEMS } from '../contract/batch.ts';
import { Failure } from '../contract/failure.ts';
import { ReservationId } from '../contract/fields.ts';
import { isObject, readJson } from '../contract/json.ts';
import type { Reservation } from '../contract/reservation.ts';
import { readAs } from './exchange.ts';
import type { Reply } from './reply-failure.ts';
import {
  bodyOf,
  instantOf,
  type NewReservation,
  type ReservationChange,
  updated,
} from './reservation-request.ts';

/** One change of a batch. `current` is how the reservation stands now. A create can't have `duration` or `volume`. */
export type BatchItem =
  | { action: 'create'; reservation: NewReservation }
  | { action: 'update'; current: Reservation; change: ReservationChange }
  | { action: 'delete'; id: string };

/** What the reply to a batch says of one item, not proven. */
export interface ClaimedResult {
  connectivity: Reservation | null;
  token: string | null;
}

/**
 * An item as it travels.
 *
 * @throws Failure `usage` for a create that searches
 */
export function itemBody(item: BatchItem): BatchItemBody {
  if (item.action === 'delete') return { action: 'delete', id: item.id };
  const wanted = wantedBy(item);
  const { tokens: _tokens, bandwidth = '', duration, volume, ...body } = bodyOf(wanted, []);
  if (duration !== undefined || volume !== undefined) {
    throw new Failure(
      'usage',
      'A batch looks for no single time or rate: its items can have no duration or volume.',
    );
  }
  if (item.action === 'create') return { action: 'create', ...body, bandwidth };
  const { name: _name, ...rest } = body;
  return { action: 'update', id: item.current.id, ...rest, bandwidth };
}

/** The reservation that an item asks for. */
export function wantedBy(item: Exclude<BatchItem, { action: 'delete' }>): NewReservation {
  return item.action === 'create' ? item.reservation : updated(item.current, item.change);
}

/** @throws Failure `usage` for no items, and for more than {@link MAX_ITEMS} */
export function checkCount(items: readonly BatchItem[]): void {
  if (items.length >= 1 && items.length <= MAX_ITEMS) return;
  throw new Failure('usage', `A batch has 1 to ${MAX_ITEMS} changes; these are ${items.length}.`);
}

/**
 * Reads the reply to a batch: a result for each item.
 *
 * @throws Failure `reply_invalid` for anything else, with the ids that it names
 */
export function readResults(reply: Reply, items: readonly BatchItem[]): ClaimedResult[] {
  try {
    const results = readAs(BatchResultsReply, reply, 'answer to the batch').items;
    const isWhole =
      results.length === items.length &&
      items.every(({ action }, index) => action === 'delete' || results[index]?.connectivity);
    if (isWhole) return results;
    throw new Failure('reply_invalid', 'The service did not answer about every change.', {
      why: `It answered about ${results.filter(({ connectivity }) => connectivity).length} reservations.`,
      httpStatus: reply.status,
    });
  } catch (error) {
    throw error instanceof Failure ? error.with({ reservations: claimedIds(reply, items.length) }) : error;
  }
}

/** The ids in a reply that can't be read otherwise, so that no reservation is lost; null where an item has none. */
function claimedIds(reply: Reply, count: number): (string | null)[] {
  const reading = readJson(reply.text);
  const found = reading.ok && isObject(reading.value) ? reading.value['items'] : undefined;
  return Array.from({ length: count }, (_, index) => {
    const item: unknown = Array.isArray(found) ? found[index] : undefined;
    const connectivity = isObject(item) ? item['connectivity'] : undefined;
    const id = isObject(connectivity) ? connectivity['id'] : undefined;
    return v.is(ReservationId, id) ? id : null;
  });
}

/**
 * By how much the service says that it moved the creates, in milliseconds; 0 where there is none. Each create is then
 * checked against it.
 *
 * @throws Failure `unverified` for a move to an earlier time
 */
export function offsetOf(items: readonly BatchItem[], results: readonly ClaimedResult[]): number {
  for (const [index, item] of items.entries()) {
    const connectivity = results[index]?.connectivity;
    if (item.action !== 'create' || !connectivity) continue;
    const offset = instantOf(connectivity.end_date) - item.reservation.end;
    if (offset >= 0) return offset;
    throw new Failure(
      'unverified',
      'The service moved the reservations to an earlier time than was asked for.',
      {
        why: `${connectivity.id} ends at ${connectivity.end_date}.`,
        reservation: connectivity.id,
      },
    );
  }
  return 0;
}
