import { formatDuration, parseDuration } from '../contract/durations.ts';
import { Failure } from '../contract/failure.ts';
import { formatInstant, LAST_INSTANT, parseInstant } from '../contract/instants.ts';

/** What is needed to read and to print times. */
export interface TimeContext {
  /** Milliseconds since the Unix epoch. */
  now: number;
  /** `--tz`, else `TZ`; undefined where neither is set. */
  zone: string | undefined;
  /** The machine's zone; used to print times, never to read them. */
  localZone?: string;
}

/** The zone in which times are printed. */
export function shownZone({ zone, localZone }: TimeContext): string | undefined {
  return zone ?? localZone;
}

/** A time of day without a zone: a date, or today or tomorrow, and perhaps a time. */
const LOCAL = /^(today|tomorrow|\d{4}-\d{2}-\d{2})(?:[T ](\d{1,2}:\d{2}(?::\d{2})?))?$/i;

/**
 * An instant as people type it, in milliseconds (CLI.md, "Values"): RFC 3339 with an offset, `now`, `+2h30m`; and,
 * only where a time zone is known, `2026-12-01T10:00`, `2026-12-01 10:00`, `tomorrow 09:00`.
 *
 * @param fix the advice when the text is not a time
 * @throws Failure `usage`, for a local time that the zone skips or has twice too
 */
export async function parseTime(
  text: string,
  context: TimeContext,
  fix = `--start ${formatInstant(context.now + 3_600_000)}`,
): Promise<number> {
  const trimmed = text.trim();
  if (/^now$/i.test(trimmed)) return context.now;
  if (trimmed.startsWith('+')) return later(context.now, parseDuration(trimmed.slice(1)));
  // RFC 3339 needs seconds; people may leave them out.
  const exact = parseInstant(
    trimmed.replace(/^(\S{10}[Tt]\d{2}:\d{2})(?=[Zz+-])/, '$1:00').replace(' ', 'T'),
  );
  if (exact !== undefined) return exact;
  const local = LOCAL.exec(trimmed);
  if (!local) {
    throw new Failure('usage', `${JSON.stringify(text)} is not a time.`, {
      why: 'Write it as 2026-12-01T10:00:00Z, +2h or now; see slices-conn help times.',
      fix,
    });
  }
  if (context.zone === undefined) {
    throw new Failure('usage', `${JSON.stringify(text)} does not say in which time zone.`, {
      why: 'A time without an offset needs --tz (or TZ).',
      fix: '--tz Europe/Brussels',
    });
  }
  const [, day = '', time = '00:00'] = local;
  return localInstant({ day: day.toLowerCase(), time, zone: context.zone, now: context.now });
}

/** A time of day in a time zone. */
interface LocalTime {
  /** `today`, `tomorrow`, or a date as `2026-12-01`. */
  day: string;
  /** As `10:00` or `10:00:00`. */
  time: string;
  /** An IANA time zone, such as `Europe/Brussels`. */
  zone: string;
  /** Milliseconds since the Unix epoch, for today and tomorrow. */
  now: number;
}

/**
 * The instant of a local time, in milliseconds.
 *
 * @throws Failure `usage` for an unknown zone, for a day or time that does not exist, and for a time that exists twice
 *   because clocks are put back
 */
async function localInstant({ day, time, zone, now }: LocalTime): Promise<number> {
  // Slow to load, and most times are typed with an offset.
  const { Temporal } = await import('temporal-polyfill');
  let today: ReturnType<typeof Temporal.PlainDate.from>;
  try {
    today = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(zone).toPlainDate();
  } catch {
    throw new Failure('usage', `${JSON.stringify(zone)} is not a time zone.`, {
      fix: '--tz Europe/Brussels',
    });
  }
  try {
    const date =
      day === 'today' ? today : day === 'tomorrow' ? today.add({ days: 1 }) : Temporal.PlainDate.from(day);
    const local = date.toPlainDateTime(Temporal.PlainTime.from(time.padStart(5, '0')));
    return local.toZonedDateTime(zone, { disambiguation: 'reject' }).epochMilliseconds;
  } catch {
    throw new Failure('usage', `${day} ${time} does not exist, or exists twice, in ${zone}.`, {
      why: 'Clocks may be put forward or back then.',
      fix: 'Give the time with an offset: 2026-12-01T10:00:00+01:00.',
    });
  }
}

/**
 * An instant in the past, in milliseconds: what {@link parseTime} reads, or a duration, which means that long ago.
 *
 * @param flag the flag that it is the value of, for the advice
 * @example parsePastTime('2d', context, '--since') // two days before now
 * @throws Failure `usage`
 */
export async function parsePastTime(text: string, context: TimeContext, flag: string): Promise<number> {
  if (/^(?:\d+[wdhms])+$/i.test(text.trim())) return Math.max(0, context.now - parseDuration(text));
  return parseTime(text, context, `${flag} 2d`);
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

/**
 * An instant for people: in UTC, in their zone, and how far away it is.
 *
 * @param zone their time zone; UTC and unknown names are ignored
 * @example formatTime(start, now) // '2026-12-01T10:00:00.000Z (in 2 h)'
 * @example formatTime(start, now, 'Europe/Brussels') // '2026-12-01T10:00:00.000Z (11:00 Europe/Brussels, in 2 h)'
 */
export function formatTime(instant: number, now: number, zone?: string): string {
  const distance = instant - now;
  const duration = formatDuration(Math.abs(distance));
  // Less than a second away counts as now.
  const away = Math.abs(distance) < 1000 ? 'now' : distance > 0 ? `in ${duration}` : `${duration} ago`;
  const there = zone === undefined ? undefined : localTime(instant, zone);
  return `${formatInstant(instant)} (${there === undefined ? '' : `${there}, `}${away})`;
}

/** The time of day in a zone, with the date where it differs from the date in UTC. */
function localTime(instant: number, zone: string): string | undefined {
  if (/^(?:Etc\/)?(?:UTC|GMT|Zulu|Universal)$/i.test(zone)) return undefined;
  let text: string;
  try {
    text = new Intl.DateTimeFormat('sv-SE', {
      timeZone: zone,
      dateStyle: 'short',
      timeStyle: 'short',
    }).format(instant);
  } catch {
    // TZ may name a file or an unknown zone; --tz was checked before.
    return undefined;
  }
  const isSameDay = text.startsWith(formatInstant(instant).slice(0, 10));
  return `${isSameDay ? text.slice(11) : text} ${zone}`;
}
