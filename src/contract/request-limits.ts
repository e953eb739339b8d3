import { HOUR } from './durations.ts';

// Apart from routes.ts, all of which the page's bundle would carry with them.

/** The most reservations in a page of a list. */
export const MAX_PAGE_ITEMS = 1000;
/** How many links a route has at most. */
export const MAX_HOPS = 8;
/** The reservations in a page of a list without `limit`. */
export const DEFAULT_PAGE_ITEMS = 100;
/** The most columns that a question about a link's use can ask for. */
export const MAX_POINTS = 2000;
/** The most routes that a list of them has. */
export const MAX_ROUTE_ITEMS = 100;
/** The routes in a list without `limit`. */
export const DEFAULT_ROUTES = 20;
/** A service surely keeps an idempotency key this long, in milliseconds: a little less than 24 hours (contract/README.md, "Extensions"). */
export const KEY_KEPT = 23 * HOUR;
/** The longest `Idempotency-Key`, in characters, of ASCII that prints. */
export const MAX_IDEMPOTENCY_KEY = 255;
/** The longest `reason` of an administrator's deletion, in characters. */
export const MAX_REASON = 200;
/** The largest volume that a request can name, in bytes: the largest whole number that JavaScript holds exactly. */
export const MAX_VOLUME = Number.MAX_SAFE_INTEGER;
/** The columns of each link in an answer about all links without `points`. */
export const DEFAULT_POINTS = 100;
/** The most links that a question about the use of links names. */
export const MAX_USE_LINKS = 40;
/** The most columns in an answer about all links. */
export const MAX_USE_COLUMNS = 50_000;
