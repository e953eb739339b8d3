import type { Hono } from 'hono';
import { ROUTES, type Route, type RouteName } from '../contract/routes.ts';
import { refusal } from './problem-error.ts';
import { addressOf } from './request-reading.ts';

/** Answers one endpoint. The values are those of the path's placeholders, in their order. */
export type Handler = (request: Request, ...values: string[]) => Promise<Response>;

/** Adds an endpoint of the route table to a router. */
export type RouteMounter = (app: Hono, name: RouteName, handle: Handler) => void;

/** The API groups in the portal's paths (contract/README.md, "Portal endpoints": `{projects_api_group}`). */
export interface ApiGroups {
  projects: string;
  experiments: string;
}

/** A mounter for paths with these API groups. It refuses requests that give a query parameter twice, but for lists. */
export function routeMounter(groups: ApiGroups): RouteMounter {
  return (app, name, handle) => {
    const route: Route = ROUTES[name];
    const query = Object.entries(route.query ?? {});
    const single = query.flatMap(([name, { type }]) => (type === 'array' ? [] : [name]));
    const names = placeholders(route.path);
    app.on(route.method, routePattern(route, groups), (context) => {
      const { search, searchParams } = addressOf(context.req.raw);
      for (const parameter of search === '' ? [] : single) {
        if (searchParams.getAll(parameter).length > 1) {
          throw refusal('request_invalid', `The query names ${parameter} twice.`);
        }
      }
      const values = names.map((name) => context.req.param(name) ?? '');
      return handle(context.req.raw, ...values);
    });
  };
}

/**
 * The methods that a path allows, for the `Allow` of a 405 (RFC 9110 §15.5.6); empty for an unknown path.
 *
 * @param path below the service's base address
 */
export function allowedMethods(path: string, service: Route['service'], groups: ApiGroups): string[] {
  return Object.values(ROUTES)
    .filter((route: Route) => route.service === service && matches(routePattern(route, groups), path))
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
}

/** The path of the route table that matches a path, such as `/a/{id}`; undefined for an unknown path. */
export function templateAt(path: string, service: Route['service'], groups: ApiGroups): string | undefined {
  return Object.values(ROUTES).find(
    (route: Route) => route.service === service && matches(routePattern(route, groups), path),
  )?.path;
}

/** The path of a route as the router has it. Without a trailing slash: the router, which is not strict, drops it from requests too. */
export function routePattern(route: Route, groups: ApiGroups): string {
  return route.path
    .replace('{projects_api_group}', groups.projects)
    .replace('{experiments_api_group}', groups.experiments)
    .replaceAll(PLACEHOLDER, ':$1')
    .replace(/\/$/, '');
}

const PLACEHOLDER = /\{(id|site1|site2|link|list|rule)\}/g;

function placeholders(path: string): string[] {
  return [...path.matchAll(PLACEHOLDER)].map(([, name = '']) => name);
}

function matches(routePattern: string, path: string): boolean {
  const parts = path.replace(/\/$/, '').split('/');
  const due = routePattern.split('/');
  return (
    due.length === parts.length &&
    due.every((part, index) => (part.startsWith(':') ? parts[index] !== '' : part === parts[index]))
  );
}
