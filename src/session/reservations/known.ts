import type { Period } from '../../contract/instants.ts';
import { asRequest, type ReservationRequest } from '../../contract/reservation-request.ts';
import type { ListedReservation } from './joined-list.ts';

/** A reservation with an id that the service's list or the ledger knows. */
export type KnownReservation = ListedReservation & { id: string };

/** Whether a reservation has neither ended nor was deleted, as far as it is known. */
export function isCurrent({ state }: Pick<ListedReservation, 'state'>): boolean {
  return state !== 'ended' && state !== 'deleted';
}

/** A listed reservation as a request: as the service says, else as this machine asked for it; undefined where neither is known. */
export function knownRequest({
  reservation,
  requested,
}: Pick<ListedReservation, 'reservation' | 'requested'>): ReservationRequest | undefined {
  return reservation ? asRequest(reservation) : (requested ?? undefined);
}

/**
 * The period of a listed reservation, in milliseconds; undefined where it is not known. A request for now began when it
 * was asked.
 */
export function knownPeriod(item: ListedReservation): Period | undefined {
  const known = knownRequest(item);
  const start = known?.start === 'now' ? item.entry?.beganAt : known?.start;
  return known && start !== undefined && known.end > start ? { start, end: known.end } : undefined;
}

/** The name of a reservation: as the service says, else as this machine asked for it; undefined where it has none. */
export function nameOf({
  reservation,
  requested,
  entry,
}: Pick<ListedReservation, 'reservation' | 'requested' | 'entry'>): string | undefined {
  // A change that is under way says nothing about the name.
  return reservation?.name ?? entry?.requested?.name ?? requested?.name;
}

/**
 * Whether this user created a reservation. Where the user or the reservation is not known: whether this machine asked for
 * it.
 *
 * @param user the user's id; undefined where the user token does not tell it
 */
export function isOwn(
  { reservation, entry }: Pick<ListedReservation, 'reservation' | 'entry'>,
  user: string | undefined,
): boolean {
  return reservation && user !== undefined ? reservation.created_by === user : entry?.requested != null;
}

/** The fewest characters of a short id (cli/README.md, "Commands"). */
const SHORTEST = 4;

/**
 * The short id of each reservation: the shortest ending that no other of these ids has in its last section, so that
 * `Session.reservationsWith` finds it. An id without such an ending keeps its whole form.
 */
export function shortIds(ids: readonly string[]): ReadonlyMap<string, string> {
  const short = new Map<string, string>();
  let open = ids.map((id) => ({ id, section: lastSection(id) }));
  const all = open;
  for (let length = SHORTEST; open.length > 0; length += 1) {
    const seen = new Map<string, number>();
    for (const { section } of all) {
      for (const part of new Set(partsOf(section, length))) seen.set(part, (seen.get(part) ?? 0) + 1);
    }
    open = open.filter(({ id, section }) => {
      const ending = section.slice(-length);
      if (section.length >= length && seen.get(ending) !== 1) return true;
      short.set(id, section.length >= length ? ending : id);
      return false;
    });
  }
  return short;
}

function partsOf(text: string, length: number): string[] {
  return Array.from({ length: Math.max(0, text.length - length + 1) }, (_, at) =>
    text.slice(at, at + length),
  );
}

/** Whether the last section of an id, after its host, has this text in any case, which is long enough to mean one. */
export function hasPart(id: string, part: string): boolean {
  return part.length >= SHORTEST && lastSection(id).toLowerCase().includes(part.toLowerCase());
}

function lastSection(id: string): string {
  return id.split('_').slice(2).join('_');
}
