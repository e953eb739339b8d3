import * as v from 'valibot';
import { countFrom, describedInstant, describedText, extension, Instant } from './fields.ts';
import { withoutTokens } from './secret.ts';

/** The allowed values of `detail[].loc` (contract/README.md, "Errors"). */
export const DETAIL_LOCATIONS = ['Site', 'Date', 'Bandwidth'] as const;
/** One of {@link DETAIL_LOCATIONS}. */
export type DetailLocation = (typeof DETAIL_LOCATIONS)[number];

/** All that is the same for every problem of one code. */
interface ProblemKind {
  /** The HTTP status of the reply. */
  status: 400 | 403 | 404 | 405 | 409 | 410 | 413 | 415 | 421 | 422 | 429 | 500 | 503;
  /** The exit code of the command line (cli/README.md, "Exit codes"). */
  exit: 1 | 2 | 3 | 4 | 5 | 6 | 7;
  /** Where the error belongs; left out where it concerns neither sites, dates nor bandwidth. */
  loc?: DetailLocation;
  /** Of requests that create only, or that update only. Default: of both. */
  of?: 'creates' | 'updates';
  /** Whether a request that has only such problems would be accepted with other dates, which are then looked for. */
  curable?: true;
  /** The command of this program that helps, without `slices-conn`, where the failure has no better one. */
  command?: string;
}

/** Sites, dates and bandwidth are refused alike. */
const SITE = { status: 422, exit: 6, loc: 'Site' } as const;
const DATE = { status: 422, exit: 6, loc: 'Date' } as const;
const BANDWIDTH = { status: 422, exit: 6, loc: 'Bandwidth' } as const;
/** A value that only a person can mend. */
const VALUE = { status: 422, exit: 2 } as const;
/** A login is needed, or another one. */
const LOGIN = { status: 403, exit: 4 } as const;
const FORBIDDEN = { status: 403, exit: 5 } as const;

const ROWS = {
  site_invalid: SITE,
  site_unknown: { ...SITE, of: 'creates' },
  sites_equal: { ...SITE, of: 'creates' },
  sites_fixed: { ...SITE, of: 'updates' },
  /** Routes connect the two sites, and none is as `via`, `avoid` and `direct` ask for it. */
  no_route: { ...SITE, of: 'creates' },
  sites_not_connected: SITE,
  date_invalid: { ...DATE, command: 'help times' },
  date_past: { ...DATE, curable: true, command: 'help times' },
  period_empty: { ...DATE, command: 'help times' },
  reservation_started: { ...DATE, of: 'updates', curable: true, command: 'update --help' },
  reservation_ended: { ...DATE, of: 'updates', command: 'list' },
  experiment_ends_first: { ...DATE, curable: true, command: 'experiment show' },
  experiment_expired: { ...DATE, command: 'experiment list' },
  project_ends_first: { ...DATE, curable: true, command: 'project show' },
  project_expired: DATE,
  bandwidth_invalid: BANDWIDTH,
  /** Named beside dates that break a rule, where the link does not have so much. */
  bandwidth_unavailable: { ...BANDWIDTH, curable: true, command: 'sites' },
  /** A volume's own bandwidth: the most it may use carries less until its end, whatever is free. */
  bandwidth_too_low: { ...BANDWIDTH, of: 'creates' },
  vlans_unavailable: { ...BANDWIDTH, command: 'list' },
  share_exceeded: BANDWIDTH,
  /** A search took too long: what it found until then is said, and more may fit. */
  search_given_up: { status: 422, exit: 6 },
  volume_invalid: { ...BANDWIDTH, of: 'creates' },
  tokens_invalid: { status: 422, exit: 1 },
  /** The name of a reservation does not have the form of one. */
  name_invalid: VALUE,
  description_invalid: VALUE,
  /** A batch has no items, too many items, or an entry that is not an item. */
  items_invalid: VALUE,
  experiment_invalid: VALUE,
  /** The project has as many experiments as it may have. */
  experiment_limit_reached: VALUE,
  /** A rule for jobs of a CI is not one, or the experiment has as many as it may have. */
  ci_rule_invalid: VALUE,
  /** The server was started without what the request needs. */
  not_supported: { status: 422, exit: 3 },
  body_unreadable: { status: 400, exit: 1 },
  request_invalid: { status: 400, exit: 1 },
  experiment_tokens_differ: { status: 400, exit: 1 },
  token_missing: LOGIN,
  token_invalid: LOGIN,
  token_expired: LOGIN,
  scope_missing: FORBIDDEN,
  role_not_allowed: FORBIDDEN,
  wrong_experiment: FORBIDDEN,
  wrong_project: FORBIDDEN,
  not_found: { status: 404, exit: 3 },
  method_not_allowed: { status: 405, exit: 1 },
  name_taken: { status: 409, exit: 2, command: 'experiment list' },
  idempotency_key_reused: { status: 409, exit: 2 },
  /** A stream of events can't go on where it ended: the client lists again, and goes on from the present. */
  cursor_too_old: { status: 410, exit: 7 },
  body_too_large: { status: 413, exit: 1 },
  media_type_unsupported: { status: 415, exit: 1 },
  host_unknown: { status: 421, exit: 2 },
  /** The user, or the experiment, has asked for many changes: the answer has `Retry-After`, and nothing was changed. */
  too_many_requests: { status: 429, exit: 7 },
  internal: { status: 500, exit: 7 },
  /** Nothing was done, and it is worth trying again. */
  unavailable: { status: 503, exit: 7 },
  /** The change may have been made or not: only a look at the reservation can tell (THREATS.md 43). */
  outcome_unknown: { status: 503, exit: 7 },
} as const satisfies Record<string, ProblemKind>;

/** A code of the reference server's refusals; see {@link PROBLEMS}. */
export type ProblemCode = keyof typeof ROWS;

/** Every code that the reference server's refusals carry (contract/README.md, "Decided here"): a new code is a new row. */
export const PROBLEMS: Readonly<Record<ProblemCode, ProblemKind>> = ROWS;

/** All {@link PROBLEMS}, in their order. Marked as pure, so that the page's bundle does without the table. */
export const PROBLEM_CODES = /* @__PURE__ */ Object.keys(ROWS) as [ProblemCode, ...ProblemCode[]];

/** Whether a text is one of {@link PROBLEM_CODES}. */
export function isProblemCode(text: unknown): text is ProblemCode {
  return PROBLEM_CODES.some((code) => code === text);
}

/** Refusals by what a link has at the time: something else may be accepted instead. */
export const BY_THE_LINK: readonly string[] = [
  'bandwidth_unavailable',
  'vlans_unavailable',
  'share_exceeded',
] satisfies ProblemCode[];

/** In the answer to a batch: the item that it is about. */
const item = v.optional(
  v.pipe(countFrom(0, 'For a batch: the index of the item that it is about.'), extension()),
);

const fact = (description: string) => v.optional(describedText(description));
const factAt = (description: string) => v.optional(describedInstant(description));
const factSites = (description: string) =>
  v.optional(v.pipe(v.array(v.string()), v.description(description)));
const factCount = (description: string) =>
  v.optional(v.pipe(v.number(), v.integer(), v.description(description)));
const factMbps = factCount('Mbps.');

/** The facts of the message of an error, for programs that say it in their own words. */
export const ProblemFacts = v.object({
  member: fact('The member of the request that is wrong.'),
  at: factAt('The instant that is wrong, or at which it happened.'),
  start_date: factAt('The start of a period.'),
  end_date: factAt('The end of a period.'),
  expires_at: factAt('When the experiment, the project or the token expires.'),
  token: fact('Which token of the request it is about: user, project or experiment.'),
  reason: fact('Why the token is not accepted, as a sentence.'),
  project: fact('The name of the project.'),
  site: fact('The site that is not known.'),
  sites: factSites('The sites that are known.'),
  route: factSites('The sites of the shortest route between the two.'),
  hops: factCount('How many links a route may have.'),
  via: factSites('The sites that no such route passes.'),
  avoid: factSites('The sites that no such route avoids.'),
  name: fact('The name that is taken.'),
  holder: fact('The id of the reservation that has it.'),
  bandwidth: factMbps,
  capacity: factMbps,
  needed: factMbps,
  volume: factCount('Bytes.'),
  address: fact('The address that the server answers for.'),
  hop: factSites('The two sites of the link that has this capacity, where the route has several links.'),
});
/** See {@link ProblemFacts}. */
export type ProblemFacts = v.InferOutput<typeof ProblemFacts>;

/** One error in the `detail` list (contract/README.md, "Validation error body"). */
export const ProblemDetail = v.object({
  loc: v.pipe(
    v.array(v.picklist(DETAIL_LOCATIONS)),
    v.description('Holds one of Site, Date, Bandwidth; empty when the error concerns none of them.'),
  ),
  msg: describedText('What is wrong and what would work, for people.'),
  type: describedText('`NotValid`.'),
  item,
  code: v.optional(v.pipe(v.picklist(PROBLEM_CODES), v.description('The kind of error.'), extension())),
  facts: v.optional(
    v.pipe(ProblemFacts, v.description('What the message was made of. Most errors have none.'), extension()),
  ),
});
/** See {@link ProblemDetail}. */
export type ProblemDetail = v.InferOutput<typeof ProblemDetail>;

/** The kinds of {@link Alternative}, in the order in which a refusal lists them. */
export const ALTERNATIVE_KINDS = ['most_bandwidth', 'other_route', 'earliest', 'longest'] as const;
/** One of {@link ALTERNATIVE_KINDS}. */
export type AlternativeKind = (typeof ALTERNATIVE_KINDS)[number];

/**
 * Something that would have been accepted in place of what was refused: extension of this server, so that a
 * program can offer it. Each is the best of its kind:
 *
 * - `most_bandwidth`: the same period, with as much bandwidth as is free;
 * - `other_route`: the same bandwidth and period, over the best route with more links than the shortest has;
 * - `earliest`: the same bandwidth and duration, as soon as possible;
 * - `longest`: the same start and bandwidth, as long as possible.
 *
 * Its times are whole minutes, but for those that were asked for and the experiment's expiry. It has at least a tenth of the
 * bandwidth; and what is shorter than was asked for lasts at least 10 minutes and a tenth of it.
 */
export const Alternative = v.pipe(
  v.object({
    kind: v.pipe(
      v.picklist(ALTERNATIVE_KINDS),
      v.description(
        '`most_bandwidth`: the same period, as much bandwidth as is free. `other_route`: the same bandwidth and period, over a route with more links. `earliest`: the same bandwidth and duration, as soon as possible. `longest`: the same start and bandwidth, as long as possible.',
      ),
    ),
    start_now: v.pipe(v.boolean(), v.description('Whether it is asked for with start_now=true.')),
    start_date: v.pipe(v.nullable(Instant), v.description('Null where start_now is true.')),
    end_date: Instant,
    bandwidth: countFrom(1, 'Mbps.'),
    via: v.optional(
      v.pipe(v.array(v.string()), v.description('Of `other_route`: the sites between the two, in order.')),
    ),
    item,
  }),
  v.description('A request that would have been accepted at this moment.'),
);
/** See {@link Alternative}. */
export type Alternative = v.InferOutput<typeof Alternative>;

/** The limits that a demand can break; see {@link Limit}. */
export const LIMITS = ['bandwidth', 'tags', 'share'] as const;

/**
 * A limit that a demand broke: extension of this server, so that a program can tell how far it went.
 *
 * Of a `share`, which an operator sets for every project, `capacity` is what one project may have at any instant, with all
 * its experiments,
 * and `free` what is left of it: in Mbps without a layer, in tags with one, in reservations that have not ended where it
 * holds whenever they are, and so has no dates.
 */
export const Limit = v.pipe(
  v.object({
    limit: v.picklist(LIMITS),
    site: v.pipe(v.nullable(v.string()), v.description('The site whose tags it limits; else null.')),
    layer: v.pipe(
      v.nullable(v.picklist(['S', 'C'])),
      v.description('Which of its tags: service or client. Else null.'),
    ),
    capacity: v.pipe(v.number(), v.integer(), v.description('Mbps, tags or reservations in all.')),
    free: countFrom(0, 'How much of it is free.'),
    start_date: v.pipe(
      v.nullable(Instant),
      v.description('Where it was broken, or null for a limit at any time.'),
    ),
    end_date: v.nullable(Instant),
    hop: v.optional(
      v.pipe(
        v.tuple([v.string(), v.string()]),
        v.description('The sites of the link that it is about, where a route has several; else left out.'),
      ),
    ),
    tenant: v.optional(
      v.pipe(v.picklist(['project', 'experiment']), v.description('Whose share it limits; else left out.')),
    ),
    item,
  }),
  v.description('A limit that was broken.'),
);
/** See {@link Limit}. */
export type Limit = v.InferOutput<typeof Limit>;

/** The most parts that a refused period is cut into; see {@link FreePart}. */
export const MAX_FREE_PARTS = 20;

/** A part of the period that was asked for, with the bandwidth that is free throughout it: extension of this server. */
export const FreePart = v.pipe(
  v.object({
    start_date: Instant,
    end_date: Instant,
    bandwidth: countFrom(0, 'Mbps.'),
    item,
  }),
  v.description('A part of the period that was asked for, and what is free throughout it.'),
);
/** See {@link FreePart}. */
export type FreePart = v.InferOutput<typeof FreePart>;

/** The body of every reply of the reference server whose status is not 2xx (contract/README.md, "Status codes"). */
export const ProblemBody = v.object({
  code: v.pipe(
    v.picklist(PROBLEM_CODES),
    v.description('The kind of refusal, for programs. The first one where `detail` holds several.'),
    extension(),
  ),
  detail: v.pipe(v.array(ProblemDetail), v.minLength(1)),
  limits: v.optional(v.pipe(v.array(Limit), v.description('The limits that were broken.'), extension())),
  free: v.optional(
    v.pipe(
      v.array(FreePart),
      v.description(
        `The period that was asked for, in at most ${MAX_FREE_PARTS} parts, with what is free in each; for a batch, of each item that a link refused.`,
      ),
      extension(),
    ),
  ),
  alternatives: v.optional(
    v.pipe(
      v.array(Alternative),
      v.description('What would have been accepted: at most one of each kind; for a batch, of each item.'),
      extension(),
    ),
  ),
});
/** See {@link ProblemBody}. */
export type ProblemBody = v.InferOutput<typeof ProblemBody>;

/** One refusal before it becomes a body: its code, and what to tell the person. */
export interface Problem {
  code: ProblemCode;
  msg: string;
  /** The facts of the message; see {@link ProblemFacts}. */
  facts?: ProblemFacts;
  /** For a batch: the index of the item that it is about. */
  item?: number;
}

/** The members of a refusal by a link in addition to its problems: extensions for programs. */
export interface RefusalFacts {
  /** The limits that the request broke. */
  limits?: readonly Limit[];
  /** The free bandwidth in the period that was asked for. */
  free?: readonly FreePart[];
  /** Requests that would have been accepted. */
  alternatives?: readonly Alternative[];
}

/** The body for one or several problems; the first gives the code. Of the facts, those that are not empty are told. */
export function problemBody(
  problems: readonly [Problem, ...Problem[]],
  { limits = [], free = [], alternatives = [] }: RefusalFacts = {},
): ProblemBody {
  return {
    code: problems[0].code,
    detail: problems.map(({ code, msg, facts, item: index }) => ({
      loc: [PROBLEMS[code].loc ?? []].flat(),
      msg: withoutTokens(msg),
      type: 'NotValid',
      item: index,
      code,
      facts,
    })),
    ...(limits.length > 0 ? { limits: [...limits] } : {}),
    ...(free.length > 0 ? { free: [...free] } : {}),
    ...(alternatives.length > 0 ? { alternatives: [...alternatives] } : {}),
  };
}

/** A schema's issues with a body, as problems: one for each wrong member. @param members the code of each; else `request_invalid` */
export function schemaProblems(
  issues: readonly v.BaseIssue<unknown>[],
  members: Readonly<Record<string, ProblemCode>>,
): Problem[] {
  const found = new Map<string, Problem>();
  for (const { path, message } of issues) {
    const member = String(path?.[0]?.key ?? '');
    const msg = /^Invalid key/.test(message) ? `${member} is missing.` : message;
    if (!found.has(member)) found.set(member, { code: members[member] ?? 'request_invalid', msg });
  }
  return [...found.values()];
}
