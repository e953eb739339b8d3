import * as v from 'valibot';
import { DAY } from './durations.ts';
import { describedText, Instant, requestInstant, UserId } from './fields.ts';

/** The client for machines, whose refresh tokens are kept as secrets of CI jobs (cli/README.md, "Commands"). */
export const CI_CLIENT_ID = 'slices-conn-ci';

/** The grant of a token exchange (RFC 8693 §2.1). */
export const TOKEN_EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
/** The type of what a CI job exchanges (RFC 8693 §3). */
export const ID_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:id_token';
/** The type of what it gets (RFC 8693 §3). */
export const ACCESS_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:access_token';

/** All that a job is told whose ID token proves no job of a repository with a rule, or was used before. */
export const NOT_ACCEPTED = 'The ID token is not accepted.';

/** How long a rule lasts at most, in milliseconds: 90 days. */
export const CI_RULE_LIFETIME = 90 * DAY;

/** The claims of the ID tokens of one kind of CI, and how a token of it is used. */
export interface CiSystem {
  /** Its public service. */
  issuer: string;
  /** Where the issuer publishes its keys, below its address. */
  keySetPath: string;
  /** The claim with the repository's name, and the one with its id: the name can be given up, and taken by somebody else. */
  repository: string;
  repositoryId: string;
  /**
   * The claim that says why the job runs, and its values of jobs that get a token: those of a push, of a branch or a tag, of a
   * schedule, and those that a member of the repository starts. A job of any other event may run code of others, or be started
   * by them, with an ID token of the repository.
   */
  event: string;
  events: readonly string[];
  /** Whether a job can ask for another ID token. Otherwise its user token lasts as long as the only one. */
  asksAnew: boolean;
}

/** The kinds of CI whose jobs can act for a person without a secret. */
export const CI_SYSTEMS = {
  github: {
    issuer: 'https://token.actions.githubusercontent.com',
    keySetPath: '/.well-known/jwks',
    repository: 'repository',
    repositoryId: 'repository_id',
    event: 'event_name',
    events: ['push', 'schedule', 'workflow_dispatch'],
    asksAnew: true,
  },
  gitlab: {
    issuer: 'https://gitlab.com',
    keySetPath: '/oauth/discovery/keys',
    repository: 'project_path',
    repositoryId: 'project_id',
    event: 'pipeline_source',
    events: ['push', 'schedule', 'web'],
    asksAnew: false,
  },
} as const satisfies Record<string, CiSystem>;
/** One of {@link CI_SYSTEMS}. */
export type CiName = keyof typeof CI_SYSTEMS;
/** The names of {@link CI_SYSTEMS}. */
export const CI_NAMES = ['github', 'gitlab'] as const satisfies readonly CiName[];

/** The issuers of ID tokens that a server takes, by the kind of CI. */
export type CiIssuers = Readonly<Partial<Record<CiName, string>>>;

const MOST = 255;
const line = (name: string, form: RegExp, must: string) =>
  v.pipe(
    v.string(`${name} must be a text.`),
    v.maxLength(MOST, `${name} has more than ${MOST} characters.`),
    v.regex(form, `${name} must be ${must}.`),
  );
const ci = v.picklist(CI_NAMES, `ci must be ${CI_NAMES.join(' or ')}.`);
const ref = line('ref', /^[^\s\p{C}]+$/u, 'the name of a branch or tag');
const refType = v.picklist(['branch', 'tag'], 'ref_type must be branch or tag.');
const environment = line('environment', /^[^\p{C}]+$/u, 'the name of an environment');

/** The body of `POST …/ci-rules`: exact values of the job's claims, never patterns. */
export const CiRuleRequest = v.pipe(
  v.object({
    ci,
    repository: v.pipe(
      line('repository', /^[\w.-]+(?:\/[\w.-]+)+$/, 'OWNER/REPOSITORY, or GROUP/PROJECT'),
      v.description('The claim `repository` of GitHub, `project_path` of GitLab.'),
    ),
    ref: v.optional(v.pipe(ref, v.description('Of GitHub in full, such as `refs/heads/main`.'))),
    ref_type: v.optional(v.pipe(refType, v.description('With `ref` of GitLab.'))),
    environment: v.optional(environment),
    expires_at: v.optional(requestInstant('expires_at')),
  }),
  v.check(
    (rule) => rule.ref !== undefined || rule.environment !== undefined,
    'ref or environment must be given: otherwise every branch and pull request would do.',
  ),
  v.check(
    (rule) => (rule.ref_type !== undefined) === (rule.ci === 'gitlab' && rule.ref !== undefined),
    'ref_type must be given with ref of GitLab, and with nothing else.',
  ),
  v.check(
    (rule) => rule.ci !== 'github' || rule.ref === undefined || rule.ref.startsWith('refs/'),
    'ref must be in full, such as refs/heads/main.',
  ),
);
/** The same as it travels. */
export type CiRuleRequestBody = v.InferInput<typeof CiRuleRequest>;

/** Whose jobs act for whom in an experiment, until when (extension of the reference server). */
export const CiRule = v.object({
  id: describedText('Names the rule: 16 hexadecimal digits.'),
  ci,
  repository: v.string(),
  ref: v.nullable(v.string()),
  ref_type: v.nullable(v.string()),
  environment: v.nullable(v.string()),
  repository_id: v.pipe(
    v.nullable(v.string()),
    v.description("The repository's id, as its first job has said it; null before. Another id is refused."),
  ),
  issuer: describedText("The `iss` of the jobs' ID tokens."),
  user: v.pipe(UserId, v.description('Who the jobs act as: who added the rule.')),
  user_name: v.string(),
  created_at: Instant,
  expires_at: Instant,
});
/** See {@link CiRule}. */
export type CiRule = v.InferOutput<typeof CiRule>;
/** The reply of `GET …/ci-rules`. */
export const CiRuleList = v.object({ items: v.array(CiRule), nextCursor: v.null() });
