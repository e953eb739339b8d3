import { bandwidthWord } from '../../contract/amounts.ts';
import { durationWord, isoDuration, SECOND } from '../../contract/durations.ts';
import { isGone, ownCommand } from '../../contract/failure.ts';
import { type Reservation, textsOf } from '../../contract/reservation.ts';
import { asRequest, periodOf, type ReservationRequest } from '../../contract/reservation-request.ts';
import { instant, sentence } from '../../contract/said.ts';
import type { Session } from '../../session/session.ts';
import { timeWord } from './alternatives.ts';
import { routeWords } from './options.ts';

/** The command that makes a request. @param more further flags */
export function reserveText(request: ReservationRequest, ...more: readonly string[]): string {
  const { start, end, duration, volume } = request;
  const search =
    duration !== undefined
      ? ['--earliest', '--for', isoDuration(duration)]
      : volume !== undefined
        ? ['--volume', `${volume}B`]
        : [];
  const from = start === 'now' ? ['--start-now'] : ['--start', timeWord(start)];
  return reserveIn(request, [...from, '--end', timeWord(end), ...search], more);
}

/**
 * The command that books a reservation once more: in its own period, as far as that lies ahead. What has begun starts now, and
 * what is over lasts as long as it did. It has the same route: why that was asked for is not known any more.
 *
 * @param now milliseconds
 * @param more further flags
 */
function againCommand(reservation: Reservation, now: number, ...more: readonly string[]): string {
  const { start, end } = periodOf(reservation);
  const from = start > now ? ['--start', timeWord(start)] : ['--start-now'];
  const lasting = durationWord(Math.ceil((end - start) / SECOND) * SECOND) ?? '';
  const until = end > now ? ['--end', timeWord(end)] : ['--for', lasting];
  return reserveIn({ ...asRequest(reservation), via: reservation.via }, [...from, ...until], more);
}

function reserveIn(request: ReservationRequest, period: readonly string[], more: readonly string[]): string {
  const { site1, site2, bandwidth } = request;
  const route = routeWords(request);
  const rate = bandwidth === undefined ? [] : ['--bandwidth', bandwidthWord(bandwidth)];
  const texts = Object.entries(textsOf(request)).flatMap(([text, value]) => [`--${text}`, value]);
  return ownCommand('reserve', site1, site2, ...rate, ...period, ...route, ...texts, ...more);
}

/** The command that books a deleted reservation again, in its own experiment. @param now milliseconds */
export async function againIn(
  session: Session,
  experiment: string | undefined,
  reservation: Reservation,
  now: number,
): Promise<string> {
  const isKnown = experiment === undefined || (await session.isInUse(experiment));
  return againCommand(reservation, now, ...(isKnown ? [] : ['--experiment', experiment]));
}

/**
 * Says of a reservation that is gone what this machine knows: when it deleted it, and how to book it again; or that it was
 * deleted elsewhere, and since when. Any other error stays as it is.
 *
 * @param now milliseconds
 */
export async function toldOfGone(
  error: unknown,
  session: Session,
  id: string,
  now: number,
): Promise<unknown> {
  if (!isGone(error)) return error;
  const entry = await session.noted(id);
  if (entry?.outcome !== 'deleted') return error.with({ fix: 'slices-conn list --all' });
  const { asked, askedAt, experiment, reservation } = entry;
  if (asked === 'delete') {
    const why = sentence`This machine deleted it at ${instant(askedAt)}.`;
    return error.with({ why, fix: reservation && (await againIn(session, experiment, reservation, now)) });
  }
  const done = asked === 'reserve' ? 'booked' : 'updated';
  return error.with({
    fix: 'slices-conn list --all',
    why: sentence`This machine ${done} it at ${instant(askedAt)}, and did not delete it: somebody of the experiment did since, or an administrator of the service.`,
  });
}
