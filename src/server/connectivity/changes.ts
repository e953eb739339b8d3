import type { Allocator } from '../../allocator/allocator.ts';
import { answerOf } from '../../allocator/answer.ts';
import type { ChangeItem, ItemFailure, ItemOutcome, KeyedRequest } from '../../allocator/decide.ts';
import type { ChangeOutcome, KeyedOutcome } from '../../allocator/list.ts';
import type { Network } from '../../allocator/network.ts';
import type { ReservationRecord, ReservationStore } from '../../allocator/store.ts';
import { formatInstant } from '../../contract/instants.ts';
import { PROBLEMS, type Problem } from '../../contract/problems.ts';
import type { BatchAction } from '../../contract/reservation.ts';
import { IDEMPOTENCY_REPLAYED_HEADER } from '../../contract/routes.ts';
import { problem } from '../../words/problems.ts';
import type { Caller, CallerExperiment } from '../credentials.ts';
import { jsonReply } from '../json-reply.ts';
import type { Log } from '../log.ts';
import { type ProblemError, refusalOf } from '../problem-error.ts';
import { acceptsJwt, addressOf } from '../request-reading.ts';
import type { ChangeBudget } from './change-budget.ts';
import {
  type AskedChange,
  type Asker,
  boundsOf,
  type CheckedChange,
  checkChanges,
  nearestChange,
  offersOf,
} from './change-items.ts';
import {
  type ItemRefusal,
  type NearestOffers,
  nameTaken,
  type ReservationObserver,
  type ReservationResult,
  refusedDates,
  refusedOutcome,
  resultOf,
} from './outcomes.ts';
import { fingerprintOf, reusedKey } from './request-parameters.ts';
import { lastEnd, notFoundProblem } from './request-rules.ts';
import { answerReservation, prepareToken, type ReplyOptions, signReservation } from './reservation-reply.ts';

/** What {@link answerChanges} works with. */
export interface ChangeOptions extends ReplyOptions {
  network: Network;
  allocator: Allocator;
  reservations: ReservationStore;
  budget: ChangeBudget;
  log: Log;
  observe?: ReservationObserver;
}

/** The changes that a request asks for: all are made, or none. */
export interface ChangeRequest {
  request: Request;
  caller: Caller;
  /** Its role allows every change. */
  experiment: CallerExperiment;
  changes: readonly AskedChange[];
  /** Whether they are answered as a list, each that can't be made by its index. Default: there is one change. */
  isBatch?: boolean;
  dryRun?: boolean;
  /** Of a batch: all its creates may move by one offset. */
  earliest?: boolean;
  /** The idempotency key. */
  key?: string;
}

/** A request whose changes were checked by the rules that need no link. */
interface CheckedRequest extends ChangeRequest, Asker {
  checked: readonly CheckedChange[];
}

/**
 * Answers a request to create, update or delete (contract/README.md, "POST", "PUT", "DELETE", and "Extensions" for a batch).
 *
 * @throws ProblemError with all that is wrong with each change
 */
export async function answerChanges(asked: ChangeRequest, options: ChangeOptions): Promise<Response> {
  const { allocator, now, observe } = options;
  const keyed = keyOf(asked);
  // Before any rule: a replay is answered even if time, topology or experiment have changed since.
  const replay = keyed && (await allocator.replay(keyed));
  if (replay) {
    tell(replay, asked.changes, observe);
    return answer(asked, replay, options);
  }
  const asker = { ...asked, user: asked.caller.user, received: now() };
  const checked = await checkChanges(asked.changes, asker, options);
  const work: CheckedRequest = { ...asker, checked };
  if (checked.some(({ problems }) => problems.length > 0)) {
    // Nothing will be done; but what else is refused is said too.
    const sound = checked.map(({ item, problems }) => (problems.length === 0 ? item : undefined));
    throw await refusedChanges(work, await tried(sound, asked, options), options);
  }
  const outcome = await decide(work, keyed, options);
  if (outcome.ok || outcome.reason === 'key_taken') return answer(asked, outcome, options);
  const error = await refusedChanges(work, outcome.items, options);
  if (outcome.givenUpAt === undefined) throw error;
  const starts = checked.flatMap(({ item }) => (item?.action === 'create' ? item.request.start : []));
  const givenUp = problem('search_given_up', { at: Math.min(...starts) + outcome.givenUpAt });
  throw refusalOf([...error.problems, givenUp], error.facts);
}

/** The idempotency key with what is asked for; undefined where a change is not sound: such a request was never accepted. */
function keyOf({
  key,
  changes,
  caller,
  experiment,
  isBatch = false,
  earliest = false,
}: ChangeRequest): KeyedRequest | undefined {
  if (key === undefined) return undefined;
  if (changes.some((each) => each.action !== 'delete' && !each.reading.ok)) return undefined;
  const read = changes.map((each) => {
    if (each.action === 'delete') return each;
    const id = each.action === 'update' ? each.id : undefined;
    return { action: each.action, id, ...(each.reading.ok ? each.reading.request : {}) };
  });
  const fingerprint = fingerprintOf([read, isBatch, earliest]);
  return { key, fingerprint, createdBy: caller.user, experiment: experiment.id };
}

/** Decides on changes that break no rule, and tells of it: budget, observer, log. */
async function decide(
  work: CheckedRequest,
  keyed: KeyedRequest | undefined,
  options: ChangeOptions,
): Promise<ChangeOutcome> {
  const { request, caller, user, experiment, changes, checked, isBatch } = work;
  const { allocator, budget, observe, log } = options;
  const items = checked.flatMap(({ item }) => item ?? []);
  const terms = termsOf(work);
  if (terms.dryRun) return allocator.change(items, terms);
  const count = items.filter(({ action }) => action !== 'delete').length;
  if (count > 0) budget.check(user, experiment.id);
  let outcome: ChangeOutcome;
  try {
    if (count > 0 && (isBatch || acceptsJwt(request))) {
      await prepareToken(Math.max(...items.map(latestEnd), terms.earliest?.until ?? 0), options);
    }
    outcome = await allocator.change(items, { ...terms, keyed });
  } catch (error) {
    for (const { action } of items) report(observe, action, 'fault');
    throw error;
  }
  tell(outcome, changes, observe);
  const isNew = outcome.ok && !outcome.replayed;
  // What links have accepted or refused leaves rows in the audit.
  if (isNew || (!outcome.ok && outcome.reason === 'refused' && outcome.items.some(isDecided))) {
    budget.count(user, experiment.id, count);
  }
  for (const [index, record] of outcome.ok && isNew ? outcome.records.entries() : []) {
    const action = items[index]?.action;
    if (record && action) logDone(log, action, record, caller);
  }
  return outcome;
}

/** The latest end that the reservation of a change may get, in milliseconds. */
function latestEnd(item: ChangeItem): number {
  if (item.action === 'create') return item.request.end;
  const { end } = item.found;
  return item.action === 'update' ? Math.max(item.update.end ?? end, end) : end;
}

function isDecided(item: ItemOutcome): boolean {
  return item.ok || item.reason === 'refused';
}

function termsOf({ caller, request, experiment, earliest, dryRun = false }: ChangeRequest) {
  const askedBy = { user: caller.user, request };
  return { dryRun, askedBy, earliest: earliest ? { until: lastEnd(experiment) } : undefined };
}

/** Logs that a caller has created, updated or deleted a reservation. */
function logDone(log: Log, action: BatchAction, record: ReservationRecord, by: Caller): void {
  const { id, hops, bandwidth, start, end } = record;
  const link = hops.map((hop) => hop.link).join(' ');
  const event = ({ create: 'created', update: 'updated', delete: 'deleted' } as const)[action];
  log('info', event, {
    ...{ reservation: id, link, bandwidth, experiment: record.experiment },
    ...{ start_date: formatInstant(start), end_date: formatInstant(end) },
    ...{ by: by.user, name: by.name },
  });
}

/** Tells the observer what came of each create and update. Of a refused list, of those that were refused. */
function tell(
  outcome: ChangeOutcome,
  changes: readonly { action: BatchAction }[],
  observe: ReservationObserver | undefined,
): void {
  for (const [index, { action }] of changes.entries()) {
    if (outcome.ok) {
      const isThere = Boolean(outcome.records[index]);
      report(observe, action, !outcome.replayed ? 'accepted' : isThere ? 'replayed' : 'rule');
    } else if (outcome.reason === 'key_taken') report(observe, action, 'rule');
    else {
      const item = outcome.items[index];
      if (item && !item.ok) report(observe, action, resultOf(item));
    }
  }
}

function report(
  observe: ReservationObserver | undefined,
  action: BatchAction,
  result: ReservationResult,
): void {
  if (action !== 'delete') observe?.(action, result);
}

/** The outcome of each item that is there, by its place, with nothing written. */
async function tried(
  items: readonly (ChangeItem | undefined)[],
  asked: ChangeRequest,
  { allocator }: ChangeOptions,
): Promise<(ItemOutcome | undefined)[]> {
  const there = items.flatMap((item) => item ?? []);
  if (there.length === 0) return [];
  const outcome = await allocator.change(there, { ...termsOf(asked), dryRun: true });
  const outcomes = outcome.ok
    ? outcome.records.flatMap((record): ItemOutcome[] => (record ? [{ ok: true, record }] : []))
    : outcome.reason === 'refused'
      ? outcome.items
      : [];
  let next = 0;
  return items.map((item) => (item ? outcomes[next++] : undefined));
}

/**
 * The refusal of changes: the problems of each, and of those that a link refused, or whose dates break a rule, what would be
 * accepted instead (contract/README.md, "Errors" 2 and 3, "Extensions").
 *
 * @param outcomes of the changes, as far as they were decided on
 */
async function refusedChanges(
  work: CheckedRequest,
  outcomes: readonly (ItemOutcome | undefined)[],
  options: ChangeOptions,
): Promise<ProblemError> {
  const { checked, isBatch } = work;
  const broken = checked.map(({ problems }, index) => {
    const outcome = outcomes[index];
    return outcome && !outcome.ok && outcome.reason === 'rule' ? outcome.problems : problems;
  });
  const offers = await nearestOffers(work, broken, options);
  // What the others of a batch would have made does not exist.
  const made = new Set(
    outcomes.flatMap((outcome, index) =>
      outcome?.ok && checked[index]?.item?.action === 'create' ? outcome.record.id : [],
    ),
  );
  const refusals = checked.map(({ item }, index): ItemRefusal => {
    const problems = broken[index] ?? [];
    const outcome = outcomes[index];
    if (problems.length > 0) return refusedDates(problems, offers[index]);
    return outcome && !outcome.ok ? refusalIn(outcome, item, made) : { problems: [], facts: {} };
  });
  // In a batch each problem and fact has the index of its item.
  const all = <Fact extends object>(of: (refusal: ItemRefusal) => readonly Fact[] | undefined): Fact[] =>
    refusals.flatMap((each, item) => (of(each) ?? []).map((fact) => (isBatch ? { ...fact, item } : fact)));
  return refusalOf(
    all(({ problems }) => problems),
    {
      limits: all(({ facts }) => facts.limits),
      free: all(({ facts }) => facts.free),
      alternatives: all(({ facts }) => facts.alternatives),
    },
  );
}

/** What would be accepted of the changes whose dates break a rule, each after those before it that break none. */
async function nearestOffers(
  work: CheckedRequest,
  broken: readonly (readonly Problem[])[],
  options: ChangeOptions,
): Promise<readonly (NearestOffers | undefined)[]> {
  const nearest = work.checked.map(({ item }, index) => {
    const problems = broken[index] ?? [];
    const isCurable = problems.length > 0 && problems.every(({ code }) => PROBLEMS[code].curable);
    return item && isCurable ? nearestChange(item, boundsOf(work)) : undefined;
  });
  if (nearest.every((item) => item === undefined)) return [];
  const items = work.checked.map(({ item }, index) => (broken[index]?.length ? nearest[index] : item));
  const outcomes = await tried(items, { ...work, earliest: false }, options);
  return nearest.map((item, index) => {
    const outcome = outcomes[index];
    if (!item || !outcome) return undefined;
    if (outcome.ok) return { offers: offersOf(item, outcome.record) };
    return outcome.reason === 'refused' ? outcome : undefined;
  });
}

/** @param made the ids that the creations of a batch would have got */
function refusalIn(
  failure: ItemFailure,
  item: ChangeItem | undefined,
  made: ReadonlySet<string>,
): ItemRefusal {
  switch (failure.reason) {
    case 'refused':
      return refusedOutcome(failure, item?.action === 'create' ? item.request : failure.demand);
    case 'rule':
      return { problems: failure.problems, facts: {} };
    case 'name_taken':
      return { problems: [nameTaken(failure, made)], facts: {} };
    case 'missing':
      return { problems: [notFoundProblem(failure.reservation)], facts: {} };
  }
}

/** Answers with what the changes left behind, or would leave behind. */
async function answer(
  asked: ChangeRequest,
  outcome: KeyedOutcome,
  options: ChangeOptions,
): Promise<Response> {
  if (!outcome.ok) throw reusedKey();
  const { request } = asked;
  const { records, replayed } = outcome;
  const headers: Record<string, string> = replayed ? { [IDEMPOTENCY_REPLAYED_HEADER]: 'true' } : {};
  if (asked.isBatch) return answerList(asked, records, headers, options);
  const [record = null] = records;
  const action = asked.changes[0]?.action;
  if (action === 'delete') return new Response(null, { status: 204 });
  if (!record) throw reusedKey(replayed);
  if (asked.dryRun) return jsonReply(answerOf(record));
  if (action === 'update') return answerReservation(request, record, options, { committed: true });
  headers['location'] = `${addressOf(request).pathname.replace(/\/$/, '')}/${encodeURIComponent(record.id)}`;
  return answerReservation(request, record, options, { status: 201, headers, committed: true });
}

/** Answers a batch. Every create and update is answered with a token, whatever `Accept` says. */
async function answerList(
  { changes, dryRun }: ChangeRequest,
  records: readonly (ReservationRecord | null)[],
  headers: Readonly<Record<string, string>>,
  options: ChangeOptions,
): Promise<Response> {
  const items = await Promise.all(
    records.map(async (record, index) => {
      if (!record || changes[index]?.action === 'delete') return { connectivity: null, token: null };
      const token = dryRun ? null : await signReservation(record, options);
      return { connectivity: answerOf(record), token };
    }),
  );
  return jsonReply({ items }, { headers: { 'cache-control': 'no-store', ...headers } });
}
