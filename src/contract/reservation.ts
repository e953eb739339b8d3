import * as v from 'valibot';
import {
  countFrom,
  describedInstant,
  ExperimentId,
  extension,
  Instant,
  RequestDuration,
  ReservationId,
  ReservationName,
  requestInstant,
  SiteName,
  UserId,
} from './fields.ts';
import { describeInput, EXAMPLE_END } from './instants.ts';
import { MAX_HOPS, MAX_VOLUME } from './request-limits.ts';
import { isOneLine } from './visible-text.ts';

/**
 * The members of a reservation that hold text of its user. They are kept, shown and signed as they were given. No decision
 * depends on them, except that a name must be free. src/README.md, "How to add", says where a new one stands.
 */
export const RESERVATION_TEXTS = ['name', 'description'] as const;
/** One of {@link RESERVATION_TEXTS}. */
export type ReservationText = (typeof RESERVATION_TEXTS)[number];
/** The texts of a reservation, or of a request; in an update, an empty text takes the reservation's own away. */
export type ReservationTexts = { [Text in ReservationText]?: string };

/** The texts that something has, without its other members. */
export function textsOf(source: ReservationTexts): ReservationTexts {
  const texts: ReservationTexts = {};
  for (const member of RESERVATION_TEXTS) {
    if (source[member] !== undefined) texts[member] = source[member];
  }
  return texts;
}

/** A copy with the texts of a change: each replaces the one before, and an empty one takes it away. */
export function withTexts<Texts extends ReservationTexts>(source: Texts, change: ReservationTexts): Texts {
  const changed = { ...source, ...textsOf(change) };
  for (const member of RESERVATION_TEXTS) if (changed[member] === '') delete changed[member];
  return changed;
}

/** What is asked of a reservation's route; see {@link ASKED_ROUTE}. Absent members ask nothing. */
export type AskedRoute = {
  [Member in keyof typeof ASKED_ROUTE]?: v.InferInput<(typeof ASKED_ROUTE)[Member]>;
};

/** The members about the route alone. */
export function askedRouteOf({ via, avoid, direct }: AskedRoute): AskedRoute {
  return { via, avoid, direct };
}

/** Whether anything is asked of a route. */
export function asksForRoute({ via = [], avoid = [], direct = false }: AskedRoute): boolean {
  return direct || via.length + avoid.length > 0;
}

/** Whether two requests ask the same of their routes. */
export function isSameRoute(one: AskedRoute, other: AskedRoute): boolean {
  const told = ({ via = [], avoid = [], direct = false }: AskedRoute): string =>
    JSON.stringify([via, avoid, direct]);
  return told(one) === told(other);
}

/** How a route is not what was asked for: a site that it must pass and does not, or passes and must not; or it has several hops. */
export type RouteFault = { asked: 'via' | 'avoid'; site: string } | { asked: 'direct' };

/**
 * The first way in which a reservation's route is not what was asked for; undefined where it is.
 *
 * @param asked its sites may be named in either order: `via` is from its `site1` on
 */
export function routeFault(
  reservation: { site1: string; via?: readonly string[] },
  asked: AskedRoute & { site1: string },
): RouteFault | undefined {
  const { via: passed = [], site1 } = reservation;
  const rest = site1 === asked.site1 ? [...passed] : passed.toReversed();
  if (asked.direct && passed.length > 0) return { asked: 'direct' };
  const avoided = asked.avoid?.find((site) => passed.includes(site));
  if (avoided !== undefined) return { asked: 'avoid', site: avoided };
  for (const site of asked.via ?? []) {
    const at = rest.indexOf(site);
    if (at === -1) return { asked: 'via', site };
    rest.splice(0, at + 1);
  }
  return undefined;
}

/** A VLAN tag as IEEE 802.1Q allows it: 1 to 4094. */
export const VlanTag = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(4094));

const sTag = v.pipe(
  VlanTag,
  v.description('Service VLAN tag assigned by the service, for the connection between nodes.'),
);
const cTag = v.pipe(
  VlanTag,
  v.description('Client VLAN tag assigned by the service, for connections between sites or services (QinQ).'),
);

/** The longest description of a reservation, in characters. */
const MAX_DESCRIPTION = 200;

/** The purpose of a reservation, in its user's words: one line, or empty for none. */
const Description = v.pipe(
  v.string((issue) => `description must be a text; ${describeInput(issue.input)}.`),
  v.check(
    (text) => isOneLine(text, MAX_DESCRIPTION),
    `description must be one line of at most ${MAX_DESCRIPTION} printable characters.`,
  ),
  v.description(`What the reservation is for: one line of at most ${MAX_DESCRIPTION} characters.`),
  v.examples(['Nightly copy of the measurements']),
  extension(),
);

/** The texts of a reservation: extensions; see {@link RESERVATION_TEXTS}. */
const TEXTS = {
  name: v.optional(ReservationName),
  description: v.optional(Description),
} satisfies Record<ReservationText, v.GenericSchema>;

const Via = v.pipe(
  v.array(SiteName),
  v.description(
    'The sites that the route passes, in order from site1 to site2. Absent where one link connects the two.',
  ),
  extension(),
);

/** A link of a reservation's route with its tags. */
const RouteHop = v.object({
  ...{ site1: SiteName, site2: SiteName },
  ...{ site1_s_tag: sTag, site1_c_tag: cTag, site2_s_tag: sTag, site2_c_tag: cTag },
});
/** See {@link RouteHop}. */
export type RouteHop = v.InferOutput<typeof RouteHop>;

const Hops = v.pipe(
  v.array(RouteHop),
  v.description(
    'For an administrator of the server only, and not signed: the links of the route from site1 to site2, each with its tags.',
  ),
  extension(),
);

/** The most sites that a request can name to be avoided. */
const MAX_AVOIDED = 64;

const requestSites = (name: 'via' | 'avoid', most: number, description: string) =>
  v.optional(
    v.pipe(
      v.array(v.string(`${name} must hold names of sites.`), `${name} must be an array of names of sites.`),
      v.maxLength(most, `${name} holds more than ${most} sites.`),
      v.description(description),
      v.examples([['pl-poznan1']]),
      extension(),
      // None is the same request as no member.
      v.transform((sites) => (sites.length > 0 ? sites : undefined)),
    ),
  );

/** The members of a request that are about its route: extensions (contract/README.md, "Extensions"). */
export const ASKED_ROUTE = {
  via: requestSites('via', MAX_HOPS - 1, 'The sites that the route passes, in this order from site1 on.'),
  avoid: requestSites('avoid', MAX_AVOIDED, 'The sites that the route does not pass.'),
  direct: v.optional(
    v.pipe(
      v.boolean('direct must be true or false.'),
      v.description('Whether one link must connect the two sites.'),
      extension(),
      v.transform((direct) => direct || undefined),
    ),
  ),
};

/** A reservation as the reference server answers it (contract/README.md, "Connectivity reservation"). */
export const Reservation = v.object({
  id: ReservationId,
  site1: SiteName,
  site2: SiteName,
  bandwidth: countFrom(1, 'Mbps.'),
  start_date: Instant,
  end_date: describedInstant('Not later than the expiry of the experiment.'),
  experiment_id: ExperimentId,
  created_at: Instant,
  created_by: UserId,
  site1_s_tag: sTag,
  site1_c_tag: cTag,
  site2_s_tag: sTag,
  site2_c_tag: cTag,
  via: v.optional(Via),
  hops: v.optional(Hops),
  ...TEXTS,
});
/** See {@link Reservation}. */
export type Reservation = v.InferOutput<typeof Reservation>;

/**
 * A reservation as the client reads it from any service (contract/README.md, "Decided here", column Client):
 * bandwidth as a number or as digits, members that the spec does not name ignored. The output is a {@link Reservation}.
 */
export const ReservationReply = v.object({
  ...Reservation.entries,
  bandwidth: v.pipe(
    v.union([v.number(), v.pipe(v.string(), v.regex(/^[0-9]{1,15}$/), v.transform(Number))]),
    v.integer(),
    v.minValue(1),
  ),
  // Another service may mean something else by it.
  via: v.fallback(v.optional(Via), undefined),
  hops: v.fallback(v.optional(Hops), undefined),
  name: v.fallback(TEXTS.name, undefined),
  description: v.fallback(TEXTS.description, undefined),
});

/** The longest list of tokens in a request; more is refused before any is verified. */
export const MAX_TOKENS = 16;

const requestSite = (name: string) =>
  v.pipe(
    v.string((issue) => `${name} must be the name of a site; ${describeInput(issue.input)}.`),
    v.description('One of the available sites, in either order.'),
    v.examples([name === 'site1' ? 'be-gent1' : 'pl-poznan1']),
  );

/** A bandwidth in a request, as digits. Comes out in Mbps. */
export const RequestBandwidth = v.pipe(
  v.string(
    (issue) =>
      `bandwidth must be a string of digits, in Mbps, such as "1000"; ${describeInput(issue.input)}.`,
  ),
  v.regex(
    /^[0-9]+$/,
    (issue) =>
      `bandwidth must be a string of the digits 0 to 9, in Mbps, such as "1000"; ${describeInput(issue.input)}.`,
  ),
  v.examples(['1000']),
  v.maxLength(15, 'bandwidth is more than any link has.'),
  v.transform(Number),
  v.minValue(1, 'bandwidth must be at least 1 Mbps.'),
  v.description('Mbps, as a string of digits.'),
);

const requestTokens = v.pipe(
  v.array(v.string('tokens must hold strings.'), 'tokens must be an array of JWTs, which may be empty.'),
  v.maxLength(MAX_TOKENS, `tokens holds more than ${MAX_TOKENS}.`),
  v.description(
    'JWTs: the user token, the experiment token, or both. May be empty when the headers carry what is needed.',
  ),
);

const requestVolume = v.pipe(
  v.string((issue) => `volume must be a string of digits, in bytes; ${describeInput(issue.input)}.`),
  v.regex(
    /^[0-9]{1,16}$/,
    (issue) =>
      `volume must be a string of 1 to 16 of the digits 0 to 9, in bytes; ${describeInput(issue.input)}.`,
  ),
  v.transform(Number),
  v.minValue(1, 'volume must be at least 1 byte.'),
  v.maxValue(MAX_VOLUME, `volume must be at most ${MAX_VOLUME} bytes.`),
);

/** The members that the API as it is given names. */
const SPECIFIED = {
  site1: requestSite('site1'),
  site2: requestSite('site2'),
  bandwidth: RequestBandwidth,
  start_date: v.pipe(
    v.nullable(requestInstant('start_date')),
    v.description('ISO 8601 UTC timestamp. Must be null when start_now=true.'),
  ),
  end_date: requestInstant('end_date', EXAMPLE_END),
  tokens: requestTokens,
};

/**
 * The body of a create request for a period (contract/README.md, "POST"), with texts and what is asked of the route. Dates come out as
 * milliseconds, bandwidth as Mbps.
 */
export const PeriodBody = v.object({ ...SPECIFIED, ...TEXTS, ...ASKED_ROUTE });

/** Every create request as it travels: a {@link PeriodBody}, with the extensions `duration` and `volume`. */
export const ReservationRequestBody = v.object({
  ...PeriodBody.entries,
  bandwidth: v.pipe(
    v.optional(RequestBandwidth),
    v.description(
      'Mbps, as a string of digits. With `volume` it is the most that may be used, and may be absent; else it is required.',
    ),
  ),
  duration: v.pipe(
    v.optional(RequestDuration),
    v.description(
      'With earliest=true: how long the reservation lasts, an ISO 8601 duration of at least 1 s.',
    ),
    extension(),
  ),
  volume: v.pipe(
    v.optional(requestVolume),
    v.description(
      `Bytes to be carried between start_date and end_date, as a string of digits, 1 to ${MAX_VOLUME}. The reservation gets one constant rate and the period that finishes first.`,
    ),
    extension(),
  ),
});
/** See {@link ReservationRequestBody}: dates as timestamps, bandwidth and volume as digits. */
export type ReservationRequestBody = v.InferInput<typeof ReservationRequestBody>;

/** The body of an update: as for creation; absent members keep their values (contract/README.md, "PUT"). */
export const ReservationUpdate = v.partial(v.object({ ...SPECIFIED, ...TEXTS }));

/** The most items of a batch; it has one at least (contract/README.md, "Extensions"). */
export const MAX_ITEMS = 64;

/** The action of an item of a batch. */
export const BATCH_ACTIONS = ['create', 'update', 'delete'] as const;
/** One of {@link BATCH_ACTIONS}. */
export type BatchAction = (typeof BATCH_ACTIONS)[number];

const STARTS = 'ISO 8601 UTC timestamp, or null: at the time of the request.';
const { tokens, ...created } = PeriodBody.entries;
const { tokens: _tokens, ...updated } = ReservationUpdate.entries;

/** One change of a batch as it travels: the members of a single request, without `tokens`, `duration` and `volume`. */
export const BatchItemBody = v.variant('action', [
  v.object({
    action: v.literal('create'),
    ...created,
    start_date: v.pipe(created.start_date, v.description(STARTS)),
  }),
  v.object({
    action: v.literal('update'),
    id: ReservationId,
    ...updated,
    start_date: v.pipe(updated.start_date, v.description(STARTS)),
  }),
  v.object({ action: v.literal('delete'), id: ReservationId }),
]);
/** See {@link BatchItemBody}. */
export type BatchItemBody = v.InferInput<typeof BatchItemBody>;

/** The body of a batch. */
export const BatchRequest = v.object({
  items: v.pipe(
    v.array(BatchItemBody),
    v.minLength(1),
    v.maxLength(MAX_ITEMS),
    v.description('Changes, all of which are made, or none. Each sees those before it.'),
  ),
  tokens,
});

/** The results of a batch, in the order of its items. */
export const BatchResults = v.object({
  items: v.array(
    v.object({
      connectivity: v.pipe(v.nullable(Reservation), v.description('Null for a deletion.')),
      token: v.pipe(
        v.nullable(v.string()),
        v.description('The signed connectivity token. Null for a deletion, and in a dry run.'),
      ),
    }),
  ),
});

/** The same as the client reads it. */
export const BatchResultsReply = v.object({
  items: v.array(
    v.object({
      connectivity: v.optional(v.nullable(ReservationReply), null),
      token: v.optional(v.nullable(v.string()), null),
    }),
  ),
});

const EVENT_TYPES = ['created', 'updated', 'deleted', 'started', 'ending_soon', 'ended'] as const;
/** An event of a reservation. The last three come with time alone. */
export type EventType = (typeof EVENT_TYPES)[number];

/** The data of an event `reservation`: the reservation as it is now; a deleted one as it was last. */
export const ReservationEvent = v.object({
  type: v.picklist(EVENT_TYPES),
  reservation: ReservationReply,
});
/** See {@link ReservationEvent}. */
export type ReservationEvent = v.InferOutput<typeof ReservationEvent>;
