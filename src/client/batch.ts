import * as v from 'valibot';
import { type BatchItemBody, BatchResultsReply, MAX_ITEMS } from '../contract/batch.ts';
import { Failure } from '../contract/failure.ts';
import { ReservationId } from '../contract/fields.ts';
import { isObject, readJson } from '../contract/json.ts';
import type { Reservation } from '../contract/reservation.ts';
import {
  instantOf,
  type ReservationChange,
  type ReservationRequest,
  toBody,
  updated,
} from '../contract/reservation-request.ts';
import { IDEMPOTENCY_KEY_HEADER, JWT_TYPE, type RouteName } from '../contract/routes.ts';
import type { Secret } from '../contract/secret.ts';
import { type RequestParts, readAs, type TokenHeaders } from './exchange.ts';
import { requireFeatures, type ServiceFeatures } from './features.ts';
import {
  asRehearsed,
  type Expectation,
  type ProofOptions,
  type ProvenReservation,
  type ReserveOptions,
} from './proof.ts';
import { type Reply, withHolder } from './reply-failure.ts';

/** One change of a batch. `current` is how the reservation stands now. A create can't have `duration` or `volume`. */
export type BatchItem =
  | { action: 'create'; reservation: ReservationRequest }
  | { action: 'update'; current: Reservation; change: ReservationChange }
  | { action: 'delete'; id: string };

/** What the reply to a batch says of one item, not proven. */
interface ClaimedResult {
  connectivity: Reservation | null;
  token: string | null;
}

/**
 * An item as it travels.
 *
 * @throws Failure `usage` for a create that searches
 */
function itemBody(item: BatchItem): BatchItemBody {
  if (item.action === 'delete') return { action: 'delete', id: item.id };
  const wanted = wantedBy(item);
  const { tokens: _tokens, bandwidth = '', duration, volume, ...body } = toBody(wanted, []);
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
export function wantedBy(item: Exclude<BatchItem, { action: 'delete' }>): ReservationRequest {
  return item.action === 'create' ? item.reservation : updated(item.current, item.change);
}

/** @throws Failure `usage` for no items, and for more than {@link MAX_ITEMS} */
function checkCount(items: readonly BatchItem[]): void {
  if (items.length >= 1 && items.length <= MAX_ITEMS) return;
  throw new Failure('usage', `A batch has 1 to ${MAX_ITEMS} changes; these are ${items.length}.`);
}

/**
 * Reads the reply to a batch: a result for each item.
 *
 * @throws Failure `reply_invalid` for anything else, with the ids that it names
 */
function readResults(reply: Reply, items: readonly BatchItem[]): ClaimedResult[] {
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
function offsetOf(items: readonly BatchItem[], results: readonly ClaimedResult[]): number {
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

/** How a batch is made. */
export interface BatchOptions extends ReserveOptions {
  /** Answer what would be made, and leave nothing behind. Then nothing is signed: `verified` is false. Default false. */
  dryRun?: boolean;
  /** Move all creates later by the smallest common offset at which everything fits. Default false. */
  earliest?: boolean;
}

/** What a batch needs of the client that sends it. */
interface BatchSender {
  features: () => Promise<ServiceFeatures>;
  request: (name: RouteName, settings: TokenHeaders & Omit<RequestParts, 'headers'>) => Promise<Reply>;
  credentials: () => Promise<TokenHeaders>;
  userToken: () => Promise<Secret>;
  expectedOf: (reservation: ReservationRequest, firstSentAt?: number) => Promise<Expectation>;
  proofOf: (reply: Reply, expected: Expectation, options: ProofOptions) => Promise<ProvenReservation>;
}

/** Sends changes together and proves the answer about each; see `ConnectivityClient.batch`. */
export function createBatch(
  sender: BatchSender,
): (items: readonly BatchItem[], options?: BatchOptions) => Promise<(ProvenReservation | null)[]> {
  return async (items, options = {}) => {
    const { dryRun = false, earliest = false, idempotencyKey } = options;
    checkCount(items);
    const bodies = items.map(itemBody);
    await requireFeatures(sender.features, ['batch']);
    const key: Record<string, string> =
      idempotencyKey === undefined || dryRun ? {} : { [IDEMPOTENCY_KEY_HEADER]: idempotencyKey };
    const flags = [...(dryRun ? ['dry_run=true'] : []), ...(earliest ? ['earliest=true'] : [])];
    const held = await sender.credentials();
    const reply = await sender
      .request('batchReservations', {
        ...held,
        headers: { ...held.headers, ...key },
        accept: 'application/json',
        query: flags.length > 0 ? `?${flags.join('&')}` : '',
        body: { items: bodies, tokens: [(await sender.userToken()).reveal()] },
      })
      .catch(withHolder());
    let ids: (string | null)[] | undefined;
    try {
      const results = readResults(reply, items);
      ids = results.map(({ connectivity }) => connectivity?.id ?? null);
      return await proven(sender, reply, items, results, options);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const { reservation: _one, reservations: _all, ...facts } = error.facts;
      if (dryRun) throw new Failure(error.code, error.message, facts);
      const known = ids ?? error.facts.reservations ?? [];
      const reservations = known.some((id) => id !== null) ? { reservations: known } : {};
      throw new Failure(error.code, error.message, {
        ...facts,
        maybeDone: true,
        retryable: false,
        ...reservations,
      });
    }
  };
}

/** The proof of what the reply says of each item; null for a deletion. A dry run has nothing to prove. */
async function proven(
  { expectedOf, proofOf }: BatchSender,
  reply: Reply,
  items: readonly BatchItem[],
  results: readonly ClaimedResult[],
  { dryRun = false, earliest = false, firstSentAt, allowUnsigned = false }: BatchOptions,
): Promise<(ProvenReservation | null)[]> {
  const offset = earliest ? offsetOf(items, results) : 0;
  const found: (ProvenReservation | null)[] = [];
  for (const [index, item] of items.entries()) {
    const { connectivity, token } = results[index] ?? { connectivity: null, token: null };
    if (item.action === 'delete' || !connectivity) {
      found.push(null);
      continue;
    }
    const asked = await expectedOf(wantedBy(item), firstSentAt);
    const expected = item.action === 'update' ? { ...asked, id: item.current.id } : movedBy(offset, asked);
    if (dryRun) {
      const reservation = asRehearsed(connectivity, expected);
      found.push({ reservation, verified: false, token: null, claims: null });
      continue;
    }
    const type = token === null ? 'application/json' : JWT_TYPE;
    found.push(
      await proofOf({ ...reply, type, text: token ?? JSON.stringify(connectivity) }, expected, {
        allowUnsigned,
      }),
    );
  }
  return found;
}

/** What is expected of a reservation that was moved later. @param offset milliseconds */
function movedBy(offset: number, { start, end, ...expected }: Expectation): Expectation {
  return {
    ...expected,
    ...(start === undefined
      ? {}
      : {
          start:
            typeof start === 'number' ? start + offset : { from: start.from + offset, to: start.to + offset },
        }),
    ...(end === undefined ? {} : { end: end + offset }),
  };
}
