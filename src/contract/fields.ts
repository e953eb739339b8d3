import * as v from 'valibot';
import { readIsoDuration } from './durations.ts';
import { describeInput, EXAMPLE_START, formatInstant, parseInstant } from './instants.ts';

/** The kinds of identifiers: each has its prefix before the first underscore (contract/README.md, "Connectivity reservation"). */
export const ID_PREFIXES = { user: 'user', project: 'proj', experiment: 'exp', reservation: 'con' } as const;
/** One of `user`, `project`, `experiment`, `reservation`. */
export type IdKind = keyof typeof ID_PREFIXES;
/** An identifier of each kind, for examples. */
export const EXAMPLE_IDS = {
  user: 'user_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  project: 'proj_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  experiment: 'exp_portal.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
  reservation: 'con_conn.example.org_01jd3x0m2sf0vrv9mhb1wk6x4q',
} as const satisfies Record<IdKind, string>;

/**
 * The kind of thing that an identifier names, by its prefix; undefined for anything else.
 *
 * @example idKind('con_conn.example.org_01jd3x') // 'reservation'
 */
export function idKind(id: string): IdKind | undefined {
  const [prefix, rest] = id.split('_', 2);
  if (rest === undefined) return undefined;
  return (Object.keys(ID_PREFIXES) as IdKind[]).find((kind) => ID_PREFIXES[kind] === prefix);
}

/** The form of a reservation's name (cli/README.md, "Commands"): 1 to 64 of `a` to `z`, `0` to `9` and `-`, a letter first. */
export const RESERVATION_NAME = /^[a-z][a-z0-9-]{0,63}$/;

/** Crockford's alphabet in lower case: no i, l, o, u, so that an id can be read aloud. */
const BASE32 = '0123456789abcdefghjkmnpqrstvwxyz';

/**
 * A new identifier: the prefix, the host, and 26 characters of lower-case base32 that hold the time in
 * milliseconds (48 bits, so ids sort by age) and 80 random bits, as TypeID and ULID do (contract/README.md,
 * "Decided here").
 *
 * @param host host name without a port, as it stands in the service's base address
 * @param now milliseconds since the Unix epoch
 * @param random ten random bytes
 */
export function newId(kind: IdKind, host: string, now: number, random: Uint8Array): string {
  let bits = BigInt(Math.trunc(now));
  for (const byte of random.subarray(0, 10)) bits = (bits << 8n) | BigInt(byte);
  const digits = Array.from(bits.toString(32).padStart(26, '0'), (digit) => Number.parseInt(digit, 32));
  return `${ID_PREFIXES[kind]}_${host}_${digits.map((digit) => BASE32[digit]).join('')}`;
}

const HOST = String.raw`[A-Za-z0-9.:\[\]-]{1,255}`;
const OPAQUE = '[A-Za-z0-9_-]{1,128}';

const idOf = (kind: IdKind) =>
  v.pipe(
    v.string(),
    v.regex(new RegExp(`^${ID_PREFIXES[kind]}_${HOST}_${OPAQUE}$`)),
    v.description(`Format ${ID_PREFIXES[kind]}_<host>_<opaque_id>.`),
    v.examples([EXAMPLE_IDS[kind]]),
  );

/** A user's identifier, `user_<host>_<opaque_id>` (contract/README.md, "User token"). */
export const UserId = idOf('user');
/** A project's identifier, `proj_<host>_<opaque_id>` (contract/README.md, "Project record"). */
export const ProjectId = idOf('project');
/** An experiment's identifier, `exp_<host>_<opaque_id>` (contract/README.md, "Connectivity reservation"). */
export const ExperimentId = idOf('experiment');
/** A reservation's identifier, `con_<service_host>_<opaque_id>` (contract/README.md, "Connectivity reservation"). */
export const ReservationId = idOf('reservation');

/** Marks a member that the API as it is given does not name as `x-extension: true` in the API's description. */
export function extension<Input>(): v.MetadataAction<Input, { readonly 'x-extension': true }> {
  return v.metadata({ 'x-extension': true });
}

/** A whole number in a body, from `least` on. */
export const countFrom = (least: number, description: string) =>
  v.pipe(v.number(), v.integer(), v.minValue(least), v.description(description));

/** A text in a body. */
export const describedText = (description: string) => v.pipe(v.string(), v.description(description));

/** Where the next page of a list begins. */
export const NextCursor = v.pipe(
  v.nullable(v.string()),
  v.description('Give it as ?cursor= for the next page.'),
);

/** The name of a reservation, which its user chose: see {@link RESERVATION_NAME}. Extension. */
export const ReservationName = v.pipe(
  v.string((issue) => `name must be a text; ${describeInput(issue.input)}.`),
  v.regex(
    RESERVATION_NAME,
    (issue) =>
      `name must be 1 to 64 of the letters a to z, the digits and "-", a letter first; ${describeInput(issue.input)}.`,
  ),
  v.description(
    "A name of the user's choice, unique among the experiment's reservations that have not ended.",
  ),
  v.examples(['gent-poznan']),
  extension(),
);

/**
 * The name of a site: a lower-case label of 1 to 63 characters, as in contract/README.md, "Available sites".
 *
 * The schema holds the form only. Whether the site exists is the topology's to say, so that the answer to an
 * unknown one can name its nearest neighbour.
 */
export const SiteName = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/),
  v.description('Site name, from the list of sites.'),
  v.examples(['be-gent1', 'pl-poznan1']),
);

/** An {@link Instant} with a meaning of its own. */
export const describedInstant = (description: string) =>
  v.pipe(
    v.string(),
    v.metadata({ format: 'date-time' }),
    v.description(description),
    v.examples([EXAMPLE_START]),
    v.rawTransform<string, string>(({ dataset, addIssue, NEVER }) => {
      const instant = parseInstant(dataset.value, 'utc-if-absent');
      if (instant !== undefined) return formatInstant(instant);
      addIssue({ message: 'not an RFC 3339 timestamp' });
      return NEVER;
    }),
  );

/**
 * A timestamp in a reply: the reference server writes RFC 3339 in UTC with milliseconds. Any service's comes out so
 * (contract/README.md, "Timestamps", column Client).
 */
export const Instant = describedInstant('ISO 8601 UTC timestamp with milliseconds.');

/**
 * A timestamp in a request: RFC 3339 with a zone (contract/README.md, "POST"). Comes out in milliseconds since the Unix epoch.
 *
 * @param name the member, for the message
 * @param example shown in the API's description
 */
export const requestInstant = (name: string, example = EXAMPLE_START) =>
  v.pipe(
    v.string((issue) => `${name} must be an ISO 8601 UTC timestamp; ${describeInput(issue.input)}.`),
    v.examples([example]),
    v.rawTransform<string, number>(({ dataset, addIssue, NEVER }) => {
      const instant = parseInstant(dataset.value);
      if (instant !== undefined) return instant;
      addIssue({
        message: `${name} must be a day and time that exist, as an ISO 8601 UTC timestamp with a zone, such as 2026-12-01T10:00:00.000Z; ${describeInput(dataset.value)}.`,
      });
      return NEVER;
    }),
    v.description('ISO 8601 UTC timestamp.'),
  );

/** The shortest duration that a search can be made for, in milliseconds. */
const MIN_DURATION = 1000;

/** A duration in a request: ISO 8601, at least 1 s. Comes out in milliseconds. */
export const RequestDuration = v.pipe(
  v.string((issue) => `duration must be an ISO 8601 duration, such as PT2H; ${describeInput(issue.input)}.`),
  v.examples(['PT2H']),
  v.rawTransform<string, number>(({ dataset, addIssue, NEVER }) => {
    const duration = readIsoDuration(dataset.value);
    if (duration !== undefined && duration >= MIN_DURATION) return duration;
    addIssue({
      message: `duration must be an ISO 8601 duration of at least 1 s, such as PT2H or P1DT30M; ${describeInput(dataset.value)}.`,
    });
    return NEVER;
  }),
  v.description('ISO 8601 duration, at least 1 s. A day has 24 h.'),
);
