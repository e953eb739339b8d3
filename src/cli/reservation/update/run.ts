import { Failure, shellWord } from '../../../contract/failure.ts';
import type { Reservation } from '../../../contract/reservation.ts';
import {
  periodOf,
  type ReservationChange,
  type ReservationRequest,
  updated,
} from '../../../contract/reservation-request.ts';
import { claimedExperimentExpiry } from '../../../tokens/claimed.ts';
import type { Invocation } from '../../invocation.ts';
import {
  checkPeriodChange,
  onServiceTime,
  type PeriodChangeFlags,
  periodToSend,
  readPeriodChange,
  shortfall,
} from '../../period.ts';
import { reservationCard, reservationResult } from '../../print/cards.ts';
import { parseBandwidth } from '../../values.ts';
import { refusalOf } from '../alternatives.ts';
import { reservationArgument } from '../reservation-argument.ts';

/** The flags of the command, as typed. */
export interface UpdateFlags extends PeriodChangeFlags {
  bandwidth?: string;
  allowUnsigned?: boolean;
}

/** Changes a reservation, all or nothing. */
export async function update(
  given: Invocation,
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
  await checkPeriodChange(flags, await given.times());
  const { session, id } = await reservationArgument(given, typed, 'update');
  const invocation = await onServiceTime(given, session);
  const { reservations } = session;
  const current = await reservations.show(id, { allowUnsigned });
  const asked = await readPeriodChange(flags, periodOf(current.reservation), await invocation.times());
  const experiment = await session.access();
  const expiry = claimedExperimentExpiry(experiment.token.reveal());
  const period = periodToSend(asked, invocation.now(), expiry);
  const change: ReservationChange = { ...rate, ...period };
  await send(change, asked.lasting);

  async function send(wanted: ReservationChange, due?: number): Promise<void> {
    const proven = await reservations
      .update(current.reservation, wanted, { allowUnsigned })
      .catch((error: unknown) => {
        throw refusalOf(error, {
          request: updated(current.reservation, wanted),
          typed: invocation.typed,
          flags,
          update: {
            id,
            ...periodOf(current.reservation),
            asksForStart: change.start !== undefined,
            isNamed: typed !== undefined,
          },
          now: invocation.now(),
          send: (picked) => send(changeTo(picked, current.reservation)),
        });
      });
    const times = await invocation.times();
    await invocation.output.result(reservationResult(proven), (print) =>
      reservationCard(print, 'Updated', proven, { times, experiment }),
    );
    const warning = shortfall(periodOf(proven.reservation), due);
    if (warning !== undefined) invocation.output.notice(warning);
  }
}

/** What a wanted reservation changes. A start that has passed can't be sent again as a change. */
function changeTo({ bandwidth, start, end }: ReservationRequest, current: Reservation): ReservationChange {
  const isMoved = start !== periodOf(current).start;
  return { bandwidth, ...(isMoved ? { start } : {}), end };
}
