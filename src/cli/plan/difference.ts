import { Failure } from '../../contract/failure.ts';
import { MAX_ITEMS, type Reservation, routeFault, textsOf } from '../../contract/reservation.ts';
import { asRequest, periodOf, type ReservationRequest } from '../../contract/reservation-request.ts';
import { routeFaultText } from '../../words/links.ts';
import { PLAN_TEXTS, type WantedReservation } from './plan-file.ts';

/** A reservation that exists, or has existed, under a name. */
export interface NamedReservation {
  name: string;
  reservation: Reservation;
}

/** The change of one name that makes the reservation as the file says. `request` is what it then is; null for a deletion. */
export type PlannedChange =
  | { action: 'create'; name: string; wanted: WantedReservation; request: ReservationRequest; current: null }
  /** `none`: it is as the file says, but perhaps later. */
  | {
      action: 'update' | 'none';
      name: string;
      wanted: WantedReservation;
      request: ReservationRequest;
      current: Reservation;
      /** When it starts, in milliseconds, where that is later than the file says, as `--earliest` may have put it. */
      keptAt?: number;
    }
  | { action: 'delete'; name: string; request: null; current: Reservation };

/** How a file and what exists are compared. */
export interface ComparingOptions {
  /** Milliseconds. */
  now: number;
  /** Reservations with a name that the file does not have are to be deleted. */
  prune?: boolean;
  /** The file's dates are the first that would do: a reservation may be later, and keeps its start whatever its length. */
  earliest?: boolean;
  /** Whether a reservation that is later than the file says is moved to the file's dates. */
  move?: boolean;
}

/**
 * By how much a reservation that started now may be longer or shorter than the file says, in milliseconds: it was asked for
 * a little longer, and starts when its request arrives.
 */
const LOOSE = 10_000;

/**
 * The difference between a file and what exists (cli/README.md, "Output"). All times are half-open periods.
 *
 * | exists under the name | action |
 * |---|---|
 * | nothing that has not ended | create |
 * | the same sites, bandwidth and period | none, also where it has ended |
 * | `start: now`: not ended, the same sites, bandwidth and length (10 s more or less) | none |
 * | the same sites, bandwidth and length, but later, as `--earliest` may have put it | none, unless `move` |
 * | the same sites, something else differs | update of what differs; what is later and has the same length, or with `earliest` any, stays at its start, unless `move` |
 * | a name that the file does not have, with `prune` | delete, unless it has ended |
 *
 * @param existing in any order; several that ended may have one name
 * @returns the file's names in its order, then what is deleted
 * @throws Failure `usage` for changed sites and for a route that is not as asked for, which no update can change, and for more
 *   than 64 changes
 */
export function plannedChanges(
  wanted: readonly WantedReservation[],
  existing: readonly NamedReservation[],
  { now, prune = false, earliest = false, move = false }: ComparingOptions,
): PlannedChange[] {
  const isLive = ({ reservation }: NamedReservation): boolean => periodOf(reservation).end > now;
  const byName = Map.groupBy(existing, ({ name }) => name);
  const moved: string[] = [];
  const changes = wanted.map((one): PlannedChange => {
    const { name, length: _length, place, ...asked } = one;
    const candidates = byName.get(name) ?? [];
    const live = candidates.find(isLive)?.reservation;
    if (!live) {
      const ended = candidates.find(({ reservation }) => wasMet(one, reservation));
      const found = { name, wanted: one, request: { ...asked, name } };
      if (ended) return { action: 'none', ...found, current: ended.reservation };
      return { action: 'create', ...found, current: null };
    }
    if (!sameSites(one, live)) {
      moved.push(
        `${place}: ${name} is between ${live.site1} and ${live.site2}, and the file says ${one.site1} and ${one.site2}.`,
      );
    }
    const fault = routeFault(live, one);
    if (fault)
      moved.push(`${place}: ${name} takes another route than the file says. ${routeFaultText(fault)}`);
    const keptAt = move ? undefined : keptStart(one, live, earliest);
    const request = requestTo(one, live, keptAt);
    const found = { name, wanted: one, current: live, keptAt };
    if (!isMetBy(request, live)) return { action: 'update', ...found, request };
    return { action: 'none', ...found, request: { ...asked, name } };
  });
  if (moved.length > 0) throw sitesChanged(moved);
  const kept = new Set(wanted.map(({ name }) => name));
  const others = prune ? existing.filter((one) => !kept.has(one.name) && isLive(one)) : [];
  for (const { name, reservation } of others)
    changes.push({ action: 'delete', name, current: reservation, request: null });
  const count = changes.filter(({ action }) => action !== 'none').length;
  if (count <= MAX_ITEMS) return changes;
  throw new Failure('usage', `The file needs ${count} changes, and ${MAX_ITEMS} can be made together.`, {
    why: 'Split it into several files; without --prune they do not touch each other.',
  });
}

/**
 * The start of a reservation that is later than the file says and has the file's length, as after `--earliest`; else undefined.
 *
 * @param anyLength it may also be longer or shorter than the file says
 */
function keptStart(wanted: WantedReservation, current: Reservation, anyLength = false): number | undefined {
  const { start, end } = periodOf(current);
  const isLater = wanted.start !== 'now' && start > wanted.start;
  return isLater && (anyLength || end - start === wanted.length) ? start : undefined;
}

/** The request that makes a reservation as the file says. Members that are right already stay. @param keptAt see {@link PlannedChange} */
function requestTo(
  wanted: WantedReservation,
  current: Reservation,
  keptAt: number | undefined,
): ReservationRequest {
  const { bandwidth, start, end, length } = wanted;
  const before = { ...asRequest(current), ...textsOf(wanted) };
  if (keptAt !== undefined) return { ...before, bandwidth, start: keptAt, end: keptAt + length };
  if (start !== 'now') return { ...before, bandwidth, start, end };
  const isMet = Math.abs(before.end - before.start - length) <= LOOSE;
  return { ...before, bandwidth, end: isMet ? before.end : before.start + length };
}

/** Whether an update by this request would change nothing. */
function isMetBy(request: ReservationRequest, current: Reservation): boolean {
  const before = asRequest(current);
  const compared = ['bandwidth', 'start', 'end', ...PLAN_TEXTS] as const;
  return compared.every((member) => request[member] === before[member]);
}

/** Whether a reservation that has ended was as the file says, or later. A reservation of the file that starts now is created anew. */
function wasMet(wanted: WantedReservation, ended: Reservation): boolean {
  if (wanted.start === 'now' || !sameSites(wanted, ended) || routeFault(ended, wanted)) return false;
  return isMetBy(requestTo(wanted, ended, keptStart(wanted, ended)), ended);
}

/** A link has no direction (contract/README.md, "The link's direction"). */
function sameSites(
  { site1, site2 }: Pick<Reservation, 'site1' | 'site2'>,
  other: Pick<Reservation, 'site1' | 'site2'>,
): boolean {
  return (site1 === other.site1 && site2 === other.site2) || (site1 === other.site2 && site2 === other.site1);
}

function sitesChanged(moved: readonly string[]): Failure {
  const [first = '', another] = moved;
  const why =
    "A reservation's sites and route can't change. Look at the spelling; for another link or route, give it another name.";
  if (another === undefined) return new Failure('usage', first, { why });
  const what = 'reservations are between other sites, or take other routes, than the file says.';
  return new Failure('usage', `${moved.length} ${what}`, { why, lines: moved });
}
