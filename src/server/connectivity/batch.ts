import * as v from 'valibot';
import type { Allocator } from '../../allocator/allocator.ts';
import type { BatchItem, BatchOutcome, ItemFailure } from '../../allocator/batch.ts';
import type { Network } from '../../allocator/network.ts';
import type { KeyedRequest, UpdateRequest } from '../../allocator/operations.ts';
import type { ReservationRecord, ReservationStore } from '../../allocator/store.ts';
import { BATCH_ACTIONS, type BatchAction, BatchRequest, MAX_ITEMS } from '../../contract/batch.ts';
import { isObject } from '../../contract/json.ts';
import type { Problem, RefusalFacts } from '../../contract/problems.ts';
import type { ReservationUpdate } from '../../contract/reservation.ts';
import { IDEMPOTENCY_REPLAYED_HEADER } from '../../contract/routes.ts';
import { authorise, type Caller, type CallerExperiment } from '../credentials.ts';
import { jsonReply } from '../json-reply.ts';
import { ProblemError, refusalOf, refuseIfAny } from '../problem-error.ts';
import { schemaProblems } from '../request-reading.ts';
import type { ChangeBudget } from './change-budget.ts';
import {
  nameTaken,
  type ReservationObserver,
  type ReservationResult,
  refusedOutcome,
  resultOf,
} from './outcomes.ts';
import {
  createProblems,
  expiriesOf,
  foreign,
  lastEnd,
  missing,
  updateFault,
  updateProblems,
} from './request-rules.ts';
import { prepareToken, type ReplyOptions, reservationReply, signReservation } from './reservation-reply.ts';
import {
  type AskedReservation,
  type BodyReading,
  fingerprintOfText,
  readFlag,
  readIdempotencyKey,
  readReservationRequest,
  readReservationUpdate,
  reusedKey,
  updateOf,
} from './reservation-request.ts';

/** What {@link answerBatch} needs. */
export interface BatchServiceOptions extends ReplyOptions {
  network: Network;
  allocator: Allocator;
  reservations: ReservationStore;
  observe?: ReservationObserver;
  budget: ChangeBudget;
  /** Logs that a caller has created, updated or deleted a reservation. */
  logDone: (event: 'created' | 'updated' | 'deleted', record: ReservationRecord, by: Caller) => void;
}

/** An item whose body was read, sound or not. */
type ReadItem =
  | {
      action: 'create';
      body: Record<string, unknown>;
      startNow: boolean;
      reading: BodyReading<AskedReservation>;
    }
  | {
      action: 'update';
      id: string;
      body: Record<string, unknown>;
      startNow: boolean;
      reading: BodyReading<ReservationUpdate>;
    }
  | { action: 'delete'; id: string };

/** An item to decide on, with its place in the batch and the latest end that its reservation may get. */
interface ReadyItem {
  index: number;
  item: BatchItem<Problem[]>;
  /** The reservation of a deletion or an update, as it was. */
  record?: ReservationRecord;
  end: number;
}

/**
 * Answers a batch (contract/README.md, "Extensions"): all items are done, or none, and each that can't be done is named by its index.
 * Every create and update is answered with a token, whatever `Accept` says.
 *
 * @throws ProblemError
 */
export async function answerBatch(
  request: Request,
  { body, caller }: { body: Record<string, unknown>; caller: Caller },
  options: BatchServiceOptions,
): Promise<Response> {
  const { allocator, budget, network, now, observe } = options;
  const raw = rawItems(body);
  const experiment = authoriseAll(raw, caller);
  const [dryRun, earliest] = [readFlag(request, 'dry_run'), readFlag(request, 'earliest')];
  const key = dryRun ? undefined : readIdempotencyKey(request);
  const items = raw.map(readItem);
  const keyed = key === undefined ? undefined : keyedBy(key, items, { caller, experiment, earliest });
  // Before any rule: a replay is answered even if time, topology or experiment have changed since.
  const replay = keyed && (await allocator.replayBatch(keyed));
  if (replay) {
    for (const item of items) report(observe, item, replay.ok ? 'replayed' : 'rule');
    return answer(replay, [], { ...options, caller });
  }
  const received = now();
  const { ready, problems } = await checked(items, { ...options, caller, experiment, received });
  const terms = { earliest: earliest ? { until: lastEnd(experiment) } : undefined };
  const decided = ready.map(({ item }) => item);
  if (problems.length > 0) {
    // Nothing will be done; but what else is refused is said too.
    const others = ready.length > 0 ? await allocator.batch(decided, { ...terms, dryRun: true }) : undefined;
    throw refusedBatch(others, ready, problems);
  }
  if (dryRun) {
    const outcome = await allocator.batch(decided, { ...terms, dryRun });
    if (!outcome.ok) throw refusedBatch(outcome, ready, []);
    const rehearsed = outcome.records.map((record) => ({
      connectivity: record && reservationReply(record, network),
      token: null,
    }));
    return jsonReply({ items: rehearsed }, { headers: { 'cache-control': 'no-store' } });
  }
  const maker = { user: caller.user, experiment };
  const changes = decided.filter(({ action }) => action !== 'delete').length;
  if (changes > 0) budget.check(maker);
  const last = Math.max(...ready.map(({ end }) => end), ...(earliest ? [lastEnd(experiment)] : []));
  let outcome: BatchOutcome<Problem[]>;
  try {
    if (changes > 0) await prepareToken(last, options);
    outcome = await allocator.batch(decided, { ...terms, keyed });
  } catch (error) {
    for (const { item } of ready) report(observe, item, 'fault');
    throw error;
  }
  if (outcome.ok ? !outcome.replayed : outcome.reason === 'refused') budget.count(maker, changes);
  tell(outcome, ready, observe);
  if (!outcome.ok && outcome.reason === 'refused') throw refusedBatch(outcome, ready, []);
  return answer(outcome, ready, { ...options, caller });
}

/** The items, each of which is at least an object with an action. @throws ProblemError 422 */
function rawItems(body: Record<string, unknown>): { action: BatchAction; body: Record<string, unknown> }[] {
  const { items, tokens } = body;
  const wrong: Problem[] = [];
  if (!Array.isArray(items) || items.length === 0 || items.length > MAX_ITEMS) {
    const got = Array.isArray(items) ? String(items.length) : items === undefined ? 'none' : 'no array';
    wrong.push({
      code: 'items_invalid',
      msg: `A batch has 1 to ${MAX_ITEMS} items, in an array; got ${got}.`,
    });
  }
  const given = v.safeParse(v.object({ tokens: BatchRequest.entries.tokens }), { tokens });
  if (!given.success) wrong.push(...schemaProblems(given.issues, { tokens: 'tokens_invalid' }));
  refuseIfAny(wrong);
  const raw = (Array.isArray(items) ? items : []).map((item: unknown, index) => {
    const read = isObject(item) ? item : {};
    const action = BATCH_ACTIONS.find((known) => known === read['action']);
    if (action === undefined) {
      const msg = `action must be one of ${BATCH_ACTIONS.join(', ')}.`;
      wrong.push({
        code: 'items_invalid',
        msg: isObject(item) ? msg : 'An item must be an object.',
        item: index,
      });
    } else if (action !== 'create' && typeof read['id'] !== 'string') {
      wrong.push({ code: 'items_invalid', msg: 'id must be the id of a reservation.', item: index });
    }
    return { action: action ?? 'delete', body: read };
  });
  refuseIfAny(wrong);
  return raw;
}

/** Each item needs the role that it would need alone. @throws ProblemError 403 with all that lack it */
function authoriseAll(items: readonly { action: BatchAction }[], caller: Caller): CallerExperiment {
  const problems: Problem[] = [];
  let experiment: CallerExperiment | undefined;
  for (const [item, { action }] of items.entries()) {
    try {
      experiment = authorise(caller, action);
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      problems.push(...error.problems.map((problem) => ({ ...problem, item })));
    }
  }
  if (!experiment || problems.length > 0) throw refusalOf(problems);
  return experiment;
}

/** Reads an item as the body of a single request. A start of null is the time of the request. */
function readItem({ action, body }: { action: BatchAction; body: Record<string, unknown> }): ReadItem {
  const id = String(body['id']);
  if (action === 'delete') return { action, id };
  const single = { ...body, tokens: [] };
  const startNow = body['start_date'] === null;
  if (action === 'update') {
    return { action, id, body, startNow, reading: readReservationUpdate(single, startNow) };
  }
  const reading = readReservationRequest(single, { startNow, earliest: false });
  if (body['volume'] === undefined) return { action, body, startNow, reading };
  const problem: Problem = {
    code: 'volume_invalid',
    msg: "volume can't be asked for in a batch. Give bandwidth, start_date and end_date.",
  };
  const [others, rest] = reading.ok ? [[], {}] : [reading.problems, reading.rest];
  return { action, body, startNow, reading: { ok: false, problems: [...others, problem], rest } };
}

/** The key of a batch; undefined where an item is not sound: such a batch was never made. */
function keyedBy(
  key: string,
  items: readonly ReadItem[],
  { caller, experiment, earliest }: { caller: Caller; experiment: CallerExperiment; earliest: boolean },
): KeyedRequest | undefined {
  if (items.some((item) => item.action !== 'delete' && !item.reading.ok)) return undefined;
  const asked = items.map((item) => {
    if (item.action === 'delete') return item;
    const { tokens: _tokens, ...said } = item.reading.ok ? item.reading.body : {};
    return { action: item.action, ...('id' in item ? { id: item.id } : {}), ...said };
  });
  const fingerprint = fingerprintOfText(JSON.stringify([asked, earliest]));
  return { key, fingerprint, createdBy: caller.user, experiment: experiment.id };
}

/** Checks every item by the rules that need no link. */
async function checked(
  items: readonly ReadItem[],
  {
    network,
    reservations,
    caller,
    experiment,
    received,
  }: BatchServiceOptions & { caller: Caller; experiment: CallerExperiment; received: number },
): Promise<{ ready: ReadyItem[]; problems: Problem[] }> {
  const bounds = { ...expiriesOf(experiment), now: received };
  const [by, expiry] = [caller.user, lastEnd(experiment)];
  const ready: ReadyItem[] = [];
  const problems: Problem[] = [];
  const wrong = (item: number, found: readonly Problem[]): void => {
    problems.push(...found.map((problem) => ({ ...problem, item })));
  };
  const found = await Promise.all(
    items.map((item) => (item.action === 'create' ? undefined : reservations.find(item.id))),
  );
  for (const [index, item] of items.entries()) {
    if (item.action === 'create') {
      const { body, reading, startNow } = item;
      const refused = createProblems(body, reading, { startNow, bounds, network });
      if (!reading.ok || refused.length > 0 || reading.body.search) {
        wrong(index, refused);
        continue;
      }
      const {
        start_date,
        end_date: end,
        tokens: _tokens,
        search: _search,
        bandwidth = 0,
        ...asked
      } = reading.body;
      const when = { start: start_date ?? received, end, startsNow: startNow };
      const who = { createdBy: by, experiment: experiment.id, tenant: experiment.tenant };
      const request = { ...asked, ...when, ...who, bandwidth, expiry };
      ready.push({ index, item: { action: 'create', request }, end });
      continue;
    }
    const { id } = item;
    const record = found[index];
    if (!record) wrong(index, [missing(id)]);
    else if (record.experiment !== experiment.id) wrong(index, [foreign(id, experiment.id)]);
    else if (item.action === 'delete') {
      ready.push({ index, item: { action: 'delete', id, terms: { by } }, record, end: record.end });
    } else {
      const { body, reading, startNow } = item;
      const refused = updateProblems(body, reading, { record, startNow, bounds, network });
      if (!reading.ok || refused.length > 0) {
        wrong(index, refused);
        continue;
      }
      const update: UpdateRequest = updateOf(reading.body, startNow ? received : undefined);
      const check = (current: ReservationRecord, after: { start: number; end: number }) =>
        updateFault(current, after, { bandwidth: update.bandwidth, bounds, network });
      const end = Math.max(update.end ?? record.end, record.end);
      ready.push({
        index,
        item: { action: 'update', id, update, terms: { by, expiry, check } },
        record,
        end,
      });
    }
  }
  return { ready, problems };
}

/** The refusal of a batch: the problems of each item, and what the first that its link refused has to say besides. */
function refusedBatch(
  outcome: BatchOutcome<Problem[]> | undefined,
  ready: readonly ReadyItem[],
  known: readonly Problem[],
): ProblemError {
  const problems = [...known];
  let facts: RefusalFacts = {};
  const refused = outcome && !outcome.ok && outcome.reason === 'refused' ? outcome.items : [];
  for (const { index, outcome: failure } of refused) {
    const at = ready[index];
    if (!at) throw new RangeError(`the batch has no item ${index}`);
    const said = failureOf(failure, at.item);
    problems.push(...said.problems.map((problem) => ({ ...problem, item: at.index })));
    if (Object.keys(facts).length === 0) facts = factsOf(said.facts, at.index);
  }
  return refusalOf(
    problems.toSorted((one, other) => (one.item ?? 0) - (other.item ?? 0)),
    facts,
  );
}

function failureOf(
  failure: ItemFailure<Problem[]>,
  item: BatchItem<Problem[]>,
): Pick<ProblemError, 'problems' | 'facts'> {
  switch (failure.reason) {
    case 'refused':
      return refusedOutcome(failure, item.action === 'create' ? item.request : failure.demand);
    case 'fault':
      return refusalOf(failure.fault);
    case 'name_taken':
      return refusalOf([nameTaken(failure)]);
    case 'missing':
      return refusalOf([missing(failure.reservation)]);
  }
}

function factsOf({ limits, free, alternatives }: RefusalFacts, item: number): RefusalFacts {
  const about = <Fact extends object>(facts: readonly Fact[] = []) =>
    facts.map((fact) => ({ ...fact, item }));
  return limits || free || alternatives
    ? { limits: about(limits), free: about(free), alternatives: about(alternatives) }
    : {};
}

/** Answers with what a batch left behind. */
async function answer(
  outcome: BatchOutcome<Problem[]>,
  ready: readonly ReadyItem[],
  options: BatchServiceOptions & { caller: Caller },
): Promise<Response> {
  if (!outcome.ok) throw reusedKey({ ok: false, reason: 'key_taken' });
  const { network, logDone, caller } = options;
  const { records, replayed = false } = outcome;
  for (const [index, record] of records.entries()) {
    if (replayed || !ready[index]) continue;
    const { item, record: before } = ready[index];
    const event = ({ create: 'created', update: 'updated', delete: 'deleted' } as const)[item.action];
    const left = record ?? before;
    if (left) logDone(event, left, caller);
  }
  const results = await Promise.all(
    records.map(async (record) => ({
      connectivity: record && reservationReply(record, network),
      token: record && (await signReservation(record, options)),
    })),
  );
  const headers = {
    'cache-control': 'no-store',
    ...(replayed ? { [IDEMPOTENCY_REPLAYED_HEADER]: 'true' } : {}),
  };
  return jsonReply({ items: results }, { headers });
}

/** Tells the observer what came of each create and update, as of single requests. */
function tell(
  outcome: BatchOutcome<Problem[]>,
  ready: readonly ReadyItem[],
  observe: ReservationObserver | undefined,
): void {
  if (outcome.ok) {
    for (const { item } of ready) report(observe, item, outcome.replayed ? 'replayed' : 'accepted');
  } else if (outcome.reason === 'refused') {
    for (const { index, outcome: failure } of outcome.items) {
      const at = ready[index];
      if (at) report(observe, at.item, failure.reason === 'refused' ? resultOf(failure) : 'rule');
    }
  } else {
    for (const { item } of ready) report(observe, item, 'rule');
  }
}

function report(
  observe: ReservationObserver | undefined,
  { action }: { action: BatchAction },
  result: ReservationResult,
): void {
  if (action !== 'delete') observe?.(action, result);
}
