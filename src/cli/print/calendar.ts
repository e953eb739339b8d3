import {
  ICalCalendar,
  ICalCalendarMethod,
  type ICalEventData,
  ICalEventStatus,
  ICalEventTransparency,
} from 'ical-generator';
import { formatBandwidth } from '../../contract/amounts.ts';
import type { ListedReservation } from '../../session/reservations/joined-list.ts';
import { knownPeriod, knownRequest, nameOf } from '../../session/reservations/known.ts';
import { linkEnds, linkName, routeName, viaAside } from '../../words/links.ts';
import type { NamedExperiment } from './cards.ts';
import { escapeText } from './output.ts';
import type { ListedIn } from './reservation-table.ts';

/** How sure an event is; CONFIRMED in the other states. */
const STATUS: Partial<Record<ListedReservation['state'], ICalEventStatus>> = {
  deleted: ICalEventStatus.CANCELLED,
  unknown: ICalEventStatus.TENTATIVE,
};

/**
 * Reservations as a calendar (RFC 5545), in UTC, an event each. A request whose outcome is not known is left out where it has
 * no id yet: its event could not be found again.
 *
 * @param listed empty for an empty calendar
 * @param experiments those that were asked about: the calendar's name
 * @param now when the list was read, in milliseconds: of two events with one UID the newer one counts
 */
export function calendar(
  listed: readonly ListedIn[],
  { experiments, now }: { experiments: readonly NamedExperiment[]; now: number },
): string {
  const made = new ICalCalendar({
    prodId: '//slices-conn//list//EN',
    method: ICalCalendarMethod.PUBLISH,
    name: escapeText(experiments.map(({ id, name }) => name ?? id).join(', ')),
    events: listed.flatMap((one) => eventOf(one, now) ?? []),
  });
  return `${made}\r\n`;
}

/** From here on sequences count quarters of a second, which are whole numbers of 32 bits until 2043. */
const SEQUENCE_FROM = Date.UTC(2026, 0, 1);

function eventOf({ item, experiment }: ListedIn, now: number): ICalEventData | undefined {
  const { id, state, reservation } = item;
  const [asked, period] = [knownRequest(item), knownPeriod(item)];
  if (id === null || !asked || !period) return undefined;
  const [name, rate] = [nameOf(item), asked.bandwidth];
  const ends = reservation ? linkEnds(reservation) : [];
  const via = reservation ? viaAside(reservation) : '';
  const about = [
    asked.description,
    ...ends.map(({ site, sTag, cTag }) => `${site}: S-tag ${sTag}, C-tag ${cTag}`),
    `Experiment: ${experiment.name ?? experiment.id}`,
  ];
  return {
    id,
    stamp: new Date(now),
    // Nothing counts the changes that a list has gone through: it is as new as the list, so of two lists the later one counts.
    lastModified: new Date(now),
    sequence: Math.max(0, Math.floor((now - SEQUENCE_FROM) / 250)) + (state === 'deleted' ? 1 : 0),
    created: reservation && new Date(reservation.created_at),
    start: new Date(period.start),
    end: new Date(period.end),
    summary: escapeText(
      `${name === undefined ? '' : `${name}: `}${linkName(asked)}${via}${rate === undefined ? '' : `, ${formatBandwidth(rate)}`}`,
    ),
    location: escapeText(reservation ? routeName(reservation) : linkName(asked)),
    description: about.flatMap((line) => (line ? escapeText(line) : [])).join('\n'),
    status: STATUS[state] ?? ICalEventStatus.CONFIRMED,
    // Nobody is busy while a link is there.
    transparency: ICalEventTransparency.TRANSPARENT,
  };
}
