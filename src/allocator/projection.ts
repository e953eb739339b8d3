import type { Link } from '../contract/links.ts';
import { LinkCalendar } from './calendar.ts';
import type { LinkTransaction, ReservationStore } from './store.ts';

/** A link's calendar, the version of the link that it stands for, and how far back it reaches. */
export interface Projection {
  calendar: LinkCalendar;
  version: number;
  /** It holds every reservation that ends after this, in milliseconds; it can't tell about earlier times. */
  from: number;
}

/** How long an ended reservation stays in memory, for changes of those that overlapped it: an hour, in milliseconds. */
const KEPT_AFTER_END = 3_600_000;
/** How many ended reservations are let go of at once. */
const LET_GO_AT_ONCE = 64;

/**
 * Reads a link's calendar, from an instant on, without holding its lock.
 *
 * @param share see {@link LinkCalendar}
 */
export async function loadProjection(
  store: ReservationStore,
  link: Link,
  from: number,
  { id, share }: { id: string; share: number | undefined },
): Promise<Projection> {
  const calendar = new LinkCalendar(link, share);
  const version = await store.loadLink(id, from, (portion) => {
    for (const held of portion) calendar.holdNew(held.id, held);
  });
  return { calendar, version, from };
}

/**
 * Brings a calendar to the link's version, and back to an instant: only what changed and what is missing is read. The
 * calendar that is given is changed, and no use any more when this fails.
 *
 * @param known not older than what the link has forgotten
 * @param reach the earliest instant that will be decided about, in milliseconds
 */
export async function carry(
  known: Projection,
  transaction: LinkTransaction,
  reach: number,
): Promise<Projection> {
  const { calendar } = known;
  const { version } = transaction;
  if (known.version !== version) {
    const changes = await transaction.changesSince(known.version);
    // All are let go before any is taken in: one may have taken over what another gave up.
    for (const { id } of changes) calendar.drop(id);
    for (const change of changes) {
      if (!change.cancelled && change.holding.end > known.from) calendar.holdNew(change.id, change.holding);
    }
  }
  if (reach >= known.from) return { ...known, version };
  for (const held of await transaction.endingBetween(reach, known.from)) calendar.hold(held.id, held);
  return { calendar, version, from: reach };
}

/** Lets go of reservations that ended a while ago, a few at a time: memory holds what is to come. */
export function withoutEnded(known: Projection, now: number): Projection {
  const until = now - KEPT_AFTER_END;
  if (until <= known.from || !known.calendar.letGo(until, LET_GO_AT_ONCE)) return known;
  return { ...known, from: until };
}
