import { Failure } from '../contract/failure.ts';
import type { Query } from './exchange.ts';
import type { Reply } from './reply-failure.ts';

/** The most that is read of a list in all its pages, in characters (THREATS.md 56). */
const MAX_LIST = 64 * 1_048_576;
/** The most pages that are asked for: pages without items would never fill {@link MAX_LIST}. */
const MAX_PAGES = 1000;

/**
 * Reads all pages of a list.
 *
 * @param query of the first page
 * @param what names it in an error, such as "list of reservations"
 * @param ask fetches a page
 * @throws Failure `reply_invalid` for a list that does not end: a cursor that comes again, or too much in all
 */
export async function readPages<Page extends { nextCursor: string | null }>(
  query: Query,
  what: string,
  read: (reply: Reply) => Page,
  ask: (query: Query) => Promise<Reply>,
): Promise<Page[]> {
  const pages: Page[] = [];
  const cursors = new Set<string>();
  let size = 0;
  for (let next: Query = query; ; ) {
    const reply = await ask(next);
    const page = read(reply);
    pages.push(page);
    const { nextCursor } = page;
    if (nextCursor === null) return pages;
    if (cursors.has(nextCursor)) throw endless(what, 'A page names an earlier page as its next page.');
    cursors.add(nextCursor);
    size += reply.text.length;
    if (size > MAX_LIST || cursors.size >= MAX_PAGES) {
      throw endless(what, `After ${cursors.size} pages and ${size} characters there is still another page.`);
    }
    next = { ...query, cursor: nextCursor };
  }
}

function endless(what: string, why: string): Failure {
  return new Failure('reply_invalid', `The service's ${what} does not end.`, { why });
}
