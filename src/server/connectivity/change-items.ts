import * as v from 'valibot';
import { type ChangeItem, type CreateRequest, searchOf, type UpdateRequest } from '../../allocator/decide.ts';
import { Slices } from '../../allocator/event-loop.ts';
import type { Network } from '../../allocator/network.ts';
import { isLongEnough, OFFERED_UNIT, type Offer, STAYS_TRUE } from '../../allocator/offers.ts';
import type { ReservationRecord, ReservationStore } from '../../allocator/store.ts';
import { isObject } from '../../contract/json.ts';
import { type Problem, schemaProblems } from '../../contract/problems.ts';
import {
  BATCH_ACTIONS,
  type BatchAction,
  BatchRequest,
  MAX_ITEMS,
  textsOf,
} from '../../contract/reservation.ts';
import {
  type BodyReading,
  type ReservationRequest,
  readBody,
  readUpdateBody,
} from '../../contract/reservation-request.ts';
import type { CallerExperiment } from '../credentials.ts';
import { refuseIfAny } from '../problem-error.ts';
import {
  createProblems,
  lastEnd,
  nearestPeriod,
  notFoundProblem,
  otherExperimentProblem,
  type PeriodBounds,
  updateFault,
  updateProblems,
} from './request-rules.ts';

/** One change as a request asks for it: its body was read, sound or not. */
export type AskedChange =
  | { action: 'create'; body: Record<string, unknown>; reading: BodyReading<ReservationRequest> }
  | {
      action: 'update';
      id: string;
      body: Record<string, unknown>;
      reading: BodyReading<Partial<ReservationRequest>>;
    }
  | { action: 'delete'; id: string };

/** An item of a batch before its body is read. */
export interface RawItem {
  action: BatchAction;
  body: Record<string, unknown>;
}

/** The items of a batch, each of which is at least an object with an action. @throws ProblemError 422 */
export function readRawItems({ items, tokens }: Record<string, unknown>): RawItem[] {
  const wrong: Problem[] = [];
  const list: readonly unknown[] = Array.isArray(items) ? items : [];
  if (list.length === 0 || list.length > MAX_ITEMS) {
    const got = Array.isArray(items) ? String(items.length) : items === undefined ? 'none' : 'no array';
    const msg = `A batch has 1 to ${MAX_ITEMS} items, in an array; got ${got}.`;
    wrong.push({ code: 'items_invalid', msg });
  }
  const given = v.safeParse(v.object({ tokens: BatchRequest.entries.tokens }), { tokens });
  if (!given.success) wrong.push(...schemaProblems(given.issues, { tokens: 'tokens_invalid' }));
  refuseIfAny(wrong);
  const raw = list.map((item, index) => {
    const body = isObject(item) ? item : {};
    const action = BATCH_ACTIONS.find((known) => known === body['action']);
    const refuse = (msg: string): unknown => wrong.push({ code: 'items_invalid', msg, item: index });
    if (!isObject(item)) refuse('An item must be an object.');
    else if (action === undefined) refuse(`action must be one of ${BATCH_ACTIONS.join(', ')}.`);
    else if (action !== 'create' && typeof body['id'] !== 'string')
      refuse('id must be the id of a reservation.');
    return { action: action ?? 'delete', body };
  });
  refuseIfAny(wrong);
  return raw;
}

/** Reads an item of a batch as the body of a single request. A start of null is the time of the request. */
export function readItem({ action, body }: RawItem): AskedChange {
  const id = String(body['id']);
  if (action === 'delete') return { action, id };
  const single = { ...body, tokens: [] };
  const flags = { startNow: body['start_date'] === null, earliest: false };
  if (action === 'update') return { action, id, body, reading: readUpdateBody(single, flags) };
  const reading = readBody(single, flags);
  if (body['volume'] === undefined) return { action, body, reading };
  const msg = "volume can't be asked for in a batch. Give bandwidth, start_date and end_date.";
  const others = reading.ok ? [] : reading.problems;
  const rest = reading.ok ? {} : reading.rest;
  const problems: Problem[] = [...others, { code: 'volume_invalid', msg }];
  return { action, body, reading: { ok: false, problems, rest } };
}

/** A change that was checked by the rules that need no link. */
export interface CheckedChange {
  /** None where it can be decided on. */
  problems: readonly Problem[];
  /** Undefined where the body is not sound, or there is no such reservation in the experiment. */
  item?: ChangeItem;
}

/** Who asks for changes, and when. */
export interface Asker {
  /** `user_<host>_<opaque_id>`. */
  user: string;
  experiment: CallerExperiment;
  /** When the request arrived, in milliseconds. */
  received: number;
}

/** The limits of the periods that someone may ask for. */
export function boundsOf({ experiment: { expiry, project }, received }: Asker): PeriodBounds {
  return { expiry, project, now: received };
}

/** Checks changes by the rules that need no link. */
export async function checkChanges(
  asked: readonly AskedChange[],
  asker: Asker,
  { network, reservations }: { network: Network; reservations: Pick<ReservationStore, 'find'> },
): Promise<CheckedChange[]> {
  const found = asked.every(({ action }) => action === 'create')
    ? []
    : await Promise.all(
        asked.map((each) => (each.action === 'create' ? undefined : reservations.find(each.id))),
      );
  const checked: CheckedChange[] = [];
  const slices = new Slices();
  for (const [index, each] of asked.entries()) {
    checked.push(checkChange(each, found[index], asker, network));
    // Where a network has very many routes, each may take milliseconds.
    if (slices.isOver) await slices.next();
  }
  return checked;
}

function checkChange(
  each: AskedChange,
  record: ReservationRecord | undefined,
  asker: Asker,
  network: Network,
): CheckedChange {
  if (each.action === 'create') return checkCreate(each, asker, network);
  const { id } = each;
  if (!record) return { problems: [notFoundProblem(id)] };
  if (record.experiment !== asker.experiment.id) {
    return { problems: [otherExperimentProblem(id, asker.experiment.id)] };
  }
  if (each.action === 'update') return checkUpdate(each, record, asker, network);
  return { problems: [], item: { action: 'delete', found: record, terms: { by: asker.user } } };
}

function checkCreate(
  { action, body, reading }: Extract<AskedChange, { action: 'create' }>,
  asker: Asker,
  network: Network,
): CheckedChange {
  const { user, experiment, received } = asker;
  const problems = createProblems(body, reading, { bounds: boundsOf(asker), network });
  if (!reading.ok) return { problems };
  const { request: asked } = reading;
  const startsNow = asked.start === 'now';
  const request: CreateRequest = {
    ...asked,
    start: asked.start === 'now' ? received : asked.start,
    startsNow,
    createdBy: user,
    experiment: experiment.id,
    tenant: experiment.tenant,
    expiry: lastEnd(experiment),
  };
  return { problems, item: { action, request } };
}

function checkUpdate(
  { action, body, reading }: Extract<AskedChange, { action: 'update' }>,
  record: ReservationRecord,
  asker: Asker,
  network: Network,
): CheckedChange {
  const bounds = boundsOf(asker);
  const problems = updateProblems(body, reading, { record, bounds, network });
  if (!reading.ok || problems.length > 0) return { problems };
  const { start, end, bandwidth } = reading.request;
  const update: UpdateRequest = {
    start: start === 'now' ? asker.received : start,
    end,
    bandwidth,
    startsNow: start === 'now',
    ...textsOf(reading.request),
  };
  const terms = {
    by: asker.user,
    expiry: lastEnd(asker.experiment),
    check: (current: ReservationRecord, after: { start: number; end: number }) =>
      updateFault(current, after, { bandwidth, bounds, network }),
  };
  return { problems, item: { action, found: record, update, terms } };
}

/**
 * The same change with the dates that come closest, where its own break a rule: to be tried, and never written. Undefined
 * where nothing is left of its period.
 */
export function nearestChange(item: ChangeItem, bounds: PeriodBounds): ChangeItem | undefined {
  if (item.action === 'delete') return undefined;
  if (item.action === 'create') {
    const request = nearestCreate(item.request, bounds);
    return request && { ...item, request };
  }
  const { found, update } = item;
  const { start, end = found.end } = update;
  const isMoved = start !== undefined && start !== found.start && found.start > bounds.now;
  // A start that has passed stays as it is.
  const near = isMoved ? nearestPeriod({ start, end }, bounds) : { end: Math.min(end, lastEnd(bounds)) };
  return near && { ...item, update: { bandwidth: update.bandwidth, ...near } };
}

function nearestCreate(request: CreateRequest, bounds: PeriodBounds): CreateRequest | undefined {
  const near = nearestPeriod(request, bounds);
  if (!near) return undefined;
  const { duration, name: _name, ...unnamed } = request;
  const isSearch = searchOf(request) !== undefined;
  // What a search finds is offered with its dates, which must not have passed when it is asked for.
  const start = isSearch && near.startsNow ? near.start + STAYS_TRUE : near.start;
  const length = near.end - start;
  if (isSearch ? length < (duration ?? 0) : !isLongEnough(length, request.end - request.start))
    return undefined;
  if (length <= (near.startsNow ? STAYS_TRUE : 0)) return undefined;
  return { ...unnamed, duration, ...near, start, unit: OFFERED_UNIT };
}

/** A change that was tried with other dates, as an offer; none where it would change nothing. */
export function offersOf(item: ChangeItem, { start, end, bandwidth }: ReservationRecord): Offer[] {
  const found = { start, end, bandwidth };
  if (item.action === 'create' && searchOf(item.request)) {
    return [{ kind: 'earliest', startsNow: false, ...found }];
  }
  const { startsNow = false } =
    item.action === 'create' ? item.request : item.action === 'update' ? item.update : {};
  const current = item.action === 'update' ? item.found : undefined;
  const isSame = start === current?.start && end === current.end && bandwidth === current.bandwidth;
  return isSame ? [] : [{ kind: 'longest', startsNow, ...found }];
}
