import { differenceFrom } from '../../client/proof.ts';
import { MINUTE } from '../../contract/durations.ts';
import type { Failure } from '../../contract/failure.ts';
import { idKind } from '../../contract/fields.ts';
import type { ReservationState } from '../../contract/instants.ts';
import type { Reservation } from '../../contract/reservation.ts';
import {
  instantOf,
  periodOf,
  type ReservationRequest,
  reservationState,
} from '../../contract/reservation-request.ts';
import type { LedgerEntry } from './ledger.ts';

/** Reservations as the service and this machine know them together. */
export interface JoinedList {
  items: ListedReservation[];
  /** Whether the service has a list; without one, it is asked for each reservation that the ledger has. */
  hasList: boolean;
  /** Without a list: why the service could not be asked, by the ids of the reservations. They are as the ledger has them. */
  unasked: ReadonlyMap<string, Failure>;
}

/** A reservation in a list: as the service knows it, as this machine does, or both (cli/README.md, "Output", list items). */
export interface ListedReservation {
  /** Null where no answer about it is known. */
  id: string | null;
  reservation: Reservation | null;
  state: ReservationState | 'deleted' | 'unknown';
  source: 'service' | 'ledger';
  requested: ReservationRequest | null;
  /** Its entry in the ledger, where this machine asked for it. */
  entry: LedgerEntry | undefined;
}

/** The outcome of an attempt, as a list shows it; to be written into the ledger. */
export interface Settlement {
  entry: LedgerEntry;
  /** The reservation that the attempt turned out to have made; null: it is gone, or never was. */
  reservation: Reservation | null;
}

/** An attempt may still arrive at the service this long after it was sent: 10 min, in milliseconds. */
export const ARRIVAL_LIMIT_MS = 10 * MINUTE;
/** The service's clock may be this far from this machine's where an attempt's reservation is looked for: 5 min, in milliseconds. */
const CLOCK_TOLERANCE_MS = 5 * MINUTE;

/**
 * Joins the service's list with what this machine asked for.
 *
 * | the ledger says | the service's list | state |
 * |---|---|---|
 * | booked, or unknown with an id | has it | by the clock |
 * | booked, or unknown with an id | lacks it | `deleted` |
 * | unknown without an id | has one that fits and has no other entry | by the clock |
 * | unknown without an id | has none that fits | `unknown` for ten minutes, then not listed: it was never made |
 * | booked | there is no list | by the clock |
 * | unknown | there is no list | `unknown` |
 *
 * @param service the experiment's reservations; undefined where the service has no list
 * @param entries the ledger's, read before the list was asked for, oldest first
 * @param now milliseconds
 * @param user whose attempts they are, where that is known: another user's reservation fits none
 * @returns `items` in the order of {@link byStart}
 */
export function joinLedger(
  service: readonly Reservation[] | undefined,
  entries: readonly LedgerEntry[],
  now: number,
  user?: string,
): { items: ListedReservation[]; settlements: Settlement[] } {
  const unclaimed = new Map((service ?? []).map((reservation) => [reservation.id, reservation]));
  const entryOf = new Map<string, LedgerEntry>();
  for (const entry of entries) if (entry.id !== undefined) entryOf.set(entry.id, entry);
  for (const id of entryOf.keys()) unclaimed.delete(id);

  const settlements: Settlement[] = [];
  const fromLedger: ListedReservation[] = [];
  const listed = new Set((service ?? []).map(({ id }) => id));
  for (const entry of entries) {
    if (entry.outcome === 'refused' || (entry.id !== undefined && listed.has(entry.id))) continue;
    const found =
      entry.id === undefined && service ? fitting(entry, [...unclaimed.values()], user) : undefined;
    if (found) {
      unclaimed.delete(found.id);
      entryOf.set(found.id, entry);
      settlements.push({ entry, reservation: found });
      continue;
    }
    const isOver = service !== undefined && now - entry.askedAt > ARRIVAL_LIMIT_MS;
    const isGone = service !== undefined && entry.id !== undefined && entry.outcome !== 'deleted';
    if (isGone || (entry.id === undefined && isOver)) settlements.push({ entry, reservation: null });
    if (entry.id === undefined && isOver) continue;
    fromLedger.push({
      id: entry.id ?? null,
      reservation: entry.reservation ?? null,
      state: isGone ? 'deleted' : ledgerState(entry, now),
      source: 'ledger',
      requested: entry.pending ?? entry.requested,
      entry,
    });
  }
  const fromService = (service ?? []).map((reservation): ListedReservation => {
    const entry = entryOf.get(reservation.id);
    const isNews = entry && entry.outcome !== 'booked' && !settlements.some((known) => known.entry === entry);
    if (isNews) settlements.push({ entry, reservation });
    return {
      id: reservation.id,
      reservation,
      state: reservationState(reservation, now),
      source: 'service',
      requested: entry?.requested ?? null,
      entry,
    };
  });
  return { items: [...fromService, ...fromLedger].toSorted(byStart), settlements };
}

/**
 * The order of every list of reservations, for people and for programs: the first to start first, last those whose
 * start is not known.
 */
export function byStart(one: ListedReservation, other: ListedReservation): number {
  return startOf(one) - startOf(other);
}

function startOf({ reservation, requested }: ListedReservation): number {
  const start = reservation ? periodOf(reservation).start : requested?.start;
  return start === undefined || start === 'now' ? Number.MAX_SAFE_INTEGER : start;
}

/** The state of a reservation as the ledger has it. @param now milliseconds */
export function ledgerState({ outcome, reservation }: LedgerEntry, now: number): ListedReservation['state'] {
  if (outcome === 'deleted') return 'deleted';
  return outcome === 'booked' && reservation ? reservationState(reservation, now) : 'unknown';
}

/** The oldest reservation that an attempt may have made. */
function fitting(
  { requested, beganAt }: LedgerEntry,
  candidates: readonly Reservation[],
  user: string | undefined,
): Reservation | undefined {
  if (!requested) return undefined;
  // A service may name the user by something else than an id, which can't be compared.
  const isOthers = ({ created_by: by }: Reservation): boolean =>
    user !== undefined && by !== user && idKind(by) === 'user';
  return candidates
    .filter((candidate) => !isOthers(candidate))
    .filter((candidate) => {
      const created = instantOf(candidate.created_at);
      const now = { from: created - CLOCK_TOLERANCE_MS, to: created + CLOCK_TOLERANCE_MS };
      // A batch may have moved it: then its name says that it is the one.
      const isNamed = requested.name !== undefined && candidate.name === requested.name;
      const request = isNamed ? { ...requested, ...periodOf(candidate) } : requested;
      return (
        created >= beganAt - CLOCK_TOLERANCE_MS &&
        created <= beganAt + ARRIVAL_LIMIT_MS + CLOCK_TOLERANCE_MS &&
        differenceFrom(candidate, { request, now }) === undefined
      );
    })
    .toSorted((one, other) => instantOf(one.created_at) - instantOf(other.created_at))[0];
}
