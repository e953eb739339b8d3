/** Version in every API path (contract/README.md, "Versioning" 1). */
export const API_VERSION = 'v1alpha1';

/** The problems of requests that any user token may make. */
export const UNAUTHENTICATED = ['token_missing', 'token_invalid', 'token_expired'] as const;
/** The problems of requests that need a user token with a scope. */
export const IN_PORTAL = [...UNAUTHENTICATED, 'scope_missing'] as const;

/** The problems of a body, whatever it should hold. */
export const UNREADABLE = ['body_unreadable', 'body_too_large', 'media_type_unsupported'] as const;

/** What the routes of the portal have in common, and those of its extensions. */
const PORTAL = { service: 'portal', credentials: 'user', scopes: ['projects'] } as const;
const EXTENDED = { ...PORTAL, extension: true } as const;
const PROJECTS = `/apis/{projects_api_group}/${API_VERSION}/projects/`;
const EXPERIMENTS = `/apis/{experiments_api_group}/${API_VERSION}/experiments/`;
const SESSIONS = `/apis/${API_VERSION}/sessions`;
const CI_RULES = {
  ...EXTENDED,
  path: `${EXPERIMENTS}{id}/ci-rules`,
  scopes: ['projects', 'sessions'],
  action: 'ci-rules',
  problems: [...IN_PORTAL, 'role_not_allowed', 'wrong_experiment', 'not_found'],
} as const;

/** The portal's endpoints (contract/README.md, "Portal endpoints"), but for its key set. */
export const PORTAL_ROUTES = {
  listProjects: {
    ...PORTAL,
    method: 'GET',
    path: PROJECTS,
    summary: "List the caller's projects",
    success: { status: 200, schema: 'ProjectList' },
    problems: IN_PORTAL,
  },
  projectToken: {
    ...PORTAL,
    method: 'GET',
    path: `${PROJECTS}{id}`,
    summary: 'Get a project token (Accept: application/jwt)',
    success: { status: 200, schema: 'Project', signed: true },
    problems: [...IN_PORTAL, 'wrong_project', 'not_found'],
  },
  listExperiments: {
    ...EXTENDED,
    method: 'GET',
    path: EXPERIMENTS,
    summary: "List the caller's experiments",
    success: { status: 200, schema: 'ExperimentList' },
    problems: IN_PORTAL,
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
      ...[...IN_PORTAL, 'role_not_allowed', 'wrong_project', ...UNREADABLE, 'experiment_invalid'],
      ...['experiment_limit_reached', 'name_taken', 'date_invalid', 'date_past', 'project_ends_first'],
    ],
  },
  experimentToken: {
    ...EXTENDED,
    method: 'GET',
    path: `${EXPERIMENTS}{id}`,
    summary: 'Get an experiment token (Accept: application/jwt)',
    success: { status: 200, schema: 'Experiment', signed: true },
    problems: [...IN_PORTAL, 'wrong_experiment', 'not_found'],
  },
  listSessions: {
    ...EXTENDED,
    method: 'GET',
    path: SESSIONS,
    summary: "List the caller's logins that have not ended",
    scopes: ['sessions'],
    success: { status: 200, schema: 'SessionList' },
    problems: IN_PORTAL,
  },
  endSession: {
    ...EXTENDED,
    method: 'DELETE',
    path: `${SESSIONS}/{id}`,
    summary: "End one of the caller's logins: its tokens are not accepted any more",
    scopes: ['sessions'],
    success: { status: 204 },
    problems: [...IN_PORTAL, 'not_found'],
  },
  listCiRules: {
    ...CI_RULES,
    method: 'GET',
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
    problems: [...CI_RULES.problems, ...UNREADABLE, 'ci_rule_invalid', 'date_invalid', 'date_past'],
  },
  removeCiRule: {
    ...CI_RULES,
    method: 'DELETE',
    path: `${CI_RULES.path}/{rule}`,
    summary: "Let a repository's jobs act in an experiment no more: their tokens are not accepted any more",
    success: { status: 204 },
  },
} as const;
