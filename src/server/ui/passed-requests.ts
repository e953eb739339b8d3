import { createHash } from 'node:crypto';
import { Hono } from 'hono';
import * as v from 'valibot';
import type { UserClaims } from '../../contract/claims.ts';
import { ExperimentReply, ProjectReply } from '../../contract/directory.ts';
import { MINUTE } from '../../contract/durations.ts';
import { EVENT_PAUSE, EVENT_STREAM_TYPE, LAST_EVENT_ID_HEADER } from '../../contract/events.ts';
import { isObject, readJson } from '../../contract/json.ts';
import type { ProblemCode } from '../../contract/problems.ts';
import {
  API_VERSION,
  EXPERIMENT_TOKEN_HEADER,
  JWT_TYPE,
  ROUTES,
  type Route,
  type RouteName,
  routePath,
} from '../../contract/routes.ts';
import { jsonReply } from '../json-reply.ts';
import { keptPromises } from '../once-in.ts';
import { firstProblem, ProblemError, refusal } from '../problem-error.ts';
import { type ApiGroups, routePattern } from '../routing.ts';
import type { PageSessions } from './sessions.ts';

/** The requests that the page may send to the connectivity service; every other request is 404. */
const PASSED = [
  'listLinks',
  'linkUse',
  'linkAvailability',
  'linkSlots',
  'listReservations',
  'createReservation',
  'readReservation',
  'updateReservation',
  'deleteReservation',
  'batchReservations',
  'events',
] as const satisfies readonly RouteName[];

/** The headers of a request that are passed on; never a credential that came from outside. */
const PASSED_HEADERS = [
  ...['accept', 'content-type', 'content-length', 'if-none-match', 'idempotency-key'],
  LAST_EVENT_ID_HEADER,
];

/** The headers of an answer that are passed back. */
const RETURNED_HEADERS = [
  'allow',
  'cache-control',
  'content-type',
  'etag',
  'idempotency-replayed',
  'retry-after',
  'x-accel-buffering',
];

/** Names the experiment that a request acts in: its token is put in here. */
const EXPERIMENT_HEADER = 'Slices-Experiment';

/** The path of the API's version, which the page's addresses leave out. */
const API = `/apis/${API_VERSION}`;

/** Options of {@link createPassedRequests}. */
export interface PassedRequestsOptions {
  /** `{base_url}` and `{portal_url}`. */
  addresses: { connectivity: string; portal: string };
  groups: ApiGroups;
  /** Answers a request to this server, in this process. */
  within: (request: Request) => Promise<Response>;
  /** Sends a request to the portal. */
  portal: (request: Request) => Promise<Response>;
  /** Checks that the services here accept an access token. @throws ProblemError that says why they don't */
  accept: (access: string) => Promise<UserClaims>;
  sessions: Pick<PageSessions, 'open' | 'end'>;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** How long an experiment's token is used, in milliseconds. */
const TOKEN_USE_MS = MINUTE;
/** The most experiments' tokens are kept in memory: some megabytes. */
const MAX_CACHED_TOKENS = 1000;

/**
 * The page's requests for a person: the session, and the listed requests to the connectivity service, which answers them in
 * this process as any others, with the tokens of the session put in (src/README.md, "The page").
 */
export function createPassedRequests(options: PassedRequestsOptions): Hono {
  const { addresses, groups, within, accept, sessions } = options;
  const portal = portalOf(options);
  /** By a hash of who asked for which: what a process has in memory may be written to a disk. */
  const experimentTokens = keptPromises<string>(MAX_CACHED_TOKENS, options.now);
  const at = new URL(`${addresses.connectivity}/ui/api`).pathname;
  const app = new Hono({ strict: false });

  /** The person who sent a request. A session whose login was ended elsewhere ends here. */
  async function personOf(request: Request): Promise<{ access: string; claims: UserClaims } | undefined> {
    let refused: string | undefined;
    for (let turn = 0; turn < 2; turn += 1) {
      const access = (await sessions.open(request, refused))?.access;
      if (access === undefined) return undefined;
      try {
        return { access, claims: await accept(access) };
      } catch (error) {
        if (!isRefused(error)) throw error;
      }
      refused = access;
    }
    await sessions.end(request);
    return undefined;
  }

  app.get('/session', async ({ req }) => {
    const person = await personOf(req.raw);
    if (!person) return jsonReply(LOGGED_OUT);
    const { access, claims } = person;
    const [experiments, projects] = await Promise.all([
      portal.list('listExperiments', access, ExperimentReply),
      portal.list('listProjects', access, ProjectReply),
    ]);
    const names = new Map(projects.map(({ id, name }) => [id, name]));
    return jsonReply({
      user: { id: claims.sub, name: claims.preferred_username ?? claims.sub },
      experiments: experiments.map(({ id, name, project_id, role, expires_at }) => ({
        id,
        name,
        project: { id: project_id, name: names.get(project_id) ?? project_id },
        role,
        expires_at,
      })),
    });
  });

  for (const name of PASSED) {
    const route: Route = ROUTES[name];
    app.on(route.method, routePattern(route, groups).slice(API.length), async ({ req }) => {
      const person = await personOf(req.raw);
      if (!person) throw refusal('token_missing', 'You are not logged in.');
      const experiment = req.header(EXPERIMENT_HEADER);
      const asked = new URL(req.url);
      const headers = new Headers({ authorization: `Bearer ${person.access}` });
      const kept =
        experiment && createHash('sha256').update(`${person.access} ${experiment}`).digest('base64url');
      if (experiment !== undefined && kept !== undefined) {
        // Of several requests at once, the first one asks for all (THREATS.md 84).
        const token =
          experimentTokens.get(kept, TOKEN_USE_MS) ??
          experimentTokens.keep(kept, portal.experimentToken(experiment, person.access));
        headers.set(EXPERIMENT_TOKEN_HEADER, await token);
      }
      for (const header of PASSED_HEADERS) {
        const value = req.header(header);
        if (value !== undefined) headers.set(header, value);
      }
      const reply = await within(
        new Request(addresses.connectivity + API + asked.pathname.slice(at.length) + asked.search, {
          method: route.method,
          headers,
          signal: req.raw.signal,
          ...(req.raw.body ? { body: req.raw.body, duplex: 'half' } : {}),
        }),
      );
      if (reply.status === 403 && kept) experimentTokens.delete(kept);
      if (reply.status === 422 && asked.searchParams.get('dry_run') === 'true')
        return refusedRehearsal(reply);
      return returned(
        reply.headers.get('content-type') === EVENT_STREAM_TYPE
          ? whileOpen(reply, () => sessions.open(req.raw))
          : reply,
      );
    });
  }
  return app;
}

/** A stream that ends with its session: its tokens may go on (THREATS.md 140). */
function whileOpen(reply: Response, session: () => Promise<unknown>): Response {
  const over = new AbortController();
  const end = (): void => over.abort();
  const alive = setInterval(() => void session().then((found) => found ?? end(), end), EVENT_PAUSE);
  over.signal.addEventListener('abort', () => clearInterval(alive));
  const passed = new TransformStream<Uint8Array, Uint8Array>({ flush: end, cancel: end });
  return new Response(reply.body?.pipeThrough(passed, { signal: over.signal }), reply);
}

/** The portal, as a person asks it. */
function portalOf(options: PassedRequestsOptions) {
  const { addresses, groups } = options;
  const portalAddress = (name: RouteName, id = ''): string =>
    addresses.portal +
    routePath(name, { projects_api_group: groups.projects, experiments_api_group: groups.experiments, id });

  async function ask(address: string, access: string, type = 'application/json'): Promise<Response> {
    const headers = { accept: type, authorization: `Bearer ${access}` };
    return options.portal(new Request(address, { headers, redirect: 'manual' })).catch((cause: unknown) => {
      if (cause instanceof ProblemError) throw cause;
      throw refusal('unavailable', `The portal at ${addresses.portal} can't be reached. Try again.`);
    });
  }

  /** A list of the portal; of a record that can't be read, nothing is told (THREATS.md 67). */
  async function list<Record>(
    name: 'listExperiments' | 'listProjects',
    access: string,
    schema: v.GenericSchema<unknown, Record>,
  ): Promise<Record[]> {
    const reply = await ask(portalAddress(name), access);
    const reading = readJson(await reply.text());
    const member = name === 'listProjects' ? 'projects' : 'experiments';
    const items = reading.ok && isObject(reading.value) ? reading.value[member] : undefined;
    if (!reply.ok || !Array.isArray(items)) {
      throw refusal(
        'unavailable',
        `The portal at ${addresses.portal} does not list ${member} (${reply.status}).`,
      );
    }
    return items.flatMap((item) => {
      const read = v.safeParse(schema, item);
      return read.success ? [read.output] : [];
    });
  }

  /** A token of an experiment, for a person. @throws ProblemError as the portal refuses it */
  async function experimentToken(experiment: string, access: string): Promise<string> {
    if (!/^exp_[\w.-]{1,300}$/.test(experiment)) {
      throw refusal('request_invalid', `${EXPERIMENT_HEADER} is not the id of an experiment.`);
    }
    const reply = await ask(portalAddress('experimentToken', experiment), access, JWT_TYPE);
    const token = await reply.text();
    if (reply.status === 200 && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return token;
    const why = String(firstProblem(token).says ?? `It answered ${reply.status}.`);
    if (reply.status === 403 || reply.status === 404) throw refusal('wrong_experiment', why);
    throw refusal('unavailable', `The portal gave no token for the experiment. ${why}`);
  }
  return { list, experimentToken };
}

/** The answer of `/ui/api/session` without a login. */
export const LOGGED_OUT = { user: null, experiments: [] } as const;

/** A dry run's answer "no" is an answer: browsers write a red line in their console for every status but 2xx. */
async function refusedRehearsal(reply: Response): Promise<Response> {
  return jsonReply({ ok: false, problem: await reply.json() }, { headers: { 'cache-control': 'no-store' } });
}

/** An answer with the headers that concern the page. */
function returned(reply: Response): Response {
  const headers = new Headers();
  for (const name of RETURNED_HEADERS) {
    const value = reply.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  return new Response(reply.body, { status: reply.status, headers });
}

/** Whether a token was refused that another may replace. */
function isRefused(error: unknown): boolean {
  const again: readonly ProblemCode[] = ['token_invalid', 'token_expired'];
  return error instanceof ProblemError && again.includes(error.problems[0].code);
}
