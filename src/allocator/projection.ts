import type { Link } from '../contract/links.ts';
import { LinkCalendar } from './calendar.ts';
import type { LinkTransaction } from './store.ts';

/** A link's calendar, the version of the link that it stands for, and how far back it reaches. */
export interface Projection {
  calendar: LinkCalendar;
  version: number;
  /** It holds every reservation that ends after this, in milliseconds; it can't tell about earlier times. */
  from: number;
}

/** Brings a calendar to the link's version: from the rows that changed, or from all when it does not reach back far enough. */
export async function carry(
  known: Projection | undefined,
  link: Link,
  transaction: LinkTransaction,
  from: number,
): Promise<Projection> {
  const { version } = transaction;
  if (!known || from < known.from) {
    const calendar = new LinkCalendar(link);
    for (const record of await transaction.endingAfter(from)) calendar.hold(record.id, record);
    return { calendar, version, from };
  }
  if (known.version !== version) {
    const changes = await transaction.changesSince(known.version);
    // All are let go before any is taken in: one may have taken over what another gave up.
    for (const { id } of changes) known.calendar.drop(id);
    for (const change of changes) {
      if (!change.cancelled) known.calendar.hold(change.id, change.record);
    }
  }
  return { ...known, version };
}
