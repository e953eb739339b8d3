import { HOUR } from '../contract/durations.ts';
import type { Link } from '../contract/links.ts';
import { LinkCalendar } from './calendar.ts';
import { Slices } from './event-loop.ts';
import type { HeldReservation, LinkReading, ReservationChange, ReservationStore } from './store.ts';

/** A link's calendar in memory, the version of the link that it shows, and how far back it reaches. */
export interface CachedCalendar {
  calendar: LinkCalendar;
  version: number;
  /** See {@link LinkReading}. */
  history: string;
  /** It holds every reservation that ends after this, in milliseconds; of earlier times it knows nothing. */
  from: number;
}

/** The changes that a calendar lacks to show a version of its link, from an instant on. */
export interface Missing {
  changes: readonly ReservationChange[];
  version: number;
  earlier: readonly HeldReservation[];
  from: number;
}

/** How long an ended reservation stays in memory, for updates of those that overlapped it: 1 h, in milliseconds. */
const KEPT_AFTER_END = HOUR;
/** How many ended reservations are evicted at once. */
const EVICTED_AT_ONCE = 64;

/**
 * Reads a link's calendar, from an instant on, without holding its lock.
 *
 * @param share see {@link LinkCalendar}
 */
export async function loadCalendar(
  store: Pick<ReservationStore, 'loadLink'>,
  link: Link,
  from: number,
  { id, share }: { id: string; share: number | undefined },
): Promise<CachedCalendar> {
  const calendar = new LinkCalendar(link, share);
  const { version, history } = await store.loadLink(id, from, (portion) => {
    for (const held of portion) calendar.append(held.id, held);
  });
  await new Slices().finish(calendar.arrange());
  return { calendar, version, history, from };
}

/**
 * Whether a calendar can be brought to what a link is now: not where it is of another history, or of a later version, as
 * after a failover or in a copy that was restored; nor where rows of deletions that it lacks are gone.
 */
export function canCatchUp(
  known: CachedCalendar,
  link: Pick<LinkReading, 'version' | 'history' | 'forgotten'>,
): boolean {
  return known.history === link.history && known.version >= link.forgotten && known.version <= link.version;
}

/**
 * Reads what a calendar lacks: what changed since its version, and what ended before the time that it knows.
 *
 * @param known see {@link canCatchUp}
 * @param reach the earliest instant that will be decided about, in milliseconds
 */
export async function readMissing(
  { version, from }: CachedCalendar,
  link: LinkReading,
  reach: number,
): Promise<Missing> {
  const [changes, earlier] = await Promise.all([
    version === link.version ? [] : link.changesSince(version),
    reach < from ? link.endingBetween(reach, from) : [],
  ]);
  return { changes, version: link.version, earlier, from: Math.min(reach, from) };
}

/** Adds what a calendar lacks. It changes the calendar in place; when it fails, the calendar must be thrown away. */
export function catchUp(
  { calendar, history, from: known }: CachedCalendar,
  { changes, earlier, version, from }: Missing,
): CachedCalendar {
  // All are removed before any is added: one reservation may have taken the tags that another gave up.
  for (const { id } of changes) calendar.remove(id);
  for (const change of changes) {
    if (!change.deleted && change.holding.end > known) calendar.add(change.id, change.holding);
  }
  for (const held of earlier) calendar.put(held.id, held);
  return { calendar, version, history, from };
}

/** Evicts reservations that ended over an hour ago, a few at a time, so that memory holds what is to come. */
export function evictEnded(known: CachedCalendar, now: number): CachedCalendar {
  const until = now - KEPT_AFTER_END;
  if (until <= known.from) return known;
  const evicted = known.calendar.evict(until, EVICTED_AT_ONCE);
  return evicted === undefined ? known : { ...known, from: Math.max(known.from, evicted) };
}
