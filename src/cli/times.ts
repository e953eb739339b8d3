import { formatDuration, MINUTE } from '../contract/durations.ts';
import { zoneName } from '../contract/instants.ts';
import type { Times } from '../contract/said.ts';
import {
  clockOf,
  dateText,
  endText,
  type InstantStyle,
  instantText,
  startOfDay,
  weekdayName,
} from '../words/civil-time.ts';
import type { TimeContext } from '../words/typed-time.ts';

export type { TimeContext } from '../words/typed-time.ts';

/** The sources of the time zone; the first that is set decides (cli/README.md, "Values"). */
interface ZoneSources {
  /** `--tz`, else the profile's `tz`: a known zone. */
  chosen: string | undefined;
  /** `TZ`; an empty text counts as unset. */
  variable: string | undefined;
  /** The machine's zone. */
  system: () => string;
}

/**
 * The time zone to use. `TZ` may also be written as the C library takes it: `:Europe/Brussels`, or the path
 * of a zone's file. A text that is no zone is UTC, as for the C library, and comes back as `faultyZone`.
 */
export function chooseZone({ chosen, variable, system }: ZoneSources): Omit<TimeContext, 'now'> {
  if (chosen !== undefined) return { zone: zoneName(chosen) ?? 'UTC' };
  if (!variable) return { zone: zoneName(system()) ?? 'UTC' };
  const text = variable.replace(/^:/, '').replace(/^\/.*\/zoneinfo\//, '');
  if (text === '/etc/localtime') return { zone: zoneName(system()) ?? 'UTC' };
  const zone = /^(?:UTC|GMT)[+-]?0$/i.test(text) ? 'UTC' : zoneName(text);
  return zone === undefined ? { zone: 'UTC', faultyZone: variable } : { zone };
}

/**
 * An instant for people, in the context's zone, which the reader must find nearby: {@link timeTeller} names it.
 *
 * @param isNarrow leaves out the weekday
 * @example shortTime(start, context) // 'Sun 22 Nov 14:00'
 */
export function shortTime(instant: number, context: TimeContext, isNarrow = false): string {
  return shortTimes(context, isNarrow).instant(instant);
}

/** The end of a period for people, beside its start. @param isNarrow leaves out the weekday */
export function shortEnd(start: number, end: number, context: TimeContext, isNarrow = false): string {
  return shortTimes(context, isNarrow).ends(start, end)[1];
}

/** Times whose zone the reader finds nearby. @param isNarrow leaves out the weekday, as in a table */
export function shortTimes(context: TimeContext, isNarrow = false): Times {
  return timesOf(context, { isNarrow });
}

/**
 * Times in sentences: short, to the second where they have one, with the zone beside the first of all; of an end the time
 * of day alone where it is on the day of its start.
 *
 * @example timesIn(context).instant(end) // 'Sun 22 Nov 14:00:30 Europe/Brussels'
 */
export function timesIn(context: TimeContext): Times {
  const { instant, ends } = timesOf(context, { isExact: true });
  let zone = ` ${context.zone}`;
  const zoned = (text: string): string => {
    const said = text + zone;
    zone = '';
    return said;
  };
  return {
    instant: (at) => zoned(instant(at)),
    ends: (start, end) => {
      const [from, until] = ends(start, end);
      return [zoned(from), zoned(until)];
    },
  };
}

function timesOf({ now, zone }: TimeContext, style: InstantStyle): Times {
  const calendar = { now, clock: clockOf(zone) };
  return {
    instant: (at) => instantText(at, calendar, style),
    ends: (start, end) => [instantText(start, calendar, style), endText(start, end, calendar, style)],
  };
}

/**
 * The text in parentheses behind an end. Where the end is the beginning of a day, the last day comes first: the person who
 * typed that day sees that it is included.
 *
 * @example endAside(end, 'for 3 d', context) // 'through Fri 4 Dec, for 3 d'
 */
export function endAside(end: number, aside: string, { zone }: TimeContext): string {
  const clock = clockOf(zone);
  const last = clock.civil(end - 1);
  if (startOfDay(last) === startOfDay(clock.civil(end))) return aside;
  return `through ${weekdayName(last)} ${dateText(last)}, ${aside}`;
}

/**
 * How far an instant is from now.
 *
 * @example formatDistance(start, now) // 'in 2 h', 'now', '3 d ago'
 */
export function formatDistance(instant: number, now: number): string {
  const distance = instant - now;
  const duration = formatDuration(Math.abs(distance));
  // Less than a second away counts as now.
  if (Math.abs(distance) < 1000) return 'now';
  return distance > 0 ? `in ${duration}` : `${duration} ago`;
}

/** How far an instant is from now: the duration that was typed for it, whatever time has passed in the meantime. */
export function distanceIn(
  instant: number,
  { now, typedDurations }: Pick<TimeContext, 'now' | 'typedDurations'>,
): string {
  const length = typedDurations?.get(instant);
  const isFresh = length !== undefined && Math.abs(instant - now - length) < MINUTE;
  return formatDistance(isFresh ? now + length : instant, now);
}

/**
 * A function that prints instants for people, with the zone beside the first one, and how far away each is.
 *
 * @returns with a second argument, that is said in place of the distance
 * @example
 * const tell = timeTeller(context);
 * tell(start) // 'Sun 22 Nov 14:00 Europe/Brussels (in 2 h)'
 * tell(end, 'for 2 h') // 'Sun 22 Nov 16:00 (for 2 h)'
 */
export function timeTeller(context: TimeContext): (instant: number, aside?: string) => string {
  let isFirst = true;
  return (instant, aside = distanceIn(instant, context)) => {
    const zone = isFirst ? ` ${context.zone}` : '';
    isFirst = false;
    return `${shortTime(instant, context)}${zone} (${aside})`;
  };
}
