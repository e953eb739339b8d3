import { askedRouteOf } from '../../contract/asked-route.ts';
import { formatDuration } from '../../contract/durations.ts';
import { Failure } from '../../contract/failure.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { periodOf, type ReservationRequest } from '../../contract/reservation-request.ts';
import type { Session } from '../../session/session.ts';
import type { Context } from '../context.ts';
import { folded } from '../print/folded.ts';
import type { CardLine } from '../print/output.ts';
import { confirmIfAsked } from '../questions.ts';
import { distanceIn, endAside, shortEnd, shortTime, type TimeContext } from '../times.ts';
import { formatBandwidth, formatVolume, withLastingVolume } from '../values.ts';

/** The result of a search, for its card: how far away the earliest start is; of a volume how long it takes, and its deadline. */
export function foundLines(
  { duration, volume, end: latest }: ReservationRequest,
  reservation: Reservation,
  times: TimeContext,
): CardLine[] {
  const { start, end } = periodOf(reservation);
  if (duration !== undefined) return [['found', `the earliest start: ${distanceIn(start, times)}`]];
  if (volume === undefined) return [];
  const deadline = `${shortTime(latest, times)} (${endAside(latest, distanceIn(latest, times), times)})`;
  return [
    ['found', `${formatVolume(volume)} in ${formatDuration(end - start)}`],
    ['deadline', deadline],
  ];
}

/**
 * Asks a person before a volume takes more than half of what is free: without `--bandwidth` it may use all of it. A
 * service that can't be asked beforehand answers the booking itself.
 *
 * @throws Declined when the answer is no
 */
export async function confirmRate(
  context: Context,
  { connectivity }: Session,
  request: ReservationRequest,
): Promise<void> {
  const { volume, bandwidth: limit, site1, site2 } = request;
  if (volume === undefined || limit !== undefined || !context.terminal.ask || context.flags.yes) return;
  try {
    const [{ reservation }] = await connectivity.change(
      [{ action: 'create', request: withLastingVolume(request) }],
      { dryRun: true },
    );
    const { start, end } = periodOf(reservation);
    const window = { site1, site2, ...askedRouteOf(request), start, end };
    const { items } = await connectivity.availability(window);
    const free = Math.min(...items.map(({ bandwidth }) => bandwidth));
    if (reservation.bandwidth <= free / 2) return;
    const times = await context.clock.times();
    const period = `from ${shortTime(start, times)} to ${shortEnd(start, end, times)} ${times.zone}`;
    const taken = `${formatVolume(volume)} would take ${formatBandwidth(reservation.bandwidth)} of the ${formatBandwidth(free)} that are free ${period}. --bandwidth is the most that it may use.`;
    for (const line of folded(taken, context.output.columns)) context.output.prompt(line);
  } catch (error) {
    const isHarmless = error instanceof Failure && !error.facts.maybeDone && !error.facts.reservation;
    if (!isHarmless) throw error;
    return;
  }
  await confirmIfAsked(context, 'Book that?', 'Nothing was booked.');
}
