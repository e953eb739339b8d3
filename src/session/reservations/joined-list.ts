import type { ConnectivityClient } from '../../client/connectivity.ts';
import type { Reservation } from '../../contract/reservation.ts';
import type { Ledger, LedgerEntry } from './ledger.ts';
import { joinLedger, type ListedReservation, type Settlement } from './ledger-join.ts';

/** Reservations as the service and this machine know them together. */
export interface JoinedList {
  items: ListedReservation[];
  /** Whether the service has a list; without one, all is from the ledger. */
  hasList: boolean;
}

/** Works with the ledger; undefined where it can't be used, which was said then. */
export type LedgerWork = <Answer>(work: (ledger: Ledger) => Promise<Answer>) => Promise<Answer | undefined>;

/** What a list is made from. */
export interface ListingOptions {
  connectivity: ConnectivityClient;
  /** The id of the experiment. */
  experiment: string;
  record: LedgerWork;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/**
 * An experiment's reservations: the service's list, where it has one, joined with the ledger, which learns from it.
 *
 * @param current leaves out what has ended or was deleted, as far as that is known: however much that is, it costs
 *   nothing then (HOSTILE.md 66)
 * @throws Failure when the service's list can't be had
 */
export async function listJoined(options: ListingOptions, current: boolean): Promise<JoinedList> {
  const { connectivity, experiment, record } = options;
  const short = current ? await currentJoined(options) : undefined;
  if (short) return short;
  // Before the list: what is booked in between must not seem to be missing from it.
  const entries = (await record((ledger) => ledger.entries(experiment))) ?? [];
  return join(options, await connectivity.list(), entries);
}

/** The list without what is past; undefined where only the whole list says what became of an attempt. */
async function currentJoined(options: ListingOptions): Promise<JoinedList | undefined> {
  const { connectivity, experiment, record, now } = options;
  const entries = (await record((ledger) => ledger.entries(experiment, now()))) ?? [];
  const scheduled = await connectivity.list('scheduled');
  if (!scheduled) return join(options, undefined, entries);
  // What starts between the two requests is in both.
  const active = (await connectivity.list('active')) ?? [];
  const service = new Map([...scheduled, ...active].map((reservation) => [reservation.id, reservation]));
  if (!entries.every(({ id }) => id !== undefined && service.has(id))) return undefined;
  const known = new Set(entries.map(({ id }) => id));
  const others = [...service.keys()].filter((id) => !known.has(id));
  // The ledger may hold a reservation as ended that somebody else has extended.
  const past = (await record((ledger) => Promise.all(others.map((id) => ledger.about(id))))) ?? [];
  const own = past.filter((entry) => entry !== undefined);
  return join(options, [...service.values()], [...entries, ...own]);
}

async function join(
  { record, now }: ListingOptions,
  service: readonly Reservation[] | undefined,
  entries: readonly LedgerEntry[],
): Promise<JoinedList> {
  const { items, settlements } = joinLedger(service, entries, now());
  for (const settlement of settlements) await record((ledger) => settle(ledger, settlement));
  return { items, hasList: service !== undefined };
}

async function settle(ledger: Ledger, { entry, reservation }: Settlement): Promise<void> {
  if (reservation && entry.id === undefined) await ledger.booked(entry, { reservation, token: null });
  else if (reservation) await ledger.observed({ reservation, token: null });
  else if (entry.id !== undefined) await ledger.deleted(entry.id);
  else await ledger.refused(entry);
}
