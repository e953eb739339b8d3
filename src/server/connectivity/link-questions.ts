import type * as v from 'valibot';
import type { Allocator, LinksState } from '../../allocator/allocator.ts';
import type { Period } from '../../allocator/demand.ts';
import type { Slot as Run } from '../../allocator/link-use.ts';
import type { Network } from '../../allocator/network.ts';
import type { AskedBy } from '../../allocator/questions.ts';
import type { FreeOnRoute, RouteUse } from '../../allocator/route-use.ts';
import { allowedRoutes, capacityBetween, longerRoutes, sitesOf } from '../../allocator/routes.ts';
import { type Steps, TooMuchError } from '../../allocator/steps.ts';
import type { ReservationStore } from '../../allocator/store.ts';
import {
  type Availability,
  AvailabilityQuery,
  type AvailablePart,
  DEFAULT_WINDOW,
  MAX_PAST,
  MAX_WINDOW,
  type RouteItem,
  RoutesQuery,
  type Slot,
  SlotsQuery,
  type UseList,
  UseQuery,
} from '../../contract/availability.ts';
import { formatDuration, HOUR } from '../../contract/durations.ts';
import { formatInstant, LAST_INSTANT } from '../../contract/instants.ts';
import { linkId } from '../../contract/links.ts';
import type { Problem, ProblemCode } from '../../contract/problems.ts';
import { DEFAULT_POINTS, DEFAULT_ROUTES, MAX_USE_COLUMNS } from '../../contract/request-limits.ts';
import { type AskedRoute, askedRouteOf, asksForRoute } from '../../contract/reservation.ts';
import { jsonText } from '../../contract/visible-text.ts';
import { knowsTag, tagOf } from '../etag.ts';
import { jsonReply, jsonTextReply } from '../json-reply.ts';
import { readBy, refusal, refuseIfAny } from '../problem-error.ts';
import { addressOf } from '../request-reading.ts';
import { emptyProblems, pastProblem, siteProblems } from './request-rules.ts';

/** What questions about a link are answered from. */
export interface LinkQuestionsOptions {
  network: Network;
  allocator: Allocator;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** Who asks, and in which request. */
export type AskedInRequest = AskedBy & { request: Request };

/** The sites of a link, as a request names them. */
export interface NamedSites {
  site1: string;
  site2: string;
}

/** The most exact steps in one page. */
const STEPS_IN_PAGE = 1000;
/** The most slots in one page. */
const SLOTS_IN_PAGE = 100;

/**
 * Answers what is free of a link over a window, in exact steps or in columns: aggregates only, never single reservations
 * (contract/README.md, "Extensions"). The ETag is of the topology, the links' versions, the window and the columns.
 *
 * @throws ProblemError 422 for unknown sites or a wrong window, 400 for `points` or a cursor that is not one
 */
export async function answerAvailability(
  askedBy: AskedInRequest,
  sites: NamedSites,
  { network, allocator, now }: LinkQuestionsOptions,
): Promise<Response> {
  const { request } = askedBy;
  const asked = readQuery(request, AvailabilityQuery);
  const sought = { ...sites, ...askedRouteOf(asked) };
  const { start, end, from } = windowOf(sought, asked, { network, now: now() });
  const capacity = capacityBetween(network, sought);
  if (capacity === undefined) throw new RangeError('there is no such route');
  const { points } = asked;
  if (points !== undefined && asked.cursor !== undefined) {
    throw refusal('request_invalid', 'points and cursor exclude each other: columns are all in one page.');
  }
  const free: FreeOnRoute[] = [];
  let tag = '';
  function* ask(use: RouteUse, { versions }: LinksState): Steps<boolean> {
    // Of before the rows were read: links that were changed since have another one.
    tag = tagOf(JSON.stringify([network.links, versions, sought, start, end, from, points ?? null]));
    if (knowsTag(request, tag)) return false;
    if (points !== undefined) free.push(...(yield* use.columns({ start, end }, points)));
    else yield* use.steps({ start: from, end }, free, STEPS_IN_PAGE);
    return true;
  }
  const isNew = await untilSpent(allocator.ask(sought, ask, askedBy), free);
  const headers = { etag: tag, 'cache-control': 'private, no-cache' };
  if (isNew === false) return new Response(null, { status: 304, headers });
  const last = free.at(-1)?.end ?? end;
  // The routes that occur, in the order in which they do.
  const names = free.map(({ route }) => route && sitesOf(route, sites.site1).join(' '));
  const routes = [...new Set(names.flatMap((name) => name ?? []))];
  const body: Availability = {
    ...sites,
    bandwidth: capacity,
    start_date: formatInstant(start),
    end_date: formatInstant(end),
    exact: points === undefined,
    items: free.map((part, index) => ({
      ...partOf(part),
      route: names[index] === undefined ? undefined : routes.indexOf(names[index]),
    })),
    routes: routes.length > 0 ? routes.map((name) => name.split(' ')) : undefined,
    nextCursor: last < end ? cursorOf({ start, end, from: last }) : null,
  };
  return jsonReply(body, { headers });
}

/**
 * Answers what is free of each link that is named over a window, in columns, or of every link. The ETag is of these links and
 * their versions: where it is known, no link is looked at.
 *
 * @throws ProblemError 422 for a wrong window or unknown links, 400 for `points` out of their bounds
 */
export async function answerUse(
  askedBy: AskedInRequest,
  {
    network,
    allocator,
    reservations,
    now,
  }: LinkQuestionsOptions & { reservations: Pick<ReservationStore, 'versions'> },
): Promise<Response> {
  const { request } = askedBy;
  const { points = DEFAULT_POINTS, link: named, ...asked } = readQuery(request, UseQuery);
  const { start, end } = firstPage(asked, now());
  refuseIfAny([
    ...named.flatMap((sites) => siteProblems(sites, { direct: true }, network)),
    ...windowProblems({ start, end }, now(), undefined),
  ]);
  const ids = named.map(({ site1, site2 }) => linkId(site1, site2));
  const links = new Map(
    network.links
      .map((link) => [linkId(link.site1, link.site2), link] as const)
      .filter(([id]) => ids.length === 0 || ids.includes(id)),
  );
  if (points * links.size > MAX_USE_COLUMNS) {
    throw refusal(
      'request_invalid',
      `points must be ${Math.floor(MAX_USE_COLUMNS / links.size)} at most: there are ${links.size} links.`,
    );
  }
  const rows = await reservations.versions([...links.keys()]);
  const versions = rows.map(({ id, version }) => [id, version]);
  const tag = tagOf(JSON.stringify([[...links], versions, start, end, points]));
  const headers = { etag: tag, 'cache-control': 'private, no-cache' };
  if (knowsTag(request, tag)) return new Response(null, { status: 304, headers });
  const columns = await allocator.askEach(function* (use): Steps<Float64Array | undefined> {
    if (!links.has(use.id)) return undefined;
    const free = yield* use.columns({ start, end }, points);
    // As numbers: many such answers may wait for their turn at once.
    return Float64Array.from(
      free.flatMap((part) => [part.start, part.end, part.bandwidth, part.bandwidthMax, part.tags]),
    );
  }, askedBy);
  const found = columns.filter((numbers) => numbers !== undefined);
  // As text one after the other, so that the parts of all links are never there at once.
  const items = [...links.values()].map(({ site1, site2, bandwidth }, index) =>
    jsonText({
      ...{ site1, site2, bandwidth, exact: false, nextCursor: null },
      start_date: formatInstant(start),
      end_date: formatInstant(end),
      items: partsIn(found[index] ?? new Float64Array()),
    } satisfies UseList['items'][number]),
  );
  return jsonTextReply(`{"items":[${items.join()}],"nextCursor":null}`, { headers });
}

function partOf({ start, end, bandwidth, bandwidthMax, tags }: FreeOnRoute): AvailablePart {
  return {
    start_date: formatInstant(start),
    end_date: formatInstant(end),
    bandwidth,
    bandwidth_max: bandwidthMax,
    vlans: tags,
  };
}

/** The parts whose members stand one after the other. */
function partsIn(numbers: Float64Array): AvailablePart[] {
  return Array.from({ length: numbers.length / 5 }, (_, index) => {
    const at = (member: number): number => numbers[5 * index + member] ?? 0;
    return partOf({ start: at(0), end: at(1), bandwidth: at(2), bandwidthMax: at(3), tags: at(4) });
  });
}

/**
 * Answers when a reservation of some bandwidth and duration can start, within a window and not in the past.
 *
 * @param tenant whose share counts; undefined where the request carries no experiment token
 * @throws ProblemError 422 for unknown sites, a wrong window, bandwidth or duration; 400 for a cursor that is not one
 */
export async function answerSlots(
  askedBy: AskedInRequest,
  sites: NamedSites,
  tenant: string | undefined,
  { network, allocator, now }: LinkQuestionsOptions,
): Promise<Response> {
  const asked = readQuery(askedBy.request, SlotsQuery);
  const received = now();
  const sought = { ...sites, ...askedRouteOf(asked) };
  const window = windowOf(sought, asked, { network, now: received });
  const { bandwidth, duration } = asked;
  const { start, end } = window;
  const from = Math.max(window.from, received);
  const found: Run[] = [];
  function* ask(use: RouteUse): Steps<true> {
    yield* use.slots({ start: from, end, bandwidth, duration, tenant }, found, SLOTS_IN_PAGE + 1);
    return true;
  }
  const isSpent = (await untilSpent(allocator.ask(sought, ask, askedBy), found)) === undefined;
  const page = found.slice(0, SLOTS_IN_PAGE);
  const items = page.map(
    ({ first, last }): Slot => ({
      first_start_date: formatInstant(first),
      last_start_date: formatInstant(last),
    }),
  );
  const last = isSpent || found.length > page.length ? page.at(-1)?.last : undefined;
  const nextCursor = last === undefined ? null : cursorOf({ start, end, from: last + 1 });
  return jsonReply({ items, nextCursor }, { headers: { 'cache-control': 'no-store' } });
}

/**
 * Answers which routes a reservation between two sites may take: by hops, then by name, with those that only `via` and `avoid` lead
 * over.
 *
 * @throws ProblemError 422 for unknown sites and where there is none, 400 for a wrong limit
 */
export function answerRoutes(
  request: Request,
  sites: NamedSites,
  { network }: Pick<LinkQuestionsOptions, 'network'>,
): Response {
  const { limit = DEFAULT_ROUTES, ...asked } = readQuery(request, RoutesQuery);
  refuseIfAny(siteProblems({ ...sites }, asked, network));
  const sought = { ...sites, ...asked };
  const routes = [
    ...allowedRoutes(network, sought),
    ...(asksForRoute(asked) ? [] : longerRoutes(network, sites)),
  ];
  const fewest = allowedRoutes(network, sites)[0]?.length;
  const items = routes.slice(0, limit).map(
    (route): RouteItem => ({
      sites: sitesOf(route, sites.site1),
      bandwidth: Math.min(...route.map(({ bandwidth }) => bandwidth)),
      by_default: route.length === fewest,
    }),
  );
  return jsonReply({ items, nextCursor: null }, { headers: { 'cache-control': 'private, no-cache' } });
}

/**
 * The answer to a question; undefined where it takes too much, and its page ends early.
 *
 * @param found the page so far
 * @throws TooMuchError where there is nothing in it
 */
async function untilSpent<Answer>(
  question: Promise<Answer>,
  found: readonly unknown[],
): Promise<Answer | undefined> {
  try {
    return await question;
  } catch (error) {
    if (error instanceof TooMuchError && found.length > 0) return undefined;
    throw error;
  }
}

const MEMBERS: Readonly<Record<string, ProblemCode>> = {
  via: 'site_invalid',
  avoid: 'site_invalid',
  start: 'date_invalid',
  end: 'date_invalid',
  duration: 'date_invalid',
  bandwidth: 'bandwidth_invalid',
};

/** Reads a query by its schema. @throws ProblemError naming every wrong parameter */
function readQuery<Output>(request: Request, schema: v.GenericSchema<unknown, Output>): Output {
  const { searchParams } = addressOf(request);
  const parameters = Object.fromEntries(searchParams);
  // A plus that was not encoded came as a space: `+02:00` is the only place for one.
  for (const name of ['start', 'end']) {
    const value = parameters[name];
    if (value !== undefined) parameters[name] = value.replace(' ', '+');
  }
  return readBy(schema, { ...parameters, link: searchParams.getAll('link') }, MEMBERS);
}

/** A window, and where in it a page begins; milliseconds. */
interface PagedWindow extends Period {
  from: number;
}

/** The window that a request is about, between sites with a route as it is asked for. @throws ProblemError */
function windowOf(
  sought: NamedSites & AskedRoute,
  asked: { start?: number; end?: number; cursor?: string | undefined },
  { network, now }: { network: Network; now: number },
): PagedWindow {
  const window = asked.cursor === undefined ? firstPage(asked, now) : readCursor(asked.cursor);
  refuseIfAny([
    ...siteProblems({ ...sought }, sought, network),
    ...windowProblems(window, now, asked.cursor),
  ]);
  return window;
}

function firstPage({ start, end }: { start?: number; end?: number | undefined }, now: number): PagedWindow {
  const from = start ?? now;
  return { start: from, end: end ?? Math.min(from + DEFAULT_WINDOW, LAST_INSTANT), from };
}

/** How much longer a window stays readable by its cursor, in milliseconds: its start gets older from page to page. */
const PAGING_TIME = HOUR;

function windowProblems({ start, end }: Period, now: number, cursor: string | undefined): Problem[] {
  const problems = emptyProblems({ start, end });
  if (start < now - MAX_PAST - (cursor === undefined ? 0 : PAGING_TIME)) {
    problems.push(pastProblem('start', start, `It may lie ${formatDuration(MAX_PAST)} back at most.`));
  }
  if (end - start > MAX_WINDOW) {
    const msg = `start and end are ${formatDuration(end - start)} apart; ${formatDuration(MAX_WINDOW)} are the most.`;
    problems.push({ code: 'date_invalid', msg });
  }
  return problems;
}

const CURSOR = /^([0-9a-z]{1,10})-([0-9a-z]{1,10})-([0-9a-z]{1,10})$/;

/** A page's cursor: the window, so that it stays the same where it was not named, and where the page begins. */
function cursorOf({ start, end, from }: PagedWindow): string {
  return [start, end, from].map((instant) => instant.toString(36)).join('-');
}

function readCursor(text: string): PagedWindow {
  const [start = 0, end = 0, from = 0] =
    CURSOR.exec(text)
      ?.slice(1)
      .map((part) => Number.parseInt(part, 36)) ?? [];
  if (start <= from && from < end && end <= LAST_INSTANT) return { start, end, from };
  throw refusal('request_invalid', 'cursor must be the nextCursor of an earlier page.');
}
