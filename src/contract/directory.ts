import * as v from 'valibot';
import {
  describedInstant,
  describedText,
  ExperimentId,
  Instant,
  ProjectId,
  requestInstant,
} from './fields.ts';

/** The longest name of an experiment, in characters. */
export const MAX_NAME = 64;

const role = describedText("The caller's role: lead, admin, member or viewer.");

const name = v.string();
const description = v.string();
const lasting = { created_at: Instant, expires_at: Instant };

/** A project as the portal lists it (contract/README.md, "Project record"). */
export const Project = v.object({ id: ProjectId, name, description, role, ...lasting });
/** See {@link Project}. */
export type Project = v.InferOutput<typeof Project>;

/** An experiment as the portal lists it (contract/README.md, "Experiment record"). Ends no later than its project. */
export const Experiment = v.object({
  ...{ id: ExperimentId, name, description, project_id: ProjectId, role, ...lasting },
});
/** See {@link Experiment}. */
export type Experiment = v.InferOutput<typeof Experiment>;

/** The reply of `GET …/projects/` (contract/README.md, "Portal endpoints"). */
export const ProjectList = v.object({ projects: v.array(Project) });
/** The reply of `GET …/experiments/` (contract/README.md, "Getting an experiment token"). */
export const ExperimentList = v.object({ experiments: v.array(Experiment) });

const text = v.fallback(v.string(), '');
const time = v.fallback(Instant, '');

/**
 * A project as the client reads it from any portal: only its id is needed. What is missing, null, or not what it
 * should be is an empty text, and hides nothing else (THREATS.md 67).
 */
export const ProjectReply = v.object({
  ...{ id: v.pipe(v.string(), v.nonEmpty()), name: text, description: text, role: text },
  ...{ created_at: time, expires_at: time },
});
/** An experiment as the client reads it from any portal: only its id is sure (contract/README.md, "Project record"). */
export const ExperimentReply = v.object({ ...ProjectReply.entries, project_id: text });

/** A user's login, as its identity provider lists it (extension of the reference server; cli/README.md, "Commands"). */
export const LoginSession = v.object({
  id: describedText('Names the login: 16 hexadecimal digits.'),
  client_id: describedText('The program that logged in, such as `slices-conn-ci` for a machine.'),
  created_at: Instant,
  last_used_at: describedInstant('When it gave an access token last.'),
  expires_at: describedInstant(
    'When it ends: for a person unless it is used before, for a machine at the latest.',
  ),
  current: v.pipe(v.boolean(), v.description('Whether the request was made with this login.')),
});
/** See {@link LoginSession}. */
export type LoginSession = v.InferOutput<typeof LoginSession>;
/** The reply of `GET …/sessions`. */
export const SessionList = v.object({ items: v.array(LoginSession), nextCursor: v.null() });

/** A login as the client reads it: only its id is needed. */
export const SessionReply = v.object({
  id: v.pipe(v.string(), v.nonEmpty()),
  client_id: text,
  created_at: time,
  last_used_at: time,
  expires_at: time,
  current: v.fallback(v.boolean(), false),
});
/** See {@link SessionReply}. */
export type SessionReply = v.InferOutput<typeof SessionReply>;

/** The body of `POST …/experiments/` (extension of the reference portal). */
export const ExperimentRequest = v.object({
  name: v.pipe(
    v.string('name must be a string.'),
    v.regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
      'name must start with a letter or digit and hold letters, digits, dot, dash and underscore only.',
    ),
    v.maxLength(MAX_NAME, `name has more than ${MAX_NAME} characters.`),
    v.examples(['throughput-1']),
  ),
  description: v.optional(
    v.pipe(
      v.string('description must be a string.'),
      v.maxLength(1000, 'description has more than 1000 characters.'),
    ),
    '',
  ),
  project_id: v.string('project_id must be the id of a project.'),
  expires_at: requestInstant('expires_at'),
});
/** See {@link ExperimentRequest}. */
export type ExperimentRequest = v.InferOutput<typeof ExperimentRequest>;
/** The create request for an experiment as it travels. */
export type ExperimentRequestBody = v.InferInput<typeof ExperimentRequest>;
