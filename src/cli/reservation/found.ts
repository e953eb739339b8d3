import { askedRouteOf } from '../../contract/asked-route.ts';
import type { AvailablePart } from '../../contract/availability.ts';
import { formatDuration } from '../../contract/durations.ts';
import { Failure } from '../../contract/failure.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { periodOf, type ReservationRequest } from '../../contract/reservation-request.ts';
import type { Session } from '../../session/session.ts';
import type { Context } from '../context.ts';
import { folded } from '../print/folded.ts';
import type { CardLine } from '../print/output.ts';
import { confirmIfAsked } from '../questions.ts';
import { distanceIn, endAside, shortEnd, shortTime } from '../times.ts';
import { formatBandwidth, formatVolume, withLastingVolume } from '../values.ts';

/**
 * The result of a search, for its card: how far away the earliest start is; of a volume how long it takes, when it could be
 * done at best, and its deadline.
 *
 * @param state `isBooked`: the reservation uses the link already
 */
export async function foundLines(
  { context, session }: { context: Context; session: Session },
  request: ReservationRequest,
  reservation: Reservation,
  { isBooked }: { isBooked: boolean },
): Promise<CardLine[]> {
  const { duration, volume } = request;
  const { start, end } = periodOf(reservation);
  const times = await context.clock.times();
  if (duration !== undefined) return [['found', `the earliest start: ${distanceIn(start, times)}`]];
  if (volume === undefined || context.output.json) return [];
  const deadline = `${shortTime(request.end, times)} (${endAside(request.end, distanceIn(request.end, times), times)})`;
  const found: CardLine[] = [
    ['found', `${formatVolume(volume)} in ${formatDuration(end - start)}`],
    ['deadline', deadline],
  ];
  const { site1, site2 } = request;
  const route = askedRouteOf(request);
  const from = request.start === 'now' ? Math.min(times.now, start) : request.start;
  const parts = await session.connectivity
    .availability({ site1, site2, ...route, start: from, end })
    .then(({ items }) => items)
    .catch((error: unknown) => {
      // It is booked: what can't be said beside it is left out.
      if (error instanceof Failure) return [];
      throw error;
    });
  const own = isBooked ? { start, end, bandwidth: reservation.bandwidth } : undefined;
  const least = fluidEnd(parts, { volume, most: request.bandwidth, own });
  if (least === undefined) return found;
  const sooner = `${shortTime(least, times)}, with a rate that changes with what is free`;
  return [
    ...found,
    ['at best', end - least < 1000 ? 'not sooner, even with a rate that changes with what is free' : sooner],
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

/** A volume, and the rates that may move it: see {@link fluidEnd}. */
interface Flow {
  /** Bytes. */
  volume: number;
  /** Mbps that it may use at most; undefined: all that is free. */
  most: number | undefined;
  /** The part that the reservation itself has taken already, which counts as free: Mbps, milliseconds. */
  own: { start: number; end: number; bandwidth: number } | undefined;
}

/**
 * The fluid bound: when a volume could be carried at the earliest by a rate that is at each instant as much
 * as is free. No constant rate is sooner.
 *
 * @param parts exact steps, in order and without a gap
 * @returns milliseconds; undefined where the parts do not suffice
 */
export function fluidEnd(parts: readonly AvailablePart[], { volume, most, own }: Flow): number | undefined {
  /** In bits. */
  let rest = volume * 8;
  for (const { start_date, end_date, bandwidth } of parts) {
    const [first, last] = [Date.parse(start_date), Date.parse(end_date)];
    // Where the own period begins or ends, the parts need not: something else may end or begin there.
    const cuts = [own?.start, own?.end].filter((cut) => cut !== undefined && first < cut && cut < last);
    const ends = [...cuts, last].map(Number);
    for (const [index, end] of ends.entries()) {
      const start = ends[index - 1] ?? first;
      const mine = own && own.start <= start && end <= own.end ? own.bandwidth : 0;
      const rate = Math.min(most ?? Number.POSITIVE_INFINITY, bandwidth + mine);
      // 1 Mbps is 1000 bits in a millisecond.
      const needed = rest / (rate * 1000);
      if (needed <= end - start) return start + Math.ceil(needed);
      rest -= (end - start) * rate * 1000;
    }
  }
  return undefined;
}
