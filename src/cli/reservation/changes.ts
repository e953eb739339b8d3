import { eventsBetween, type PhaseEvent, phaseAt } from '../../contract/phases.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { instantOf, periodOf } from '../../contract/reservation-request.ts';
import { formatBandwidth } from '../values.ts';

/** The watched reservations as the service knew them at one time. */
export interface Look {
  /** When, in milliseconds. */
  at: number;
  /** All that exist, ended ones too. */
  reservations: readonly Reservation[];
}

/** An event of a watched reservation (cli/README.md, "Output"). */
export type WatchEvent = PhaseEvent | 'updated' | 'deleted';

/** Something that happened to a reservation between two looks. */
export interface SeenChange {
  event: WatchEvent;
  /** When it was seen, in milliseconds. */
  at: number;
  /** As it is now; a deleted one as it was last seen. */
  reservation: Reservation;
  /** Of an update: as it was before. */
  before?: Reservation;
}

/** The tags of a reservation, as a card names them. */
const TAGS = [
  ['site1_s_tag', 'site1', 'S-tag'],
  ['site1_c_tag', 'site1', 'C-tag'],
  ['site2_s_tag', 'site2', 'S-tag'],
  ['site2_c_tag', 'site2', 'C-tag'],
] as const;

/** The members that an update can change. */
const CHANGEABLE = ['bandwidth', 'start_date', 'end_date', ...TAGS.map(([tag]) => tag)] as const;

/**
 * The changes between two looks, by reservation in the order of their starts: first its update, then the
 * events of its period until now. A reservation that is first seen active is `started`, and `ended` where it
 * is first seen ended; where it is first seen scheduled there is no event. That a reservation ends soon is
 * left out where it has ended by now.
 *
 * @param previous undefined: nothing was seen before
 */
export function changesBetween(previous: Look | undefined, next: Look): SeenChange[] {
  const { at } = next;
  const before = new Map((previous?.reservations ?? []).map((one) => [one.id, one]));
  const now = new Map(next.reservations.map((one) => [one.id, one]));
  const gone = [...before.values()].filter(({ id }) => !now.has(id));
  return [...now.values(), ...gone]
    .toSorted((one, other) => instantOf(one.start_date) - instantOf(other.start_date))
    .flatMap((reservation): SeenChange[] => {
      const was = before.get(reservation.id);
      const phaseBefore = was && previous ? phaseAt(previous.at, periodOf(was)) : undefined;
      if (!now.has(reservation.id)) {
        // Services may forget what has ended.
        return phaseBefore === 'ended' ? [] : [{ event: 'deleted', at, reservation }];
      }
      const isUpdated = was && CHANGEABLE.some((member) => was[member] !== reservation[member]);
      const update: SeenChange[] = isUpdated ? [{ event: 'updated', at, reservation, before: was }] : [];
      const events = eventsBetween(phaseBefore, phaseAt(at, periodOf(reservation)));
      return [...update, ...events.map((event): SeenChange => ({ event, at, reservation }))];
    });
}

/**
 * The changes of rate and tags, in words.
 *
 * @example ['1 Gbps → 2 Gbps', 'S-tag of be-gent1 5 → 6']
 */
export function rateAndTagChanges(before: Reservation, now: Reservation): string[] {
  const isOther = before.bandwidth !== now.bandwidth;
  return [
    ...(isOther ? [`${formatBandwidth(before.bandwidth)} → ${formatBandwidth(now.bandwidth)}`] : []),
    ...TAGS.flatMap(([tag, site, name]) =>
      before[tag] === now[tag] ? [] : [`${name} of ${now[site]} ${before[tag]} → ${now[tag]}`],
    ),
  ];
}
