import type { Link } from '../contract/links.ts';
import { LinkCalendar } from './calendar.ts';
import type { LinkTransaction, ReservationStore } from './store.ts';

/** A link's calendar in memory, the version of the link that it shows, and how far back it reaches. */
export interface CachedCalendar {
  calendar: LinkCalendar;
  version: number;
  /** It holds every reservation that ends after this, in milliseconds; of earlier times it knows nothing. */
  from: number;
}

/** How long an ended reservation stays in memory, for updates of those that overlapped it: 1 h, in milliseconds. */
const KEPT_AFTER_END = 3_600_000;
/** How many ended reservations are evicted at once. */
const EVICTED_AT_ONCE = 64;

/**
 * Reads a link's calendar, from an instant on, without holding its lock.
 *
 * @param share see {@link LinkCalendar}
 */
export async function loadCalendar(
  store: ReservationStore,
  link: Link,
  from: number,
  { id, share }: { id: string; share: number | undefined },
): Promise<CachedCalendar> {
  const calendar = new LinkCalendar(link, share);
  const version = await store.loadLink(id, from, (portion) => {
    for (const held of portion) calendar.add(held.id, held);
  });
  return { calendar, version, from };
}

/**
 * Brings a calendar to the link's version, and back to an earlier instant: it reads only what changed and what is
 * missing. It changes the calendar in place; when it fails, the calendar must be thrown away.
 *
 * @param known not older than what the link has forgotten
 * @param reach the earliest instant that will be decided about, in milliseconds
 */
export async function catchUp(
  known: CachedCalendar,
  transaction: LinkTransaction,
  reach: number,
): Promise<CachedCalendar> {
  const { calendar } = known;
  const { version } = transaction;
  if (known.version !== version) {
    const changes = await transaction.changesSince(known.version);
    // All are removed before any is added: one reservation may have taken the tags that another gave up.
    for (const { id } of changes) calendar.remove(id);
    for (const change of changes) {
      if (!change.deleted && change.holding.end > known.from) calendar.add(change.id, change.holding);
    }
  }
  if (reach >= known.from) return { ...known, version };
  for (const held of await transaction.endingBetween(reach, known.from)) calendar.put(held.id, held);
  return { calendar, version, from: reach };
}

/** Evicts reservations that ended over an hour ago, a few at a time, so that memory holds what is to come. */
export function evictEnded(known: CachedCalendar, now: number): CachedCalendar {
  const until = now - KEPT_AFTER_END;
  if (until <= known.from || !known.calendar.evict(until, EVICTED_AT_ONCE)) return known;
  return { ...known, from: until };
}
