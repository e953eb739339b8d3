import { DAY } from '../contract/durations.ts';
import { type Link, linkId } from '../contract/links.ts';
import type { Problem } from '../contract/problems.ts';
import { asksForRoute, type ReservationTexts, withTexts } from '../contract/reservation.ts';
import type { ReservationRequest } from '../contract/reservation-request.ts';
import type { Demand, Period } from './demand.ts';
import type { Network } from './network.ts';
import {
  type Explanation,
  explained,
  type LongerRoutes,
  type Offer,
  offersFor,
  UNEXPLAINED,
} from './offers.ts';
import { type Refusal, reasonOf } from './refusals.ts';
import { RouteUse, type WayOver } from './route-use.ts';
import { type AskedRoutes, allowedRoutes, longerRoutes, type Route } from './routes.ts';
import { judge, judgeSearch, type Search, type TooLow, tooLowReason } from './search.ts';
import { atOnce, type Steps } from './steps.ts';
import type {
  AuditEntry,
  IdempotencyKey,
  ReservationName,
  ReservationRecord,
  WrittenChange,
} from './store.ts';
import type { LinksView } from './view.ts';

/** The result of an operation: the answer, and what is to be written on its links. */
export interface Decision<Answer> {
  answer: Answer;
  written: readonly Written[];
}

/** A change to be written, with its rows in the audit; or the row of a refusal. */
export interface Written {
  change?: WrittenChange;
  /** One for each link. */
  audit: readonly AuditEntry[];
}

/** One change of a list. `found`: the reservation as it was before its link was locked. */
export type ChangeItem =
  | { action: 'create'; request: CreateRequest }
  | { action: 'update'; found: ReservationRecord; update: UpdateRequest; terms: UpdateTerms }
  | { action: 'delete'; found: ReservationRecord; terms: DeleteTerms };

/** An item's outcome: the reservation that it left, or had deleted; or why it can't be done. */
export type ItemOutcome = { ok: true; record: ReservationRecord } | ItemFailure;

/** Why an item can't be done. Refusals are values: they are everyday outcomes, not faults. */
export type ItemFailure =
  | RefusedOutcome
  /** Its name is taken, by the reservation with this id. */
  | { ok: false; reason: 'name_taken'; name: string; reservation: string }
  /** The caller's own check found problems. */
  | { ok: false; reason: 'rule'; problems: readonly Problem[] }
  /** There is no such reservation any more. */
  | { ok: false; reason: 'missing'; reservation: string };

/** The decision on one item. */
export type ItemDecision = Decision<ItemOutcome>;

/** One item, as its links decide on it. */
export interface ItemOperation {
  /** The ids of its links. */
  readonly links: readonly string[];
  /** The id of the reservation that it changes. */
  readonly about?: string;
  /** The tenant whose live reservations are counted. */
  readonly counts?: string | undefined;
  /** The name that it gives a reservation. */
  readonly named?: ReservationName | undefined;
  /** The time that it looks at first; undefined where it looks at none. */
  period(known: Pick<LinksView, 'reservation'>): Period | undefined;
  /** @param explains whether a refusal is told with what else is free */
  decide(view: LinksView, explains: boolean): Steps<ItemDecision>;
  /** Of a create: what is free on the routes that it may take. */
  routes?(view: LinksView): RouteUse;
}

/** The terms that the items of every request are decided by. */
export interface AllocationRules {
  network: Pick<Network, 'between' | 'byId' | 'links'>;
  /** Makes a reservation's id. */
  newId: () => string;
  /**
   * How much of a link one tenant may have at any instant, in percent of its bandwidth and of the tags at each
   * place, 1 to 100 (THREATS.md 59). A tenant is a project with all its experiments, or an experiment without a project.
   * Default: all of it.
   */
  maxShare?: number;
  /**
   * How many reservations that have not ended one tenant may have, on all links. Default: no limit. Every
   * allocator on a database is given the same.
   */
  maxLive?: number;
}

/** The operation of one item. @throws RangeError for a create whose sites are not connected, or a link that left the network */
export function itemOperation(item: ChangeItem, rules: AllocationRules): ItemOperation {
  switch (item.action) {
    case 'create':
      return createOperation(item.request, rules);
    case 'update':
      return updateOperation(item, rules);
    case 'delete':
      return deleteOperation(item);
  }
}

/** A demand that can't be met: every limit that it broke, and what would be accepted in its place. */
export interface RefusedOutcome extends Explanation, WayOver {
  ok: false;
  reason: 'refused';
  /** Whose share counted. */
  tenant: string;
  /** The demand that was refused; for a search, the demand within its window that comes closest. */
  demand: Demand;
  refusals: readonly [Refusal, ...Refusal[]];
  /** Of a volume that is limited to less than it needs: then that is why, whatever is free. */
  tooLow?: TooLow;
}

/**
 * A new reservation to be decided on: a demand; or, with a duration or a volume, a window from `start` to `end` in which the
 * demand is found. Milliseconds and Mbps.
 */
export interface CreateRequest extends Omit<ReservationRequest, 'start'> {
  start: number;
  experiment: string;
  /** See `ReservationRecord`. Default: the experiment. */
  tenant?: string;
  createdBy: string;
  /** When the experiment ends: no alternative is offered beyond it. Milliseconds. */
  expiry: number;
  /** Whether the request said `start_now`: then so do its alternatives. Default: no. */
  startsNow?: boolean;
  /** The ids of the links of the only route that may be taken. Default: any that is as asked. */
  route?: readonly string[];
  /** Of a search: what is found has times that are multiples of so many milliseconds. Default: 1. */
  unit?: number;
}

/** A request under an idempotency key, and what tells it from other requests under the same key. */
export interface KeyedRequest extends IdempotencyKey {
  /** Equal for equal requests. */
  fingerprint: string;
}

/** How long an idempotency key stands for its reservation (contract/README.md, "Extensions"): 24 h, in milliseconds. */
export const KEY_LIFETIME = DAY;

function createOperation(request: CreateRequest, rules: AllocationRules): ItemOperation {
  const { experiment, tenant = experiment, name, start, end, duration, volume } = request;
  if (duration !== undefined && start + duration > end) {
    throw new RangeError('the window is shorter than the duration');
  }
  const { ids, open } = linksUnder(routesOf(request, rules));
  // A search may end long before its window does, and asks for more where it does not.
  const first = duration === undefined ? (volume === undefined ? end : start) : start + duration;
  return {
    links: ids,
    counts: rules.maxLive === undefined ? undefined : tenant,
    named: namedBy(experiment, name),
    period: () => ({ start, end: first }),
    decide: (view, explains) => decideCreate(view, { request, use: open(view), explains }, rules),
    routes: open,
  };
}

function namedBy(experiment: string, name: string | undefined): ReservationName | undefined {
  return name === undefined ? undefined : { experiment, name };
}

/** The failure where another reservation has the name that an item gives. @param own the id of the item's own reservation */
function takenName(
  view: LinksView,
  named: ReservationName | undefined,
  own?: string,
): ItemFailure | undefined {
  const holder = named && view.holderOf(named);
  if (!named || holder === undefined || holder === own) return undefined;
  return { ok: false, reason: 'name_taken', name: named.name, reservation: holder };
}

/** The routes of a new reservation, or of a question. @throws RangeError where there is none */
export function routesOf(
  { route, ...asked }: AskedRoutes & Pick<CreateRequest, 'route'>,
  rules: Pick<AllocationRules, 'network'>,
): readonly Route[] {
  if (route) return [routeOver(route, rules)];
  const allowed = allowedRoutes(rules.network, asked);
  if (allowed.length === 0) throw new RangeError(`there is no route from ${asked.site1} to ${asked.site2}`);
  return allowed;
}

/** The route over the links with these ids. */
function routeOver(ids: readonly string[], rules: Pick<AllocationRules, 'network'>): Route {
  const [first, ...rest] = ids.map((id) => linkOf(id, rules));
  if (!first) throw new RangeError('a route has a link');
  return [first, ...rest];
}

/** The links of routes: their ids, sorted, and what is free on the routes in a view of them. */
export function linksUnder(routes: readonly Route[]): {
  ids: readonly string[];
  open(view: LinksView): RouteUse;
} {
  const ids = [...new Set(routes.flat())].map(idOf);
  return {
    ids: ids.toSorted(),
    open: (view) =>
      new RouteUse(
        ids.map((id) => view.use(id)),
        routes,
      ),
  };
}

function idOf({ site1, site2 }: Link): string {
  return linkId(site1, site2);
}

function linkOf(id: string, { network }: Pick<AllocationRules, 'network'>): Link {
  const link = network.byId(id);
  if (!link) throw new RangeError(`there is no link ${id}`);
  return link;
}

/** The search of a request; undefined where the request is itself a demand. */
export function searchOf({
  duration,
  volume,
}: Pick<CreateRequest, 'duration' | 'volume'>): Search | undefined {
  if (duration !== undefined) return { duration };
  return volume === undefined ? undefined : { volume };
}

function* decideCreate(
  view: LinksView,
  { request, use, explains }: { request: CreateRequest; use: RouteUse; explains: boolean },
  { newId, network, maxLive = Number.POSITIVE_INFINITY }: AllocationRules,
): Steps<ItemDecision> {
  const { site1, site2, start, end, experiment, tenant = experiment, createdBy, name } = request;
  const { expiry, startsNow = false, unit } = request;
  const taken = takenName(view, namedBy(experiment, name));
  if (taken) return unwritten(taken);
  const { now } = view;
  const asked = { start, end, bandwidth: request.bandwidth ?? use.capacity };
  const live = Number.isFinite(maxLive) ? view.live(tenant) : 0;
  const isFull = live >= maxLive;
  const longer = (): LongerRoutes | undefined => {
    const routes = asksForRoute(request) ? [] : longerRoutes(network, request);
    return routes.length > 0 ? { use: linksUnder(routes).open(view), site1 } : undefined;
  };
  const offerTerms = { use, longer, tenant, now, expiry, startsNow, unit };
  const search = searchOf(request);
  // With too many live reservations no demand would be accepted, so none is searched for.
  const judged = !search
    ? yield* judge(asked, offerTerms)
    : isFull
      ? undefined
      : yield* judgeSearch(asked, search, offerTerms);
  const { demand = asked, plan } = judged ?? {};
  if (!plan?.accepted || isFull) {
    const tooMany = { limit: 'share', of: 'live', held: live, allowed: maxLive, start, end } as const;
    const broken = plan && !plan.accepted ? plan.refusals : [];
    const [first = tooMany, ...rest] = isFull ? [...broken, tooMany] : broken;
    const refusals = [first, ...rest] as const;
    const link = plan && !plan.accepted ? plan.link : use.first;
    const way = use.wayOver(link, request);
    const entry = { link: idOf(link), at: now, action: 'create', by: createdBy, experiment } as const;
    const { tooLow } = judged ?? {};
    const why = tooLow ? tooLowReason(tooLow, demand) : reasonOf(refusals);
    const audit: AuditEntry = { ...entry, demand: asked, reservation: null, tags: null, why };
    const refused = { ok: false, reason: 'refused', ...way, tenant, demand, refusals, tooLow } as const;
    const offers = judged && !isFull ? judged.offers : noOffers;
    const explanation = explains ? yield* explained(use, asked, offers) : UNEXPLAINED;
    return { answer: { ...refused, ...explanation }, written: [{ audit: [audit] }] };
  }
  const unnamed: ReservationRecord = {
    id: newId(),
    site1,
    site2,
    hops: plan.hops,
    ...demand,
    experiment,
    tenant,
    createdBy,
    createdAt: now,
    version: view.version(plan.hops[0].link) + 1,
  };
  const record = withTexts(unnamed, request);
  return accepted({ action: 'create', record }, createdBy, now);
}

/** Nothing is offered, whatever is free. */
function* noOffers(): Steps<void> {}

/** The new values of a reservation; an absent member keeps its value. Milliseconds and Mbps. */
export interface UpdateRequest
  extends Partial<Pick<ReservationRequest, 'bandwidth' | 'end'>>,
    ReservationTexts {
  start?: number;
  /** Whether the request said `start_now`: then so do its alternatives. Default: no. */
  startsNow?: boolean;
}

/** Who updates a reservation, and within which limits. */
export interface UpdateTerms {
  /** The `sub` of the user who asks. */
  by: string;
  /** When the experiment ends: no alternative is offered beyond it. Milliseconds. */
  expiry: number;
  /**
   * Checks the updated reservation before it is decided on; problems are the outcome in place of a decision. Alternatives
   * are checked too.
   */
  check: (current: ReservationRecord, updated: Demand) => readonly Problem[] | undefined;
}

type UpdateItem = Extract<ChangeItem, { action: 'update' }>;

function updateOperation(item: UpdateItem, rules: AllocationRules): ItemOperation {
  const { found, update } = item;
  const { ids, open } = linksUnder([routeOver(linksOf(found), rules)]);
  return {
    links: ids,
    about: found.id,
    named: namedBy(found.experiment, update.name),
    period(known) {
      const { start, end } = known.reservation(found.id) ?? found;
      return { start: Math.min(start, update.start ?? start), end: Math.max(end, update.end ?? end) };
    },
    *decide(view, explains) {
      const current = view.reservation(found.id);
      if (!current) return unwritten({ ok: false, reason: 'missing', reservation: found.id });
      return yield* decideUpdate(view, { current, use: open(view), explains }, item);
    },
  };
}

function* decideUpdate(
  view: LinksView,
  { current, use, explains }: { current: ReservationRecord; use: RouteUse; explains: boolean },
  { update, terms: { by, expiry, check } }: UpdateItem,
): Steps<ItemDecision> {
  const { now } = view;
  const { id, experiment, tenant } = current;
  const demand: Demand = {
    start: update.start ?? current.start,
    end: update.end ?? current.end,
    bandwidth: update.bandwidth ?? current.bandwidth,
  };
  const problems = check(current, demand);
  if (problems !== undefined) return unwritten({ ok: false, reason: 'rule', problems });
  const taken = takenName(view, namedBy(experiment, update.name), id);
  if (taken) return unwritten(taken);
  // A demand for no more than before does not count against the tenant's share, which may have been larger then.
  const grows =
    demand.start < current.start || demand.end > current.end || demand.bandwidth > current.bandwidth;
  const keep = current.hops;
  const plan = yield* use.without(id, use.plan(demand, { keep, tenant: grows ? tenant : undefined }));
  if (!plan.accepted) {
    const { link, refusals } = plan;
    // A start that has passed never changes; nor does one that the update does not name.
    const movable = update.start !== undefined && current.start > now;
    const allows = (offer: Demand): boolean => check(current, offer) === undefined;
    const startsNow = update.startsNow ?? false;
    const terms = { use, tenant, expiry, now, startsNow, current, movable, allows };
    const offers = (found: Offer[]): Steps<void> => offersFor(demand, terms, found);
    const why = reasonOf(refusals);
    const entry = { link: idOf(link), at: now, action: 'update', by, experiment, reservation: id } as const;
    const audit: AuditEntry = { ...entry, demand, tags: null, why };
    const way = use.wayOver(link, current);
    const refused = { ok: false, reason: 'refused', ...way, tenant, demand, refusals } as const;
    const explanation = explains ? yield* use.without(id, explained(use, demand, offers)) : UNEXPLAINED;
    return { answer: { ...refused, ...explanation }, written: [{ audit: [audit] }] };
  }
  const version = view.version(plan.hops[0].link) + 1;
  const record = withTexts({ ...current, ...demand, hops: plan.hops, version }, update);
  return accepted({ action: 'update', record }, by, now);
}

/** Who deletes a reservation. */
export interface DeleteTerms {
  /** The `sub` of the user who asks. */
  by: string;
  /** Why, where that was said: an administrator's release. */
  reason?: string;
}

/** Looks at no link, so reservations on a link that left the topology can be deleted too. */
function deleteOperation({
  found,
  terms: { by, reason },
}: Extract<ChangeItem, { action: 'delete' }>): ItemOperation {
  const { id } = found;
  return {
    links: linksOf(found).toSorted(),
    about: id,
    period: () => undefined,
    decide(view) {
      const record = view.reservation(id);
      return atOnce(
        record
          ? accepted({ action: 'delete', record }, by, view.now, reason)
          : unwritten({ ok: false, reason: 'missing', reservation: id }),
      );
    },
  };
}

/** The ids of a reservation's links. */
function linksOf({ hops }: ReservationRecord): string[] {
  return hops.map(({ link }) => link);
}

/** A change that can be made, with a row in the audit for each of its links. @param at milliseconds */
function accepted(change: WrittenChange, by: string, at: number, why?: string): Decision<ItemOutcome> {
  const { action, record } = change;
  const { id, experiment, start, end, bandwidth, hops } = record;
  const entry = { at, action, by, experiment, reservation: id, demand: { start, end, bandwidth } };
  const audit = hops.map((hop): AuditEntry => ({ ...entry, ...hop, why: why ?? null }));
  return { answer: { ok: true, record }, written: [{ change, audit }] };
}

/** Refuses an item that was not decided by its link: the audit has no row of it. */
function unwritten(answer: ItemFailure): Decision<ItemOutcome> {
  return { answer, written: [] };
}

/**
 * Decides on each item, one after the other, and makes its changes in the view.
 *
 * @param explains whether refusals are told with what else is free. Default: no
 * @param stopsAtRefusal whether the first item that can't be done is the last one that is decided on. Default: no
 */
export function* decideItems(
  view: LinksView,
  operations: readonly ItemOperation[],
  { explains = false, stopsAtRefusal = false }: { explains?: boolean; stopsAtRefusal?: boolean } = {},
): Steps<ItemDecision[]> {
  const decisions: ItemDecision[] = [];
  for (const operation of operations) {
    const decision = yield* operation.decide(view, explains);
    decisions.push(decision);
    for (const { change } of decision.written) if (change) view.apply(change);
    if (stopsAtRefusal && !decision.answer.ok) break;
    if (operations.length > 1) yield;
  }
  return decisions;
}
