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
  date_past: { ...DATE, command: 'help times' },
  period_empty: { ...DATE, command: 'help times' },
  reservation_started: { ...DATE, of: 'updates', command: 'update --help' },
  reservation_ended: { ...DATE, of: 'updates', command: 'list' },
  experiment_ends_first: { ...DATE, command: 'experiment show' },
  experiment_expired: { ...DATE, command: 'experiment list' },
  project_ends_first: { ...DATE, command: 'project show' },
  project_expired: DATE,
  bandwidth_invalid: BANDWIDTH,
  bandwidth_unavailable: { ...BANDWIDTH, command: 'sites' },
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
  host_unknown: { status: 421, exit: 1 },
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
