import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Hono } from 'hono';
import { KEY_HISTORY_PATH, KEY_SET_PATH, PROTECTED_RESOURCE_PATH } from '../contract/routes.ts';
import { Sentence } from '../contract/said.ts';
import { withoutTokens } from '../contract/secret.ts';
import { READ_ONLY } from './docs/files.ts';
import { isHealthPath } from './health.ts';
import type { ServiceIssuer } from './keys/service-issuer.ts';
import type { Log } from './log.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import { firstProblem, hostUnknown, problemOf, problemReply, refusal } from './problem-error.ts';
import { challenge } from './protected-resource.ts';
import { targetFault } from './request-form.ts';
import { acceptsJwt, addressOf, takes } from './request-reading.ts';
import { type ApiGroups, allowedMethods } from './routing.ts';
import { pathOf, type Site } from './ui/page.ts';
import { refusalFor } from './ui/service-pages.ts';

/** Options of {@link createServices}. */
export interface ServicesOptions {
  /** Who serves the pages, and `{base_url}`: the connectivity service's address, whose host is the only one that is answered. */
  site: Site;
  groups: ApiGroups;
  connectivity: Hono;
  portal: Hono;
  /** The identity provider's key set. */
  identity: Hono;
  docs: Hono;
  /** The checks for supervisors and load balancers. */
  health: Hono;
  /** The pages at the services' own addresses. */
  pages: Hono;
  /**
   * The page on the network, in place of the one at the base address; undefined where it is turned off. It is given the
   * function that answers requests to the services, so that it can pass some on.
   */
  ui?: ((within: (request: Request) => Promise<Response>) => Hono) | undefined;
  log: Log;
  metrics?: Pick<ServerMetrics, 'storeFailed'>;
}

/**
 * Portal, connectivity service and documentation as one function of a Request (contract/README.md, "The reference server").
 * An error that a handler throws becomes a reply here; see {@link problemOf}.
 */
export function createServices(options: ServicesOptions): (request: Request) => Promise<Response> {
  const { site, groups, connectivity, portal, identity, docs, health, pages, ui, log } = options;
  const base = new URL(site.baseUrl);
  const prefix = pathOf(site);
  const app = new Hono({ strict: false });

  const forEveryPage = new Set(PUBLIC_DOCUMENTS.map((path) => prefix + path));
  app.use(async (context, next) => {
    const { host, pathname } = addressOf(context.req.raw);
    const isOpen = (): boolean => pathname.startsWith(prefix) && isHealthPath(pathname.slice(prefix.length));
    if (host !== base.host && !isOpen()) throw hostUnknown(base);
    const fault = targetFault(pathname);
    if (fault !== undefined) throw refusal('request_invalid', fault);
    await next();
    // A page anywhere may verify a token or generate a client: these hold nothing secret, and no cookie changes them.
    const isForEveryPage =
      forEveryPage.has(pathname.replace(/\/$/, '')) || pathname.startsWith(`${prefix}/status/`);
    if (isForEveryPage && context.res.ok) {
      context.header('access-control-allow-origin', '*');
    }
  });
  const at = prefix === '' ? '/' : prefix;
  if (ui)
    app.route(
      at,
      ui(async (request) => app.fetch(request)),
    );
  app.route(at, pages);
  app.route(`${prefix}/portal`, portal);
  app.route(`${prefix}/auth`, identity);
  for (const part of [docs, health, connectivity]) app.route(at, part);
  app.notFound(({ req }) => {
    const { pathname } = addressOf(req.raw);
    const isBelow = pathname.startsWith(prefix);
    const below = isBelow ? pathname.slice(prefix.length) : pathname;
    const methods = isBelow ? allowedAt(below, groups) : [];
    if (methods.length === 0) return problemReply(refusal('not_found', `There is nothing at ${below}.`));
    const allow = [...new Set(methods)].join(', ');
    return problemReply(refusal('method_not_allowed', `This address allows ${allow} only.`), { allow });
  });
  app.onError((error, { req }) => {
    const refused = problemOf(error, req.method, options);
    const isOfPortal = addressOf(req.raw).pathname.startsWith(`${prefix}/portal/`);
    return problemReply(refused, challenge(refused.problems[0].code, isOfPortal ? undefined : site.baseUrl));
  });

  return async (request) => {
    const began = performance.now();
    const response = await app.fetch(request);
    const { pathname } = addressOf(request);
    // Answered reads would fill the log: load balancers, pages and clients ask again and again. A token is a credential: giving one
    // is logged.
    const isAnswered = response.ok || response.status === 304;
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (!isRead || !isAnswered || acceptsJwt(request)) {
      log('info', 'request', {
        method: request.method,
        path: withoutTokens(pathname),
        status: response.status,
        ms: Math.round(performance.now() - began),
        ...(response.ok ? {} : await problemIn(response)),
      });
    }
    const reply = response.ok ? response : await refusalFor(request, response, site);
    return isQuestion(pathname.slice(prefix.length)) ? compressed(request, reply) : reply;
  };
}

/** The documents that pages of every origin may read, below the base address (Fetch Standard, "CORS protocol"). */
const PUBLIC_DOCUMENTS = ['', '/portal', '/auth']
  .map((service) => service + KEY_SET_PATH)
  .concat(KEY_HISTORY_PATH, PROTECTED_RESOURCE_PATH, '/api-spec');

/**
 * Whether an address below the base has answers that may be compressed: what is known of links, sites and reservations, and
 * the API description. Never those with a token, a login or a session in them (THREATS.md 114).
 */
function isQuestion(path: string): boolean {
  return /^\/(?:apis\/|api-spec|ui\/api\/(?!session))/.test(path);
}

/** Shorter answers are one packet as they are. In characters. */
const SMALLEST = 1024;

/** Half the time of zlib's own level; a tile of the page's chart is a tenth either way. */
const LEVEL = { level: 4 };

const compress = promisify(gzip);

/**
 * Compresses the answer of a question with gzip, where the request accepts that: JSON above 1 KiB in answer to a GET, with
 * status 200. Nothing else is looked at, so a booking pays nothing. The caller decides which addresses this is for
 * (THREATS.md 114); their ETags are weak, since both forms have the same one (RFC 9110 §8.8.1).
 */
async function compressed(request: Request, response: Response): Promise<Response> {
  if (request.method !== 'GET') return response;
  const { status, headers } = response;
  const isJson = headers.get('content-type')?.startsWith('application/json') === true;
  // A 304 has the headers that the 200 would have (RFC 9110 §15.4.5).
  if (status === 304) headers.append('vary', 'accept-encoding');
  if (status !== 200 || !isJson) return response;
  headers.append('vary', 'accept-encoding');
  if (!takes('gzip', request)) return response;
  const bytes = await response.arrayBuffer();
  if (bytes.byteLength < SMALLEST) return new Response(bytes, { headers });
  const body = new Uint8Array(await compress(bytes, LEVEL));
  headers.set('content-encoding', 'gzip');
  headers.set('content-length', String(body.byteLength));
  return new Response(body, { headers });
}

/** The methods that an address below the base allows. Pages and key sets outside the route table are read only. */
function allowedAt(path: string, groups: ApiGroups): string[] {
  if (path.startsWith('/portal/')) return allowedMethods(path.slice('/portal'.length), 'portal', groups);
  if (path === '/' || READ_ONLY.has(path.replace(/\/$/, ''))) return ['GET', 'HEAD'];
  return allowedMethods(path, 'connectivity', groups);
}

/** The longest reason of a refusal that is logged, in characters. */
const MAX_LOGGED_REASON = 500;

/** The code and the reason of a refusal. The reason may repeat names and numbers of the request, but no token. */
export async function problemIn(response: Response): Promise<{ code?: string; why?: Sentence }> {
  const { code, says } = firstProblem(await response.clone().text());
  return {
    code,
    why: says && new Sentence((times) => withoutTokens(says.in(times)).slice(0, MAX_LOGGED_REASON)),
  };
}

/** The identity provider's key set, with which user tokens are verified: its only part that needs no socket. */
export function createIdentity(issuer: ServiceIssuer): Hono {
  const app = new Hono({ strict: false });
  app.get(KEY_SET_PATH, ({ req }) => issuer.publish(req.raw));
  return app;
}

/**
 * Answers in the place of a service that this server does not have: 404 with the address of that service (contract/README.md,
 * "The reference server").
 *
 * @param service such as `portal`
 * @param address the service's base address
 */
export function externalService(service: string, address: string): Hono {
  const app = new Hono({ strict: false });
  app.all('*', () => {
    throw refusal('not_found', `This server has no ${service} of its own. The ${service} is at ${address}.`);
  });
  return app;
}
