import * as v from 'valibot';
import { DAY, WEEK } from './durations.ts';
import {
  countFrom,
  Instant,
  NextCursor,
  ReplyInstant,
  RequestDuration,
  requestInstant,
  SiteName,
} from './fields.ts';
import { describeInput } from './instants.ts';
import { MAX_POINTS, MAX_ROUTE_ITEMS, MAX_USE_LINKS } from './request-limits.ts';
import { ASKED_ROUTE, RequestBandwidth } from './reservation.ts';

/** How long the part of an answer is that a request without an `end` gets, from its start: 7 days, in milliseconds. */
export const DEFAULT_WINDOW = WEEK;
/** The longest window that can be asked about: 5 years of 366 days, in milliseconds. */
export const MAX_WINDOW = 5 * 366 * DAY;
/** How far back a window may start before now: 24 h, in milliseconds. */
export const MAX_PAST = DAY;

const WINDOW = {
  start: v.optional(requestInstant('start')),
  end: v.optional(requestInstant('end')),
  cursor: v.optional(v.string()),
};

const sitesIn = v.pipe(
  v.string(),
  v.transform((text) => text.split(',').filter((site) => site !== '')),
);
/** The parameters about a route, in a query. */
const ROUTE = {
  via: v.optional(v.pipe(sitesIn, ASKED_ROUTE.via.wrapped)),
  avoid: v.optional(v.pipe(sitesIn, ASKED_ROUTE.avoid.wrapped)),
  direct: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^(?:true|false|1|0)$/i, 'direct must be true or false.'),
      v.transform((text) => /^(?:true|1)$/i.test(text)),
      ASKED_ROUTE.direct.wrapped,
    ),
  ),
};

/** A number in a query, from 1 on. */
const requestCount = (name: string, most: number) => {
  const message = (got: string) => `${name} must be a number from 1 to ${most}; ${got}.`;
  return v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[0-9]{1,4}$/, (issue) => message(describeInput(issue.input))),
      v.transform(Number),
      v.minValue(1, message('got 0')),
      v.maxValue(most, (issue) => message(`got ${issue.input}`)),
    ),
  );
};

/** The query of a request for the routes between two sites. */
export const RoutesQuery = v.object({ ...ROUTE, limit: requestCount('limit', MAX_ROUTE_ITEMS) });

/** The query of a request for a link's availability. Times come out in milliseconds. */
export const AvailabilityQuery = v.object({
  ...WINDOW,
  ...ROUTE,
  points: requestCount('points', MAX_POINTS),
});

const linkIn = v.pipe(
  v.string(),
  v.transform((text) => text.split(',')),
  v.tuple([v.string(), v.string()], 'link must be two sites with a comma between them.'),
  v.transform(([site1, site2]) => ({ site1, site2 })),
);
/** The query of a request for the use of links: without `link`, of all. */
export const UseQuery = v.object({
  start: WINDOW.start,
  end: WINDOW.end,
  points: requestCount('points', MAX_POINTS),
  link: v.pipe(
    v.array(linkIn),
    v.maxLength(
      MAX_USE_LINKS,
      ({ received }) => `link may be given ${MAX_USE_LINKS} times; got ${received}.`,
    ),
  ),
});

/** The query of a request for slots. Times and the duration come out in milliseconds, the bandwidth in Mbps. */
export const SlotsQuery = v.object({
  ...WINDOW,
  ...ROUTE,
  bandwidth: RequestBandwidth,
  duration: RequestDuration,
});

/** A part of a window, and what of the link is free in it. Aggregates only: nothing says who holds the rest. */
export const AvailablePart = v.object({
  start_date: Instant,
  end_date: Instant,
  bandwidth: countFrom(0, 'Mbps that are free throughout the part.'),
  bandwidth_max: countFrom(0, 'Mbps that are free at best, for some of the part.'),
  vlans: countFrom(
    0,
    'The fewest free VLAN tags at any instant of the part, at the place of the link that has the fewest. One tag that is free throughout may still be missing.',
  ),
  route: v.optional(countFrom(0, 'The index of its route in `routes`.')),
});
/** See {@link AvailablePart}. */
export type AvailablePart = v.InferOutput<typeof AvailablePart>;

/** The use of a link over a window: the reply of `GET …/links/{site1}/{site2}/availability` (extension). */
export const Availability = v.object({
  site1: SiteName,
  site2: SiteName,
  bandwidth: countFrom(1, 'Capacity of the link in Mbps.'),
  start_date: Instant,
  end_date: Instant,
  exact: v.pipe(
    v.boolean(),
    v.description('Whether the items are the exact steps; with `points` they are columns of equal length.'),
  ),
  items: v.pipe(
    v.array(AvailablePart),
    v.description('The parts of the window, one after the other without a gap.'),
  ),
  routes: v.optional(
    v.pipe(
      v.array(v.array(SiteName)),
      v.description(
        'The routes on which that is free, each with all its sites. Absent where one link connects the two.',
      ),
    ),
  ),
  nextCursor: NextCursor,
});
/** See {@link Availability}. */
export type Availability = v.InferOutput<typeof Availability>;

/** The use of links, in columns: the reply of `GET …/links/use` (extension). */
export const UseList = v.object({ items: v.array(Availability), nextCursor: v.null() });
/** See {@link UseList}. */
export type UseList = v.InferOutput<typeof UseList>;

/** Availability as the client reads it: times in any RFC 3339 form; without the members that were not always there. */
export const AvailabilityReply = v.object({
  ...Availability.entries,
  start_date: ReplyInstant,
  end_date: ReplyInstant,
  items: v.array(v.object({ ...AvailablePart.entries, start_date: ReplyInstant, end_date: ReplyInstant })),
  nextCursor: v.optional(v.nullable(v.string()), null),
});

/** A run of starts: a reservation that starts at any instant from the first to the last one fits. */
export const Slot = v.object({
  first_start_date: Instant,
  last_start_date: v.pipe(
    Instant,
    v.description('The last start for which the whole reservation lies before `end`.'),
  ),
});
/** See {@link Slot}. */
export type Slot = v.InferOutput<typeof Slot>;

/** When a reservation of some bandwidth and duration can start: the reply of `GET …/links/{site1}/{site2}/slots` (extension). */
export const SlotList = v.object({
  items: v.pipe(v.array(Slot), v.description('In order. No start outside of them fits.')),
  nextCursor: NextCursor,
});

/** The list as the client reads it; see {@link AvailabilityReply}. */
export const SlotListReply = v.object({
  items: v.array(v.object({ first_start_date: ReplyInstant, last_start_date: ReplyInstant })),
  nextCursor: v.optional(v.nullable(v.string()), null),
});

/** A route between two sites, and what it can carry where nothing is held. */
export const RouteItem = v.object({
  sites: v.pipe(v.array(SiteName), v.description('All sites that it passes, from one end to the other.')),
  bandwidth: countFrom(1, "Its narrowest link's capacity in Mbps."),
  by_default: v.optional(
    v.pipe(
      v.boolean(),
      v.description(
        'Whether a reservation may take it that asks nothing of its route: no route has fewer hops.',
      ),
    ),
  ),
});
/** See {@link RouteItem}. */
export type RouteItem = v.InferOutput<typeof RouteItem>;

/** The routes between two sites: the reply of `GET …/links/{site1}/{site2}/routes` (extension). */
export const RouteList = v.object({
  items: v.pipe(
    v.array(RouteItem),
    v.description('Those of at most 8 hops that pass no site twice: by hops, then by name.'),
  ),
  nextCursor: v.null(),
});
