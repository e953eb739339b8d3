import * as v from 'valibot';
import { Failure } from '../contract/failure.ts';
import { type Reservation, ReservationReply } from '../contract/reservation.ts';
import { readAs } from './exchange.ts';
import type { Reply } from './reply-failure.ts';

/** The most that is read of a list in all its pages, in characters (HOSTILE.md 56). */
const MAX_LIST = 64 * 1_048_576;
/** The most pages that are asked for: pages without items would never fill {@link MAX_LIST}. */
const MAX_PAGES = 1000;

const Page = v.object({
  items: v.array(ReservationReply),
  nextCursor: v.optional(v.nullable(v.string()), null),
});

/**
 * All pages of a list of reservations; undefined where the service has no list.
 *
 * @param query of the first page, such as `?limit=1000`
 * @param ask undefined where the service has no list
 * @throws Failure `reply_invalid` for a list that does not end: a cursor that comes again, or too much in all
 */
export async function readPages(
  query: string,
  ask: (query: string) => Promise<Reply | undefined>,
): Promise<Reservation[] | undefined> {
  const found: Reservation[] = [];
  const cursors = new Set<string>();
  let size = 0;
  for (let next = query; ; ) {
    const reply = await ask(next);
    if (!reply) return undefined;
    const { items, nextCursor } = readAs(Page, reply, 'list of reservations');
    found.push(...items);
    if (nextCursor === null) return found;
    if (cursors.has(nextCursor)) throw endless('A page names an earlier page as its next page.');
    cursors.add(nextCursor);
    size += reply.text.length;
    if (size > MAX_LIST || cursors.size >= MAX_PAGES) {
      throw endless(`After ${cursors.size} pages and ${size} characters there is still another page.`);
    }
    next = `${query}&cursor=${encodeURIComponent(nextCursor)}`;
  }
}

function endless(why: string): Failure {
  return new Failure('reply_invalid', "The service's list of reservations does not end.", { why });
}
