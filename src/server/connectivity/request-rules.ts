import type { Period } from '../../allocator/demand.ts';
import type { Network } from '../../allocator/network.ts';
import { allowedRoutes, obstaclesOf, sitesOf, widest } from '../../allocator/routes.ts';
import type { ReservationRecord } from '../../allocator/store.ts';
import { formatDuration } from '../../contract/durations.ts';
import { type Link, linkId } from '../../contract/links.ts';
import type { Problem } from '../../contract/problems.ts';
import { type AskedRoute, askedRouteOf } from '../../contract/reservation.ts';
import type { BodyReading, ReservationRequest } from '../../contract/reservation-request.ts';
import { contradictionText } from '../../words/links.ts';
import { problem } from '../../words/problems.ts';

/** A period as far as the body could be read; an absent member breaks no rule. */
export interface KnownPeriod {
  start?: number;
  end?: number;
}

/** The limits of a period, in milliseconds. */
export interface PeriodBounds {
  /** When the request arrived. */
  now: number;
  /** When the experiment expires. */
  expiry: number;
  /** The project whose token came along, and when it expires. */
  project?: { name: string; expiry: number } | undefined;
}

/** The latest end of a reservation: its experiment's expiry, or that of a project whose token came along if earlier. */
export function lastEnd({ expiry, project }: Omit<PeriodBounds, 'now'>): number {
  return Math.min(expiry, project?.expiry ?? expiry);
}

/**
 * The rules of contract/README.md, "Limits" 1 and "Errors" 2 (Date): the experiment is active, the period is not empty, does not
 * begin in the past and does not go past the experiment's expiry, nor past that of a project whose token came along ("What the
 * service does" 6). For an update: a reservation that has ended can't be updated, the start of one that has begun can't be
 * changed, since its link is in use, and no end can be set to the past.
 *
 * @param current the period of the reservation that is updated
 * @returns one problem for each rule that is broken
 */
function periodProblems(period: KnownPeriod, bounds: PeriodBounds, current?: Period): Problem[] {
  const { start, end } = period;
  const { now } = bounds;
  const isPast = end !== undefined && end <= now;
  if (current && current.end <= now) {
    return [problem('reservation_ended', { at: current.end }, 'Book a new one.')];
  }
  if (!current && isPast && (start === undefined || start < end)) {
    return [pastProblem('end_date', end, 'A reservation must end in the future.')];
  }
  const problems = [...emptyProblems(period), ...expiryProblems(period, bounds)];
  if (start !== undefined && start !== current?.start) {
    if (current && current.start <= now) problems.push(problem('reservation_started', { at: current.start }));
    else if (start < now)
      problems.push(pastProblem('start_date', start, 'Give start_now=true to start at once.'));
  }
  if (current && isPast) {
    problems.push(pastProblem('end_date', end, 'Delete the reservation to end it at once.'));
  }
  return problems;
}

/** A period that ends before it starts, or at once. */
export function emptyProblems({ start, end }: KnownPeriod): Problem[] {
  if (start === undefined || end === undefined || start < end) return [];
  return [problem('period_empty', { start_date: start, end_date: end })];
}

/**
 * The allowed period that comes closest to one that goes past an expiry, or starts in the past: it ends with the expiry,
 * and starts at once. Undefined where nothing is left of it.
 */
export function nearestPeriod(
  { start, end }: Period,
  bounds: PeriodBounds,
): (Period & { startsNow: boolean }) | undefined {
  const { now } = bounds;
  const allowed = { start: Math.max(start, now), end: Math.min(end, lastEnd(bounds)) };
  return allowed.start < allowed.end ? { ...allowed, startsNow: start <= now } : undefined;
}

/** A duration that is longer than the window in which it is looked for. */
function durationProblems(duration: number | undefined, { start, end }: KnownPeriod): Problem[] {
  const room = end === undefined || start === undefined ? 0 : end - start;
  if (duration === undefined || room <= 0 || duration <= room) return [];
  const msg = `A duration of ${formatDuration(duration)} does not fit between start_date and end_date, which are ${formatDuration(room)} apart.`;
  return [{ code: 'date_invalid', msg }];
}

function expiryProblems({ end }: KnownPeriod, { now, expiry, project }: PeriodBounds): Problem[] {
  if (expiry <= now) return [problem('experiment_expired', { expires_at: expiry }, 'Use another one.')];
  if (project && project.expiry <= now) {
    return [problem('project_expired', { project: project.name, expires_at: project.expiry })];
  }
  if (end === undefined || end <= lastEnd({ expiry, project })) return [];
  const wanted = { member: 'end_date', at: end };
  return project && project.expiry < expiry
    ? [problem('project_ends_first', { ...wanted, project: project.name, expires_at: project.expiry })]
    : [problem('experiment_ends_first', { ...wanted, expires_at: expiry })];
}

/** The problem of an instant that has passed. @param member of the request, which has it */
export function pastProblem(member: string, at: number, advice?: string): Problem {
  return problem('date_past', { member, at }, advice);
}

/**
 * The rules of contract/README.md, "Errors" 2 (Site): the sites are known, both ends differ, and a route connects them that is
 * as asked for. Each message names what is possible.
 */
export function siteProblems(
  { site1, site2 }: Readonly<Record<string, unknown>>,
  asked: AskedRoute,
  network: Network,
): Problem[] {
  // The schema refuses a value that is not a text.
  if (typeof site1 !== 'string' || typeof site2 !== 'string') return [];
  const { via = [], avoid = [] } = asked;
  const unknown = [...new Set([site1, site2, ...via, ...avoid])].filter(
    (site) => !network.sites.includes(site),
  );
  if (unknown.length > 0) {
    const { sites } = network;
    return unknown.map((site) => problem('site_unknown', { site: site.slice(0, 64), sites: [...sites] }));
  }
  if (site1 === site2) {
    return [{ code: 'sites_equal', msg: `site1 and site2 are both ${site1}; a link needs two.` }];
  }
  const sought = { site1, site2, ...askedRouteOf(asked) };
  const contradiction = contradictionText(sought);
  if (contradiction !== undefined) return [{ code: 'site_invalid', msg: contradiction }];
  if (allowedRoutes(network, sought).length > 0) return [];
  const obstacles = obstaclesOf(network, sought);
  if (obstacles) return [problem('no_route', obstacles)];
  return [
    {
      code: 'sites_not_connected',
      msg: `${site1} and ${site2} are not interconnected. ${connections(site1, network)} ${connections(site2, network)}`,
    },
  ];
}

/**
 * A bandwidth that is not there at any time (contract/README.md, "Errors" 2), with the narrowest link where the route has several;
 * an absent bandwidth breaks no rule, nor does any where no link is known.
 *
 * @param from the site at which the route begins
 */
function capacityProblems(route: readonly Link[], from: string, bandwidth: number | undefined): Problem[] {
  const capacity = Math.min(...route.map((link) => link.bandwidth));
  if (bandwidth === undefined || bandwidth <= capacity) return [];
  const at = route.findIndex((link) => link.bandwidth === capacity);
  const hop = route.length > 1 ? sitesOf(route, from).slice(at, at + 2) : undefined;
  return [problem('bandwidth_unavailable', { bandwidth, capacity, hop })];
}

function connections(site: string, network: Network): string {
  const neighbours = network.neighbours(site);
  return `${site} is connected with ${neighbours.length > 0 ? neighbours.join(', ') : 'no site'}.`;
}

/** What a create or an update is checked against. */
export interface CheckTerms {
  bounds: PeriodBounds;
  network: Network;
}

/** All that is wrong with a create before its link is asked. @param body as it came */
export function createProblems(
  body: Readonly<Record<string, unknown>>,
  reading: BodyReading<ReservationRequest>,
  { bounds, network }: CheckTerms,
): Problem[] {
  const asked = reading.ok ? reading.request : reading.rest;
  const { site1 = '', site2 = '' } = asked;
  const route = askedRouteOf(asked);
  const period = { start: asked.start === 'now' ? bounds.now : asked.start, end: asked.end };
  const found = [
    ...siteProblems(body, route, network),
    ...(reading.ok ? [] : reading.problems),
    ...periodProblems(period, bounds),
    ...durationProblems(asked.duration, period),
  ];
  // A capacity problem alone is left to the allocator, which offers alternatives.
  if (found.length === 0) return [];
  const routes = allowedRoutes(network, { site1, site2, ...route });
  const most = routes.length > 0 ? widest(routes, (link) => link.bandwidth).route : [];
  return [...found, ...capacityProblems(most, site1, asked.bandwidth)];
}

/** The same for an update. What depends on how the reservation stands in the end is left to {@link updateFault}. */
export function updateProblems(
  body: Readonly<Record<string, unknown>>,
  reading: BodyReading<Partial<ReservationRequest>>,
  { record, bounds, network }: CheckTerms & { record: ReservationRecord },
): Problem[] {
  const asked = reading.ok ? reading.request : reading.rest;
  const wrong = [
    ...changedSites(asked, record),
    ...removedLink(record, network),
    ...(reading.ok ? [] : reading.problems),
  ];
  if (wrong.length === 0) return [];
  const start =
    asked.start === 'now' ? bounds.now : body['start_date'] === undefined ? record.start : asked.start;
  const end = body['end_date'] === undefined ? record.end : asked.end;
  const tooMuch = capacityProblems(routeOf(record, network), record.site1, asked.bandwidth);
  return [...wrong, ...periodProblems({ start, end }, bounds, record), ...tooMuch];
}

/** What is wrong with an update's dates, as the reservation stands when it is decided. @param bandwidth that was asked for */
export function updateFault(
  current: ReservationRecord,
  updated: Period,
  { bandwidth, bounds, network }: CheckTerms & { bandwidth: number | undefined },
): Problem[] | undefined {
  const problems = periodProblems(updated, bounds, current);
  if (problems.length === 0) return undefined;
  return [...problems, ...capacityProblems(routeOf(current, network), current.site1, bandwidth)];
}

/** An update may name the reservation's sites, in either order, but no others. */
function changedSites({ site1, site2 }: Partial<ReservationRequest>, record: ReservationRecord): Problem[] {
  const current = [record.site1, record.site2].toSorted();
  const named = [site1, site2].filter((site) => site !== undefined);
  const same =
    site1 !== undefined && site2 !== undefined
      ? linkId(site1, site2) === linkId(record.site1, record.site2)
      : named.every((site) => current.includes(site));
  if (same) return [];
  return [
    {
      code: 'sites_fixed',
      msg: `A reservation's sites can't be changed; this one's are ${current.join(' and ')}. Book a new one.`,
    },
  ];
}

/** The link may have been removed from the topology; then the reservation can only be deleted. */
function removedLink({ hops }: ReservationRecord, network: Network): Problem[] {
  const removed = hops.find(({ link }) => !network.byId(link));
  if (!removed) return [];
  const msg = `${removed.link.replace('~', ' and ')} are not interconnected any more. Delete the reservation.`;
  return [{ code: 'sites_not_connected', msg }];
}

/** The links of a reservation's route; none where one was removed from the topology. */
function routeOf({ hops }: ReservationRecord, network: Network): Link[] {
  const links = hops.flatMap(({ link }) => network.byId(link) ?? []);
  return links.length === hops.length ? links : [];
}

/** A reservation that does not exist. */
export function notFoundProblem(id: string): Problem {
  return { code: 'not_found', msg: `There is no reservation ${id}.` };
}

/** A reservation of another experiment. */
export function otherExperimentProblem(id: string, experiment: string): Problem {
  return {
    code: 'wrong_experiment',
    msg: `Reservation ${id} belongs to another experiment than ${experiment}.`,
  };
}
