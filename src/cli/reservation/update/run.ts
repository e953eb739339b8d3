import { claimedExperimentExpiry } from '../../../client/claimed.ts';
import { periodOf, type ReservationChange } from '../../../client/reservation-request.ts';
import { Failure, shellWord } from '../../../contract/failure.ts';
import type { Invocation } from '../../invocation.ts';
import {
  checkPeriodChange,
  type PeriodChangeFlags,
  periodToSend,
  readPeriodChange,
  shortfall,
} from '../../period.ts';
import { reservationCard, reservationResult } from '../../print/cards.ts';
import { parseBandwidth } from '../../values.ts';
import { updateAdvisor } from '../alternatives.ts';
import { reservationArgument } from '../reservation-argument.ts';

/** The flags of the command, as typed. */
export interface UpdateFlags extends PeriodChangeFlags {
  bandwidth?: string;
  allowUnsigned?: boolean;
}

/** Changes a reservation, all or nothing. */
export async function update(
  invocation: Invocation,
  [typed]: readonly string[],
  flags: UpdateFlags,
): Promise<void> {
  const { bandwidth, start, end, for: lasting, extend, allowUnsigned = false } = flags;
  if ([bandwidth, start, end, lasting, extend].every((flag) => flag === undefined)) {
    throw new Failure('usage', 'The change is missing.', {
      why: 'Give --bandwidth, --start, --end, --for or --extend.',
      fix:
        typed === undefined
          ? 'slices-conn update --help'
          : `slices-conn update ${shellWord(typed)} --extend 1h`,
    });
  }
  const rate = bandwidth === undefined ? {} : { bandwidth: parseBandwidth(bandwidth) };
  await checkPeriodChange(flags, await invocation.times());
  const { session, id } = await reservationArgument(invocation, typed, 'update');
  const { reservations } = session;
  const current = await reservations.show(id, { allowUnsigned });
  const asked = await readPeriodChange(flags, periodOf(current.reservation), await invocation.times());
  const experiment = await session.access();
  const expiry = claimedExperimentExpiry(experiment.token.reveal());
  const period = periodToSend(asked, invocation.now(), expiry);
  const change: ReservationChange = { ...rate, ...period };
  const proven = await reservations
    .update(current.reservation, change, { allowUnsigned })
    .catch(updateAdvisor(id, periodOf(current.reservation).start, flags));
  const times = await invocation.times();
  await invocation.output.result(reservationResult(proven), (print) =>
    reservationCard(print, 'Updated', proven, { times, experiment }),
  );
  const warning = shortfall(periodOf(proven.reservation), asked.lasting);
  if (warning !== undefined) invocation.output.notice(warning);
}
