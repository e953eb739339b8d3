import { formatBandwidth } from '../contract/amounts.ts';
import { formatDuration, SECOND } from '../contract/durations.ts';
import type { ReservationRequest } from '../contract/reservation-request.ts';
import type { Times } from '../contract/said.ts';

/** A request that would be accepted: Mbps and milliseconds; `now` is the time of the request. */
export interface Offered {
  bandwidth: number;
  start: number | 'now';
  end: number;
  /** The sites of a route with more links than the shortest has, in order; absent for any of the shortest. */
  via?: readonly string[] | undefined;
}

/** The request in place of which something is offered; of a search the window, and the duration or volume. */
export type Asked = Pick<ReservationRequest, 'start' | 'end' | 'duration' | 'volume'>;

/** Two durations that differ by less count as the same where the time of the request decides, in milliseconds. */
const SAME = 10 * SECOND;

/** In which way an offer differs from what was asked for. @param now milliseconds */
function difference(
  { start, end }: Offered,
  asked: Asked,
  now: number,
): { sameStart: boolean; sameLength: boolean; length: number } {
  const at = (instant: number | 'now'): number => (instant === 'now' ? now : instant);
  const length = end - at(start);
  const wanted = asked.duration ?? asked.end - at(asked.start);
  const isLoose = start === 'now' || asked.start === 'now';
  return {
    length,
    sameStart: start === asked.start,
    sameLength: Math.abs(length - wanted) <= (isLoose ? SAME : 0),
  };
}

/**
 * An offer in words: its differences from the request, or all of it where no request is given.
 *
 * @example '6 Gbps, same period'
 * @example '9 Gbps from 2026-12-01T14:00:00.000Z'
 * @example '9 Gbps for 2 h'
 * @example '9 Gbps, same period, via fr-slices, se-kth: leaves others less on 3 links'
 */
export function alternativeText(
  offered: Offered,
  asked: Asked | undefined,
  now: number,
  times: Times,
): string {
  return timeText(offered, asked, now, times) + routeText(offered.via);
}

/** The cost of a longer route is the others': on each of its links they can book less. */
function routeText(via: Offered['via']): string {
  return via ? `, via ${via.join(', ')}: leaves others less on ${via.length + 1} links` : '';
}

function timeText(offered: Offered, asked: Asked | undefined, now: number, times: Times): string {
  const { bandwidth, start, end } = offered;
  if (!asked) {
    const [from, until] = times.ends(start === 'now' ? now : start, end);
    return `${formatBandwidth(bandwidth)} from ${from} to ${until}`;
  }
  if (asked.volume !== undefined) return `done by ${times.instant(end)}`;
  const { sameStart, sameLength, length } = difference(offered, asked, now);
  const isSearch = asked.duration !== undefined;
  const rate = formatBandwidth(bandwidth);
  if (sameStart && sameLength && !isSearch) return `${rate}, same period`;
  const from = sameStart && !isSearch ? '' : ` from ${start === 'now' ? 'now' : times.instant(start)}`;
  return `${rate}${from}${sameLength ? '' : ` for ${formatDuration(length)}`}`;
}
