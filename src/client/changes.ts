import * as v from 'valibot';
import { asFailure, Failure, shellWord } from '../contract/failure.ts';
import { ReservationId } from '../contract/fields.ts';
import { isObject, readJson } from '../contract/json.ts';
import {
  asksForRoute,
  type BatchItemBody,
  BatchResultsReply,
  RESERVATION_TEXTS,
} from '../contract/reservation.ts';
import {
  type ChangeItem,
  checkItems,
  periodOf,
  queryOf,
  type ReservationRequest,
  toBody,
} from '../contract/reservation-request.ts';
import { IDEMPOTENCY_KEY_HEADER, JWT_TYPE } from '../contract/routes.ts';
import { readAs } from './exchange.ts';
import { describedFeatures, requireFeatures } from './features.ts';
import {
  type Due,
  type ProofOptions,
  type ProvenReservation,
  prove,
  readReservation,
  rehearsed,
  startNowBetween,
} from './proof.ts';
import type { Reply } from './reply-failure.ts';
import type { ServiceRequests } from './service-requests.ts';

/** How changes are made. */
export interface ChangeOptions extends ProofOptions {
  /** Sent as `Idempotency-Key`. A service that honours it makes the same changes under the same key once. */
  idempotencyKey?: string;
  /**
   * When the request was first sent under its key, in milliseconds; default: now. The answer to a repeated request is the
   * first one's reservation: a start of now was then.
   */
  firstSentAt?: number;
  /** Answer what would be made, and leave nothing behind. Then nothing is signed: `verified` is false. Default false. */
  dryRun?: boolean;
  /** Move all creates later by the smallest common offset at which everything fits. Default false. */
  earliest?: boolean;
}

/** The result of a change: the reservation; null for a deletion. */
export type ChangeResult<Item extends ChangeItem> = Item extends { action: 'delete' }
  ? null
  : ProvenReservation;

/** One {@link ChangeResult} for each item, in their order. */
export type ChangeResults<Items extends readonly ChangeItem[]> = {
  [Index in keyof Items]: ChangeResult<Items[Index]>;
};

/** See `ConnectivityClient.change`. */
export type Change<Options> = <const Items extends readonly ChangeItem[]>(
  items: Items,
  options?: Options,
) => Promise<ChangeResults<Items>>;

/** Whether changes travel as a batch: several, and what single requests can't ask for. */
export function isBatch(items: readonly ChangeItem[], { dryRun, earliest }: ChangeOptions): boolean {
  return items.length > 1 || earliest === true || (dryRun === true && items[0]?.action !== 'create');
}

/** The service's answers, not proven: a reply about each item; undefined for a deletion. */
interface Answers {
  replies: readonly (Reply | undefined)[];
  /** Of a batch: the id of each item's reservation, as the answer has it. */
  ids?: readonly (string | null)[];
  /** By how much the service says that it moved the creates of a batch, in milliseconds. Each is checked against it. */
  offset: number;
}

/** Makes changes at a service, and proves its answer about each; see `ConnectivityClient.change`. */
export function createChange(service: ServiceRequests): Change<ChangeOptions> {
  async function change<const Items extends readonly ChangeItem[]>(
    items: Items,
    options?: ChangeOptions,
  ): Promise<ChangeResults<Items>>;
  async function change(items: readonly ChangeItem[], options: ChangeOptions = {}): Promise<unknown> {
    checkItems(items, options);
    const [only] = items;
    try {
      const answers =
        !only || isBatch(items, options)
          ? await sendTogether(service, items, options)
          : await sendAlone(service, only, options);
      return await proven(service, items, answers, options);
    } catch (error) {
      throw options.dryRun ? nothingBooked(error) : error;
    }
  }
  return change;
}

/** A change is sent once, so it takes what a service without signatures has too (RFC 9110 §12.5.1). */
const SIGNED_OR_JSON = `${JWT_TYPE}, application/json;q=0.5`;

/** Sends one item by its own route (contract/README.md, "Endpoints"). */
async function sendAlone(
  service: ServiceRequests,
  item: ChangeItem,
  options: ChangeOptions,
): Promise<Answers> {
  if (item.action === 'delete') {
    const { id, reason } = item;
    const parts = { tokens: 'both', accept: 'application/json', values: { id }, query: { reason } } as const;
    const { type, status } = await service.send('deleteReservation', parts);
    // A page comes from a proxy or a login, not from the service.
    if (type === 'text/html') {
      throw new Failure('reply_invalid', 'The service answered with a page.', {
        why: 'The page does not say whether the reservation was deleted.',
        httpStatus: status,
        maybeDone: true,
        reservation: id,
      });
    }
    return { replies: [undefined], offset: 0 };
  }
  const { request } = item;
  const { dryRun = false } = options;
  await requireFeatures(service.features, [
    ...(dryRun ? (['dryRun'] as const) : []),
    ...searchIn(request),
    ...routeIn([item]),
  ]);
  const parts = {
    tokens: 'both',
    accept: dryRun ? 'application/json' : SIGNED_OR_JSON,
    query: queryOf(request, { dryRun }),
    body: await bodyOf(service, item),
  } as const;
  if (item.action === 'update') {
    const reply = await service.send('updateReservation', { ...parts, values: { id: item.id } });
    return { replies: [reply], offset: 0 };
  }
  const reply = await service.send('createReservation', { ...parts, headers: keyHeader(options) });
  if (dryRun && reply.status !== 200) throw booked(reply);
  return { replies: [reply], offset: 0 };
}

/** A service that does not know dry runs has booked. */
function booked(reply: Reply): Failure {
  const { id } = readReservation(reply);
  return new Failure('reply_invalid', 'The service does not know dry runs: it booked.', {
    reservation: id,
    maybeDone: true,
    fix: `slices-conn show ${shellWord(id)}`,
  });
}

/** Sends items as one batch (contract/README.md, "Extensions"). */
async function sendTogether(
  service: ServiceRequests,
  items: readonly ChangeItem[],
  options: ChangeOptions,
): Promise<Answers> {
  await requireFeatures(service.features, ['batch', ...routeIn(items)]);
  const bodies = await Promise.all(items.map((item) => itemBody(service, item)));
  const { dryRun, earliest } = options;
  const reply = await service.send('batchReservations', {
    tokens: 'both',
    headers: keyHeader(options),
    accept: 'application/json',
    query: { dry_run: dryRun ? 'true' : undefined, earliest: earliest ? 'true' : undefined },
    body: { items: bodies, tokens: [(await service.userToken()).reveal()] },
  });
  try {
    return readResults(reply, items, options);
  } catch (error) {
    throw dryRun ? error : afterChange(error, claimedIds(reply, items.length));
  }
}

function keyHeader({ idempotencyKey, dryRun }: ChangeOptions): Record<string, string> {
  return idempotencyKey === undefined || dryRun ? {} : { [IDEMPOTENCY_KEY_HEADER]: idempotencyKey };
}

/** The body of a create or an update. Texts are sent where the service announces them: others refuse members that they don't know. */
async function bodyOf(service: ServiceRequests, { request }: Exclude<ChangeItem, { action: 'delete' }>) {
  const tokens = [(await service.userToken()).reveal()];
  const hasTexts = RESERVATION_TEXTS.some((text) => request[text] !== undefined);
  if (!hasTexts || (await describedFeatures(service.features))?.names) return toBody(request, tokens);
  return toBody(
    { ...request, ...Object.fromEntries(RESERVATION_TEXTS.map((text) => [text, undefined])) },
    tokens,
  );
}

/** An item as it travels in a batch. */
async function itemBody(service: ServiceRequests, item: ChangeItem): Promise<BatchItemBody> {
  if (item.action === 'delete') return { action: 'delete', id: item.id };
  const { tokens: _tokens, duration: _duration, volume: _volume, ...body } = await bodyOf(service, item);
  const { bandwidth = '' } = body;
  if (item.action === 'create') return { action: 'create', ...body, bandwidth };
  return { action: 'update', id: item.id, ...body, bandwidth };
}

/** The extension that changes need where they ask for a route. */
function routeIn(items: readonly ChangeItem[]): 'routes'[] {
  return items.some((item) => item.action === 'create' && asksForRoute(item.request)) ? ['routes'] : [];
}

/** The extensions that a request needs for its search. */
function searchIn({ duration, volume }: ReservationRequest): ('earliest' | 'volume')[] {
  if (duration !== undefined) return ['earliest'];
  return volume === undefined ? [] : ['volume'];
}

/**
 * Reads the reply to a batch: an answer about each item.
 *
 * @throws Failure `reply_invalid` for anything else
 */
function readResults(reply: Reply, items: readonly ChangeItem[], { earliest }: ChangeOptions): Answers {
  const results = readAs(BatchResultsReply, reply, 'answer to the batch').items;
  const isWhole =
    results.length === items.length &&
    items.every(({ action }, index) => action === 'delete' || results[index]?.connectivity);
  if (!isWhole) {
    throw new Failure('reply_invalid', 'The service did not answer about every change.', {
      why: `It answered about ${results.filter(({ connectivity }) => connectivity).length} reservations.`,
      httpStatus: reply.status,
    });
  }
  const replies = results.map(({ connectivity, token }, index) => {
    if (items[index]?.action === 'delete') return undefined;
    const type = token === null ? 'application/json' : JWT_TYPE;
    return { ...reply, type, text: token ?? JSON.stringify(connectivity) };
  });
  const ids = results.map(({ connectivity }) => connectivity?.id ?? null);
  const first = items.findIndex(({ action }) => action === 'create');
  const [item, moved] = [items[first], results[first]?.connectivity];
  const isMoved = earliest === true && item?.action === 'create' && moved;
  return { replies, ids, offset: isMoved ? periodOf(moved).end - item.request.end : 0 };
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

/** The proof of each answer. */
async function proven(
  service: ServiceRequests,
  items: readonly ChangeItem[],
  { replies, ids, offset }: Answers,
  options: ChangeOptions,
): Promise<(ProvenReservation | null)[]> {
  const { dryRun = false, firstSentAt = service.now() } = options;
  const results: (ProvenReservation | null)[] = [];
  try {
    if (offset < 0) throw movedEarlier(ids);
    for (const [index, item] of items.entries()) {
      const reply = replies[index];
      if (item.action === 'delete' || !reply) {
        results.push(null);
        continue;
      }
      const now = startNowBetween(firstSentAt, service.now());
      const experiment = await service.experiment();
      const due: Due =
        item.action === 'update'
          ? { id: item.id, request: item.request, now, experiment }
          : { ...movedBy(offset, item.request, now), experiment };
      results.push(
        dryRun ? rehearsed(readReservation(reply), due) : await prove(service, reply, due, options),
      );
    }
    return results;
  } catch (error) {
    throw dryRun ? error : afterChange(error, ids);
  }
}

/** @param offset milliseconds */
function movedBy(offset: number, request: ReservationRequest, now: { from: number; to: number }): Due {
  const { start, end } = request;
  return {
    request: { ...request, start: start === 'now' ? start : start + offset, end: end + offset },
    now: { from: now.from + offset, to: now.to + offset },
  };
}

function movedEarlier(ids: readonly (string | null)[] = []): Failure {
  return new Failure(
    'unverified',
    'The service moved the reservations to an earlier time than was asked for.',
    { reservation: ids.find((id) => id !== null) ?? undefined },
  );
}

/** A failure after the service has made the changes: its answer can't be used, but the changes stay. @param ids of a batch */
function afterChange(problem: unknown, ids?: readonly (string | null)[]): Failure {
  const error = asFailure(problem);
  const stays = { maybeDone: true, retryable: false };
  if (!ids) return error.with(stays);
  const reservations = ids.some((id) => id !== null) ? ids : undefined;
  return error.with({ ...stays, reservation: undefined, reservations });
}

/** A failed dry run has booked nothing, unless the failure says so (THREATS.md 43). */
function nothingBooked(error: unknown): unknown {
  if (!(error instanceof Failure)) return error;
  const { maybeDone, reservation } = error.facts;
  if (!maybeDone) return error.with({ reservation: undefined });
  if (reservation !== undefined) return error;
  return error.with({ maybeDone: false, retryable: true, why: 'A dry run books nothing.' });
}
