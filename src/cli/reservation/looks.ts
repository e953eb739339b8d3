import type { News } from '../../client/events.ts';
import type { ReservationEvent } from '../../contract/events.ts';
import { Failure, isGone } from '../../contract/failure.ts';
import { nextTurn } from '../../contract/phases.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { periodOf, reservationState } from '../../contract/reservation-request.ts';
import { isCurrent } from '../../session/reservations/known.ts';
import type { Session } from '../../session/session.ts';
import type { Context } from '../context.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { toldOfGone } from './again.ts';
import { changesBetween, type Look, type SeenChange } from './changes.ts';

/** How the watched reservations are known. */
interface Reader {
  /** Reads them. @param last undefined at the first look */
  read: (last: Look | undefined) => Promise<readonly Reservation[]>;
  /** Tells what happens to them, and to others of the experiment. */
  news: News<ReservationEvent>;
  /** Whether a reservation is watched. */
  isWatched: (id: string) => boolean;
}

/** A look at the service, and what has happened since the one before. */
export interface Seen {
  look: Look;
  changes: readonly SeenChange[];
}

/** From when until when to look. */
interface Span {
  /** An earlier look. Default: none, and the first look tells. */
  last?: Look;
  /** When the last look is, in milliseconds since the Unix epoch. Default: there is none. */
  until?: number;
}

/**
 * The reservations as they are known after each change that the service tells, and whenever one is to start, to end soon or to
 * end. Where it does not tell, they are looked at every 15 s at least; at most 30 s are promised (cli/README.md, "Output").
 * That the service is away is said once, and what happened meanwhile is found when it is back.
 *
 * @throws Failure whatever else goes wrong; while nothing is known also that the service is away
 */
export async function* looks(
  { read, news, isWatched }: Reader,
  { output, clock: { now, sleep } }: Context,
  { last: known, until = Number.POSITIVE_INFINITY }: Span = {},
): AsyncGenerator<Seen, void> {
  let last = known;
  let isAway = false;
  let told: readonly ReservationEvent[] | undefined;
  try {
    for (;;) {
      let reservations: readonly Reservation[] | undefined;
      if (last && told)
        reservations = changedBy(
          told.filter(({ reservation }) => isWatched(reservation.id)),
          last,
        );
      else {
        await news.mark();
        reservations = await read(last).catch((error: unknown) => {
          const isAnswered = !(error instanceof Failure) || EXIT_CODE_OF[error.code] !== EXIT_CODE_OF.network;
          if (!last || isAnswered) throw error;
          if (!isAway) output.notice(`${error.message} The service is asked again until it answers.`);
          isAway = true;
          return undefined;
        });
      }
      const at = now();
      if (reservations) {
        if (isAway) output.notice('The service answers again.');
        isAway = false;
        const look: Look = { at, reservations };
        yield { look, changes: changesBetween(last, look) };
        last = look;
      }
      if (at >= until) return;
      // A turn that has passed while the service was away is found when it is back.
      const turn = last && !isAway ? nextTurn(last.at, last.reservations.map(periodOf)) : undefined;
      const pause = Math.max(0, Math.min(until - at, (turn ?? Number.POSITIVE_INFINITY) - now()));
      told = await news.wait(pause, sleep);
    }
  } finally {
    news.close();
  }
}

/** The reservations of a look after what was told since; without those that had ended. */
function changedBy(told: readonly ReservationEvent[], { at, reservations }: Look): Reservation[] {
  const unended = reservations.filter((one) => reservationState(one, at) !== 'ended');
  const known = new Map(unended.map((one) => [one.id, one]));
  for (const { type, reservation } of told) {
    if (type === 'deleted') known.delete(reservation.id);
    else known.set(reservation.id, reservation);
  }
  return [...known.values()];
}

/** Reads one reservation. @throws Failure `not_found` unless it was there before */
export function readerOf(session: Session, id: string, now: () => number): Reader {
  return {
    news: session.connectivity.news(),
    isWatched: (other) => other === id,
    read: async (last) => {
      const found = await read(session, id);
      if (!last && found instanceof Failure) throw await toldOfGone(found, session, id, now());
      return found instanceof Failure ? [] : [found];
    },
  };
}

/**
 * Reads the experiment's reservations that have not ended, and those of the look before that had not: of one
 * that is missing in the list, only the service can tell whether it has ended or was deleted.
 */
export function readerOfAll(session: Session): Reader {
  const readAll: Reader['read'] = async (last) => {
    const { items, unasked } = await session.reservations.list({ current: true });
    for (const failure of unasked.values()) throw failure;
    const listed = items
      .filter(isCurrent)
      .flatMap(({ source, reservation }) => (source === 'service' && reservation) || []);
    const ids = new Set(listed.map(({ id }) => id));
    const unended = (last?.reservations ?? [])
      .filter((one) => last && reservationState(one, last.at) !== 'ended')
      .map(({ id }) => id);
    const more: Reservation[] = [];
    for (const id of unended) {
      const found = ids.has(id) ? undefined : await read(session, id);
      if (found && !(found instanceof Failure)) more.push(found);
    }
    return [...listed, ...more];
  };
  return { news: session.connectivity.news(), isWatched: () => true, read: readAll };
}

/** A reservation, or the failure that says that there is none. @throws Failure any other */
async function read({ reservations }: Session, id: string): Promise<Reservation | Failure> {
  return reservations.show(id, { allowUnsigned: true }).then(
    ({ reservation }) => reservation,
    (error: unknown) => {
      if (isGone(error)) return error;
      throw error;
    },
  );
}
