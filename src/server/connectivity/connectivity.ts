import { Hono } from 'hono';
import type { Allocator } from '../../allocator/allocator.ts';
import type { Network } from '../../allocator/network.ts';
import type { ReservationStore } from '../../allocator/store.ts';
import type { ProtectedResource } from '../../contract/addresses.ts';
import type { Problem } from '../../contract/problems.ts';
import { readBody, readUpdateBody } from '../../contract/reservation-request.ts';
import { EXPERIMENT_TOKEN_HEADER, type RouteName } from '../../contract/routes.ts';
import {
  authenticateAnyUser,
  authenticateCaller,
  authorise,
  type Caller,
  type CallerExperiment,
  type IsAdministrator,
  type ServiceTrust,
} from '../credentials.ts';
import { taggedReply } from '../etag.ts';
import { jsonReply, jsonTextReply } from '../json-reply.ts';
import type { ServiceIssuer } from '../keys/service-issuer.ts';
import type { Log } from '../log.ts';
import { ProblemError, refusalOf } from '../problem-error.ts';
import { acceptsJwt, readObject } from '../request-reading.ts';
import type { Handler, RouteMounter } from '../routing.ts';
import { ChangeBudget } from './change-budget.ts';
import { type AskedChange, type RawItem, readItem, readRawItems } from './change-items.ts';
import { answerChanges, type ChangeOptions } from './changes.ts';
import type { EventStreams } from './events.ts';
import { answerAvailability, answerRoutes, answerSlots, answerUse } from './link-questions.ts';
import type { ReservationObserver } from './outcomes.ts';
import {
  presentedTokens,
  readFlag,
  readIdempotencyKey,
  readListQuery,
  readReason,
} from './request-parameters.ts';
import { notFoundProblem, otherExperimentProblem } from './request-rules.ts';
import { answerReservation } from './reservation-reply.ts';
import { createStatusLists } from './status-lists.ts';

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
  /** Where to log in, and where the portal is. */
  resource: ProtectedResource;
  /** The streams of events. */
  events: EventStreams;
  log: Log;
  now: () => number;
  /** Told the result of each request to create or to update. */
  observe?: ReservationObserver;
}

/** Mounts the handler of a route. */
type Mount = (name: RouteName, handle: Handler) => void;

/** The connectivity service (contract/README.md, "Connectivity service"), with its extensions. */
export function createConnectivity(options: ConnectivityOptions): Hono {
  const app = new Hono({ strict: false });
  const on: Mount = (name, handle) => options.mount(app, name, handle);
  mountChanges(on, options);
  mountReservations(on, options);
  mountLinks(on, options);
  on('events', (request) => options.events.open(request));
  on('connectivityKeySet', (request) => options.issuer.publish(request));
  on('protectedResource', async () => jsonReply(options.resource));
  on('keyHistory', () => options.issuer.publishHistory());
  const answerList = createStatusLists(options);
  on('statusList', (request, link = '', list = '') => answerList(request, link, list));
  return app;
}

/** Mounts what creates, updates and deletes: each is a list of changes, of one item but for the batch. */
function mountChanges(on: Mount, options: ConnectivityOptions): void {
  const { trust, isAdministrator, maxChanges = Number.POSITIVE_INFINITY, now } = options;
  const changing: ChangeOptions = { ...options, budget: new ChangeBudget(maxChanges, now) };

  on('createReservation', async (request) => {
    const { body, caller } = await readCaller(request, trust);
    const experiment = await authorise(caller, 'create', trust);
    const startNow = readFlag(request, 'start_now', 'date_invalid');
    const dryRun = readFlag(request, 'dry_run');
    const key = dryRun ? undefined : readIdempotencyKey(request);
    const reading = readBody(body, { startNow, earliest: readFlag(request, 'earliest') });
    const changes: AskedChange[] = [{ action: 'create', body, reading }];
    return answerChanges({ request, caller, experiment, changes, dryRun, key }, changing);
  });

  on('updateReservation', async (request, id) => {
    const { body, caller } = await readCaller(request, trust);
    const experiment = await authorise(caller, 'update', trust);
    const startNow = readFlag(request, 'start_now', 'date_invalid');
    const dryRun = readFlag(request, 'dry_run');
    const reading = readUpdateBody(body, { startNow });
    const changes: AskedChange[] = [{ action: 'update', id, body, reading }];
    return answerChanges({ request, caller, experiment, changes, dryRun }, changing);
  });

  on('deleteReservation', async (request, id) => {
    const caller = await authenticateCaller(request, trust);
    if (isAdministrator(caller)) return deleteAsAdministrator(request, id, caller.user, options);
    const experiment = await authorise(caller, 'delete', trust);
    return answerChanges({ request, caller, experiment, changes: [{ action: 'delete', id }] }, changing);
  });

  on('batchReservations', async (request) => {
    const { body, caller } = await readCaller(request, trust);
    const items = readRawItems(body);
    const experiment = await authoriseAll(items, caller, trust);
    const [dryRun, earliest] = [readFlag(request, 'dry_run'), readFlag(request, 'earliest')];
    const key = dryRun ? undefined : readIdempotencyKey(request);
    const changes = items.map(readItem);
    const asked = { request, caller, experiment, changes, isBatch: true, dryRun, earliest, key };
    return answerChanges(asked, changing);
  });
}

/** A request's body, and who sends it. */
async function readCaller(
  request: Request,
  trust: ServiceTrust,
): Promise<{ body: Record<string, unknown>; caller: Caller }> {
  let body: Record<string, unknown> = {};
  const caller = await authenticateCaller(request, trust, async () => {
    body = await readObject(request);
    return presentedTokens(body);
  });
  return { body, caller };
}

/** Each item of a batch needs the role that it would need alone. @throws ProblemError 403 with all that lack it */
async function authoriseAll(
  items: readonly RawItem[],
  caller: Caller,
  trust: ServiceTrust,
): Promise<CallerExperiment> {
  const refused = new Map<RawItem['action'], readonly Problem[]>();
  let experiment: CallerExperiment | undefined;
  for (const action of new Set(items.map((item) => item.action))) {
    try {
      experiment = await authorise(caller, action, trust);
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      refused.set(action, error.problems);
    }
  }
  const problems = items.flatMap(({ action }, item) =>
    (refused.get(action) ?? []).map((problem) => ({ ...problem, item })),
  );
  if (!experiment || problems.length > 0) throw refusalOf(problems);
  return experiment;
}

/** An administrator deletes a reservation of any experiment, and gives a reason. */
async function deleteAsAdministrator(
  request: Request,
  id: string,
  by: string,
  { reservations, allocator, log }: ConnectivityOptions,
): Promise<Response> {
  const reason = readReason(request);
  const found = await reservations.find(id);
  if (!found) throw refusalOf([notFoundProblem(id)]);
  const outcome = await allocator.change([{ action: 'delete', found, terms: { by, reason } }]);
  if (!outcome.ok) throw refusalOf([notFoundProblem(id)]);
  const { experiment, createdBy } = found;
  log('info', 'deleted', { reservation: id, by, reason, experiment, created_by: createdBy });
  return new Response(null, { status: 204 });
}

/** Mounts what reads reservations. */
function mountReservations(on: Mount, options: ConnectivityOptions): void {
  const { reservations, trust, isAdministrator, now } = options;

  on('readReservation', async (request, id) => {
    const caller = await authenticateCaller(request, trust);
    const experiment = isAdministrator(caller) ? undefined : await authorise(caller, 'read', trust);
    // The text of an answer stands in its row: what is signed, or names its hops, needs more than that.
    const isText = experiment !== undefined && !acceptsJwt(request);
    const found = isText ? await reservations.answer(id) : await reservations.find(id);
    if (!found) throw refusalOf([notFoundProblem(id)]);
    if (experiment && found.experiment !== experiment.id) {
      throw refusalOf([otherExperimentProblem(id, experiment.id)]);
    }
    if ('answer' in found) return jsonTextReply(found.answer, { headers: { 'cache-control': 'no-store' } });
    return answerReservation(request, found, options, { withHops: !experiment });
  });

  on('listReservations', async (request) => {
    const experiment = await authorise(await authenticateCaller(request, trust), 'list', trust);
    const query = readListQuery(request);
    const found = await reservations.list({
      ...query,
      limit: query.limit + 1,
      experiment: experiment.id,
      now: now(),
    });
    const page = found.slice(0, query.limit);
    const nextCursor = found.length > page.length ? (page.at(-1)?.id ?? null) : null;
    const items = page.map(({ answer }) => answer).join();
    return taggedReply(request, `{"items":[${items}],"nextCursor":${JSON.stringify(nextCursor)}}`);
  });
}

/** Mounts the questions about links. */
function mountLinks(on: Mount, options: ConnectivityOptions): void {
  const { network, trust } = options;

  on('listLinks', async (request) => {
    await authenticateAnyUser(request, trust);
    return jsonReply({ items: network.links, nextCursor: null });
  });

  on('linkUse', async (request) => {
    const { sub: user } = await authenticateAnyUser(request, trust);
    return answerUse({ user, request }, options);
  });

  on('linkAvailability', async (request, site1 = '', site2 = '') => {
    const { sub: user } = await authenticateAnyUser(request, trust);
    return answerAvailability({ user, request }, { site1, site2 }, options);
  });

  on('linkRoutes', async (request, site1 = '', site2 = '') => {
    await authenticateAnyUser(request, trust);
    return answerRoutes(request, { site1, site2 }, options);
  });

  on('linkSlots', async (request, site1 = '', site2 = '') => {
    const { sub: user } = await authenticateAnyUser(request, trust);
    const withShare = request.headers.has(EXPERIMENT_TOKEN_HEADER);
    const caller = withShare ? await authenticateCaller(request, trust) : undefined;
    return answerSlots({ user, request }, { site1, site2 }, caller?.experiment?.tenant, options);
  });
}
