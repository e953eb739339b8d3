import { Hono } from 'hono';
import type { UserClaims } from '../../contract/claims.ts';
import {
  type Experiment,
  ExperimentRequest,
  type LoginSession,
  type Project,
} from '../../contract/directory.ts';
import type { IdKind } from '../../contract/fields.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { RouteName } from '../../contract/routes.ts';
import { DEFAULT_TTL } from '../../tokens/issuer.ts';
import { problem } from '../../words/problems.ts';
import { authenticateAnyUser, authenticateUser, requireRole, requireScope } from '../credentials.ts';
import { sessionId, type UserSession, type UserSessions } from '../identity/sessions.ts';
import { jsonReply } from '../json-reply.ts';
import type { ServiceIssuer } from '../keys/service-issuer.ts';
import { readBy, refusal, refusalOf } from '../problem-error.ts';
import { acceptsJwt, addressOf, readObject } from '../request-reading.ts';
import { type CiRulesOptions, mountCiRules } from './ci-rules.ts';
import {
  EXPERIMENTS_COUNT_FOR,
  type ExperimentRecord,
  MAX_EXPERIMENTS,
  type ProjectRecord,
  requireMembership,
  type WithRole,
} from './directory.ts';

/** Options of {@link createPortal}. */
export interface PortalOptions extends CiRulesOptions {
  sessions: UserSessions;
  issuer: ServiceIssuer;
  newId: (kind: IdKind) => string;
}

/** The portal: projects, experiments, and the tokens for them (contract/README.md, "Portal endpoints"). */
export function createPortal(options: PortalOptions): Hono {
  const { directory, sessions, issuer, trust, now } = options;
  const app = new Hono({ strict: false });
  const on = (name: RouteName, handle: (request: Request, id: string) => Promise<Response>): void =>
    options.mount(app, name, handle);

  on('listProjects', async (request) => {
    const { sub, limited_to: only } = await authenticateAnyUser(request, trust, 'projects');
    const projects = only === undefined ? await directory.projectsOf(sub) : [];
    return jsonReply({ projects: projects.map(projectReply) });
  });

  on('projectToken', async (request, id) => {
    const user = await authenticateUser(request, trust, 'projects');
    const project = await directory.project(id);
    if (!project) throw refusal('not_found', `There is no project ${id}.`);
    const role = await requireMembership(directory, user, id, 'wrong_project');
    if (!acceptsJwt(request)) return jsonReply(projectReply({ ...project, role }));
    return issuer.reply({
      sub: id,
      name: project.name,
      proj_exp: formatInstant(project.expiresAt),
      ...claimsFor(user, role, now()),
    });
  });

  on('listExperiments', async (request) => {
    const { sub, limited_to: only } = await authenticateAnyUser(request, trust, 'projects');
    const experiments = await directory.experimentsOf(sub);
    const shown = experiments.filter(({ id }) => only === undefined || id === only);
    return jsonReply({ experiments: shown.map(experimentReply) });
  });

  on('experimentToken', async (request, id) => {
    const user = await authenticateAnyUser(request, trust, 'projects');
    const { limited_to: only = id } = user;
    if (only !== id) throw refusal('wrong_experiment', `Your token is for experiment ${only} alone.`);
    const experiment = await directory.experiment(id);
    if (!experiment) throw refusal('not_found', `There is no experiment ${id}.`);
    const role = await requireMembership(directory, user, id, 'wrong_experiment');
    if (!acceptsJwt(request)) return jsonReply(experimentReply({ ...experiment, role }));
    const project = await directory.project(experiment.project);
    return issuer.reply({
      sub: id,
      name: experiment.name,
      exp_exp: formatInstant(experiment.expiresAt),
      proj: experiment.project,
      proj_name: project?.name,
      ...claimsFor(user, role, now()),
    });
  });

  on('createExperiment', (request) => createExperiment(request, options));
  mountCiRules(app, options);

  on('listSessions', async (request) => {
    const { sub, sid } = await authenticateUser(request, trust, 'sessions');
    const current = typeof sid === 'string' ? sessionId(sid) : undefined;
    const items = (await sessions.list(sub)).map((session) => sessionReply(session, current));
    return jsonReply({ items, nextCursor: null });
  });

  on('endSession', async (request, id) => {
    const user = await authenticateUser(request, trust);
    const { sub, sid } = user;
    // Every login may end itself.
    if (typeof sid !== 'string' || id !== sessionId(sid)) requireScope(user, trust, 'sessions');
    if (await sessions.end(sub, id)) return new Response(null, { status: 204 });
    throw refusal('not_found', `You have no login ${id} that has not ended.`);
  });

  on('portalKeySet', (request) => issuer.publish(request));
  return app;
}

/** Creates an experiment, which the caller leads. */
async function createExperiment(
  request: Request,
  { directory, trust, now, newId }: PortalOptions,
): Promise<Response> {
  const user = await authenticateUser(request, trust, 'projects');
  const asked = readBy(ExperimentRequest, await readObject(request), {
    name: 'experiment_invalid',
    description: 'experiment_invalid',
    project_id: 'experiment_invalid',
    expires_at: 'date_invalid',
  });
  const project = await directory.project(asked.project_id);
  if (!project) throw refusal('wrong_project', `You are not in a project ${asked.project_id}.`);
  const role = await requireMembership(directory, user, project.id, 'wrong_project');
  const held = { person: user.sub, role, kind: 'project', id: project.id, name: project.name } as const;
  await requireRole(held, 'create-experiment', trust.leadsOf);
  const wanted = { member: 'expires_at', at: asked.expires_at };
  if (wanted.at <= now()) throw refusalOf([problem('date_past', wanted)]);
  if (wanted.at > project.expiresAt) {
    const ends = { ...wanted, project: project.name, expires_at: project.expiresAt };
    throw refusalOf([problem('project_ends_first', ends)]);
  }
  const experiment: ExperimentRecord = {
    id: newId('experiment'),
    project: project.id,
    name: asked.name,
    description: asked.description,
    createdAt: now(),
    expiresAt: asked.expires_at,
  };
  const limit = { most: MAX_EXPERIMENTS, since: experiment.createdAt - EXPERIMENTS_COUNT_FOR };
  const added = await directory.addExperiment(experiment, user.sub, limit);
  if (added === 'too_many') {
    throw refusal(
      'experiment_limit_reached',
      `Project ${project.name} has ${limit.most} experiments that have not ended or were made within a day. Wait until some have ended.`,
    );
  }
  if (added === 'name_taken') {
    throw refusal('name_taken', `Project ${project.name} has an experiment named ${asked.name} already.`);
  }
  const location = `${addressOf(request).pathname.replace(/\/$/, '')}/${experiment.id}`;
  return jsonReply(experimentReply({ ...experiment, role: 'lead' }), {
    status: 201,
    headers: { location },
  });
}

/**
 * The claims that a token for a project or experiment takes from the user token. The token ends with that login too (THREATS.md
 * 57). It lasts 15 minutes, and never longer than the user token.
 */
function claimsFor({ sub, sid, limited_to, exp }: UserClaims, role: string, now: number) {
  return {
    act: { sub, role },
    ...(sid === undefined ? {} : { sid }),
    ...(limited_to === undefined ? {} : { limited_to }),
    exp: Math.min(Math.floor(now / 1000) + DEFAULT_TTL, exp),
  };
}

function projectReply(project: WithRole<ProjectRecord>): Project {
  const { id, name, description, role, createdAt, expiresAt } = project;
  return {
    id,
    name,
    description,
    role,
    created_at: formatInstant(createdAt),
    expires_at: formatInstant(expiresAt),
  };
}

function experimentReply(experiment: WithRole<ExperimentRecord>): Experiment {
  return { ...projectReply(experiment), project_id: experiment.project };
}

function sessionReply(session: UserSession, current: string | undefined): LoginSession {
  const { id, clientId, createdAt, lastUsedAt, expiresAt } = session;
  return {
    id,
    client_id: clientId,
    created_at: formatInstant(createdAt),
    last_used_at: formatInstant(lastUsedAt),
    expires_at: formatInstant(expiresAt),
    current: id === current,
  };
}
