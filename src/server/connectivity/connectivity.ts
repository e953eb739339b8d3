import { Hono } from 'hono';
import type { Allocator } from '../../allocator/allocator.ts';
import type { Period } from '../../allocator/demand.ts';
import type { Network } from '../../allocator/network.ts';
import { type Offer, STAYS_TRUE } from '../../allocator/offers.ts';
import type {
  CreateOutcome,
  CreateRequest,
  RefusedOutcome,
  Replay,
  UpdateRequest,
  UpdateTerms,
} from '../../allocator/operations.ts';
import type { ReservationRecord, ReservationStore } from '../../allocator/store.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { Problem } from '../../contract/problems.ts';
import type { Action } from '../../contract/roles.ts';
import {
  EXPERIMENT_TOKEN_HEADER,
  IDEMPOTENCY_REPLAYED_HEADER,
  type RouteName,
} from '../../contract/routes.ts';
import {
  authenticateCaller,
  authenticateUser,
  authorise,
  type Caller,
  type CallerExperiment,
  type IsAdministrator,
  type ServiceTrust,
} from '../credentials.ts';
import { jsonReply } from '../json-reply.ts';
import type { ServiceIssuer } from '../keys/service-issuer.ts';
import type { Log } from '../log.ts';
import { refusalOf } from '../problem-error.ts';
import { addressOf, readObject } from '../request-reading.ts';
import type { Handler, RouteMounter } from '../routing.ts';
import { answerBatch } from './batch.ts';
import { createChangeBudget } from './change-budget.ts';
import { answerAvailability, answerSlots } from './link-questions.ts';
import {
  isDecided,
  nameTaken,
  observed,
  type ReservationObserver,
  type ReservationResult,
  refusedDates,
  refusedOutcome,
} from './outcomes.ts';
import {
  createProblems,
  expiriesOf,
  foreign,
  lastEnd,
  missing,
  nearestPeriod,
  type PeriodBounds,
  updateFault,
  updateProblems,
} from './request-rules.ts';
import { answerReservation, prepareAnswer, reservationReply } from './reservation-reply.ts';
import {
  fingerprintOf,
  presentedTokens,
  readExecutionOptions,
  readFlag,
  readIdempotencyKey,
  readListQuery,
  readReason,
  readReservationRequest,
  readReservationUpdate,
  reusedKey,
  updateOf,
} from './reservation-request.ts';

/** Options of {@link createConnectivity}. */
export interface ConnectivityOptions {
  network: Network;
  allocator: Allocator;
  reservations: ReservationStore;
  issuer: ServiceIssuer;
  trust: ServiceTrust;
  mount: RouteMounter;
  isAdministrator: IsAdministrator;
  /** How many changes a user, and an experiment, may make in an hour. Default: no limit. */
  maxChanges?: number;
  log: Log;
  now: () => number;
  /** Told the result of each request to create or to update. */
  observe?: ReservationObserver;
}

/** The connectivity service (contract/README.md, "Connectivity service"), with its extensions. */
export function createConnectivity(options: ConnectivityOptions): Hono {
  const { network, allocator, reservations, issuer, trust, isAdministrator, log, now } = options;
  const app = new Hono({ strict: false });
  const on = (name: RouteName, handle: Handler): void => options.mount(app, name, handle);
  const budget = createChangeBudget(options.maxChanges ?? Number.POSITIVE_INFINITY, now);

  const report =
    (asked: 'create' | 'update') =>
    (result: ReservationResult): void =>
      options.observe?.(asked, result);

  /** Reads a request with a body: its body, its user, and the experiment whose role allows the action. */
  async function readAuthorised(request: Request, action: Action) {
    let body: Record<string, unknown> = {};
    const caller = await authenticateCaller(request, trust, async () => {
      body = await readObject(request);
      return presentedTokens(body);
    });
    return { body, caller, user: caller.user, experiment: authorise(caller, action) };
  }

  /** The same for a request without a body. */
  async function authorised(request: Request, action: Action) {
    const caller = await authenticateCaller(request, trust);
    return { user: caller.user, experiment: authorise(caller, action) };
  }

  /** Logs that a caller has created, updated or deleted a reservation. */
  function logDone(event: 'created' | 'updated' | 'deleted', record: ReservationRecord, by: Caller): void {
    const { id, link, bandwidth, start, end } = record;
    log('info', event, {
      ...{ reservation: id, link, bandwidth, experiment: record.experiment },
      ...{ start_date: formatInstant(start), end_date: formatInstant(end) },
      ...{ by: by.user, name: by.name },
    });
  }

  async function anyReservation(id: string): Promise<ReservationRecord> {
    const record = await reservations.find(id);
    if (!record) throw refusalOf([missing(id)]);
    return record;
  }

  async function ownReservation(id: string, experiment: CallerExperiment): Promise<ReservationRecord> {
    const record = await anyReservation(id);
    if (record.experiment !== experiment.id) {
      throw refusalOf([foreign(id, experiment.id)]);
    }
    return record;
  }

  /** The reply to a request to create: the reservation, new or created by an earlier request with the same key. */
  async function answerCreated(
    request: Request,
    outcome: CreateOutcome | Replay,
    asked: Period,
  ): Promise<Response> {
    if (!outcome.ok && outcome.reason === 'name_taken') throw refusalOf([nameTaken(outcome)]);
    if (!outcome.ok) throw outcome.reason === 'refused' ? refusedOutcome(outcome, asked) : reusedKey(outcome);
    const { record } = outcome;
    const headers = {
      location: `${addressOf(request).pathname.replace(/\/$/, '')}/${encodeURIComponent(record.id)}`,
      ...('replayed' in outcome ? { [IDEMPOTENCY_REPLAYED_HEADER]: 'true' } : {}),
    };
    return answerReservation(request, record, options, { status: 201, headers, committed: true });
  }

  /** What a create would come to, as an offer in place of one with other dates. Nothing is written. */
  async function tryCreate(request: CreateRequest): Promise<Offer | RefusedOutcome | undefined> {
    const { search, startsNow = false } = request;
    // What a search finds is offered with its dates, which must not have passed when it is asked for.
    const start = search && startsNow ? request.start + STAYS_TRUE : request.start;
    if (search && 'duration' in search && request.end - start < search.duration) return undefined;
    if (request.end - start <= (startsNow ? STAYS_TRUE : 0)) return undefined;
    const { name: _name, ...unnamed } = request;
    const outcome = await allocator.create({ ...unnamed, start }, true);
    if (!outcome.ok) return outcome;
    const { record } = outcome;
    const found = { start: record.start, end: record.end, bandwidth: record.bandwidth };
    return search
      ? { kind: 'earliest', startsNow: false, ...found }
      : { kind: 'longest', startsNow, ...found };
  }

  /** The same for an update. */
  async function tryUpdate(
    current: ReservationRecord,
    change: UpdateRequest,
    terms: UpdateTerms<Problem[]>,
  ): Promise<Offer | RefusedOutcome | undefined> {
    const outcome = await allocator.update(current.id, change, { ...terms, dryRun: true });
    if (!outcome?.ok) return outcome?.reason === 'refused' ? outcome : undefined;
    const { start, end, bandwidth } = outcome.record;
    const isSame = start === current.start && end === current.end && bandwidth === current.bandwidth;
    if (isSame) return undefined;
    return { kind: 'longest', startsNow: change.startsNow ?? false, start, end, bandwidth };
  }

  /** An administrator deletes a reservation of any experiment, and gives a reason. */
  async function deleteAsAdministrator(request: Request, id: string, by: string): Promise<Response> {
    const reason = readReason(request);
    const { experiment, createdBy } = await anyReservation(id);
    if (!(await allocator.delete(id, { by, reason }))) throw refusalOf([missing(id)]);
    log('info', 'deleted', { reservation: id, by, reason, experiment, created_by: createdBy });
    return new Response(null, { status: 204 });
  }

  on('createReservation', async (request) => {
    const { body, caller, user, experiment } = await readAuthorised(request, 'create');
    const { startNow, dryRun } = readExecutionOptions(request);
    const key = dryRun ? undefined : readIdempotencyKey(request);
    const reading = readReservationRequest(body, { startNow, earliest: readFlag(request, 'earliest') });
    const bounds = (received: number): PeriodBounds => ({ ...expiriesOf(experiment), now: received });
    const problemsAt = (received: number): Problem[] =>
      createProblems(body, reading, { startNow, bounds: bounds(received), network });
    if (!reading.ok) throw refusalOf(problemsAt(now()));
    const { start_date, end_date: end, tokens: _, ...asked } = reading.body;
    const who = { createdBy: user, experiment: experiment.id };
    const keyed = key === undefined ? undefined : { ...who, key, fingerprint: fingerprintOf(reading.body) };
    const received = now();
    const start = start_date ?? received;
    const { tenant } = experiment;
    const booking = {
      ...asked,
      ...who,
      tenant,
      start,
      end,
      startsNow: startNow,
      expiry: lastEnd(experiment),
    };
    // Before any rule: a replay is answered even if time, topology or experiment have changed since.
    const replay = keyed && (await allocator.replay(keyed));
    if (replay) return answerCreated(request, await observed(report('create'), async () => replay), booking);
    const problems = problemsAt(received);
    if (problems.length > 0) {
      throw await refusedDates(problems, async () => {
        const near = nearestPeriod(booking, bounds(received));
        return near && tryCreate({ ...booking, ...near });
      });
    }
    if (dryRun) {
      const outcome = await allocator.create(booking, dryRun);
      if (outcome.ok) return jsonReply(reservationReply(outcome.record, network));
      return answerCreated(request, outcome, booking);
    }
    budget.check({ user, experiment });
    const outcome = await observed(report('create'), async () => {
      await prepareAnswer(request, end, options);
      return keyed ? allocator.create({ ...booking, ...keyed }) : allocator.create(booking);
    });
    if (isDecided(outcome)) budget.count({ user, experiment }, 1);
    if (outcome.ok && !('replayed' in outcome)) logDone('created', outcome.record, caller);
    return answerCreated(request, outcome, booking);
  });

  on('readReservation', async (request, id) => {
    const caller = await authenticateCaller(request, trust);
    const record = isAdministrator(caller)
      ? await anyReservation(id)
      : await ownReservation(id, authorise(caller, 'read'));
    return answerReservation(request, record, options);
  });

  on('updateReservation', async (request, id) => {
    const { body, caller, user, experiment } = await readAuthorised(request, 'update');
    const { startNow, dryRun } = readExecutionOptions(request);
    const record = await ownReservation(id, experiment);
    const reading = readReservationUpdate(body, startNow);
    const received = now();
    const bounds = { ...expiriesOf(experiment), now: received };
    const problems = updateProblems(body, reading, { record, startNow, bounds, network });
    if (!reading.ok || problems.length > 0) throw refusalOf(problems);
    const change = updateOf(reading.body, startNow ? received : undefined);
    const terms: UpdateTerms<Problem[]> = {
      by: user,
      expiry: lastEnd(experiment),
      dryRun,
      check: (current, after) =>
        updateFault(current, after, { bandwidth: change.bandwidth, bounds, network }),
    };
    const update = () => allocator.update<Problem[]>(id, change, terms);
    if (!dryRun) budget.check({ user, experiment });
    const outcome = await (dryRun
      ? update()
      : observed(report('update'), async () => {
          await prepareAnswer(request, change.end ?? record.end, options);
          return update();
        }));
    if (!dryRun && isDecided(outcome)) budget.count({ user, experiment }, 1);
    if (!outcome) throw refusalOf([missing(id)]);
    if (outcome.ok) {
      if (dryRun) return jsonReply(reservationReply(outcome.record, network));
      logDone('updated', outcome.record, caller);
      return answerReservation(request, outcome.record, options, { committed: true });
    }
    if (outcome.reason === 'refused') throw refusedOutcome(outcome, outcome.demand);
    throw await refusedDates(outcome.fault, async () => {
      const near = nearestChange(record, change, bounds);
      return near && tryUpdate(record, near, terms);
    });
  });

  on('deleteReservation', async (request, id) => {
    const caller = await authenticateCaller(request, trust);
    if (isAdministrator(caller)) return deleteAsAdministrator(request, id, caller.user);
    const record = await ownReservation(id, authorise(caller, 'delete'));
    if (!(await allocator.delete(id, { by: caller.user }))) throw refusalOf([missing(id)]);
    logDone('deleted', record, caller);
    return new Response(null, { status: 204 });
  });

  on('batchReservations', async (request) => {
    let body: Record<string, unknown> = {};
    const caller = await authenticateCaller(request, trust, async () => {
      body = await readObject(request);
      return presentedTokens(body);
    });
    return answerBatch(request, { body, caller }, { ...options, budget, logDone });
  });

  on('listReservations', async (request) => {
    const { experiment } = await authorised(request, 'list');
    const query = readListQuery(request);
    const found = await reservations.list({
      ...query,
      limit: query.limit + 1,
      experiment: experiment.id,
      now: now(),
    });
    const page = found.slice(0, query.limit);
    return jsonReply({
      items: page.map((record) => reservationReply(record, network)),
      nextCursor: found.length > page.length ? (page.at(-1)?.id ?? null) : null,
    });
  });

  on('listLinks', async (request) => {
    await authenticateUser(request, trust);
    return jsonReply({ items: network.links, nextCursor: null });
  });

  on('linkAvailability', async (request, site1 = '', site2 = '') => {
    await authenticateUser(request, trust);
    return answerAvailability(request, { site1, site2 }, options);
  });

  on('linkSlots', async (request, site1 = '', site2 = '') => {
    await authenticateUser(request, trust);
    const withShare = request.headers.has(EXPERIMENT_TOKEN_HEADER);
    const caller = withShare ? await authenticateCaller(request, trust) : undefined;
    return answerSlots(request, { site1, site2 }, caller?.experiment?.tenant, options);
  });

  on('connectivityKeySet', (request) => issuer.publish(request));
  return app;
}

/** The update with the dates that come closest; see {@link nearestPeriod}. A start that has passed stays as it is. */
function nearestChange(
  current: ReservationRecord,
  { start, end = current.end, bandwidth }: UpdateRequest,
  bounds: PeriodBounds,
): UpdateRequest | undefined {
  const isMoved = start !== undefined && start !== current.start && current.start > bounds.now;
  const change = bandwidth === undefined ? {} : { bandwidth };
  if (!isMoved) return { ...change, end: Math.min(end, lastEnd(bounds)) };
  const near = nearestPeriod({ start, end }, bounds);
  return near && { ...change, ...near };
}
