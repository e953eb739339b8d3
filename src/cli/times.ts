import { DAY, formatDuration } from '../contract/durations.ts';
import { Failure } from '../contract/failure.ts';
import { formatInstant, isTimeZone, LAST_INSTANT, parseInstant } from '../contract/instants.ts';
import type { Times } from '../contract/said.ts';
import { parseDuration } from '../contract/typed-duration.ts';
import { type Clock, createClock, dateText, timeText, weekdayName, yearOf } from '../words/civil-time.ts';

/** The context in which times are read and printed. */
export interface TimeContext {
  /** Milliseconds since the Unix epoch. */
  now: number;
  /** The zone of times without an offset, and of all that are printed; see {@link chooseZone}. */
  zone: string;
  /** The text of a `TZ` that should decide and is no zone: then times without an offset are refused. */
  faultyZone?: string;
}

/** The sources of the time zone; the first that is set decides (cli/README.md, "Values"). */
export interface ZoneSources {
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

/** The names of UTC itself: known without a formatter, which takes a third of Node's own start to make. */
const UTC_NAMES = /^(?:etc\/)?(?:utc|uct|zulu|universal)$/i;

/** A zone's name in its own upper and lower case; undefined for an unknown zone. */
function zoneName(text: string): string | undefined {
  if (UTC_NAMES.test(text)) return 'UTC';
  if (!isTimeZone(text)) return undefined;
  const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions();
  // An old name, such as CET, is resolved to another one: people see what they typed.
  return timeZone === 'UTC' || timeZone.toLowerCase() === text.toLowerCase() ? timeZone : text;
}

const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** A time without an offset: a day and perhaps a time of day, or a time of day alone. */
const LOCAL = new RegExp(
  `^(?:(today|tomorrow|${WEEKDAYS.join('|')}|(?:mon|tues|wednes|thurs|fri|satur|sun)day|\\d{4}-\\d{2}-\\d{2})(?:(?:T| +)(\\d{1,2}:\\d{2}(?::\\d{2})?))?|(\\d{1,2}:\\d{2}(?::\\d{2})?))$`,
  'i',
);

/** The next step after a mistyped time: a command with another time could book a wrong one. */
const HELP_ON_TIMES = 'slices-conn help times';

/** How {@link parseTime} reads a text. */
export interface TimeReading {
  /** `14:00` and `monday 14:00` mean the first one after this instant, in milliseconds. Default: now. */
  after?: number;
  /** They mean the last such time before now. */
  isPast?: boolean;
}

/**
 * An instant as people type it, in milliseconds (cli/README.md, "Values"): RFC 3339 with an offset, `now`,
 * `+2h30m`; and in the zone of the context `2026-12-01T10:00`, `2026-12-01 10:00`, `14:00` (the next one),
 * `tomorrow 14:00`, `monday 14:00`.
 *
 * @throws Failure `usage`, for a local time that the zone skips or has twice too
 */
export async function parseTime(
  text: string,
  context: TimeContext,
  reading: TimeReading = {},
): Promise<number> {
  const trimmed = text.trim();
  if (/^now$/i.test(trimmed)) return context.now;
  if (trimmed.startsWith('+')) return later(context.now, parseDuration(trimmed.slice(1)));
  // RFC 3339 needs seconds; people may leave them out.
  const exact = parseInstant(trimmed.replace(' ', 'T').replace(/^(\S{10}T\d{2}:\d{2})(?=[Zz+-])/i, '$1:00'));
  if (exact !== undefined) return exact;
  const local = LOCAL.exec(trimmed);
  if (!local) {
    throw new Failure('usage', `${JSON.stringify(text)} is not a time.`, {
      why: "Write it as 14:00, 'tomorrow 09:00', 2026-12-01T10:00:00Z, +2h or now.",
      fix: HELP_ON_TIMES,
    });
  }
  if (context.faultyZone !== undefined) {
    throw new Failure('usage', `TZ is ${JSON.stringify(context.faultyZone)}, which is not a time zone.`, {
      why: `${JSON.stringify(text)} is a time in your time zone. Set TZ to one such as Europe/Brussels, or give --tz.`,
      fix: 'unset TZ',
    });
  }
  const [, day, time = local[3] ?? '00:00'] = local;
  return localInstant({ day: day?.toLowerCase(), time }, context, reading);
}

/** A time of day, and perhaps its day. */
interface LocalTime {
  /** `today`, `tomorrow`, a weekday, or a date as `2026-12-01`; undefined: the nearest day that fits. */
  day: string | undefined;
  /** As `10:00` or `10:00:00`. */
  time: string;
}

/**
 * The instant of a local time, in milliseconds.
 *
 * @throws Failure `usage` for a day or time that does not exist, and for a time that exists twice because
 *   clocks are put back
 */
function localInstant(
  { day, time }: LocalTime,
  { now, zone }: TimeContext,
  { after = now, isPast = false }: TimeReading,
): number {
  const clock = clockOf(zone);
  const typed = day === undefined ? time : `${day} ${time}`;
  const isDate = day !== undefined && /^\d/.test(day);
  const timeOfDay = parseInstant(
    `1970-01-01T${time.padStart(time.length < 6 ? 5 : 8, '0').padEnd(8, ':00')}Z`,
  );
  const date = isDate ? parseInstant(`${day}T00:00:00Z`) : 0;
  if (timeOfDay === undefined || date === undefined)
    throw new Failure('usage', `There is no day or time ${JSON.stringify(typed)}.`, { fix: HELP_ON_TIMES });
  let local = date + timeOfDay;
  if (day === 'today' || day === 'tomorrow') {
    local += startOfDay(clock.civil(now)) + (day === 'today' ? 0 : DAY);
  } else if (!isDate) {
    const reference = clock.civil(isPast ? now : after);
    const ahead = day === undefined ? 0 : WEEKDAYS.indexOf(day.slice(0, 3)) - new Date(reference).getUTCDay();
    const days = day === undefined ? 1 : 7;
    local += startOfDay(reference) + ((ahead + 7) % 7) * DAY;
    if (!isPast && local <= reference) local += days * DAY;
    if (isPast && local > reference) local -= days * DAY;
  }
  const [instant, another] = clock.instants(local);
  if (instant !== undefined && another === undefined) return instant;
  throw new Failure('usage', `${typed} does not exist, or exists twice, in ${zone}.`, {
    why: `Clocks are put forward or back then. ${besides(local, clock)}`,
    fix: HELP_ON_TIMES,
  });
}

function startOfDay(civil: number): number {
  return civil - (((civil % DAY) + DAY) % DAY);
}

/** The instants that a local time may mean when clocks change, each with its offset. */
function besides(local: number, clock: Clock): string {
  const [one, other] = [clock.offset(local - DAY), clock.offset(local + DAY)]
    .map((offset) => local - offset)
    .toSorted((a, b) => a - b)
    .map((instant) => {
      const offset = clock.offset(instant);
      return `${formatInstant(clock.civil(instant)).slice(0, 19)}${offset < 0 ? '-' : '+'}${timeText(Math.abs(offset))}`;
    });
  return `Give an offset: ${one} or ${other}.`;
}

/**
 * An instant in the past, in milliseconds: what {@link parseTime} reads, or a duration, which means that long
 * ago. `14:00` and `monday 14:00` are the last ones.
 *
 * @example parsePastTime('2d', context) // two days before now
 * @throws Failure `usage`
 */
export async function parsePastTime(text: string, context: TimeContext): Promise<number> {
  if (/^(?:\d+[wdhms])+$/i.test(text.trim())) return Math.max(0, context.now - parseDuration(text));
  return parseTime(text, context, { isPast: true });
}

/**
 * The sum of an instant and a duration, in milliseconds.
 *
 * @throws Failure `usage` after the year 9999
 */
export function later(instant: number, duration: number): number {
  if (instant + duration <= LAST_INSTANT) return instant + duration;
  throw new Failure('usage', 'That is after the year 9999.');
}

/** The clock of the zone that was used last: a zone's first offset takes longer than a hundred texts. */
let last: { zone: string; clock: Clock } | undefined;

function clockOf(zone: string): Clock {
  if (last?.zone !== zone) last = { zone, clock: createClock(zone) };
  return last.clock;
}

/**
 * An instant for people, in the context's zone, which the reader must find nearby: {@link timeTeller} names
 * it. The year is left out where it is this year.
 *
 * @param isNarrow leaves out the weekday
 * @example shortTime(start, context) // 'Sun 22 Nov 14:00'
 */
export function shortTime(instant: number, { now, zone }: TimeContext, isNarrow = false): string {
  const clock = clockOf(zone);
  const civil = clock.civil(instant);
  const words = [
    ...(isNarrow ? [] : [weekdayName(civil)]),
    dateText(civil),
    ...(yearOf(civil) === yearOf(clock.civil(now)) ? [] : [yearOf(civil)]),
    timeText(civil),
  ];
  return words.join(' ');
}

/**
 * Times in sentences: short, to the second where they have one, with the zone beside the first of all; of an end the time
 * of day alone where it is on the day of its start.
 *
 * @example timesIn(context).instant(end) // 'Sun 22 Nov 14:00:30 Europe/Brussels'
 */
export function timesIn(context: TimeContext): Times {
  let isFirst = true;
  const exact = (text: string, at: number): string => {
    const seconds = Math.floor(at / 1000) % 60;
    const zone = isFirst ? ` ${context.zone}` : '';
    isFirst = false;
    return `${text}${seconds === 0 ? '' : `:${String(seconds).padStart(2, '0')}`}${zone}`;
  };
  return {
    instant: (at) => exact(shortTime(at, context), at),
    ends: (start, end) => [
      exact(shortTime(start, context), start),
      exact(shortEnd(start, end, context), end),
    ],
  };
}

/** Times whose zone the reader finds nearby. @param isNarrow leaves out the weekday, as in a table */
export function shortTimes(context: TimeContext, isNarrow = false): Times {
  return {
    instant: (at) => shortTime(at, context, isNarrow),
    ends: (start, end) => [shortTime(start, context, isNarrow), shortEnd(start, end, context, isNarrow)],
  };
}

/**
 * The end of a period for people, beside its start: the time of day alone where both are on the same day.
 *
 * @param isNarrow leaves out the weekday
 */
export function shortEnd(start: number, end: number, context: TimeContext, isNarrow = false): string {
  const text = shortTime(end, context, isNarrow);
  const [from, until] = [shortTime(start, context, isNarrow).slice(0, -5), text.slice(0, -5)];
  return from === until ? text.slice(-5) : text;
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
  return (instant, aside = formatDistance(instant, context.now)) => {
    const zone = isFirst ? ` ${context.zone}` : '';
    isFirst = false;
    return `${shortTime(instant, context)}${zone} (${aside})`;
  };
}
