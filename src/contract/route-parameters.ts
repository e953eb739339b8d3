import { LAST_EVENT_ID_HEADER } from './event-streams.ts';
import {
  DEFAULT_POINTS,
  MAX_IDEMPOTENCY_KEY,
  MAX_POINTS,
  MAX_REASON,
  MAX_USE_COLUMNS,
} from './request-limits.ts';

/** A query parameter or a header of a route. */
export interface Parameter {
  description: string;
  type: 'boolean' | 'string' | 'integer';
  /** Default: it may be left out. */
  required?: boolean;
  /** A value that works. */
  example?: string;
  /** Not in the API as it is given: an extension of the reference server. */
  extension?: boolean;
}

/** Of requests to create or update. */
export const START_NOW: Parameter = {
  description: 'Start at the time of the request; start_date is then null.',
  type: 'boolean',
};
/** Of requests to create or update, and of batches. */
export const DRY_RUN: Parameter = {
  description:
    'Decide and answer as if it were done, and leave nothing behind: 200 with the reservation, JSON only.',
  type: 'boolean',
  extension: true,
};
/** Of questions about what is free: what is asked of the route. */
export const ROUTE_QUERY = {
  via: {
    description: 'Sites that the route passes, in this order, with commas between them.',
    type: 'string',
  },
  avoid: { description: 'Sites that the route does not pass, with commas between them.', type: 'string' },
  direct: { description: 'Whether one link must connect the two sites.', type: 'boolean' },
} as const satisfies Record<string, Parameter>;
/** Of requests to create. */
export const EARLIEST: Parameter = {
  description:
    'Book the earliest period of the length `duration` that starts at start_date or later (with start_now=true: now or later) and ends at end_date or earlier.',
  type: 'boolean',
  extension: true,
};
/** Of batches. */
export const BATCH_EARLIEST: Parameter = {
  description:
    'Move all creates later by the smallest common offset at which everything fits; their lengths stay.',
  type: 'boolean',
  extension: true,
};
/** The header of requests to create, and of batches. */
export const IDEMPOTENCY_KEY: Parameter = {
  description: `Text of the client's own, 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters, such as a UUID. For 24 hours the same request by the same user in the same experiment is answered with the same reservation, so that it can be sent again when the answer was lost; another request under the same key is 409. A refused request leaves its key free. A dry run does not look at it.`,
  type: 'string',
  extension: true,
};
/** Of an administrator's deletion. */
export const REASON: Parameter = {
  description: `Why an administrator of this server deletes the reservation, 1 to ${MAX_REASON} characters; it is kept in the server's log. An administrator, whom the server's operator names, may read and delete any reservation with the user token alone; for everyone else it says nothing.`,
  type: 'string',
  extension: true,
};

/** Of questions about what is free: when. */
export const WINDOW = {
  start: {
    description: 'ISO 8601 timestamp: where the window starts. Default: now. At most 24 hours ago.',
    type: 'string',
  },
  end: {
    description:
      'ISO 8601 timestamp: where the window ends. Default: 7 days after its start. At most 5 years after it.',
    type: 'string',
  },
  cursor: { description: 'The previous page’s nextCursor. It keeps the window.', type: 'string' },
} as const satisfies Record<string, Parameter>;

/** The parameters of a stream of events. */
export const EVENTS_QUERY = {
  since: {
    description: `The id of the last event that came: what has changed since is told first, each reservation once, as it is now. A browser's ${LAST_EVENT_ID_HEADER} means the same. Default: from now on.`,
    type: 'string',
  },
  links: {
    description:
      'With an experiment token: whether links that have changed are told too. Without one they alone are told. Default false.',
    type: 'boolean',
  },
} as const satisfies Record<string, Parameter>;

/** The columns of each link in an answer about all. */
export const USE_POINTS: Parameter = {
  description: `Columns of equal length for each link, 1 to ${MAX_POINTS} (default ${DEFAULT_POINTS}), and ${MAX_USE_COLUMNS} of all links together at most.`,
  type: 'integer',
  example: '24',
};
