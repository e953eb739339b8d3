import { LAST_EVENT_ID_HEADER } from './events.ts';
import {
  DEFAULT_PAGE_ITEMS,
  DEFAULT_POINTS,
  DEFAULT_ROUTES,
  MAX_IDEMPOTENCY_KEY,
  MAX_PAGE_ITEMS,
  MAX_POINTS,
  MAX_REASON,
  MAX_ROUTE_ITEMS,
  MAX_USE_COLUMNS,
  MAX_USE_LINKS,
} from './request-limits.ts';

/** A query parameter or a header of a route. */
export interface Parameter {
  description: string;
  /** An array is of strings: the parameter is repeated. */
  type: 'boolean' | 'string' | 'integer' | 'array';
  /** Default: it may be left out. */
  required?: boolean;
  /** A value that works. */
  example?: string;
  /** Not in the API as it is given: an extension of the reference server. */
  extension?: boolean;
}

const OURS = { extension: true };
const declared =
  (type: Parameter['type']) =>
  (description: string, more: Partial<Parameter> = {}): Parameter => ({ description, type, ...more });
const [flag, text, count] = [declared('boolean'), declared('string'), declared('integer')];

/** Of requests to create or update. */
export const START_NOW = flag('Start at the time of the request; start_date is then null.');
/** Of requests to create or update, and of batches. */
export const DRY_RUN = flag(
  'Decide and answer as if it were done, and leave nothing behind: 200 with the reservation, JSON only.',
  OURS,
);
/** Of questions about what is free: what is asked of the route. */
export const ROUTE_QUERY = {
  via: text('Sites that the route passes, in this order, with commas between them.'),
  avoid: text('Sites that the route does not pass, with commas between them.'),
  direct: flag('Whether one link must connect the two sites.'),
};
/** Of requests to create. */
export const EARLIEST = flag(
  'Book the earliest period of the length `duration` that starts at start_date or later (with start_now=true: now or later) and ends at end_date or earlier.',
  OURS,
);
/** Of batches. */
export const BATCH_EARLIEST = flag(
  'Move all creates later by the smallest common offset at which everything fits; their lengths stay.',
  OURS,
);
/** The header of requests to create, and of batches. */
export const IDEMPOTENCY_KEY = text(
  `Text of the client's own, 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters, such as a UUID. For 24 hours the same request by the same user in the same experiment is answered with the same reservation, so that it can be sent again when the answer was lost; another request under the same key is 409. A refused request leaves its key free. A dry run does not look at it.`,
  OURS,
);
/** Of an administrator's deletion. */
export const REASON = text(
  `Why an administrator of this server deletes the reservation, 1 to ${MAX_REASON} characters; it is kept in the server's log. An administrator, whom the server's operator names, may read and delete any reservation with the user token alone; for everyone else it says nothing.`,
  OURS,
);
/** Of the list of reservations. */
export const LIST_QUERY = {
  state: text('Only those that are scheduled, active or ended.'),
  cursor: text('The previous page’s nextCursor.'),
  limit: count(`Items in a page, 1 to ${MAX_PAGE_ITEMS} (default ${DEFAULT_PAGE_ITEMS}).`),
};

/** Of questions about what is free: when. */
export const WINDOW = {
  start: text('ISO 8601 timestamp: where the window starts. Default: now. At most 24 hours ago.'),
  end: text(
    'ISO 8601 timestamp: where the window ends. Default: 7 days after its start. At most 5 years after it.',
  ),
  cursor: text('The previous page’s nextCursor. It keeps the window.'),
};
/** Of the question when a reservation can start: of which bandwidth and length. */
export const SLOT = {
  bandwidth: text('Mbps.', { required: true, example: '1000' }),
  duration: text(
    'ISO 8601 duration, at least 1 s. The whole reservation lies between the start and the end of the window.',
    { required: true, example: 'PT1H' },
  ),
};
/** The header of that question. */
export const TOKEN_FOR_SHARE = text(
  'An experiment token: then the share that the experiment may have of the link is a limit too.',
);
/** Of the list of routes. */
export const ROUTE_LIMIT = count(`Items in the list, 1 to ${MAX_ROUTE_ITEMS} (default ${DEFAULT_ROUTES}).`);

/** The parameters of a stream of events. */
export const EVENTS_QUERY = {
  since: text(
    `The id of the last event that came: what has changed since is told first, each reservation once, as it is now. A browser's ${LAST_EVENT_ID_HEADER} means the same. Default: from now on.`,
  ),
  links: flag(
    'With an experiment token: whether links that have changed are told too. Without one they alone are told. Default false.',
  ),
};
/** The header of a request for events. */
export const TOKEN_FOR_EVENTS = text("An experiment token: then the experiment's reservations are told.");

/** Of the use of one link. */
export const POINTS = count(
  `Columns of equal length in place of the exact steps, 1 to ${MAX_POINTS}. All are in one page.`,
  { example: '24' },
);
/** Of the use of links: which ones. */
export const USE_LINK: Parameter = {
  type: 'array',
  description: `The two sites of a link, in either order, with a comma between them; for several links it is repeated, ${MAX_USE_LINKS} times at most. Default: all links.`,
};
/** Of the use of links. */
export const USE_POINTS = count(
  `Columns of equal length for each link, 1 to ${MAX_POINTS} (default ${DEFAULT_POINTS}), and ${MAX_USE_COLUMNS} of all those links together at most.`,
  { example: '24' },
);
