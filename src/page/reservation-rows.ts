import { DAY, formatDuration, HOUR, MINUTE, SECOND } from '../contract/durations.ts';
import { type Period, stateAt } from '../contract/instants.ts';
import { type Calendar, dateText, startOfDay, timeText, weekdayName, yearOf } from '../words/civil-time.ts';
import { ON_THE_WAY } from './draft.ts';

/** The groups of the list, in their order. */
export const GROUPS = ['now', 'today', 'later', 'ended'] as const;
/** One of {@link GROUPS}. */
export type Group = (typeof GROUPS)[number];

/** A reservation with the group in which it stands. */
export interface Placed<One> {
  own: One;
  group: Group;
}

/** A reservation as the list orders it. */
type Listed = Period & { id: string };

/** The group of a reservation: `today` and `later` are those that start then. */
export function groupAt(own: Period, { clock, now }: Calendar): Group {
  const state = stateAt(now, own);
  if (state !== 'scheduled') return state === 'active' ? 'now' : 'ended';
  return startOfDay(clock.civil(own.start)) === startOfDay(clock.civil(now)) ? 'today' : 'later';
}

/**
 * The reservations by group: active ones by their end, scheduled ones by their start, ended ones from the last on.
 *
 * @param kept rows that stay where they are: what is new stands behind what it stands behind in the list
 */
export function placed<One extends Listed>(
  list: readonly One[],
  calendar: Calendar,
  kept: readonly Placed<One>[] = [],
): Placed<One>[] {
  const all = list.map((own) => {
    const group = groupAt(own, calendar);
    return { own, group, key: group === 'now' ? own.end : group === 'ended' ? -own.end : own.start };
  });
  const sorted = GROUPS.flatMap((group) =>
    all
      .filter((one) => one.group === group)
      .toSorted((one, other) => one.key - other.key || (one.own.id < other.own.id ? -1 : 1)),
  );
  if (kept.length === 0) return sorted;
  const known = new Map(list.map((own) => [own.id, own]));
  const rows = kept.flatMap(({ own, group }) => {
    const now = known.get(own.id);
    return now ? [{ own: now, group }] : [];
  });
  const ids = new Set(rows.map(({ own }) => own.id));
  for (const [index, row] of sorted.entries()) {
    if (ids.has(row.own.id)) continue;
    const before = sorted[index - 1]?.own.id;
    rows.splice(rows.findIndex(({ own }) => own.id === before) + 1, 0, row);
    ids.add(row.own.id);
  }
  return rows;
}

/** The last instant at which what the list says of some reservations has changed: a minute's begin, a start or an end. */
export function lastChange(list: readonly Period[], now: number): number {
  let last = now - (now % MINUTE);
  for (const { start, end } of list) {
    for (const at of [start, end, end - ENDING]) if (at > last && at <= now) last = at;
  }
  return last;
}

/** How long before its end a reservation is `ending`, in milliseconds. */
const ENDING = ON_THE_WAY + SECOND;

/** Whether a reservation is in its last seconds, as one that was ended is until the service has seen to it. */
export function isEnding({ start, end }: Period, now: number): boolean {
  return start <= now && now < end && end - now <= ENDING;
}

/** How far away a start or an end is that comes within the hour; else empty. @example 'starts in 25 min' */
export function nextText({ start, end }: Period, now: number): string {
  const [what, away] = now < start ? ['starts', start - now] : ['ends', end - now];
  if (away <= 0 || away >= HOUR || isEnding({ start, end }, now)) return '';
  return `${what} in ${Math.max(1, Math.floor(away / MINUTE))} min`;
}

/** A period as a row shows it. @example 'today 20:09 – 23:39, 3 h 30' */
export function whenText({ start, end }: Period, { clock, now }: Calendar): string {
  const [from, to, current] = [clock.civil(start), clock.civil(end), clock.civil(now)];
  const today = startOfDay(current);
  const dayOf = (civil: number): string => {
    const away = Math.round((startOfDay(civil) - today) / DAY);
    const name = ['yesterday', 'today', 'tomorrow'][away + 1];
    const year = yearOf(civil) === yearOf(current) ? '' : ` ${yearOf(civil)}`;
    return name ?? `${weekdayName(civil)} ${dateText(civil)}${year}`;
  };
  const isOneDay = startOfDay(from) === startOfDay(to);
  const until = `${isOneDay ? '' : `${dayOf(to)} `}${timeText(to)}`;
  const length = formatDuration(Math.round((end - start) / MINUTE) * MINUTE).replace(/(h \d+) min$/, '$1');
  return `${dayOf(from)} ${timeText(from)} – ${until}, ${length}`;
}
