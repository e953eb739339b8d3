import * as v from 'valibot';
import { CiRule, type CiRuleRequestBody } from '../contract/ci-rules.ts';
import {
  type Experiment,
  ExperimentReply,
  type ExperimentRequestBody,
  type Project,
  ProjectReply,
  SessionReply,
} from '../contract/directory.ts';
import { Failure, isMissing } from '../contract/failure.ts';
import {
  EXPERIMENTS_API_GROUP,
  JWT_TYPE,
  PROJECTS_API_GROUP,
  type RouteName,
  routePath,
} from '../contract/routes.ts';
import { type Fetch, sendFrom, type Transport } from '../contract/sending.ts';
import {
  bearerHeader,
  COMPACT,
  exchange,
  limitOf,
  readAs,
  readTokenInput,
  requestTo,
  type TokenInput,
  tokenIn,
} from './exchange.ts';
import type { Reply } from './reply-failure.ts';

/** The needs of the portal's client. */
export interface PortalClientOptions {
  /** Sends each request; must not follow redirects. */
  fetch: Fetch;
  /**
   * How long a reply may take to its end, in milliseconds; `Infinity` where `fetch` has a limit of its own. Default
   * 60,000. A request that the limit ends may still have taken effect (`maybeDone`).
   */
  timeout?: number;
  /** `{portal_url}`, without a trailing slash. */
  portalUrl: string;
  /** `{projects_api_group}`. Default `projects`. */
  projectsApiGroup?: string;
  /** `{experiments_api_group}`. Default `experiments`. */
  experimentsApiGroup?: string;
  /** The user token to send. */
  userToken: TokenInput;
  /** For people: how to go on where the portal has no experiments. */
  withoutExperiments?: { why: string; fix: string };
}

/**
 * The portal, seen from a client (contract/README.md, "Portal endpoints"). Every method throws Failure: the methods for
 * experiments throw `not_supported` where the portal has no experiments, which the spec allows.
 */
export interface PortalClient {
  /** All projects that the user is in. @throws Failure */
  projects(): Promise<Project[]>;
  /** The project token, unverified. */
  projectToken(id: string): Promise<string>;
  /** All experiments that the user is in, of all projects. @throws Failure */
  experiments(): Promise<Experiment[]>;
  /** Creates an experiment in a project of which the user is the lead. @throws Failure */
  createExperiment(request: ExperimentRequestBody): Promise<Experiment>;
  /** The experiment token, unverified. */
  experimentToken(id: string): Promise<string>;
  /** The user's logins that have not ended. @throws Failure `not_supported` where the service does not list them */
  sessions(): Promise<SessionReply[]>;
  /** Ends one of the user's logins. @throws Failure `not_found`, `not_supported` */
  endSession(id: string): Promise<void>;
  /** The rules for CI jobs of an experiment. @throws Failure `not_supported` where the service has none */
  ciRules(experiment: string): Promise<CiRule[]>;
  /** Lets the jobs of a repository act as the user. @throws Failure `not_supported` where the service has no rules */
  addCiRule(experiment: string, rule: CiRuleRequestBody): Promise<CiRule>;
  /** Ends a rule. @throws Failure `not_found` */
  removeCiRule(experiment: string, rule: string): Promise<void>;
}

/** How a CI job is let in where the portal has no rules for it. */
const BY_SECRET = 'slices-conn login --ci';

/** A client of the portal over any `fetch`. */
export function createPortalClient(options: Omit<PortalClientOptions, 'fetch'> & Transport): PortalClient {
  const { portalUrl, userToken, withoutExperiments, timeout = limitOf(options) } = options;
  const send = sendFrom(options);
  const { projectsApiGroup = PROJECTS_API_GROUP, experimentsApiGroup = EXPERIMENTS_API_GROUP } = options;
  const groups = { projects_api_group: projectsApiGroup, experiments_api_group: experimentsApiGroup };

  async function request(
    name: RouteName,
    accept: string,
    values: Record<string, string> = {},
    body?: object,
  ) {
    const user = await readTokenInput(userToken);
    const sent = requestTo(portalUrl, name, {
      values: { ...groups, ...values },
      headers: { authorization: bearerHeader(user) },
      accept,
      body,
    });
    return exchange(send, sent, [user], timeout);
  }

  async function token(name: 'projectToken' | 'experimentToken', id: string): Promise<string> {
    const reply = await request(name, JWT_TYPE, { id });
    const found = tokenIn(reply);
    if (found !== undefined && COMPACT.test(found) && reply.type !== 'text/html') return found;
    throw new Failure('reply_invalid', 'The portal answered without a token.', { httpStatus: reply.status });
  }

  /** Reads an extension's list. @throws Failure `not_supported` where the portal does not have it */
  async function listed<Schema extends v.GenericSchema>(
    name: RouteName,
    schema: Schema,
    { what, says, so, fix }: { what: string; says: string; so: string; fix?: string },
    values: Record<string, string> = {},
  ): Promise<v.InferOutput<Schema>> {
    const reply = await request(name, 'application/json', values).catch((cause: unknown) => {
      if (!isMissing(cause)) throw cause;
      const { httpStatus } = cause.facts;
      const why = `It answers ${httpStatus} to ${routePath(name, { ...groups, ...values })}${so}`;
      throw new Failure('not_supported', says, { why, httpStatus, fix, cause });
    });
    return readAs(schema, reply, what);
  }

  /** Tells a portal without an extension from a portal that does not know the id, by its list: both answer 404. */
  async function unlessMissing<Answer>(
    asked: Promise<Answer>,
    list: () => Promise<unknown>,
  ): Promise<Answer> {
    try {
      return await asked;
    } catch (error) {
      const reason = isMissing(error) ? await list().catch((found: unknown) => found) : undefined;
      throw reason instanceof Failure && reason.code === 'not_supported' ? reason : error;
    }
  }

  const listExperiments = () =>
    listed('listExperiments', v.object({ experiments: v.array(ExperimentReply) }), {
      what: 'list of experiments',
      says: `The portal ${portalUrl} has no experiments.`,
      so: [', so it gives no experiment tokens.', withoutExperiments?.why ?? []].flat().join(' '),
      fix: withoutExperiments?.fix,
    });
  const listSessions = () =>
    listed('listSessions', v.object({ items: v.array(SessionReply) }), {
      what: 'list of logins',
      says: `${portalUrl} does not list logins.`,
      so: '. Ask the operators of the identity provider how to end a login.',
    });
  const listCiRules = (id: string) => {
    const what = 'list of rules for CI jobs';
    const lack = {
      what,
      says: `${portalUrl} has no rules for CI jobs.`,
      so: '.',
      fix: BY_SECRET,
    };
    return listed('listCiRules', v.object({ items: v.array(CiRule) }), lack, { id });
  };

  return {
    async projects() {
      const reply = await request('listProjects', 'application/json');
      return readAs(v.object({ projects: v.array(ProjectReply) }), reply, 'list of projects').projects;
    },
    projectToken: (id) => token('projectToken', id),
    experiments: async () => (await listExperiments()).experiments,
    async createExperiment(body) {
      const created = request('createExperiment', 'application/json', {}, body);
      const reply = await unlessMissing(created, listExperiments);
      return readMade(ExperimentReply, reply, 'experiment', 'slices-conn experiment list');
    },
    experimentToken: (id) => unlessMissing(token('experimentToken', id), listExperiments),
    sessions: async () => (await listSessions()).items,
    async endSession(id) {
      await unlessMissing(request('endSession', 'application/json', { id }), listSessions);
    },
    ciRules: async (id) => (await listCiRules(id)).items,
    async addCiRule(id, rule) {
      const added = request('addCiRule', 'application/json', { id }, rule).catch((error: unknown) => {
        throw error instanceof Failure && error.code === 'not_supported'
          ? error.with({ fix: BY_SECRET })
          : error;
      });
      const reply = await unlessMissing(added, () => listCiRules(id));
      return readMade(CiRule, reply, 'rule for CI jobs', 'slices-conn experiment ci list');
    },
    async removeCiRule(id, rule) {
      await request('removeCiRule', 'application/json', { id, rule });
    },
  };
}

/** Reads what a successful request has made. @param fix the command that shows it, where the reply can't be read */
function readMade<Schema extends v.GenericSchema>(
  schema: Schema,
  reply: Reply,
  what: string,
  fix: string,
): v.InferOutput<Schema> {
  try {
    return readAs(schema, reply, what);
  } catch (error) {
    throw error instanceof Failure ? error.with({ maybeDone: true, fix }) : error;
  }
}
