import { Temporal } from 'temporal-polyfill';

/** A period to draw: half-open, in milliseconds. */
export interface Window {
  start: number;
  end: number;
}

/** An instant on a time axis that is marked. */
export interface Tick {
  /** Milliseconds. */
  at: number;
  /** Empty where there is no room for a label. */
  label: string;
}

/** The room that a time axis has. */
export interface AxisRoom {
  /** In the units of `place`. */
  width: number;
  /** Where an instant lies, from 0 to `width`. */
  place: (instant: number) => number;
  /** The width of a label, which begins at its tick. */
  measure: (label: string) => number;
  /** The least space between two labels. */
  gap: number;
}

/** A distance of ticks: minutes within a day, days, or months. Each begins with the zone's calendar. */
type Step =
  | { minutes: number }
  | { unit: 'day' | 'two days' | 'week' | 'half month' }
  | { months: number }
  | { years: number };

const STEPS: readonly Step[] = [
  ...[1, 5, 15, 30, 60, 120, 360, 720].map((minutes) => ({ minutes })),
  ...(['day', 'two days', 'week', 'half month'] as const).map((unit) => ({ unit })),
  ...[1, 2, 3].map((months) => ({ months })),
  ...[1, 2, 5, 10, 50, 100, 500, 1000].map((years) => ({ years })),
];

const [MINUTE, DAY] = [60_000, 86_400_000];

/** More ticks than these fit no width that is drawn here. */
const MOST_TICKS = 60;

/** How long a step is at least, in milliseconds. */
function lengthOf(step: Step): number {
  if ('minutes' in step) return step.minutes * MINUTE;
  if ('months' in step) return step.months * 28 * DAY;
  if ('years' in step) return step.years * 365 * DAY;
  return { day: 0.9, 'two days': 1.9, week: 6.9, 'half month': 13.9 }[step.unit] * DAY;
}

/** A local time at which a tick stands, and whether it is the first moment of its day. */
interface Mark {
  local: Temporal.ZonedDateTime;
  isDay: boolean;
}

/**
 * The ticks of a time axis: the closest that fit, at round times of the zone: hours for a day, days for a week, weeks or
 * months for a year. A day begins at its first moment, and has 23 or 25 hours where clocks change. The first label names
 * day and month; the year is named where it is not this year.
 *
 * @param context the current time, and the zone of the axis
 * @returns in order, within the window; one at its start where no round time lies within
 */
export function timeTicks(
  window: Window,
  { now, zone }: { now: number; zone: string },
  room: AxisRoom,
): Tick[] {
  const thisYear = zoned(now, zone).year;
  for (const step of STEPS) {
    if ((window.end - window.start) / lengthOf(step) > MOST_TICKS) continue;
    const marks = marksOf(window, zone, step);
    const found = marks.length > 0 && labelled(marks, step, thisYear, room);
    if (found) return found;
  }
  const start = { local: zoned(window.start, zone), isDay: false };
  return labelled([start], { minutes: 1 }, thisYear, room) ?? [];
}

/** The column in which an instant lies, of so many: column i is from `start + floor(i * length / count)` on. */
export function columnAt(instant: number, { start, end }: Window, count: number): number {
  return Math.floor(((instant - start + 1) * count - 1) / (end - start));
}

/** {@link timeTicks} of an axis of so many characters. */
export function columnTicks(window: Window, context: { now: number; zone: string }, count: number): Tick[] {
  return timeTicks(window, context, {
    width: count,
    place: (instant) => columnAt(instant, window, count),
    measure: (label) => label.length,
    gap: 3,
  });
}

/** The labels of ticks as a line, each beginning in its tick's column. */
export function labelLine(ticks: readonly Tick[], window: Window, count: number): string {
  return ticks.reduce(
    (line, { at, label }) => (label === '' ? line : line.padEnd(columnAt(at, window, count)) + label),
    '',
  );
}

function zoned(instant: number, zone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(zone);
}

function marksOf({ start, end }: Window, zone: string, step: Step): Mark[] {
  const marks: Mark[] = [];
  const add = (local: Temporal.ZonedDateTime, isDay: boolean): void => {
    const { epochMilliseconds: at } = local;
    if (at >= start && at < end) marks.push({ local, isDay });
  };
  const last = zoned(end, zone).toPlainDate();
  let date = firstDate(zoned(start, zone), step);
  while (Temporal.PlainDate.compare(date, last) <= 0) {
    add(date.toZonedDateTime(zone), true);
    if ('minutes' in step) for (const local of timesOf(date, zone, step.minutes)) add(local, false);
    date = nextDate(date, step);
  }
  return marks;
}

/**
 * The times of a day after its first moment. A time that clocks skip is left out; one that comes twice, because clocks are
 * put back, is there twice where ticks are an hour apart or less.
 */
function timesOf(date: Temporal.PlainDate, zone: string, minutes: number): Temporal.ZonedDateTime[] {
  const times = new Map<number, Temporal.ZonedDateTime>();
  const both = minutes <= 60 ? (['earlier', 'later'] as const) : (['earlier'] as const);
  for (let minute = minutes; minute < 1440; minute += minutes) {
    const time = Temporal.PlainTime.from({ hour: Math.floor(minute / 60), minute: minute % 60 });
    for (const disambiguation of both) {
      const found = date.toPlainDateTime(time).toZonedDateTime(zone, { disambiguation });
      if (found.toPlainTime().equals(time)) times.set(found.epochMilliseconds, found);
    }
  }
  // A day may begin at one of these times.
  times.delete(date.toZonedDateTime(zone).epochMilliseconds);
  return [...times.values()].toSorted((one, other) => one.epochMilliseconds - other.epochMilliseconds);
}

/** The date of a step's first tick: at or before the start of the axis, or its first midnight for every second day. */
function firstDate(start: Temporal.ZonedDateTime, step: Step): Temporal.PlainDate {
  const date = start.toPlainDate();
  const isMidnight = start.startOfDay().equals(start);
  if ('minutes' in step || ('unit' in step && step.unit === 'day')) return date;
  if ('unit' in step && step.unit === 'two days') return isMidnight ? date : date.add({ days: 1 });
  if ('unit' in step && step.unit === 'week') return date.subtract({ days: date.dayOfWeek - 1 });
  if ('unit' in step) return date.with({ day: date.day < 15 ? 1 : 15 });
  if ('months' in step) {
    return date.with({ day: 1, month: date.month - ((date.month - 1) % step.months) });
  }
  return date.with({ day: 1, month: 1, year: date.year - (date.year % step.years) });
}

function nextDate(date: Temporal.PlainDate, step: Step): Temporal.PlainDate {
  if ('minutes' in step) return date.add({ days: 1 });
  if ('months' in step) return date.add({ months: step.months });
  if ('years' in step) return date.add({ years: step.years });
  if (step.unit === 'day') return date.add({ days: 1 });
  if (step.unit === 'two days') return date.add({ days: 2 });
  if (step.unit === 'week') return date.add({ days: 7 });
  return date.day === 1 ? date.with({ day: 15 }) : date.with({ day: 1 }).add({ months: 1 });
}

/** The ticks with the longest labels for which there is room; undefined where not even the shortest fit. */
function labelled(
  marks: readonly Mark[],
  step: Step,
  thisYear: number,
  { width, place, measure, gap }: AxisRoom,
): Tick[] | undefined {
  const ticks: Tick[] = [];
  const namesDay = marks.some(({ isDay }) => isDay);
  let before: Temporal.ZonedDateTime | undefined;
  for (const [index, mark] of marks.entries()) {
    const at = mark.local.epochMilliseconds;
    const next = marks[index + 1];
    const space = next ? place(next.local.epochMilliseconds) - place(at) - gap : width - place(at);
    const names = labelsOf(mark, step, before, { thisYear, namesDay });
    const label = names.find((name) => measure(name) <= space);
    if (label === undefined && next) return undefined;
    ticks.push({ at, label: label ?? '' });
    if (mark.isDay || !namesDay) before = mark.local;
  }
  return ticks;
}

/** The labels that a tick may have, the longest first. */
function labelsOf(
  { local, isDay }: Mark,
  step: Step,
  before: Temporal.ZonedDateTime | undefined,
  { thisYear, namesDay }: { thisYear: number; namesDay: boolean },
): string[] {
  const text = (options: Intl.DateTimeFormatOptions): string => part(local, options);
  const time = text({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  const [weekday, day, month] = [text({ weekday: 'short' }), local.day, text({ month: 'short' })];
  const isNewYear = before ? before.year !== local.year : local.year !== thisYear;
  if ('years' in step) return [`${local.year}`];
  if ('months' in step) {
    return before && !isNewYear ? [month] : [`${month} ${local.year}`, ...(isNewYear ? [] : [month])];
  }
  const isNewMonth = before?.month !== local.month || isNewYear;
  const dates = [
    ...(isNewYear ? [`${weekday} ${day} ${month} ${local.year}`, `${day} ${month} ${local.year}`] : []),
    ...(isNewMonth ? [`${weekday} ${day} ${month}`, `${day} ${month}`] : []),
  ];
  if (!isDay) return namesDay || before ? [time] : dates.map((date) => `${date} ${time}`);
  if ('unit' in step && (step.unit === 'week' || step.unit === 'half month')) {
    return isNewYear ? dates.filter((date) => !date.startsWith(weekday)) : [`${day} ${month}`];
  }
  return isNewMonth ? dates : [`${weekday} ${day}`];
}

/** The formatter of each form that was asked for, for one zone: making one takes longer than a hundred texts. */
let formats: { zone: string; made: Map<string, Intl.DateTimeFormat> } | undefined;

/** A part of a local time in English, as all texts of this program. */
function part(local: Temporal.ZonedDateTime, options: Intl.DateTimeFormatOptions): string {
  const { timeZoneId: zone, epochMilliseconds } = local;
  if (formats?.zone !== zone) formats = { zone, made: new Map() };
  const key = Object.keys(options).join();
  const format = formats.made.get(key) ?? new Intl.DateTimeFormat('en-US', { timeZone: zone, ...options });
  formats.made.set(key, format);
  return format.format(epochMilliseconds);
}
