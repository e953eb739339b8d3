import type { ProvenReservation } from '../../client/proof.ts';
import { formatBandwidth } from '../../contract/amounts.ts';
import { Failure, ownCommand, undefinedIfGone } from '../../contract/failure.ts';
import { eventsBetween, nextTurn, type PhaseEvent, phaseAt } from '../../contract/instants.ts';
import type { Reservation, ReservationEvent } from '../../contract/reservation.ts';
import { instantOf, periodOf, reservationState } from '../../contract/reservation-request.ts';
import { inOneText, instant, sentence } from '../../contract/said.ts';
import { isCurrent } from '../../session/reservations/known.ts';
import type { Session } from '../../session/session.ts';
import type { Context } from '../context.ts';
import { EXIT_CODE_OF } from '../exit-codes.ts';
import { shortTime } from '../times.ts';
import { toldOfGone } from './again.ts';

/** The watched reservations as the service knew them at one time. */
export interface Look {
  /** When, in milliseconds. */
  at: number;
  /** All that exist, ended ones too. */
  reservations: readonly Reservation[];
}

/** An event of a watched reservation (cli/README.md, "Output"). */
export type WatchEvent = PhaseEvent | 'updated' | 'deleted';

/** Something that happened to a reservation between two looks. */
export interface SeenChange {
  event: WatchEvent;
  /** When it was seen, in milliseconds. */
  at: number;
  /** As it is now; a deleted one as it was last seen. */
  reservation: Reservation;
  /** Of an update: as it was before. */
  before?: Reservation;
}

/** The tags of a reservation, as a card names them. */
const TAGS = [
  ['site1_s_tag', 'site1', 'S-tag'],
  ['site1_c_tag', 'site1', 'C-tag'],
  ['site2_s_tag', 'site2', 'S-tag'],
  ['site2_c_tag', 'site2', 'C-tag'],
] as const;

/** The members that an update can change. */
const CHANGEABLE = ['bandwidth', 'start_date', 'end_date', ...TAGS.map(([tag]) => tag)] as const;

/**
 * The changes between two looks, by reservation in the order of their starts: first its update, then the
 * events of its period until now. A reservation that is first seen active is `started`, and `ended` where it
 * is first seen ended; where it is first seen scheduled there is no event. That a reservation ends soon is
 * left out where it has ended by now.
 *
 * @param previous undefined: nothing was seen before
 */
export function changesBetween(previous: Look | undefined, next: Look): SeenChange[] {
  const { at } = next;
  const before = new Map((previous?.reservations ?? []).map((one) => [one.id, one]));
  const now = new Map(next.reservations.map((one) => [one.id, one]));
  const gone = [...before.values()].filter(({ id }) => !now.has(id));
  return [...now.values(), ...gone]
    .toSorted((one, other) => instantOf(one.start_date) - instantOf(other.start_date))
    .flatMap((reservation): SeenChange[] => {
      const was = before.get(reservation.id);
      const phaseBefore = was && previous ? phaseAt(previous.at, periodOf(was)) : undefined;
      if (!now.has(reservation.id)) {
        // Services may forget what has ended.
        return phaseBefore === 'ended' ? [] : [{ event: 'deleted', at, reservation }];
      }
      const isUpdated = was && CHANGEABLE.some((member) => was[member] !== reservation[member]);
      const update: SeenChange[] = isUpdated ? [{ event: 'updated', at, reservation, before: was }] : [];
      const events = eventsBetween(phaseBefore, phaseAt(at, periodOf(reservation)));
      return [...update, ...events.map((event): SeenChange => ({ event, at, reservation }))];
    });
}

/** The watched reservations, and from when until when to look. */
interface Watched {
  session: Session;
  /** The only one that is watched. Default: all of the experiment. */
  id?: string | undefined;
  /** An earlier look. Default: none, and the first look tells. */
  last?: Look;
  /** When the last look is, in milliseconds since the Unix epoch. Default: there is none. */
  until?: number | undefined;
}

/**
 * The reservations as they are known after each change that the service tells, and whenever one is to start, to end soon or to
 * end, with what has happened since the look before. Where it does not tell, they are looked at every 15 s at least; at most 30 s are promised (cli/README.md, "Output").
 * One notice says that the service does not answer. The changes of that time are found when it answers again.
 *
 * @throws Failure any other; before the first look also where the service does not answer
 */
export async function* looks(
  { output, clock: { now, sleep } }: Context,
  { session, id, last: known, until = Number.POSITIVE_INFINITY }: Watched,
): AsyncGenerator<{ look: Look; changes: readonly SeenChange[] }, void> {
  const news = session.connectivity.news();
  let last = known;
  let isAway = false;
  let told: readonly ReservationEvent[] | undefined;
  const read = async (): Promise<Reservation[] | undefined> => {
    await news.mark();
    try {
      return id === undefined ? await readAll(session, last) : await readOne(session, id, last, now());
    } catch (error) {
      const isAnswered = !(error instanceof Failure) || EXIT_CODE_OF[error.code] !== EXIT_CODE_OF.network;
      if (!last || isAnswered) throw error;
      if (!isAway) output.notice(`${error.message} The service is asked again until it answers.`);
      isAway = true;
      return undefined;
    }
  };
  try {
    for (;;) {
      const own = told?.filter(({ reservation }) => id === undefined || reservation.id === id);
      const reservations = last && own ? changedBy(own, last) : await read();
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
  const known = new Map(unendedIn({ at, reservations }).map((one) => [one.id, one]));
  for (const { type, reservation } of told) {
    if (type === 'deleted') known.delete(reservation.id);
    else known.set(reservation.id, reservation);
  }
  return [...known.values()];
}

const unendedIn = ({ at, reservations }: Look): Reservation[] =>
  reservations.filter((one) => reservationState(one, at) !== 'ended');

/** Reads one reservation; none where it is gone. @throws Failure `not_found` unless it was there before */
async function readOne(
  session: Session,
  id: string,
  last: Look | undefined,
  now: number,
): Promise<Reservation[]> {
  try {
    return [(await session.reservations.show(id, { allowUnsigned: true })).reservation];
  } catch (error) {
    if (!last) throw await toldOfGone(error, session, id, now);
    undefinedIfGone(error);
    return [];
  }
}

/**
 * Reads the experiment's reservations that have not ended, and those of the look before that had not: of one
 * that is missing in the list, only the service can tell whether it has ended or was deleted.
 */
async function readAll({ reservations }: Session, last: Look | undefined): Promise<Reservation[]> {
  const { items, unasked } = await reservations.list({ current: true });
  for (const failure of unasked.values()) throw failure;
  const found = items
    .filter(isCurrent)
    .flatMap(({ source, reservation }) => (source === 'service' && reservation) || []);
  const ids = new Set(found.map(({ id }) => id));
  for (const { id } of last ? unendedIn(last) : []) {
    if (ids.has(id)) continue;
    const shown = await reservations.show(id, { allowUnsigned: true }).catch(undefinedIfGone);
    if (shown) found.push(shown.reservation);
  }
  return found;
}

/**
 * The changes of rate and tags, in words.
 *
 * @example ['1 Gbps → 2 Gbps', 'S-tag of be-gent1 5 → 6']
 */
export function rateAndTagChanges(before: Reservation, now: Reservation): string[] {
  const isOther = before.bandwidth !== now.bandwidth;
  return [
    ...(isOther ? [`${formatBandwidth(before.bandwidth)} → ${formatBandwidth(now.bandwidth)}`] : []),
    ...TAGS.flatMap(([tag, site, name]) =>
      before[tag] === now[tag] ? [] : [`${name} of ${now[site]} ${before[tag]} → ${now[tag]}`],
    ),
  ];
}

/** The needs of {@link waitForStart}. */
interface Waiting {
  context: Context;
  session: Session;
  /** `--wait`: how long to wait at most, in seconds; true: as long as it takes. */
  wait: number | true;
  /** Whether an unsigned answer is accepted. */
  allowUnsigned: boolean;
}

/**
 * Waits until a booked link has started (cli/README.md, "Output", `reserve --wait`). Whatever ends the wait,
 * the link stays booked, and the failure names the reservation.
 *
 * @returns the reservation as it is then: others may have changed it meanwhile
 * @throws Failure `start_pending` when the seconds are over, `not_found` when the reservation is gone
 */
export async function waitForStart(booked: ProvenReservation, waiting: Waiting): Promise<ProvenReservation> {
  const { context, session, wait, allowUnsigned } = waiting;
  const { clock, output, processes } = context;
  const { id } = booked.reservation;
  const began = clock.now();
  const stays = { why: 'The link is booked, and stays so.', reservation: id };
  if (reservationState(booked.reservation, began) !== 'scheduled') return booked;
  processes.ifStopped({ ...stays, fix: ownCommand('watch', id) });
  const times = await clock.times();
  const at = shortTime(periodOf(booked.reservation).start, times);
  const until = wait === true ? undefined : began + wait * 1000;
  return output.waitFor(`the link to start at ${at} ${times.zone}`, async () => {
    let { reservation } = booked;
    const last = { at: began, reservations: [reservation] };
    try {
      for await (const { look, changes } of looks(context, { session, id, last, until })) {
        const [seen] = look.reservations;
        if (!seen) throw new Failure('not_found', 'The reservation was deleted before it started.');
        reservation = seen;
        if (changes.every(({ event }) => event === 'updated')) continue;
        const isSame = JSON.stringify(seen) === JSON.stringify(booked.reservation);
        return isSame ? booked : await session.reservations.show(id, { allowUnsigned });
      }
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const booked = error.code === 'not_found' ? undefined : 'The link is booked.';
      throw error.with({ reservation: id, why: inOneText(booked, error.facts.why) });
    }
    throw new Failure('start_pending', `The link has not started within ${wait} s.`, {
      why: sentence`It is booked, and starts at ${instant(periodOf(reservation).start)}.`,
      reservation: id,
      fix: ownCommand('watch', id),
    });
  });
}
