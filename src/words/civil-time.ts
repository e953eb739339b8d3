import { DAY, HOUR, MINUTE } from '../contract/durations.ts';
import type { Period } from '../contract/instants.ts';

/**
 * The clock of a time zone. A civil time is written as the milliseconds that `Date.UTC` gives for its year, month, day,
 * hour and minute, so that plain arithmetic works on it.
 */
export interface ZoneClock {
  /** The civil time at an instant. */
  civil(instant: number): number;
  /**
   * The instant of a civil time: the first of two where clocks are put back; as much later as is skipped where they are put
   * forward, as `Temporal` does by default.
   */
  instant(civil: number): number;
  /** Civil time minus UTC at an instant, in milliseconds. */
  offset(instant: number): number;
  /** The instants of a civil time, in order: two where clocks are put back, none where they are put forward over it. */
  instants(civil: number): number[];
  /** Whether the civil time at an instant comes twice, because clocks are put back. */
  isTwice(instant: number): boolean;
}

/** Offsets change at quarters of an hour only, so they are remembered for each. */
const QUARTER = 15 * MINUTE;
const MOST_REMEMBERED = 5000;

/** The milliseconds of the offset at the end of a text; 0 where it has none. */
function offsetIn(text: string): number {
  const [, sign, hours = 0, minutes = 0] = /([+-])(\d\d)(?::?(\d\d))?$/.exec(text) ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * MINUTE;
}

/**
 * Makes the clock of a zone from `Intl`, which is slow: offsets that were looked up are remembered, and UTC needs no lookup.
 *
 * @param zone an IANA name, an offset such as `+02:00`, `+0200` or `+02`, or `UTC`; an unknown name is a RangeError when the clock is first read
 */
export function createClock(zone: string): ZoneClock {
  let format: Intl.DateTimeFormat | undefined;
  const remembered = new Map<number, number>();
  const lookUp = (instant: number): number => {
    format ??= new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
    return offsetIn(format.format(instant).replace('\u2212', '-'));
  };
  const fixed = zone === 'UTC' || /^[+-]/.test(zone) ? offsetIn(zone) : undefined;
  const offset = (instant: number): number => {
    if (fixed !== undefined) return fixed;
    const quarter = Math.floor(instant / QUARTER);
    const known = remembered.get(quarter);
    if (known !== undefined) return known;
    if (remembered.size > MOST_REMEMBERED) remembered.clear();
    const found = lookUp(quarter * QUARTER);
    remembered.set(quarter, found);
    return found;
  };
  const instants = (civil: number): number[] =>
    [...new Set([offset(civil - DAY), offset(civil + DAY)])]
      .map((one) => civil - one)
      .filter((instant) => instant + offset(instant) === civil)
      .toSorted((one, other) => one - other);
  return {
    offset,
    instants,
    civil: (instant) => instant + offset(instant),
    instant: (civil) => instants(civil)[0] ?? civil - offset(civil - DAY),
    isTwice: (instant) =>
      offset(instant - DAY) !== offset(instant + DAY) && instants(instant + offset(instant)).length > 1,
  };
}

const clocks = new Map<string, ZoneClock>();

/** The one clock of a zone; see {@link createClock}. */
export function clockOf(zone: string): ZoneClock {
  const clock = clocks.get(zone) ?? createClock(zone);
  clocks.set(zone, clock);
  return clock;
}

/** A distance on the calendar. A week begins on Monday. */
export interface Step {
  unit: 'minute' | 'day' | 'week' | 'month' | 'year';
  /** How many of the unit; minutes divide a day, months a year. */
  count: number;
}

/** The last civil time at or before one at which a step begins. */
export function startOfStep(civil: number, { unit, count }: Step): number {
  const day = Math.floor(civil / DAY);
  if (unit === 'minute') return Math.floor(civil / (count * MINUTE)) * count * MINUTE;
  if (unit === 'day') return (day - (day % count)) * DAY;
  // The first day of the Unix epoch was a Thursday.
  if (unit === 'week') return (Math.floor((day + 3) / (7 * count)) * 7 * count - 3) * DAY;
  const date = new Date(civil);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return unit === 'year' ? Date.UTC(year - (year % count), 0, 1) : Date.UTC(year, month - (month % count), 1);
}

/** A civil time moved by a step, or by several; the day of the month is kept as far as the month has it. */
export function movedByStep(civil: number, { unit, count }: Step, times = 1): number {
  const by = count * times;
  if (unit === 'minute') return civil + by * MINUTE;
  if (unit === 'day') return civil + by * DAY;
  if (unit === 'week') return civil + by * 7 * DAY;
  const date = new Date(civil);
  const months = date.getUTCFullYear() * 12 + date.getUTCMonth() + by * (unit === 'year' ? 12 : 1);
  const [year, month] = [Math.floor(months / 12), months % 12];
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return Date.UTC(year, month, Math.min(date.getUTCDate(), last)) + (((civil % DAY) + DAY) % DAY);
}

/** How long a step is about, in milliseconds: the shortest that it can be, without changes of the clocks. */
export function lengthOfStep({ unit, count }: Step): number {
  return count * { minute: MINUTE, day: DAY, week: 7 * DAY, month: 28 * DAY, year: 365 * DAY }[unit];
}

/**
 * The instant at or before one at which a step begins on the zone's clock. In the hour that comes twice, the second one
 * counts too for steps of an hour or less.
 */
export function floorToStep(instant: number, step: Step, clock: ZoneClock): number {
  const civil = clock.civil(instant);
  const start = startOfStep(civil, step);
  if (step.unit === 'minute' && step.count <= 60) return instant - (civil - start);
  return Math.min(instant, clock.instant(start));
}

/** The first instant after one at which a step begins on the zone's clock. */
export function nextBeginning(instant: number, step: Step, clock: ZoneClock): number {
  const civil = clock.civil(instant);
  const start = startOfStep(civil, step);
  if (step.unit === 'minute' && step.count <= 60) {
    const next = instant - (civil - start) + step.count * MINUTE;
    // Where clocks change by half an hour, the next full hour is half an hour away or an hour and a half.
    const full = floorToStep(next, step, clock);
    return full > instant ? full : next;
  }
  for (let times = 1; ; times += 1) {
    const next = clock.instant(movedByStep(start, step, times));
    if (next > instant) return next;
  }
}

/** The first instant at or after one at which a step begins. */
export function ceilToStep(instant: number, step: Step, clock: ZoneClock): number {
  return floorToStep(instant, step, clock) === instant ? instant : nextBeginning(instant, step, clock);
}

/** The instants of a period at which a step begins. */
export function beginnings({ start, end }: Period, step: Step, clock: ZoneClock): number[] {
  const found: number[] = [];
  for (let at = ceilToStep(start, step, clock); at < end; at = nextBeginning(at, step, clock)) found.push(at);
  return found;
}

/** The days of the week, as `Date` counts them. */
export const WEEKDAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');
/** The months of the year. */
export const MONTHS =
  'January February March April May June July August September October November December'.split(' ');

/** `Mon`, of a civil time. */
export function weekdayName(civil: number): string {
  return WEEKDAYS[new Date(civil).getUTCDay()]?.slice(0, 3) ?? '';
}

/** `November`, of a civil time. */
export function monthName(civil: number): string {
  return MONTHS[new Date(civil).getUTCMonth()] ?? '';
}

/** `09:00`, of a civil time. */
export function timeText(civil: number): string {
  return new Date(civil).toISOString().slice(11, 16);
}

/** `23 Nov`, of a civil time. */
export function dateText(civil: number): string {
  return `${new Date(civil).getUTCDate()} ${monthName(civil).slice(0, 3)}`;
}

/** `2026`, of a civil time. */
export function yearOf(civil: number): number {
  return new Date(civil).getUTCFullYear();
}

/** The civil time at which a day begins. */
export function startOfDay(civil: number): number {
  return Math.floor(civil / DAY) * DAY;
}

/** The zone's clock and the current time, which it takes to write times. */
export interface Calendar {
  clock: ZoneClock;
  now: number;
}

/** How an instant is written. */
export interface InstantStyle {
  /** Leaves out the weekday. */
  isNarrow?: boolean;
  /** To the second, where the instant has one. */
  isExact?: boolean;
}

/** The time of day of an instant, in the hour that comes twice with the offset from UTC. @example '02:30 (UTC+2)' */
export function clockText(instant: number, clock: ZoneClock, { isExact = false }: InstantStyle = {}): string {
  const civil = clock.civil(instant);
  const seconds = new Date(civil).toISOString().slice(16, 19);
  return `${timeText(civil)}${isExact && seconds !== ':00' ? seconds : ''}${offsetAside(instant, clock)}`;
}

/** The text behind a time of day: the offset from UTC in the hour that comes twice, else nothing. @example ' (UTC+2)' */
function offsetAside(instant: number, clock: ZoneClock): string {
  if (!clock.isTwice(instant)) return '';
  const offset = clock.offset(instant);
  const minutes = offset % HOUR === 0 ? '' : timeText(Math.abs(offset)).slice(2);
  return ` (UTC${offset < 0 ? '-' : '+'}${Math.floor(Math.abs(offset) / HOUR)}${minutes})`;
}

/** An instant to the second, as a log has it; in the hour that comes twice with the offset. @example '2026-11-23 09:00:05' */
export function logText(instant: number, clock: ZoneClock): string {
  const civil = new Date(clock.civil(instant)).toISOString();
  return `${civil.slice(0, 19).replace('T', ' ')}${offsetAside(instant, clock)}`;
}

/**
 * An instant in words, which can be typed: `Mon 23 Nov 09:00`, with the year where it is not this one, or half a year ago, and with the offset
 * from UTC in the hour that comes twice.
 */
export function instantText(instant: number, { clock, now }: Calendar, style: InstantStyle = {}): string {
  const civil = clock.civil(instant);
  const isNear = yearOf(civil) === yearOf(clock.civil(now)) && instant > now - 180 * DAY;
  const year = isNear ? '' : ` ${yearOf(civil)}`;
  const day = `${dateText(civil)}${year} ${clockText(instant, clock, style)}`;
  return style.isNarrow ? day : `${weekdayName(civil)} ${day}`;
}

/** The end of a period in words, beside its start: the time of day alone where both are on the same day. */
export function endText(start: number, end: number, calendar: Calendar, style: InstantStyle = {}): string {
  const { clock } = calendar;
  const isSameDay = startOfDay(clock.civil(start)) === startOfDay(clock.civil(end));
  return isSameDay ? clockText(end, clock, style) : instantText(end, calendar, style);
}
