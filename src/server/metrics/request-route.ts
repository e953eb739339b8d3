import { READ_ONLY } from '../docs/docs.ts';
import { isProviderPath } from '../identity/provider-endpoints.ts';
import { type ApiGroups, templateAt } from '../routing.ts';

/** Where the services are. */
export interface ServedAddresses {
  /** The path of the base address; empty for the root. */
  prefix: string;
  groups: ApiGroups;
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/**
 * The endpoint that a request is for, as a label: a template such as `/apis/v1alpha1/connectivity/{id}`, never the
 * path itself, and `other` for every other path. So the number of labels is bounded.
 *
 * @param target the request target: a path, with or without a query
 */
export function requestRoute(target: string, { prefix, groups }: ServedAddresses): string {
  const [path = ''] = target.split('?');
  if (!path.startsWith(`${prefix}/`)) return 'other';
  const below = path.slice(prefix.length);
  if (below.startsWith('/portal/')) {
    const template = templateAt(below.slice('/portal'.length), 'portal', groups);
    return template === undefined ? 'other' : `/portal${template}`;
  }
  const page = below.replace(/\/$/, '');
  if (READ_ONLY.has(page)) return page;
  const identity = below.startsWith('/auth/') ? below.slice('/auth'.length) : undefined;
  if (identity !== undefined && (identity === '/device' || isProviderPath(identity))) return below;
  return templateAt(below, 'connectivity', groups) ?? 'other';
}

/** A method as a label: `other` for what no service knows. */
export function requestMethod(method: string): string {
  return METHODS.has(method) ? method : 'other';
}
