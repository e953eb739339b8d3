import type { SchemaName } from './api-examples.ts';
import { EVENT_STREAM_TYPE, LAST_EVENT_ID_HEADER } from './events.ts';
import { Failure } from './failure.ts';
import { PROBLEM_CODES, PROBLEMS, type ProblemCode } from './problems.ts';
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
import type { Action, Scope } from './roles.ts';

/** Version in every API path (contract/README.md, "Versioning" 1). */
export const API_VERSION = 'v1alpha1';

/** What the routes of the portal have in common, and those of its extensions: most read. */
const PORTAL = { service: 'portal', method: 'GET', credentials: 'user', scopes: ['projects'] } as const;
const EXTENDED = { ...PORTAL, extension: true } as const;
const PROJECTS = `/apis/{projects_api_group}/${API_VERSION}/projects/`;
const EXPERIMENTS = `/apis/{experiments_api_group}/${API_VERSION}/experiments/`;
const SESSIONS = `/apis/${API_VERSION}/sessions`;
const CI_RULES = {
  ...EXTENDED,
  path: `${EXPERIMENTS}{id}/ci-rules`,
  scopes: ['projects', 'sessions'],
  action: 'ci-rules',
  problems: ['role_not_allowed', 'wrong_experiment'],
} as const;

/** The portal's endpoints (contract/README.md, "Portal endpoints"), but for its key set. */
const PORTAL_ROUTES = {
  listProjects: {
    ...PORTAL,
    path: PROJECTS,
    summary: "List the caller's projects",
    success: { status: 200, schema: 'ProjectList' },
  },
  projectToken: {
    ...PORTAL,
    path: `${PROJECTS}{id}`,
    summary: 'Get a project token (Accept: application/jwt)',
    success: { status: 200, schema: 'Project', signed: true },
    problems: ['wrong_project'],
  },
  listExperiments: {
    ...EXTENDED,
    path: EXPERIMENTS,
    summary: "List the caller's experiments",
    success: { status: 200, schema: 'ExperimentList' },
  },
  createExperiment: {
    ...EXTENDED,
    method: 'POST',
    path: EXPERIMENTS,
    summary: 'Create an experiment, which the caller leads',
    action: 'create-experiment',
    request: 'ExperimentRequest',
    success: { status: 201, schema: 'Experiment' },
    problems: [
      ...['role_not_allowed', 'wrong_project', 'experiment_invalid', 'experiment_limit_reached'],
      ...['name_taken', 'date_invalid', 'date_past', 'project_ends_first'],
    ],
  },
  experimentToken: {
    ...EXTENDED,
    path: `${EXPERIMENTS}{id}`,
    summary: 'Get an experiment token (Accept: application/jwt)',
    success: { status: 200, schema: 'Experiment', signed: true },
    problems: ['wrong_experiment'],
  },
  listSessions: {
    ...EXTENDED,
    path: SESSIONS,
    summary: "List the caller's logins that have not ended",
    scopes: ['sessions'],
    success: { status: 200, schema: 'SessionList' },
  },
  endSession: {
    ...EXTENDED,
    method: 'DELETE',
    path: `${SESSIONS}/{id}`,
    summary: "End one of the caller's logins: its tokens are not accepted any more",
    scopes: ['sessions'],
    success: { status: 204 },
  },
  listCiRules: {
    ...CI_RULES,
    summary: 'List whose CI jobs act in an experiment without a secret',
    success: { status: 200, schema: 'CiRuleList' },
  },
  addCiRule: {
    ...CI_RULES,
    method: 'POST',
    summary:
      'Let the jobs of a repository act as the caller in an experiment; the same rule again is renewed',
    request: 'CiRuleRequest',
    success: { status: 201, schema: 'CiRule' },
    problems: [...CI_RULES.problems, 'ci_rule_invalid', 'not_supported', 'date_invalid', 'date_past'],
  },
  removeCiRule: {
    ...CI_RULES,
    method: 'DELETE',
    path: `${CI_RULES.path}/{rule}`,
    summary: "Let a repository's jobs act in an experiment no more: their tokens are not accepted any more",
    success: { status: 204 },
  },
} as const;

/**
 * The header with a client's own name for a request: sent again, the request does not make a second reservation. An
 * extension (draft-ietf-httpapi-idempotency-key-header; contract/README.md, "Extensions").
 */
export const IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key';
/**
 * The extensions that a client must know of before it relies on them; the server announces them in its OpenAPI document
 * (contract/README.md, "Extensions").
 */
export const EXTENSIONS = [
  ...(['list', 'idempotencyKey', 'dryRun', 'earliest', 'volume', 'names'] as const),
  ...(['batch', 'availability', 'slots', 'routes', 'events', 'ciRules'] as const),
] as const;
/** The member of the OpenAPI document's `info` that announces {@link EXTENSIONS}. */
export const EXTENSIONS_MEMBER = 'x-slices-extensions';
/** The member beside it with the names of the server's sites. */
export const SITES_MEMBER = 'x-slices-sites';
/** Says `true` in the answer to a request that was answered before under its {@link IDEMPOTENCY_KEY_HEADER}. */
export const IDEMPOTENCY_REPLAYED_HEADER = 'Idempotency-Replayed';

/** Where each service publishes its keys, below its base address (contract/README.md, "Endpoints"). */
export const KEY_SET_PATH = '/.well-known/jwks.json';
/** Where the connectivity service publishes the keys of its last two years. */
export const KEY_HISTORY_PATH = '/.well-known/jwks-history.json';
/** Where the connectivity service says whose tokens it takes, and where its portal is (RFC 9728 §3). */
export const PROTECTED_RESOURCE_PATH = '/.well-known/oauth-protected-resource';
/** Media type of a signed answer (contract/README.md, "Signed connectivity token"). */
export const JWT_TYPE = 'application/jwt';
/** Media type of a status list (draft-ietf-oauth-status-list §5.1). */
export const STATUS_LIST_TYPE = 'application/statuslist+jwt';
/** The header for the experiment token, which the spec leaves open (contract/README.md, "Experiment token's header"). */
export const EXPERIMENT_TOKEN_HEADER = 'Slices-Experiment-Token';
/** The default of `{projects_api_group}`. */
export const PROJECTS_API_GROUP = 'projects';
/** The default of `{experiments_api_group}`. */
export const EXPERIMENTS_API_GROUP = 'experiments';
/** The form of the name of an API group, which becomes a part of an address. */
export const API_GROUP = {
  pattern: /^[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?$/,
  problem: 'It must be letters, digits, dots, dashes and underscores.',
} as const;

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

/** One endpoint: the single source for the server's router, the client's addresses and the OpenAPI document. */
export interface Route {
  /** Which service answers it, hence which base address it is relative to. */
  service: 'connectivity' | 'portal';
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path below the base address, with `{name}` for what varies. */
  path: string;
  summary: string;
  /** The tokens that a request must carry: any valid user token, or an experiment token too (contract/README.md, "Who may"). */
  credentials: 'none' | 'user' | 'experiment';
  /** The scopes that its user token must have, all of them; empty where any login will do. */
  scopes: readonly Scope[];
  /** The action that the role must allow; see WHO_MAY. */
  action?: Action;
  query?: Readonly<Record<string, Parameter>>;
  /** Headers beside those of every route. */
  headers?: Readonly<Record<string, Parameter>>;
  request?: SchemaName;
  /**
   * Status and body of success; `signed` when Accept: application/jwt gets a JWT in place of JSON; `headers` that it
   * may carry, with what they say.
   */
  success: {
    status: 200 | 201 | 204;
    schema?: SchemaName;
    signed?: boolean;
    /** The media type of a body that is neither. */
    media?: string;
    /** Whether it carries an ETag, so that a request with If-None-Match may be answered with 304. */
    tagged?: boolean;
    headers?: Readonly<Record<string, string>>;
  };
  /** Which problems it may answer, beside those that follow from its other members; see `problemsOf`. */
  problems?: readonly ProblemCode[];
  /** Not in the API as it is given: an extension of the reference server. */
  extension?: boolean;
}

const OURS = { extension: true };
const declared =
  (type: Parameter['type']) =>
  (description: string, more: Partial<Parameter> = {}): Parameter => ({ description, type, ...more });
const [flag, text, count] = [declared('boolean'), declared('string'), declared('integer')];

/** Of requests to create or update. */
const START_NOW = flag('Start at the time of the request; start_date is then null.');
/** Of changes. */
const DRY_RUN = flag(
  'Decide and answer as if it were done, and leave nothing behind: 200 with the reservation, JSON only.',
  OURS,
);
/** The header of requests to create, and of batches. */
const IDEMPOTENCY_KEY = text(
  `Text of the client's own, 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters, such as a UUID. For 24 hours the same request by the same user in the same experiment is answered with the same reservation, so that it can be sent again when the answer was lost; another request under the same key is 409. A refused request leaves its key free. A dry run does not look at it.`,
  OURS,
);
/** Of questions about what is free: what is asked of the route, and when. */
const ROUTE_QUERY = {
  via: text('Sites that the route passes, in this order, with commas between them.'),
  avoid: text('Sites that the route does not pass, with commas between them.'),
  direct: flag('Whether one link must connect the two sites.'),
};
const WINDOW = {
  start: text('ISO 8601 timestamp: where the window starts. Default: now. At most 24 hours ago.'),
  end: text(
    'ISO 8601 timestamp: where the window ends. Default: 7 days after its start. At most 5 years after it.',
  ),
  cursor: text('The previous page’s nextCursor. It keeps the window.'),
};

const LINK = `/apis/${API_VERSION}/links/{site1}/{site2}`;
const CONNECTIVITY = `/apis/${API_VERSION}/connectivity`;
const FORBIDDEN = ['role_not_allowed', 'wrong_experiment', 'wrong_project'] as const;
/** The refusals that concern a site, a date or a bandwidth, of creates and of updates. */
const LOCATED = PROBLEM_CODES.filter((code) => PROBLEMS[code].loc !== undefined);
const OF_CREATES = LOCATED.filter((code) => PROBLEMS[code].of !== 'updates');
const OF_SITES = OF_CREATES.filter((code) => PROBLEMS[code].loc === 'Site');
const OF_UPDATES = LOCATED.filter((code) => PROBLEMS[code].of !== 'creates');
const OF_TEXTS = ['description_invalid', 'name_invalid', 'name_taken'] as const;
const CHANGE_REFUSALS = ['tokens_invalid', 'too_many_requests', ...OF_TEXTS, 'search_given_up'] as const;
const CREATE_REFUSALS: readonly ProblemCode[] = [...CHANGE_REFUSALS, ...OF_CREATES, 'idempotency_key_reused'];
const PERIOD_PROBLEMS = ['date_invalid', 'date_past', 'period_empty'] as const;
const WINDOW_PROBLEMS = [...PERIOD_PROBLEMS, ...OF_SITES, 'search_given_up'] as const;

/** What the routes of one kind have in common. */
const RESERVATIONS = { ...PORTAL, service: 'connectivity', credentials: 'experiment' } as const;
const READING = { service: 'connectivity', method: 'GET', scopes: [] } as const;
const LINKS = { ...READING, credentials: 'user', extension: true } as const;
const PUBLIC = { ...READING, credentials: 'none' } as const;
const KEY_SET = {
  ...PUBLIC,
  path: KEY_SET_PATH,
  success: { status: 200, schema: 'KeySetDocument' },
} as const;
/** For supervisors and load balancers: answered under any Host. */
const HEALTH_CHECK = { ...PUBLIC, success: { status: 200, schema: 'Health' }, extension: true } as const;

/** Every endpoint of the connectivity service and the portal (contract/README.md, "Endpoints", "Extensions"). */
export const ROUTES = {
  createReservation: {
    ...RESERVATIONS,
    method: 'POST',
    path: CONNECTIVITY,
    summary: 'Create a reservation',
    action: 'create',
    query: {
      start_now: START_NOW,
      dry_run: DRY_RUN,
      earliest: flag(
        'Book the earliest period of the length `duration` that starts at start_date or later (with start_now=true: now or later) and ends at end_date or earlier.',
        OURS,
      ),
    },
    headers: { [IDEMPOTENCY_KEY_HEADER]: IDEMPOTENCY_KEY },
    request: 'ReservationRequest',
    success: {
      status: 201,
      schema: 'Reservation',
      signed: true,
      headers: {
        [IDEMPOTENCY_REPLAYED_HEADER]: `\`true\` when an earlier request with this ${IDEMPOTENCY_KEY_HEADER} made the reservation, which is answered as it stands now.`,
      },
    },
    problems: CREATE_REFUSALS,
  },
  batchReservations: {
    ...RESERVATIONS,
    method: 'POST',
    path: `${CONNECTIVITY}:batch`,
    summary: 'Create, update and delete reservations together: all or none',
    action: 'delete',
    query: {
      dry_run: DRY_RUN,
      earliest: flag(
        'Move all creates later by the smallest common offset at which everything fits; their lengths stay.',
        OURS,
      ),
    },
    headers: { [IDEMPOTENCY_KEY_HEADER]: IDEMPOTENCY_KEY },
    request: 'BatchRequest',
    success: { status: 200, schema: 'BatchResults' },
    problems: [...CREATE_REFUSALS, ...OF_UPDATES, 'items_invalid', 'not_found'],
    extension: true,
  },
  listReservations: {
    ...RESERVATIONS,
    path: CONNECTIVITY,
    summary: "List the experiment's reservations",
    action: 'list',
    query: {
      state: text('Only those that are scheduled, active or ended.'),
      cursor: text('The previous page’s nextCursor.'),
      limit: count(`Items in a page, 1 to ${MAX_PAGE_ITEMS} (default ${DEFAULT_PAGE_ITEMS}).`),
    },
    success: { status: 200, schema: 'ReservationList', tagged: true },
    extension: true,
  },
  readReservation: {
    ...RESERVATIONS,
    path: `${CONNECTIVITY}/{id}`,
    summary: 'Read a reservation',
    action: 'read',
    success: { status: 200, schema: 'Reservation', signed: true },
  },
  updateReservation: {
    ...RESERVATIONS,
    method: 'PUT',
    path: `${CONNECTIVITY}/{id}`,
    summary: 'Update a reservation',
    action: 'update',
    query: { start_now: START_NOW, dry_run: DRY_RUN },
    request: 'ReservationUpdate',
    success: { status: 200, schema: 'Reservation', signed: true },
    problems: [...CHANGE_REFUSALS, ...OF_UPDATES],
  },
  deleteReservation: {
    ...RESERVATIONS,
    method: 'DELETE',
    path: `${CONNECTIVITY}/{id}`,
    summary: 'Delete a reservation',
    action: 'delete',
    query: {
      reason: text(
        `Why an administrator of this server deletes the reservation, 1 to ${MAX_REASON} characters; it is kept in the server's log. An administrator, whom the server's operator names, may read and delete any reservation with the user token alone; for everyone else it says nothing.`,
        OURS,
      ),
    },
    success: { status: 204 },
  },
  listLinks: {
    ...LINKS,
    path: `/apis/${API_VERSION}/links`,
    summary: 'List the links between sites',
    success: { status: 200, schema: 'LinkList' },
  },
  linkUse: {
    ...LINKS,
    path: `/apis/${API_VERSION}/links/use`,
    summary: 'Read the use of links over time',
    query: {
      start: WINDOW.start,
      end: WINDOW.end,
      points: count(
        `Columns of equal length for each link, 1 to ${MAX_POINTS} (default ${DEFAULT_POINTS}), and ${MAX_USE_COLUMNS} of all those links together at most.`,
        { example: '24' },
      ),
      link: {
        type: 'array',
        description: `The two sites of a link, in either order, with a comma between them; for several links it is repeated, ${MAX_USE_LINKS} times at most. Default: all links.`,
      },
    },
    success: { status: 200, schema: 'UseList', tagged: true },
    problems: [...PERIOD_PROBLEMS, ...OF_SITES],
  },
  linkAvailability: {
    ...LINKS,
    path: `${LINK}/availability`,
    summary: "Read a link's use over time",
    query: {
      ...WINDOW,
      ...ROUTE_QUERY,
      points: count(
        `Columns of equal length in place of the exact steps, 1 to ${MAX_POINTS}. All are in one page.`,
        { example: '24' },
      ),
    },
    success: { status: 200, schema: 'Availability', tagged: true },
    problems: WINDOW_PROBLEMS,
  },
  linkSlots: {
    ...LINKS,
    path: `${LINK}/slots`,
    summary: 'Find when a reservation can start',
    query: {
      bandwidth: text('Mbps.', { required: true, example: '1000' }),
      duration: text(
        'ISO 8601 duration, at least 1 s. The whole reservation lies between the start and the end of the window.',
        { required: true, example: 'PT1H' },
      ),
      ...WINDOW,
      ...ROUTE_QUERY,
    },
    headers: {
      [EXPERIMENT_TOKEN_HEADER]: text(
        'An experiment token: then the share that the experiment may have of the link is a limit too.',
      ),
    },
    success: { status: 200, schema: 'SlotList' },
    problems: ['scope_missing', ...FORBIDDEN, ...WINDOW_PROBLEMS, 'bandwidth_invalid'],
  },
  linkRoutes: {
    ...LINKS,
    path: `${LINK}/routes`,
    summary: 'List the routes that a reservation may take',
    query: {
      ...ROUTE_QUERY,
      limit: count(`Items in the list, 1 to ${MAX_ROUTE_ITEMS} (default ${DEFAULT_ROUTES}).`),
    },
    success: { status: 200, schema: 'RouteList' },
    problems: OF_SITES,
  },
  events: {
    ...LINKS,
    path: `/apis/${API_VERSION}/events`,
    summary: 'Be told what changes, as it happens',
    scopes: ['projects'],
    query: {
      since: text(
        `The id of the last event that came: what has changed since is told first, each reservation once, as it is now. A browser's ${LAST_EVENT_ID_HEADER} means the same. Default: from now on.`,
      ),
      links: flag(
        'With an experiment token: whether links that have changed are told too. Without one they alone are told. Default false.',
      ),
    },
    headers: {
      [EXPERIMENT_TOKEN_HEADER]: text("An experiment token: then the experiment's reservations are told."),
    },
    success: { status: 200, media: EVENT_STREAM_TYPE },
    problems: [...FORBIDDEN, 'experiment_tokens_differ', 'too_many_requests', 'cursor_too_old'],
  },
  connectivityKeySet: { ...KEY_SET, summary: 'Public key set for verifying connectivity tokens' },
  keyHistory: {
    ...PUBLIC,
    path: KEY_HISTORY_PATH,
    summary: 'Public keys of the last two years, each with the time of its use',
    success: { status: 200, schema: 'KeyHistoryDocument' },
    extension: true,
  },
  protectedResource: {
    ...PUBLIC,
    path: PROTECTED_RESOURCE_PATH,
    summary: 'Where to log in, and where the portal is (OAuth 2.0 protected resource metadata)',
    success: { status: 200, schema: 'ProtectedResource' },
    extension: true,
  },
  statusList: {
    ...PUBLIC,
    path: '/status/{link}/{list}',
    summary: 'Read which connectivity tokens of a link still stand (Token Status List)',
    success: { status: 200, media: STATUS_LIST_TYPE, tagged: true },
    problems: ['too_many_requests'],
    extension: true,
  },
  health: { ...HEALTH_CHECK, path: '/healthz', summary: 'Whether the process answers' },
  readiness: {
    ...HEALTH_CHECK,
    path: '/readyz',
    summary:
      'Whether requests should be sent here: the database answers, and the server is not about to stop',
  },
  ...PORTAL_ROUTES,
  portalKeySet: { ...KEY_SET, service: 'portal', summary: 'Public keys of the portal' },
} as const satisfies Record<string, Route>;
/** The name of an endpoint; see {@link ROUTES}. */
export type RouteName = keyof typeof ROUTES;

/**
 * A route's path with its `{name}` parts filled in, each percent-encoded.
 *
 * @throws Failure `usage` when a part has no value, or a value that would name another address (THREATS.md 55)
 */
export function routePath(name: RouteName, values: Readonly<Record<string, string>> = {}): string {
  return ROUTES[name].path.replaceAll(/\{(\w+)\}/g, (_, part: string) => {
    const value = values[part];
    // A dot segment or nothing would make another address of it (RFC 3986 §5.2.4).
    if (value && value !== '.' && value !== '..' && value.isWellFormed()) return encodeURIComponent(value);
    throw new Failure('usage', `${JSON.stringify(value ?? '')} can't be the ${part} in an address.`);
  });
}
