import type { Window } from '../service.ts';
import { type Clock, floorToStep, lengthOfStep, nextStep, type Step } from './civil-time.ts';
import { placeOf } from './view.ts';
import { dayText, monthName, timeText, weekdayName } from './words.ts';

/** A marked instant of the axis. */
export interface Tick {
  at: number;
  /** Empty where there is no room. */
  label: string;
}

/** The two lines of a time axis: the days, months or years that the window touches, and round times within them. */
export interface Axis {
  /** In order, without a gap. A label is to be drawn at its span's start, or at the window's where that is later. */
  spans: readonly (Window & { label: string })[];
  ticks: readonly Tick[];
}

/** What an axis is made for. */
export interface AxisRoom {
  /** Pixels that the window is wide. */
  width: number;
  /** The width of a label in pixels. */
  measure(label: string): number;
}

/** The least space between two labels, in pixels. */
const GAP = 8;

interface Form {
  step: Step;
  /** The line above. */
  over: Step;
  /** The widest texts of labels, and the labels of a civil time, the longest first. */
  widest: readonly string[];
  labels(civil: number): string[];
}

const [DAYS, MONTHS, YEARS]: readonly [Step, Step, Step] = [
  { unit: 'day', count: 1 },
  { unit: 'month', count: 1 },
  { unit: 'year', count: 1 },
];
const dayNumber = (civil: number): string => `${new Date(civil).getUTCDate()}`;
const dayLabels = (civil: number): string[] => [
  `${weekdayName(civil)} ${dayNumber(civil)}`,
  dayNumber(civil),
];

/** From the closest ticks to the widest. */
const FORMS: readonly Form[] = [
  ...[5, 15, 30, 60, 120, 180, 360, 720].map(
    (count): Form => ({
      step: { unit: 'minute', count },
      over: DAYS,
      widest: ['00:00'],
      labels: (civil) => [timeText(civil)],
    }),
  ),
  { step: DAYS, over: MONTHS, widest: ['Wed 30', '30'], labels: dayLabels },
  { step: { unit: 'week', count: 1 }, over: MONTHS, widest: ['Mon 30', '30'], labels: dayLabels },
  ...[1, 3].map(
    (count): Form => ({
      step: { unit: 'month', count },
      over: YEARS,
      widest: ['September', 'Nov'],
      labels: (civil) => [monthName(civil), monthName(civil).slice(0, 3)],
    }),
  ),
];

/** The forms that a span's label may have, the longest first. */
function spanLabels(civil: number, { unit }: Step): string[] {
  const year = new Date(civil).getUTCFullYear();
  if (unit === 'year') return [`${year}`];
  const month = monthName(civil);
  const short = month.slice(0, 3);
  if (unit === 'month') return [`${month} ${year}`, `${short} ${year}`, short];
  return [`${dayText(civil)} ${year}`, dayText(civil), `${dayNumber(civil)} ${short}`, dayNumber(civil)];
}

/** The instants of a window at which a step begins. */
function beginnings({ start, end }: Window, step: Step, clock: Clock): number[] {
  const found: number[] = [];
  let at = floorToStep(start, step, clock);
  if (at < start) at = nextStep(start, step, clock);
  for (; at < end; at = nextStep(at, step, clock)) found.push(at);
  return found;
}

/**
 * The axis of a window: the closest round times that fit, in the zone's calendar. A day begins at its first moment and has 23
 * or 25 hours where clocks change; weeks begin on Monday. No label reaches into another.
 */
export function axisOf(window: Window, clock: Clock, { width, measure }: AxisRoom): Axis {
  const perMillisecond = width / (window.end - window.start);
  const fits = ({ step, widest }: Form): boolean =>
    lengthOfStep(step) * perMillisecond >= measure(widest.at(-1) ?? '') + GAP;
  const form = FORMS.find(fits) ?? FORMS.at(-1);
  if (!form) return { spans: [], ticks: [] };
  const { step, over, widest, labels } = form;
  const space = lengthOfStep(step) * perMillisecond - GAP;
  const length = Math.max(
    0,
    widest.findIndex((text) => measure(text) <= space),
  );
  let free = Number.NEGATIVE_INFINITY;
  const ticks = beginnings(window, step, clock).map((at): Tick => {
    const x = placeOf(at, window, width);
    const label = labels(clock.civil(at))[length] ?? '';
    if (x < free || x + measure(label) > width) return { at, label: '' };
    free = x + measure(label) + GAP;
    return { at, label };
  });
  const starts = [floorToStep(window.start, over, clock), ...beginnings(window, over, clock)];
  const spans = [...new Set(starts)].map((start, index, all) => {
    const end = all[index + 1] ?? nextStep(start, over, clock);
    const from = Math.max(0, placeOf(start, window, width));
    const room = Math.min(width, placeOf(end, window, width)) - from - GAP;
    const label = spanLabels(clock.civil(start), over).find((text) => measure(text) <= room) ?? '';
    return { start, end, label };
  });
  return { spans, ticks };
}
