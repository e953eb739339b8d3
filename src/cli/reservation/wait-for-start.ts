import type { ProvenReservation } from '../../client/proof.ts';
import { Failure, ownCommand } from '../../contract/failure.ts';
import { periodOf, reservationState } from '../../contract/reservation-request.ts';
import { inOneText, instant, sentence } from '../../contract/said.ts';
import type { Session } from '../../session/session.ts';
import type { Context } from '../context.ts';
import { shortTime } from '../times.ts';
import { looks } from './looks.ts';

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
