/** Version in every API path (contract/README.md, "Versioning" 1). */
export const API_VERSION = 'v1alpha1';

/** The problems of requests that any user token may make. */
export const UNAUTHENTICATED = ['token_missing', 'token_invalid', 'token_expired'] as const;
/** The problems of requests that need a user token with a scope. */
export const IN_PORTAL = [...UNAUTHENTICATED, 'scope_missing'] as const;

const PROJECTS = `/apis/{projects_api_group}/${API_VERSION}/projects/`;
const EXPERIMENTS = `/apis/{experiments_api_group}/${API_VERSION}/experiments/`;
const CI_RULES = `${EXPERIMENTS}{id}/ci-rules`;
const OF_CI_RULES = [...IN_PORTAL, 'role_not_allowed', 'wrong_experiment', 'not_found'] as const;
const SESSIONS = `/apis/${API_VERSION}/sessions`;

/** The portal's endpoints (contract/README.md, "Portal endpoints"), but for its key set. */
export const PORTAL_ROUTES = {
  listProjects: {
    service: 'portal',
    method: 'GET',
    path: PROJECTS,
    summary: "List the caller's projects",
    credentials: 'user',
    scopes: ['projects'],
    success: { status: 200, schema: 'ProjectList' },
    problems: IN_PORTAL,
  },
  projectToken: {
    service: 'portal',
    method: 'GET',
    path: `${PROJECTS}{id}`,
    summary: 'Get a project token (Accept: application/jwt)',
    credentials: 'user',
    scopes: ['projects'],
    success: { status: 200, schema: 'Project', signed: true },
    problems: [...IN_PORTAL, 'wrong_project', 'not_found'],
  },
  listExperiments: {
    service: 'portal',
    method: 'GET',
    path: EXPERIMENTS,
    summary: "List the caller's experiments",
    credentials: 'user',
    scopes: ['projects'],
    success: { status: 200, schema: 'ExperimentList' },
    problems: IN_PORTAL,
    extension: true,
  },
  createExperiment: {
    service: 'portal',
    method: 'POST',
    path: EXPERIMENTS,
    summary: 'Create an experiment, which the caller leads',
    credentials: 'user',
    scopes: ['projects'],
    action: 'create-experiment',
    request: 'ExperimentRequest',
    success: { status: 201, schema: 'Experiment' },
    problems: [
      ...IN_PORTAL,
      'role_not_allowed',
      'wrong_project',
      'body_unreadable',
      'body_too_large',
      'media_type_unsupported',
      'experiment_invalid',
      'experiment_limit_reached',
      'name_taken',
      'date_invalid',
      'date_past',
      'project_ends_first',
    ],
    extension: true,
  },
  experimentToken: {
    service: 'portal',
    method: 'GET',
    path: `${EXPERIMENTS}{id}`,
    summary: 'Get an experiment token (Accept: application/jwt)',
    credentials: 'user',
    scopes: ['projects'],
    success: { status: 200, schema: 'Experiment', signed: true },
    problems: [...IN_PORTAL, 'wrong_experiment', 'not_found'],
    extension: true,
  },
  listSessions: {
    service: 'portal',
    method: 'GET',
    path: SESSIONS,
    summary: "List the caller's logins that have not ended",
    credentials: 'user',
    scopes: ['sessions'],
    success: { status: 200, schema: 'SessionList' },
    problems: IN_PORTAL,
    extension: true,
  },
  endSession: {
    service: 'portal',
    method: 'DELETE',
    path: `${SESSIONS}/{id}`,
    summary: "End one of the caller's logins: its tokens are not accepted any more",
    credentials: 'user',
    scopes: ['sessions'],
    success: { status: 204 },
    problems: [...IN_PORTAL, 'not_found'],
    extension: true,
  },
  listCiRules: {
    service: 'portal',
    method: 'GET',
    path: CI_RULES,
    summary: 'List whose CI jobs act in an experiment without a secret',
    credentials: 'user',
    scopes: ['projects', 'sessions'],
    action: 'ci-rules',
    success: { status: 200, schema: 'CiRuleList' },
    problems: OF_CI_RULES,
    extension: true,
  },
  addCiRule: {
    service: 'portal',
    method: 'POST',
    path: CI_RULES,
    summary:
      'Let the jobs of a repository act as the caller in an experiment; the same rule again is renewed',
    credentials: 'user',
    scopes: ['projects', 'sessions'],
    action: 'ci-rules',
    request: 'CiRuleRequest',
    success: { status: 201, schema: 'CiRule' },
    problems: [
      ...OF_CI_RULES,
      'body_unreadable',
      'body_too_large',
      'media_type_unsupported',
      'ci_rule_invalid',
      'date_invalid',
      'date_past',
    ],
    extension: true,
  },
  removeCiRule: {
    service: 'portal',
    method: 'DELETE',
    path: `${CI_RULES}/{rule}`,
    summary: "Let a repository's jobs act in an experiment no more: their tokens are not accepted any more",
    credentials: 'user',
    scopes: ['projects', 'sessions'],
    action: 'ci-rules',
    success: { status: 204 },
    problems: OF_CI_RULES,
    extension: true,
  },
} as const;
