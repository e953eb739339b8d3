import { DAY } from '../../contract/durations.ts';
import { EXAMPLE_CREATED, EXAMPLE_END, EXAMPLE_LATER, EXAMPLE_START } from '../../contract/instants.ts';
import openapi from '../../contract/openapi.json' with { type: 'json' };
import { EXPERIMENTS_API_GROUP, PROJECTS_API_GROUP, SITES_MEMBER } from '../../contract/routes.ts';
import type { ApiGroups } from '../routing.ts';
import { pathOf, type Site } from '../ui/page.ts';

/** The part of the API that a server describes, and its addresses. */
export interface DescriptionOptions {
  groups: ApiGroups;
  /** Who serves it. */
  site: Site;
  /** The names of the server's sites. */
  sites: readonly string[];
  /** Whether portal and identity provider are on another server: then the portal is not described. */
  usesForeignIssuers: boolean;
}

/**
 * The OpenAPI document of one server, as a function of the time: the committed one with this server's paths, and with
 * times in its examples that are tomorrow's, so that a request can be sent as it is shown.
 *
 * @returns the document's text for an instant in milliseconds
 */
export function describeServer({
  groups,
  site,
  sites,
  usesForeignIssuers,
}: DescriptionOptions): (now: number) => string {
  const prefix = pathOf(site);
  const here = usesForeignIssuers ? withoutPortal(openapi) : openapi;
  const text = descriptionText({
    ...here,
    info: { ...here.info, [SITES_MEMBER]: sites },
    servers: here.servers.map((server) => ({ ...server, url: prefix === '' ? '/' : prefix })),
    paths: withGroups(here.paths, groups),
  });
  return (now) => {
    const [today = '', tomorrow = ''] = [0, DAY].map((ahead) => new Date(now + ahead).toISOString());
    const days = {
      [EXAMPLE_CREATED]: today,
      [EXAMPLE_START]: tomorrow,
      [EXAMPLE_END]: tomorrow,
      [EXAMPLE_LATER]: tomorrow,
    };
    return Object.entries(days).reduce(
      (shown, [example, day]) => shown.replaceAll(example, day.slice(0, 10) + example.slice(10)),
      text,
    );
  };
}

/**
 * The text of a description in which 201 stands before 200 among an operation's replies: generators take the first
 * 2xx for the reply to expect, and 200 answers a dry run. An object of JavaScript sorts such members, so this can be
 * done in the text only.
 *
 * @param indent spaces of each level; default none, on one line
 */
export function descriptionText(description: object, indent?: number): string {
  const created = (key: string, value: unknown): unknown => {
    if (key !== 'responses' || typeof value !== 'object' || value === null || !('201' in value)) return value;
    const { 201: first, ...others } = value;
    return {
      '~201': first,
      ...Object.fromEntries(Object.entries(others).map(([status, reply]) => [`~${status}`, reply])),
    };
  };
  return JSON.stringify(description, created, indent).replaceAll(/"~(\d{3})":/g, '"$1":');
}

/** The description of a server with external users: without the portal's paths and the schemas that only they use. */
function withoutPortal(description: typeof openapi) {
  const paths = Object.fromEntries(
    Object.entries(description.paths).filter(([path]) => !path.startsWith('/portal/')),
  );
  const referred = JSON.stringify(paths);
  const schemas = Object.entries(description.components.schemas).filter(([name]) =>
    referred.includes(`"#/components/schemas/${name}"`),
  );
  return {
    ...description,
    tags: description.tags.filter(({ name }) => name !== 'portal'),
    paths,
    components: { ...description.components, schemas: Object.fromEntries(schemas) },
  };
}

/** The committed description has the default API groups in its paths; a server has its own. */
function withGroups(paths: Readonly<Record<string, object>>, groups: ApiGroups): Record<string, object> {
  return Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [
      path
        .replace(`/apis/${PROJECTS_API_GROUP}/`, `/apis/${groups.projects}/`)
        .replace(`/apis/${EXPERIMENTS_API_GROUP}/`, `/apis/${groups.experiments}/`),
      item,
    ]),
  );
}
