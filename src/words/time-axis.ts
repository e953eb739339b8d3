import type { Period } from '../contract/instants.ts';
import {
  beginnings,
  dateText,
  floorToStep,
  lengthOfStep,
  monthName,
  nextBeginning,
  type Step,
  timeText,
  weekdayName,
  yearOf,
  type ZoneClock,
} from './civil-time.ts';

/**
 * Time axes. Their ticks are round times of the zone's calendar: a day begins at its first moment and has 23 or 25 hours where
 * clocks change, and weeks begin on Monday. Ticks are as close as their labels let them be; no label reaches into another.
 */

/** A marked instant of an axis. */
export interface Tick {
  /** Milliseconds. */
  at: number;
  /** Empty where there is no room. */
  label: string;
}

/** The room that an axis has, in pixels or characters. */
interface AxisRoom {
  width: number;
  /** The width of a label, which begins at its tick. */
  measure(label: string): number;
  /** The least space between two labels. */
  gap: number;
}

/** The two lines of a time axis: the days, months or years that the window touches, and round times within them. */
export interface TwoLineAxis {
  /** In order, without a gap. A label is to be drawn at its span's start, or at the window's where that is later. */
  spans: readonly (Period & { label: string })[];
  ticks: readonly Tick[];
}

const step = (unit: Step['unit'], count = 1): Step => ({ unit, count });
const [DAYS, MONTHS, YEARS] = [step('day'), step('month'), step('year')];

/** A step of the ticks, and the labels for it. */
interface Form {
  step: Step;
  /** The line above. */
  over: Step;
  /** The widest texts of labels, and the labels of a civil time, the longest first. */
  widest: readonly string[];
  labels(civil: number): string[];
}

const dayNumber = (civil: number): string => `${new Date(civil).getUTCDate()}`;
const timeLabels = (civil: number): string[] => [timeText(civil)];
const dayLabels = (civil: number): string[] => [
  `${weekdayName(civil)} ${dayNumber(civil)}`,
  dayNumber(civil),
];
const monthLabels = (civil: number): string[] => [monthName(civil), monthName(civil).slice(0, 3)];

/** From the closest ticks to the widest. */
const FORMS: readonly Form[] = [
  ...[5, 15, 30, 60, 120, 180, 360, 720].map((count) => {
    return { step: step('minute', count), over: DAYS, widest: ['00:00'], labels: timeLabels };
  }),
  { step: DAYS, over: MONTHS, widest: ['Wed 30', '30'], labels: dayLabels },
  { step: step('week'), over: MONTHS, widest: ['Mon 30', '30'], labels: dayLabels },
  ...[1, 3].map((count) => {
    return { step: step('month', count), over: YEARS, widest: ['September', 'Nov'], labels: monthLabels };
  }),
];

/** The forms that a span's label may have, the longest first. */
function spanLabels(civil: number, { unit }: Step): string[] {
  const year = yearOf(civil);
  if (unit === 'year') return [`${year}`];
  const month = monthName(civil);
  const short = month.slice(0, 3);
  if (unit === 'month') return [`${month} ${year}`, `${short} ${year}`, short];
  const date = dateText(civil);
  return [`${weekdayName(civil)} ${date} ${year}`, `${weekdayName(civil)} ${date}`, date, dayNumber(civil)];
}

/**
 * An axis with two lines of labels: round times, and above them the days, months or years that have them. The step depends on
 * the window's length alone, so that it does not change while the window is moved.
 */
export function twoLineAxis(
  window: Period,
  clock: ZoneClock,
  { width, measure, gap }: AxisRoom,
): TwoLineAxis {
  const perMillisecond = width / (window.end - window.start);
  const place = (instant: number): number => (instant - window.start) * perMillisecond;
  const fits = ({ step, widest }: Form): boolean =>
    lengthOfStep(step) * perMillisecond >= measure(widest.at(-1) ?? '') + gap;
  const form = FORMS.find(fits) ?? FORMS.at(-1);
  if (!form) return { spans: [], ticks: [] };
  const { step, over, widest, labels } = form;
  const space = lengthOfStep(step) * perMillisecond - gap;
  const length = Math.max(
    0,
    widest.findIndex((text) => measure(text) <= space),
  );
  let free = Number.NEGATIVE_INFINITY;
  const ticks = beginnings(window, step, clock).map((at): Tick => {
    const x = place(at);
    const label = labels(clock.civil(at))[length] ?? '';
    if (x < free || x + measure(label) > width) return { at, label: '' };
    free = x + measure(label) + gap;
    return { at, label };
  });
  const starts = [floorToStep(window.start, over, clock), ...beginnings(window, over, clock)];
  const spans = [...new Set(starts)].map((start, index, all) => {
    const end = all[index + 1] ?? nextBeginning(start, over, clock);
    const from = Math.max(0, place(start));
    const room = Math.min(width, place(end)) - from - gap;
    const label = spanLabels(clock.civil(start), over).find((text) => measure(text) <= room) ?? '';
    return { start, end, label };
  });
  return { spans, ticks };
}

/** The steps of an axis with one line of labels, the shortest first. */
const STEPS: readonly Step[] = [
  ...[1, 5, 15, 30, 60, 120, 360, 720].map((count) => step('minute', count)),
  ...[DAYS, step('day', 2), step('week'), step('week', 2)],
  ...[1, 2, 3].map((count) => step('month', count)),
  ...[1, 2, 5, 10, 50, 100, 500, 1000].map((count) => step('year', count)),
];

/** More ticks than these fit no width that has one line of labels. */
const MOST_TICKS = 60;

/** A tick without its label. */
interface Mark {
  at: number;
  civil: number;
  /** Whether it is the first moment of its day. */
  isDay: boolean;
}

/**
 * An axis with one line of labels: hours for a day, days for a week, weeks or months for a year. The first label names day and
 * month; the year is named where it is not this year.
 *
 * @param now the current time
 * @param place where an instant lies, from 0 to the room's width
 * @returns in order, within the window; one at its start where no round time lies within
 */
export function oneLineTicks(
  window: Period,
  { clock, now }: { clock: ZoneClock; now: number },
  room: AxisRoom & { place: (instant: number) => number },
): Tick[] {
  const thisYear = yearOf(clock.civil(now));
  const markOf = (at: number): Mark => ({
    at,
    civil: clock.civil(at),
    isDay: floorToStep(at, DAYS, clock) === at,
  });
  for (const each of STEPS) {
    if ((window.end - window.start) / lengthOfStep(each) > MOST_TICKS) continue;
    const days = each.unit === 'minute' ? beginnings(window, DAYS, clock) : [];
    const instants = [...new Set([...days, ...beginnings(window, each, clock)])].toSorted((a, b) => a - b);
    const ticks = instants.length > 0 && labelled(instants.map(markOf), each, thisYear, room);
    if (ticks) return ticks;
  }
  const start = { ...markOf(window.start), isDay: false };
  return labelled([start], step('minute'), thisYear, room) ?? [];
}

/** The ticks with the longest labels for which there is room; undefined where not even the shortest fit. */
function labelled(
  marks: readonly Mark[],
  { unit }: Step,
  thisYear: number,
  { width, place, measure, gap }: Parameters<typeof oneLineTicks>[2],
): Tick[] | undefined {
  const ticks: Tick[] = [];
  // A day that begins at the very end has no room to be named.
  const namesDay = marks.some(
    ({ at, civil, isDay }) => isDay && measure(dateText(civil)) <= width - place(at),
  );
  let before: number | undefined;
  for (const [index, mark] of marks.entries()) {
    const next = marks[index + 1];
    const space = next ? place(next.at) - place(mark.at) - gap : width - place(mark.at);
    const names = labelsOf(mark, unit, before, { thisYear, namesDay });
    const label = names.find((name) => measure(name) <= space);
    if (label === undefined && next) return undefined;
    ticks.push({ at: mark.at, label: label ?? '' });
    if (mark.isDay || !namesDay) before = mark.civil;
  }
  return ticks;
}

/** The labels that a tick may have, the longest first. @param before the civil time of the day that was named last */
function labelsOf(
  { civil, isDay }: Mark,
  unit: Step['unit'],
  before: number | undefined,
  { thisYear, namesDay }: { thisYear: number; namesDay: boolean },
): string[] {
  const [year, month, date] = [yearOf(civil), monthName(civil), dateText(civil)];
  const isNewYear = year !== (before === undefined ? thisYear : yearOf(before));
  if (unit === 'year') return [`${year}`];
  if (unit === 'month') {
    const short = month.slice(0, 3);
    return before !== undefined && !isNewYear ? [short] : [`${short} ${year}`, ...(isNewYear ? [] : [short])];
  }
  const isNewMonth = before === undefined || monthName(before) !== month || isNewYear;
  const dates = [
    ...(isNewYear ? [`${weekdayName(civil)} ${date} ${year}`, `${date} ${year}`] : []),
    ...(isNewMonth ? [`${weekdayName(civil)} ${date}`, date] : []),
  ];
  const time = timeText(civil);
  if (!isDay) return namesDay || before !== undefined ? [time] : dates.map((each) => `${each} ${time}`);
  if (unit === 'week') return isNewYear ? [`${date} ${year}`, date] : [date];
  return isNewMonth ? dates : [`${weekdayName(civil)} ${dayNumber(civil)}`];
}
