import { isGone } from '../../contract/failure.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { instant, sentence } from '../../contract/said.ts';
import type { Session } from '../../session/session.ts';
import { againCommand } from './alternatives.ts';

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
