import { Failure, shellWord } from '../../../contract/failure.ts';
import { asRequest, periodOf, type ReservationRequest } from '../../../contract/reservation-request.ts';
import { type ReservationTexts, textsOf } from '../../../contract/reservation-texts.ts';
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
export interface UpdateFlags extends PeriodChangeFlags, ReservationTexts {
  bandwidth?: string;
  allowUnsigned?: boolean;
}

/** Changes a reservation, all or nothing. */
export async function update(
  given: Invocation,
  [typed]: readonly string[],
  flags: UpdateFlags,
): Promise<void> {
  const { bandwidth, allowUnsigned = false } = flags;
  const texts = textsOf(flags);
  const changes = [bandwidth, flags.start, flags.end, flags.for, flags.extend, ...Object.values(texts)];
  if (changes.every((flag) => flag === undefined)) {
    throw new Failure('usage', 'The change is missing.', {
      why: 'Give --bandwidth, --start, --end, --for, --extend or --description.',
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
  const before = asRequest(current.reservation);
  const period = periodToSend(asked, invocation.now(), expiry);
  const { start = before.start, end = before.end } = period;
  await send({ ...before, ...rate, ...texts, start, end }, asked.lasting);

  async function send(request: ReservationRequest, due?: number): Promise<void> {
    const [proven] = await reservations
      .change([{ action: 'update', id, request }], { allowUnsigned })
      .catch((error: unknown) => {
        throw refusalOf(error, {
          request,
          typed: invocation.typed,
          flags,
          update: {
            id,
            start: before.start,
            end: before.end,
            asksForStart: period.start !== undefined,
            isNamed: typed !== undefined,
          },
          now: invocation.now(),
          send,
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
