import type { ConnectivityClient } from '../../client/connectivity.ts';
import { differenceFrom } from '../../client/proof.ts';
import { MINUTE } from '../../contract/durations.ts';
import { Failure, failureOrThrow, isGone } from '../../contract/failure.ts';
import { idKind } from '../../contract/fields.ts';
import type { ReservationState } from '../../contract/instants.ts';
import type { Reservation } from '../../contract/reservation.ts';
import {
  instantOf,
  periodOf,
  type ReservationRequest,
  reservationState,
} from '../../contract/reservation-request.ts';
import type { Ledger, LedgerEntry } from './ledger.ts';

/** Reservations as the service and this machine know them together. */
export interface JoinedList {
  items: ListedReservation[];
  /** Whether the service has a list; without one, it is asked for each reservation that the ledger has. */
  hasList: boolean;
  /** Without a list: why the service could not be asked, by the ids of the reservations. They are as the ledger has them. */
  unasked: ReadonlyMap<string, Failure>;
}

/** Works with the ledger; undefined where the ledger can't be used, after a warning. */
export type LedgerWork = <Answer>(work: (ledger: Ledger) => Promise<Answer>) => Promise<Answer | undefined>;

/** The needs of {@link listJoined}. */
interface ListingOptions {
  connectivity: ConnectivityClient;
  /** The id of the experiment. */
  experiment: string;
  /** The id of the user, where it is known. */
  user: string | undefined;
  record: LedgerWork;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/**
 * An experiment's reservations: the service's list, where it has one, joined with the ledger. The ledger is updated from
 * the list.
 *
 * @param current leaves out reservations that are known to have ended or to be deleted, and does not read them
 *   (THREATS.md 66)
 * @throws Failure when the service's list can't be fetched
 */
export async function listJoined(options: ListingOptions, current: boolean): Promise<JoinedList> {
  const { connectivity, experiment, record } = options;
  const short = current ? await currentJoined(options) : undefined;
  if (short) return short;
  // Read before the list: a reservation that is booked in between must not seem to be missing from the list.
  const entries = (await record((ledger) => ledger.entries({ experiment }))) ?? [];
  const service = await connectivity.list();
  return service ? join(options, service, entries) : askedEach(options, entries);
}

/** How many reservations are asked for at the same time. */
const AT_ONCE = 8;

/** The ledger's reservations, as the service has each of them that may have a future. */
async function askedEach(
  { connectivity, record, now }: ListingOptions,
  entries: readonly LedgerEntry[],
): Promise<JoinedList> {
  const known = new Map<LedgerEntry, LedgerEntry>();
  const unasked = new Map<string, Failure>();
  const left = entries
    .filter((entry) => entry.outcome !== 'deleted' && ledgerState(entry, now()) !== 'ended')
    .values();
  const askInTurn = async (): Promise<void> => {
    for (const entry of left) {
      const { id } = entry;
      if (id === undefined) continue;
      const found = await connectivity.show(id, { allowUnsigned: true }).catch(failureOrThrow);
      if (!(found instanceof Failure)) {
        known.set(entry, { ...entry, outcome: 'booked', pending: null, reservation: found.reservation });
        await record((ledger) => ledger.observed(found));
      } else if (isGone(found)) {
        known.set(entry, { ...entry, outcome: 'deleted' });
        await record((ledger) => ledger.deleted(id));
      } else unasked.set(id, found);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, askInTurn));
  const { items } = joinLedger(
    undefined,
    entries.map((entry) => known.get(entry) ?? entry),
    now(),
  );
  const asked = new Set([...known.values()].map(({ id }) => id));
  return {
    items: items.map((item) =>
      item.id !== null && asked.has(item.id) ? { ...item, source: 'service' } : item,
    ),
    hasList: false,
    unasked,
  };
}

/**
 * The service's reservations that have not ended, by their ids.
 *
 * @returns undefined where the service has no list
 * @throws Failure when it can't be fetched
 */
async function listCurrent(connectivity: ConnectivityClient): Promise<Map<string, Reservation> | undefined> {
  const scheduled = await connectivity.list('scheduled');
  if (!scheduled) return undefined;
  // A reservation that starts between the two requests is in both lists.
  const active = (await connectivity.list('active')) ?? [];
  return new Map([...scheduled, ...active].map((reservation) => [reservation.id, reservation]));
}

/** The list without past reservations; undefined where the outcome of an attempt shows only in the whole list. */
async function currentJoined(options: ListingOptions): Promise<JoinedList | undefined> {
  const { connectivity, experiment, record, now } = options;
  const entries = (await record((ledger) => ledger.entries({ experiment, now: now() }))) ?? [];
  const service = await listCurrent(connectivity);
  if (!service) return askedEach(options, entries);
  if (!entries.every(({ id }) => id !== undefined && service.has(id))) return undefined;
  const known = new Set(entries.map(({ id }) => id));
  const others = [...service.keys()].filter((id) => !known.has(id));
  // In the ledger a reservation may have ended that another user has extended.
  const past = (await record((ledger) => Promise.all(others.map((id) => ledger.about(id))))) ?? [];
  const own = past.filter((entry) => entry !== undefined);
  return join(options, [...service.values()], [...entries, ...own]);
}

async function join(
  { record, now, user }: ListingOptions,
  service: readonly Reservation[],
  entries: readonly LedgerEntry[],
): Promise<JoinedList> {
  const { items, settlements } = joinLedger(service, entries, now(), user);
  for (const settlement of settlements) await record((ledger) => settle(ledger, settlement));
  return { items, hasList: true, unasked: new Map() };
}

async function settle(ledger: Ledger, { entry, reservation }: Settlement): Promise<void> {
  if (reservation && entry.id === undefined) await ledger.booked(entry, { reservation, token: null });
  else if (reservation) await ledger.observed({ reservation, token: null });
  else if (entry.id !== undefined) await ledger.deleted(entry.id);
  else await ledger.refused(entry);
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
interface Settlement {
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

function ledgerState({ outcome, reservation }: LedgerEntry, now: number): ListedReservation['state'] {
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
