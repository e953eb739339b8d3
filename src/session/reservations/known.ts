import { Failure } from '../../contract/failure.ts';
import type { Period } from '../../contract/instants.ts';
import { asRequest, type ReservationRequest } from '../../contract/reservation-request.ts';
import { byStart, type JoinedList, joinLedger, type ListedReservation } from './joined-list.ts';
import type { Ledger } from './ledger.ts';

/** A reservation with an id that the service's list or the ledger knows. */
export type KnownReservation = ListedReservation & { id: string };

/** Where {@link reservationsWith} looks. */
interface KnownOptions {
  ledger: () => Promise<Ledger>;
  /** The list of the experiment that the command acts in. */
  list: (filter: { current: boolean }) => Promise<JoinedList>;
  /** Acts in the experiment of a reservation that the ledger knows. */
  actFor: (id: string) => Promise<void>;
  /** The experiment that the person has chosen, by its id; undefined where none is chosen. */
  chosen: () => Promise<string | undefined>;
  /** Milliseconds. */
  now: () => number;
}

/**
 * The reservations that have a name, else those whose id ends in the text, else those that have it in the last section of their
 * id (cli/README.md, "Commands"): of the service's list, and of all that this machine asked the service for. Past ones count only where no other fits, so that
 * the short ids of a list stay good, and a name can be given again. Where the person has chosen an experiment, names are
 * those of its reservations.
 *
 * @throws Failure when the service's list can't be fetched, unless the ledger knows a reservation that fits
 */
export async function reservationsWith(word: string, options: KnownOptions): Promise<KnownReservation[]> {
  const current = (await found(word, options, true)).filter(isCurrent);
  const fitting = current.length > 0 ? current : await found(word, options, false);
  const named = fitting.filter((item) => nameOf(item) === word);
  const ending = fitting.filter(({ id }) => id.toLowerCase().endsWith(word.toLowerCase()));
  return [named, ending].find(({ length }) => length > 0) ?? fitting;
}

/** Whether a reservation has neither ended nor was deleted, as far as it is known. */
export function isCurrent({ state }: Pick<ListedReservation, 'state'>): boolean {
  return state !== 'ended' && state !== 'deleted';
}

async function found(
  word: string,
  { ledger, list, actFor, chosen, now }: KnownOptions,
  current: boolean,
): Promise<KnownReservation[]> {
  const fits = (item: ListedReservation): item is KnownReservation =>
    item.id !== null && (nameOf(item) === word || hasPart(item.id, word));
  // An unusable ledger is reported later, when the command writes to it.
  const entries = await ledger()
    .then((opened) => opened.containing(word, current ? now() : undefined))
    .catch(() => []);
  const fitting = joinLedger(undefined, entries, now()).items.filter(fits);
  const isNamed = fitting.some((item) => nameOf(item) === word);
  const experiment = isNamed ? await chosen() : undefined;
  const own = fitting.filter(
    (item) => experiment === undefined || nameOf(item) !== word || item.entry?.experiment === experiment,
  );
  const [first] = own;
  // Of several experiments, no list would leave one.
  if (new Set(own.map(({ entry }) => entry?.experiment)).size > 1) return own;
  if (first) await actFor(first.id);
  const { items } = await list({ current }).catch((error: unknown) => {
    if (first && error instanceof Failure) return { items: [] };
    throw error;
  });
  // What the service says of a reservation goes before what the ledger knew.
  const known = new Map<string, KnownReservation>();
  for (const item of [...own, ...items]) if (fits(item)) known.set(item.id, item);
  return [...known.values()].toSorted(byStart);
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
 * {@link reservationsWith} finds it. An id without such an ending keeps its whole form.
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
function hasPart(id: string, part: string): boolean {
  return part.length >= SHORTEST && lastSection(id).toLowerCase().includes(part.toLowerCase());
}

function lastSection(id: string): string {
  return id.split('_').slice(2).join('_');
}
