import { Hono } from 'hono';
import { StoreUnavailableError } from '../allocator/store.ts';
import { JWT_TYPE } from '../contract/routes.ts';
import type { Log } from './log.ts';
import { ProblemError, problemReply, refusal } from './problem-error.ts';
import { type ApiGroups, allowedMethods } from './routing.ts';

/** What makes up the server's function of a Request. */
export interface ServicesOptions {
  /** `{base_url}`: the connectivity service's address, whose host is the only one that is answered. */
  baseUrl: string;
  groups: ApiGroups;
  connectivity: Hono;
  portal: Hono;
  docs: Hono;
  log: Log;
  /** Milliseconds since the Unix epoch, for the duration in the log. */
  now: () => number;
}

/**
 * Portal, connectivity service and documentation as one function of a Request (DESIGN.md, "The reference server").
 * Whatever a handler throws becomes a reply here: a refusal its own, a database that is away 503, anything else 500
 * without a word about it, and a line in the log with all of it.
 */
export function createServices(options: ServicesOptions): (request: Request) => Promise<Response> {
  const { baseUrl, groups, connectivity, portal, docs, log, now } = options;
  const base = new URL(baseUrl);
  const prefix = base.pathname.replace(/\/$/, '');
  const app = new Hono({ strict: false });

  app.use(async (context, next) => {
    const { host } = new URL(context.req.url);
    if (host !== base.host) throw refusal('host_unknown', `This server answers for ${base.host} only.`);
    await next();
  });
  app.route(`${prefix}/portal`, portal);
  app.route(prefix === '' ? '/' : prefix, docs);
  app.route(prefix === '' ? '/' : prefix, connectivity);
  app.notFound(({ req }) => {
    const below = new URL(req.url).pathname.slice(prefix.length);
    const methods = below.startsWith('/portal/')
      ? allowedMethods(below.slice('/portal'.length), 'portal', groups)
      : allowedMethods(below, 'connectivity', groups);
    if (methods.length === 0) return problemReply(refusal('not_found', `There is nothing at ${below}.`));
    const allow = [...new Set(methods)].join(', ');
    return problemReply(refusal('method_not_allowed', `This address knows ${allow}.`), { allow });
  });
  app.onError((error) => {
    if (error instanceof ProblemError) return problemReply(error);
    if (error instanceof StoreUnavailableError) {
      log('error', 'store_unavailable', { why: String(error.cause ?? error) });
      return problemReply(refusal('unavailable', `${error.message} Nothing was changed; try again.`));
    }
    log('error', 'bug', { why: error.stack ?? error.message });
    return problemReply(refusal('internal', 'Something went wrong in the service; its log says what.'));
  });

  return async (request) => {
    const began = now();
    const response = await app.fetch(request);
    const { pathname } = new URL(request.url);
    log('info', 'request', {
      method: request.method,
      path: pathname,
      status: response.status,
      ms: now() - began,
      code: await problemCode(response),
    });
    return response;
  };
}

async function problemCode(response: Response): Promise<string | undefined> {
  if (response.ok || response.headers.get('content-type')?.startsWith(JWT_TYPE)) return undefined;
  const body: unknown = await response.clone().json();
  return typeof body === 'object' && body !== null && 'code' in body ? String(body.code) : undefined;
}
