import { HOUR } from './durations.ts';

// Apart from routes.ts, all of which the page's bundle would carry with them.

/** The most reservations in a page of a list. */
export const MAX_PAGE_ITEMS = 1000;
/** How many links a route has at most. */
export const MAX_HOPS = 8;
/** A service surely keeps an idempotency key this long, in milliseconds: a little less than 24 hours (contract/README.md, "Extensions"). */
export const KEY_KEPT = 23 * HOUR;
