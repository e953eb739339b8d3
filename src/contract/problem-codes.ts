import { EXAMPLE_IDS } from './ids.ts';
import { EXAMPLE_END, EXAMPLE_START } from './instants.ts';

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
  /** The command of this program that helps, without `slices-conn`, where the failure has no better one. */
  command?: string;
  /** A message, for the API's description. */
  example: string;
}

// Taken one by one: a pattern would keep all examples in the page's bundle.
const RESERVATION = EXAMPLE_IDS.reservation;
const EXPERIMENT = EXAMPLE_IDS.experiment;
const PROJECT = EXAMPLE_IDS.project;
const EXPIRED = '2025-01-01T12:00:00.000Z';

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
  site_invalid: { ...SITE, example: 'site1 must be the name of a site; got 17.' },
  site_unknown: {
    ...{ ...SITE, of: 'creates' },
    example: 'There is no site "be-ghent1". The sites are: be-gent1, pl-poznan1, ….',
  },
  sites_equal: { ...SITE, of: 'creates', example: 'site1 and site2 are both be-gent1; a link needs two.' },
  sites_fixed: {
    ...{ ...SITE, of: 'updates' },
    example:
      "A reservation's sites can't be changed; this one's are be-gent1 and pl-poznan1. Book a new one.",
  },
  /** Routes connect the two sites, and none is as `via`, `avoid` and `direct` ask for it. */
  no_route: {
    ...{ ...SITE, of: 'creates' },
    example:
      'No route of at most 2 hops between be-gent1 and hu-sztaki avoids pl-poznan1. The shortest route is be-gent1 – pl-poznan1 – hu-sztaki.',
  },
  sites_not_connected: { ...SITE, example: 'be-gent1 and es-uc3m are not interconnected.' },
  date_invalid: {
    ...DATE,
    command: 'help times',
    example: `start_date must be a day and time that exist, as an ISO 8601 UTC timestamp with a zone, such as ${EXAMPLE_START}; got "tomorrow".`,
  },
  date_past: {
    ...DATE,
    command: 'help times',
    example: `The start, ${EXPIRED}, has passed. Give start_now=true to start at once.`,
  },
  period_empty: {
    ...DATE,
    command: 'help times',
    example: `The end, ${EXAMPLE_START}, is not after the start, ${EXAMPLE_END}.`,
  },
  reservation_started: {
    ...{ ...DATE, of: 'updates' },
    command: 'update --help',
    example: `The reservation began at ${EXPIRED}: its end and bandwidth can change, its start can't.`,
  },
  reservation_ended: {
    ...{ ...DATE, of: 'updates' },
    command: 'list',
    example: `The reservation ended at ${EXPIRED}. Book a new one.`,
  },
  experiment_ends_first: {
    ...DATE,
    command: 'experiment show',
    example: `The end, ${EXAMPLE_END}, is after the experiment's expiry, ${EXAMPLE_START}.`,
  },
  experiment_expired: {
    ...DATE,
    command: 'experiment list',
    example: `The experiment expired at ${EXPIRED}. Use another one.`,
  },
  project_ends_first: {
    ...DATE,
    command: 'project show',
    example: `The end, ${EXAMPLE_END}, is after the expiry of project demo, ${EXAMPLE_START}.`,
  },
  project_expired: { ...DATE, example: `The project demo expired at ${EXPIRED}.` },
  bandwidth_invalid: {
    ...BANDWIDTH,
    example: 'bandwidth must be a string of the digits 0 to 9, in Mbps, such as "1000"; got "1G".',
  },
  bandwidth_unavailable: {
    ...BANDWIDTH,
    command: 'sites',
    example: `Not enough free bandwidth between be-gent1 and pl-poznan1. 500 Mbps of the 1 Gbps asked for are free from ${EXAMPLE_START} to ${EXAMPLE_END}. Would be accepted: 500 Mbps, same period; 1 Gbps from ${EXAMPLE_END}.`,
  },
  /** A volume's own bandwidth: the most it may use carries less until its end, whatever is free. */
  bandwidth_too_low: {
    ...{ ...BANDWIDTH, of: 'creates' },
    example: `50 TB by ${EXAMPLE_END} need 4.63 Gbps; at most 100 Mbps may be used. Would be accepted: done by ${EXAMPLE_END}.`,
  },
  vlans_unavailable: {
    ...BANDWIDTH,
    command: 'list',
    example: `No available VLANs between the two sites. None of the 1000 S-tags at be-gent1 is free all the time from ${EXAMPLE_START} to ${EXAMPLE_END}.`,
  },
  share_exceeded: {
    ...BANDWIDTH,
    example: `One project may have 50 Gbps of this link, and yours has 500 Mbps left from ${EXAMPLE_START} to ${EXAMPLE_END}; 1 Gbps were asked for.`,
  },
  /** A search took too long: what it found until then is said, and more may fit. */
  search_given_up: {
    ...{ status: 422, exit: 6 },
    example: `The search was given up, since it took too long. Nothing fits before ${EXAMPLE_START}.`,
  },
  volume_invalid: {
    ...{ ...BANDWIDTH, of: 'creates' },
    example: 'volume must be a string of 1 to 16 of the digits 0 to 9, in bytes; got "50T".',
  },
  tokens_invalid: {
    ...{ status: 422, exit: 1 },
    example: 'tokens must be an array of JWTs, which may be empty.',
  },
  /** The name of a reservation does not have the form of one. */
  name_invalid: {
    ...VALUE,
    example: 'name must be 1 to 64 of the letters a to z, the digits and "-", a letter first; got "Gent 1".',
  },
  description_invalid: {
    ...VALUE,
    example: 'description must be one line of at most 200 printable characters.',
  },
  /** A batch has no items, too many items, or an entry that is not an item. */
  items_invalid: { ...VALUE, example: 'A batch has 1 to 64 items; got 65.' },
  experiment_invalid: { ...VALUE, example: 'name must be a string.' },
  /** The project has as many experiments as it may have. */
  experiment_limit_reached: {
    ...VALUE,
    example:
      'Project demo has 100 experiments that have not ended or were made within a day. Wait until some have ended.',
  },
  /** A rule for jobs of a CI is not one, or the experiment has as many as it may have. */
  ci_rule_invalid: {
    ...VALUE,
    example: 'ref or environment must be given: otherwise every branch and pull request would do.',
  },
  body_unreadable: { status: 400, exit: 1, example: 'The body is not JSON.' },
  request_invalid: { status: 400, exit: 1, example: 'dry_run must be true or false.' },
  experiment_tokens_differ: {
    ...{ status: 400, exit: 1 },
    example: 'The request carries two different experiment tokens.',
  },
  token_missing: { ...LOGIN, example: 'The request has no Authorization: Bearer <token>.' },
  token_invalid: {
    ...LOGIN,
    example: 'This is not a token: it does not have three parts between dots.',
  },
  token_expired: {
    ...LOGIN,
    example: `The user token expired at ${EXPIRED}.`,
  },
  scope_missing: {
    ...FORBIDDEN,
    example: 'Your login does not have the scope projects. Log in again.',
  },
  role_not_allowed: {
    ...FORBIDDEN,
    example: 'Your role in experiment demo is viewer; this needs lead or admin.',
  },
  wrong_experiment: {
    ...FORBIDDEN,
    example: `Reservation ${RESERVATION} belongs to another experiment than ${EXPERIMENT}.`,
  },
  wrong_project: { ...FORBIDDEN, example: `You have no role in ${PROJECT}.` },
  not_found: {
    ...{ status: 404, exit: 3 },
    example: `There is no reservation ${RESERVATION}.`,
  },
  method_not_allowed: { status: 405, exit: 1, example: 'This address allows GET only.' },
  name_taken: {
    ...{ status: 409, exit: 2 },
    command: 'experiment list',
    example: 'Project demo has an experiment named throughput-1 already.',
  },
  idempotency_key_reused: {
    ...{ status: 409, exit: 2 },
    example: 'The Idempotency-Key was used for another request.',
  },
  /** A stream of events can't go on where it ended: the client lists again, and goes on from the present. */
  cursor_too_old: {
    ...{ status: 410, exit: 7 },
    example:
      'What happened since this cursor is not known any more. List the reservations again, and go on from the present.',
  },
  body_too_large: { status: 413, exit: 1, example: 'The body is larger than 262144 bytes.' },
  media_type_unsupported: {
    ...{ status: 415, exit: 1 },
    example: 'The body must be JSON: Content-Type: application/json.',
  },
  host_unknown: { status: 421, exit: 1, example: 'This server answers for conn.example.org only.' },
  /** The user, or the experiment, has asked for many changes: the answer has `Retry-After`, and nothing was changed. */
  too_many_requests: {
    ...{ status: 429, exit: 7 },
    example: 'You have asked for 10000 changes within an hour. Try again in 1 s.',
  },
  internal: { status: 500, exit: 7, example: 'Something went wrong in the service; its log says what.' },
  /** Nothing was done, and it is worth trying again. */
  unavailable: {
    ...{ status: 503, exit: 7 },
    example: 'The database does not answer. Nothing was changed; try again.',
  },
  /** The change may have been made or not: only a look at the reservation can tell (THREATS.md 43). */
  outcome_unknown: {
    ...{ status: 503, exit: 7 },
    example:
      'The database did not say whether it kept the change. The change may have been made or not; check before you try again.',
  },
} as const satisfies Record<string, ProblemKind>;

/** A code of the reference server's refusals; see {@link PROBLEMS}. */
export type ProblemCode = keyof typeof ROWS;

/** Every code that the reference server's refusals carry (contract/README.md, "Decided here"): a new code is a new row. */
export const PROBLEMS: Readonly<Record<ProblemCode, ProblemKind>> = ROWS;

/** All {@link PROBLEMS}, in their order. Marked as pure, so that the page's bundle does without their examples. */
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
