import { parseDuration, wronglyTyped } from '../contract/amounts.ts';
import { DAY, HOUR, MINUTE, readTypedDuration, SECOND, WEEK } from '../contract/durations.ts';
import { Failure } from '../contract/failure.ts';
import { formatInstant, isTimeZone, LAST_INSTANT, parseInstant, zoneName } from '../contract/instants.ts';
import {
  clockOf,
  dateText,
  MONTHS,
  startOfDay,
  startOfStep,
  timeText,
  WEEKDAYS,
  yearOf,
  type ZoneClock,
} from './civil-time.ts';

/** The context in which times are read and printed. */
export interface TimeContext {
  /** Milliseconds since the Unix epoch. */
  now: number;
  /** The zone of times without one. */
  zone: string;
  /** The text of a `TZ` that should decide and is no zone: then times without a zone are refused. */
  faultyZone?: string;
  /** Durations that were typed for instants, such as `+2h`, by instant: they are repeated so. Both in milliseconds. */
  typedDurations?: Map<number, number>;
  /** What was probably meant by a text that is not a time, and how it is written. */
  advice?: (typed: string) => string;
}

/** How {@link parseTime} reads a text. */
export interface TimeReading {
  /** `14:00` and `monday 14:00` mean the first one after this instant, in milliseconds. Default: now. */
  after?: number;
  /** `14:00` means the one on the day of this instant, in milliseconds. */
  on?: number;
  /** Times without a date mean the last such time before now, and dates without a year the last such date. */
  isPast?: boolean;
  /** A day without a time means through that day: the instant at which the next one begins. */
  isEnd?: boolean;
  /** A time must name its zone; this is what to write where it does not. */
  zoneAdvice?: string;
}

/** The words of a typed time. */
interface Words {
  /** Their kinds in order, a letter each; see {@link readWord}. */
  form: string;
  /** Days from today. */
  ahead?: number;
  /** As in {@link WEEKDAYS}, 0 is Sunday. */
  weekday?: number;
  day?: number;
  /** From 0. */
  month?: number;
  year?: number;
  /** Milliseconds since the day began; NaN for a time of day that does not exist. */
  time?: number;
  /** `UTC`, or as `+02:00`. */
  offset?: string;
  /** An IANA name, in any case. */
  zone?: string;
}

/** The orders in which a day is written. */
const DAY_FORM = 'R|X?W|WXK|XKW|W?(?:(?:NM|MN)Y?|D)';
const FORM = new RegExp(`^(?:(?:${DAY_FORM})T?|T(?:${DAY_FORM})?|H)O?Z?$`);
/** A time of day and another one that is glued to it: a range, or an offset. ISO 8601 (`T`, or seconds) means an offset. */
const TWO_TIMES = /(?<![t:\d])\d\d?:\d\d-\d/i;
/** So long after now, a time of day, or an offset: `+15:00`, `+0900`. */
const CLOCK_AHEAD = /^\+(?=\d?\d:|\d{4}$)([01]?\d|2[0-3]):?([0-5]\d)$/;
/** Longer texts are no times. */
const LONGEST = 100;

/**
 * An instant as people type it, in milliseconds (cli/README.md, "Values"): RFC 3339, `now`, `+2h30m`, `in 2 h`, `3 d ago`,
 * and each of these days and times of day, alone or together, in the context's zone where they name none: `today`,
 * `tomorrow`, `friday` (the next one), `next friday` (the first one after today), `friday next week`, `4 dec`, `Fri 4 Dec
 * 2026`, `2026-12-04`; `14:00` (the next one), `9am`, `noon`. What is printed beside a time, in parentheses, is not read.
 *
 * A date without a year is the next such date, and may be today; where `isPast`, the last one. A day alone begins it, or
 * ends it where `isEnd`.
 *
 * @throws Failure `usage`; also for a local time that the zone skips or has twice, and a weekday that is not the date's
 */
export function parseTime(text: string, context: TimeContext, reading: TimeReading = {}): number {
  const { now, faultyZone } = context;
  const typed = text.trim();
  if (/^now$/i.test(typed)) return now;
  const [, ahead, back] = (!CLOCK_AHEAD.test(typed) && /^(?:\+|in\s)(.+)$|^(.+)\sago$/i.exec(typed)) || [];
  if (ahead !== undefined) {
    const length = parseDuration(ahead);
    const instant = later(now, length);
    context.typedDurations?.set(instant, length);
    return instant;
  }
  if (back !== undefined) return Math.max(0, now - parseDuration(back));
  const whole = typed.replace(
    /(T[\d:.]{8,}[+-]\d\d):?(\d\d)?$/i,
    (_, head, rest = '00') => `${head}:${rest}`,
  );
  const [offset = 'UTC'] = /[+-]\d\d:\d\d$/.exec(whole) ?? [];
  const exact = isTimeZone(offset) ? parseInstant(whole) : undefined;
  if (exact !== undefined) return exact;
  const words = typed.length > LONGEST ? undefined : readWords(typed, context.zone);
  if (!words) {
    const advice = typed.length > LONGEST ? undefined : context.advice?.(typed);
    throw wronglyTyped(text, 'a time', advice ?? HOW_TO_WRITE, 'slices-conn help times');
  }
  const isZoned = (words.offset ?? words.zone) !== undefined;
  if (!isZoned && reading.zoneAdvice !== undefined) {
    throw new Failure('usage', `${JSON.stringify(text)} names no zone.`, { why: reading.zoneAdvice });
  }
  if (!isZoned && faultyZone !== undefined) {
    throw new Failure('usage', `TZ is ${JSON.stringify(faultyZone)}, which is not a time zone.`, {
      why: `${JSON.stringify(text)} is a time in your time zone. Set TZ to one such as Europe/Brussels, or give --tz.`,
      fix: 'unset TZ',
    });
  }
  return instantOf(typed, words, context, reading);
}

/**
 * An instant in the past, in milliseconds: what {@link parseTime} reads, or a duration, which means that long ago.
 * `14:00`, `monday 14:00` and `4 dec` are the last ones.
 *
 * @example parsePastTime('2d', context) // two days before now
 * @throws Failure `usage`
 */
export function parsePastTime(text: string, context: TimeContext, reading: TimeReading = {}): number {
  const length = readTypedDuration(text);
  if (length !== undefined) return Math.max(0, context.now - length);
  return parseTime(text, context, { ...reading, isPast: true });
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

/** How times are written, in a sentence. */
const HOW_TO_WRITE = "Write it as 'friday 09:00', '2026-12-04 09:00', 14:00, +2h or now.";

/** The words of a time; undefined where one is unknown, or they are not in an order in which times are written. */
function readWords(text: string, ownZone: string): Words | undefined {
  if (TWO_TIMES.test(text)) return undefined;
  const words: Words = { form: '' };
  const parts = text
    .toLowerCase()
    // What is printed beside a time.
    .replace(/ \((?!utc)[^()]*\)$/, '')
    .replace(/^(\d{4}-\d\d-\d\d)t(?=\d)/, '$1 ')
    .replace(/(:\d\d)(z|[+-]\d\d(?::?\d\d)?)$/, '$1 $2')
    .replace(/(\d) (?=[ap]m\b)/, '$1')
    .split(/[\s(),]+/);
  for (const part of parts) {
    if (part === '' || part === 'at' || part === 'on' || part === 'of') continue;
    const word = readWord(part, ownZone);
    if (!word) return undefined;
    Object.assign(words, word, { form: words.form + word.form });
  }
  // "2026-12-01 -09:00" may be a time of day.
  if (words.time === undefined && parts.some((part) => /^[+-]/.test(part))) return undefined;
  return FORM.test(words.form) ? words : undefined;
}

const SAID: Readonly<Record<string, Words>> = {
  today: { form: 'R', ahead: 0 },
  tomorrow: { form: 'R', ahead: 1 },
  next: { form: 'X' },
  week: { form: 'K' },
  noon: { form: 'T', time: 12 * HOUR },
  // Only alone: of a day it may be the first or the last.
  midnight: { form: 'H', time: 0 },
};

/**
 * One word of a time: today (R), next (X), week (K), a weekday (W), a number of a day (N), a month (M), a year (Y), a
 * date (D), a time of day (T), midnight (H), an offset (O), a zone (Z); undefined for any other. Letters such as CET and
 * EST follow different rules in different places, so they are read only where they are the person's own zone.
 */
function readWord(word: string, ownZone: string): Words | undefined {
  if (Object.hasOwn(SAID, word)) return SAID[word];
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(word) ?? [];
  if (year) return { form: 'D', year: Number(year), month: Number(month) - 1, day: Number(day) };
  if (/^\d{4}$/.test(word)) return { form: 'Y', year: Number(word) };
  if (/^\d\d?(?:st|nd|rd|th|\.)?$/.test(word)) return { form: 'N', day: Number.parseInt(word, 10) };
  const time = readTimeOfDay(word);
  if (time !== undefined) return { form: 'T', time };
  const named = (names: readonly string[]): number =>
    word.length < 3 ? -1 : names.findIndex((name) => name.toLowerCase().startsWith(word));
  if (named(WEEKDAYS) >= 0) return { form: 'W', weekday: named(WEEKDAYS) };
  if (named(MONTHS) >= 0) return { form: 'M', month: named(MONTHS) };
  const offset = readOffset(word);
  if (offset !== undefined) return { form: 'O', offset };
  const isRead = word.length > 3 || word === 'gmt' || word === ownZone.toLowerCase();
  const zone = isRead ? zoneName(word) : undefined;
  return zone === undefined ? undefined : { form: 'Z', zone };
}

function readTimeOfDay(word: string): number | undefined {
  const [found, hour, minute = '0', second = '0', half] =
    /^(\d\d?)(?::(\d\d)(?::(\d\d))?)?([ap]m)?$/.exec(word) ?? [];
  if (!found) return undefined;
  const [hours, minutes, seconds] = [hour, minute, second].map(Number) as [number, number, number];
  if (hours > 23 || minutes > 59 || seconds > 59 || (half && (hours < 1 || hours > 12))) return Number.NaN;
  const ofDay = half ? (hours % 12) + (half === 'pm' ? 12 : 0) : hours;
  return ofDay * HOUR + minutes * MINUTE + seconds * SECOND;
}

/** An offset as the name of a zone, of `Z`, `+02:00`, `+0200` or `utc+2`. */
function readOffset(word: string): string | undefined {
  if (word === 'z' || word === 'utc') return 'UTC';
  const [, sign, hours = '', minutes = '00'] =
    /^(?:utc)?([+-])(\d\d?)(?::(\d\d))?$/.exec(word) ?? /^(?:utc)?([+-])(\d\d)(\d\d)$/.exec(word) ?? [];
  const offset = `${sign}${hours.padStart(2, '0')}:${minutes}`;
  return sign && isTimeZone(offset) ? offset : undefined;
}

/**
 * The instant of a time of day and its day.
 *
 * @throws Failure `usage`
 */
function instantOf(typed: string, words: Words, context: TimeContext, reading: TimeReading): number {
  const { zone = context.zone, offset = zone, time } = words;
  const clock = clockOf(offset);
  // An offset is of one instant: today and this year are those of the zone.
  const days = /^[TH]O$/.test(words.form) ? clock : clockOf(zone);
  const day = dayOf(typed, words, days, { ...reading, now: context.now });
  const isThrough = time === undefined && reading.isEnd;
  const local = day + (isThrough ? DAY : (time ?? 0));
  if (Number.isNaN(local)) throw noSuchTime(typed);
  const [instant = isThrough ? clock.instant(local) : undefined, another] = clock.instants(local);
  if (instant !== undefined && (another === undefined || isThrough)) {
    if (instant >= 0 && instant <= LAST_INSTANT) return instant;
    throw new Failure('usage', 'That is not in the years 1970 to 9999.');
  }
  const why = `Clocks are put forward or back then. ${besides(local, clock)}`;
  throw refused(`${typed} ${another === undefined ? 'does not exist' : 'exists twice'} in ${offset}.`, why);
}

/** The civil time at which the day begins that is meant; NaN for a time of day that does not exist. */
function dayOf(
  typed: string,
  { form, ahead, weekday, day, month, year, time }: Words,
  clock: ZoneClock,
  { now, after = now, on, isPast = false, isEnd = false }: TimeReading & { now: number },
): number {
  const today = startOfDay(clock.civil(now));
  if (ahead !== undefined) return today + ahead * DAY;
  if (day !== undefined && month !== undefined) {
    const date = dateOf(year, month, day, { today, isPast });
    if (date === undefined) throw noSuchTime(typed);
    const found = new Date(date).getUTCDay();
    if (weekday === undefined || weekday === found) return date;
    throw refused(
      `${dateText(date)} ${yearOf(date)} is a ${WEEKDAYS[found]}, not a ${WEEKDAYS[weekday]}.`,
      `${JSON.stringify(typed)} can't be read: leave out the weekday, or change the date.`,
    );
  }
  if (weekday !== undefined && form.includes('K')) {
    return startOfStep(today, { unit: 'week', count: 1 }) + WEEK + ((weekday + 6) % 7) * DAY;
  }
  if (weekday === undefined && on !== undefined) return startOfDay(clock.civil(on));
  const isNext = form.includes('X');
  const reference = isNext ? today + DAY - 1 : clock.civil(isPast ? now : after);
  const ofDay = time ?? (isEnd && !isPast && !isNext ? DAY : 0);
  const to = weekday === undefined ? 0 : (weekday - new Date(reference).getUTCDay() + 7) % 7;
  const found = startOfDay(reference) + to * DAY;
  const step = weekday === undefined ? DAY : WEEK;
  if (isPast && !isNext) return found + ofDay > reference ? found - step : found;
  return found + ofDay <= reference ? found + step : found;
}

/** The civil time at which a date begins; undefined where there is none. Without a year: the next one, or the last one. */
function dateOf(
  year: number | undefined,
  month: number,
  day: number,
  { today, isPast }: { today: number; isPast: boolean },
): number | undefined {
  const inYear = (one: number): number | undefined => {
    const date = new Date(Date.UTC(one, month, day));
    const isSame = date.getUTCFullYear() === one && date.getUTCMonth() === month && date.getUTCDate() === day;
    return isSame ? date.getTime() : undefined;
  };
  if (year !== undefined) return inYear(year);
  // 29 February can be eight years away.
  for (let by = 0; by <= 8; by += 1) {
    const date = inYear(yearOf(today) + (isPast ? -by : by));
    if (date !== undefined && (isPast ? date <= today : date >= today)) return date;
  }
  return undefined;
}

/** The failure of a typed time. Its next step is help: a command with another time could book a wrong one. */
function refused(message: string, why?: string): Failure {
  return new Failure('usage', message, { why, fix: 'slices-conn help times' });
}

function noSuchTime(typed: string): Failure {
  return refused(`There is no day or time ${JSON.stringify(typed)}.`);
}

/** The instants that a local time may mean when clocks change, each with its offset. */
function besides(local: number, clock: ZoneClock): string {
  const [one, other] = [clock.offset(local - DAY), clock.offset(local + DAY)]
    .map((offset) => local - offset)
    .toSorted((a, b) => a - b)
    .map((instant) => {
      const offset = clock.offset(instant);
      return `${formatInstant(clock.civil(instant)).slice(0, 19)}${offset < 0 ? '-' : '+'}${timeText(Math.abs(offset))}`;
    });
  return `Give an offset: ${one} or ${other}.`;
}

const TIME_OF_DAY = '\\d\\d?(?::\\d\\d|\\s?[ap]m)';
/** A range: its day, the two times, and what is between them. */
const RANGE = new RegExp(
  `^(?:(.+?)[\\sT])??(${TIME_OF_DAY})(\\s*(?:[-–—]|to\\b|until\\b|till\\b)\\s*)(${TIME_OF_DAY}|\\d\\d?)$`,
  'i',
);

const quoted = (text: string): string => (text.includes(' ') ? `'${text}'` : text);

const OFFSETS = 'Offsets go from -12:00 to +14:00.';

/** What was probably meant by a text that is not a time. @param names what comes before a start, and before an end; default: the flags */
export function adviceOnTime(typed: string, [start, end] = ['--start', '--end']): string {
  const [, day, from = '', between = '', until] = RANGE.exec(typed) ?? [];
  if (until !== undefined) {
    const at = (time: string): string => quoted(day === undefined ? time : `${day} ${time}`);
    const isOffset = between === '-' && readOffset(`-${until}`) !== undefined;
    const other = isOffset
      ? ` Where -${until} is an offset, write ${at(`${from} UTC-${until}`)}.`
      : between === '-'
        ? ` ${OFFSETS}`
        : '';
    return `A start and an end are two times: ${start} ${at(from)} ${end} ${at(until)}.${other}`;
  }
  const [, clock, minutes] = CLOCK_AHEAD.exec(typed) ?? [];
  if (clock) {
    const lasting = `+${Number(clock)}h${minutes === '00' ? '' : minutes}`;
    return `Write ${lasting} for so long after now, or ${clock}:${minutes} for the time of day. An offset stands behind a time of day.`;
  }
  const [, date, time] = /^(\d{4}-\d\d-\d\d)\s?[-+](\d\d:\d\d)$/.exec(typed) ?? [];
  if (date) return `Write '${date} ${time}'. An offset stands behind a time of day.`;
  if (/:\d\d(?::\d\d)? ?[+-]\d\d:?\d\d$/.test(typed)) return OFFSETS;
  if (/\bmidnight\b/i.test(typed))
    return "A day has two midnights: write 'friday 00:00' or 'saturday 00:00'.";
  const [, rest = '', zone] = /^(.*?)\s*\(?([a-z][a-z0-9/_+-]*)\)?$/i.exec(typed) ?? [];
  if (readWords(rest, '')?.time === undefined) return HOW_TO_WRITE;
  return `${zone} is not a zone that is read. Write its offset, as '${rest} +01:00', or its IANA name, as '${rest} Europe/Brussels'.`;
}
