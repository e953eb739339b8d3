import { formatBandwidth } from '../../contract/amounts.ts';
import { DAY } from '../../contract/durations.ts';
import type { Period } from '../../contract/instants.ts';
import type { Times } from '../../contract/said.ts';
import {
  type Calendar,
  dateText,
  endText,
  instantText,
  type Step,
  weekdayName,
  yearOf,
} from '../../words/civil-time.ts';
import { linkName } from '../../words/links.ts';
import type { Column, Link, Own } from '../service.ts';

/** `Mon 23 Nov`, of a civil time. */
function dayText(civil: number): string {
  return `${weekdayName(civil)} ${dateText(civil)}`;
}

/** A period in words: `Mon 23 Nov 09:00 to 17:00`, or with both days. */
export function periodText({ start, end }: Period, calendar: Calendar): string {
  return timesIn(calendar).ends(start, end).join(' to ');
}

/** Times in sentences, in the page's zone. */
export function timesIn(calendar: Calendar): Times {
  return {
    instant: (at) => instantText(at, calendar),
    ends: (start, end) => [instantText(start, calendar), endText(start, end, calendar)],
  };
}

/**
 * A window's time as a title: `Sun 22 Nov 2026`, `Sun 22 Nov to Sat 28 Nov 2026` where it consists of whole days, and
 * with times where not.
 */
export function windowText({ start, end }: Period, calendar: Calendar): string {
  const [from, to] = [calendar.clock.civil(start), calendar.clock.civil(end)];
  if (from % DAY !== 0 || to % DAY !== 0) return periodText({ start, end }, calendar);
  const last = to - DAY;
  const year = (civil: number): string => ` ${yearOf(civil)}`;
  if (from === last) return dayText(from) + year(from);
  return `${dayText(from)}${yearOf(from) === yearOf(last) ? '' : year(from)} to ${dayText(last)}${year(last)}`;
}

/** `15 minutes`, `hours`, `days`: what times are rounded to. */
export function stepText({ unit, count }: Step): string {
  const isHours = unit === 'minute' && count % 60 === 0;
  const times = isHours ? count / 60 : count;
  return `${times === 1 ? '' : `${times} `}${isHours ? 'hour' : unit}s`;
}

/** `6 of 10 Gbps`; both units where they differ. */
export function shareText(free: number, of: number): string {
  const [part, whole] = [formatBandwidth(free), formatBandwidth(of)];
  const [number, unit] = part.split(' ');
  return free === 0 || (unit && whole.endsWith(unit))
    ? `${free === 0 ? 0 : number} of ${whole}`
    : `${part} of ${whole}`;
}

/** `996 VLANs`. */
export function vlansText(vlans: number): string {
  return `${vlans} ${vlans === 1 ? 'VLAN' : 'VLANs'}`;
}

/** The free part of a link in some period; see {@link Column}. */
type Free = Pick<Column, 'free' | 'freeMax' | 'vlans'>;

/** The free part of a link, in words: `6 of 10 Gbps free throughout, up to 8 Gbps for part of it, 996 VLANs`. */
export function freeText({ free, freeMax, vlans }: Free, link: Link): string {
  const best = freeMax > free ? `, up to ${formatBandwidth(freeMax)} for part of it` : '';
  return `${shareText(free, link.bandwidth)} free throughout${best}, ${vlansText(vlans)}`;
}

/** My reservation in words: its name, or the end of its id, and its bandwidth. */
export function ownText({ id, name, bandwidth }: Own): string {
  return `${name ?? `…${id.slice(-6)}`} with ${formatBandwidth(bandwidth)}`;
}

/** The most Mbps that my reservations have at the same time, from an instant on. */
export function mostOf(own: readonly Own[], from: number): number {
  const steps = own.flatMap(({ start, end, bandwidth }) => [
    { at: Math.max(start, from), by: bandwidth },
    { at: end, by: -bandwidth },
  ]);
  let [most, sum] = [0, 0];
  // What ends makes room for what begins at that time.
  for (const { by } of steps.toSorted((one, other) => one.at - other.at || one.by - other.by)) {
    sum += by;
    most = Math.max(most, sum);
  }
  return most;
}

/**
 * A period of a link in a sentence, as the live region says it.
 *
 * @param facts undefined where the service was not asked yet; `over` where nothing can be booked any more
 * @example 'be-gent1 – pl-poznan1, Mon 23 Nov 09:00 to 17:00: 6 of 10 Gbps free throughout, 996 VLANs.'
 */
export function periodSentence(
  link: Link,
  period: Period,
  { facts, own, calendar }: { facts: Free | 'over' | undefined; own: readonly Own[]; calendar: Calendar },
): string {
  const free =
    facts === undefined ? 'not loaded yet' : facts === 'over' ? 'this time is over' : freeText(facts, link);
  const [first, ...others] = own;
  const most = formatBandwidth(mostOf(own, period.start));
  // Of many the names would be more than a line can hold.
  const mine =
    first === undefined
      ? ''
      : others.length === 0
        ? `; yours: ${ownText(first)}`
        : `; ${own.length} of yours, ${most} at most`;
  return `${linkName(link)}, ${periodText(period, calendar)}: ${free}${mine}.`;
}

/** The use of a pointer and of a finger: for users who may pick, and for those who may only look. */
export const HINTS = {
  pointer: {
    pick: 'Click on a row for when it starts, or drag over it for all of the time. Drag the dates to move; Ctrl and the wheel zoom.',
    look: 'Point at a row, or drag over it, to see what is free. Drag the dates to move; Ctrl and the wheel zoom.',
  },
  touch: {
    pick: 'Tap a row for when it starts, or rest your finger there and drag. Two fingers zoom.',
    look: 'Tap a row to see what is free, or rest your finger there and drag. Two fingers zoom.',
  },
} as const;

const KEYS =
  'Arrow keys move in time and between links, with Shift left and right change the length; plus and minus zoom; Page Up and Page Down turn pages; Home goes to now';
const SHORT_KEYS = 'Arrows move, + and − zoom, Shift+arrows lengthen';

/** The use of keys: as screen readers say it, and as it is seen while the drawing has the focus. */
export function keysText(mayPick: boolean): { spoken: string; short: string } {
  const enter = mayPick ? 'Enter picks' : 'Enter says again what is free';
  return { spoken: `${KEYS}; ${enter}.`, short: `${SHORT_KEYS}, ${enter}.` };
}
