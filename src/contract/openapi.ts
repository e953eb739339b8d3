import { type JsonSchema, toJsonSchema } from '@valibot/to-json-schema';
import type * as v from 'valibot';
import {
  BODY_EXAMPLES,
  PROBLEM_FACTS,
  PROBLEM_MESSAGES,
  REQUEST_EXAMPLES,
  SCHEMAS,
  type SchemaName,
} from './api-examples.ts';
import { ReservationId, SiteName } from './fields.ts';
import { PROBLEMS, type ProblemCode, problemBody } from './problems.ts';
import { WHO_MAY } from './roles.ts';
import type { Parameter } from './route-parameters.ts';
import {
  EXPERIMENT_TOKEN_HEADER,
  EXPERIMENTS_API_GROUP,
  EXTENSIONS,
  EXTENSIONS_MEMBER,
  JWT_TYPE,
  PROJECTS_API_GROUP,
  PROTECTED_RESOURCE_PATH,
  ROUTES,
  type Route,
} from './routes.ts';

/** Shown above the operations; Markdown. */
const DESCRIPTION = `Reserve bandwidth and VLANs between two sites for a period.

To try it here, log in with \`slices-conn login\`, press **Authorize**, and paste what these two commands print:

    slices-conn user token
    slices-conn experiment token demo

Operations, parameters and members with \`x-extension: true\` are not in the specification; another service may lack them.`;

/** An object of the document; a member that is undefined is left out of its text. */
type Described = Record<string, unknown>;

/**
 * The OpenAPI 3.1 description of the connectivity service and the portal, made from the route table and the
 * schemas (contract/README.md, "Endpoints"). Committed as `openapi.json`; a test fails when that file is stale.
 *
 * @param version the package's version
 */
export function describeApi(version: string): Described {
  const routes = Object.entries(ROUTES) as [string, Route][];
  const paths: Record<string, Described> = {};
  for (const [operationId, route] of routes) {
    const path = documentPath(route);
    const before = paths[path] ?? { parameters: pathParameters(route) };
    paths[path] = { ...before, [route.method.toLowerCase()]: operation(operationId, route) };
  }
  const answered = [...new Set(routes.flatMap(([, route]) => [...problemsOf(route)]))].toSorted();
  return {
    openapi: '3.1.1',
    info: {
      title: 'Connectivity Reservation Service',
      version,
      summary: 'Books network links between research sites.',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
      [EXTENSIONS_MEMBER]: EXTENSIONS,
    },
    servers: [{ url: '/', description: 'This server' }],
    security: [{ userToken: [] }],
    tags: [
      { name: 'connectivity', description: 'Reservations and links' },
      { name: 'portal', description: 'Projects, experiments and their tokens' },
    ],
    paths,
    components: {
      schemas: mapped(SCHEMAS, jsonSchema),
      examples: Object.fromEntries(
        answered.map((code) => {
          const value = problemBody([{ code, msg: PROBLEM_MESSAGES[code] }], PROBLEM_FACTS[code]);
          return [code, { summary: code, value }];
        }),
      ),
      securitySchemes: {
        userToken: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'The user token. Print yours with `slices-conn user token`; it lasts an hour.',
        },
        experimentToken: {
          type: 'apiKey',
          in: 'header',
          name: EXPERIMENT_TOKEN_HEADER,
          description:
            'The experiment token. Print it with `slices-conn experiment token demo`, where `demo` is the experiment; it lasts 15 minutes. It may also stand in Authorization or in `tokens`.',
        },
      },
    },
  };
}

/** The same members, each with what `make` gives for its value. */
function mapped<Value>(values: Readonly<Record<string, Value>>, make: (value: Value) => unknown): Described {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, make(value)]));
}

/** Below the one base address. Most generators of clients ignore a `servers` of a path, so the portal's are named in full. */
function documentPath(route: Route): string {
  const path = route.path
    .replace('{projects_api_group}', PROJECTS_API_GROUP)
    .replace('{experiments_api_group}', EXPERIMENTS_API_GROUP)
    // The services answer with and without it; linters want it gone.
    .replace(/\/$/, '');
  return route.service === 'portal' ? `/portal${path}` : path;
}

function jsonSchema(schema: v.GenericSchema): Described {
  const { $schema: _, ...rest } = toJsonSchema(schema, {
    target: 'draft-2020-12',
    typeMode: 'input',
    errorMode: 'ignore',
    overrideSchema: ({ jsonSchema: converted }) => asArray(converted),
  });
  return rest as Described;
}

/** A tuple as an array of a fixed length: generators and linters want `items`, which `prefixItems` lacks. */
function asArray({ prefixItems, minItems, ...rest }: JsonSchema): JsonSchema | undefined {
  const [first] = prefixItems ?? [];
  if (prefixItems === undefined || first === undefined) return undefined;
  return { ...rest, items: first, minItems: prefixItems.length, maxItems: prefixItems.length };
}

/** The variable parts of a route's path; undefined where it has none. */
function pathParameters(route: Route): Described[] | undefined {
  const site = jsonSchema(SiteName);
  const schemas: Described = {
    id: route.service === 'connectivity' ? jsonSchema(ReservationId) : { type: 'string' },
    site1: { ...site, examples: ['be-gent1'] },
    site2: { ...site, examples: ['pl-poznan1'] },
    link: { type: 'string', examples: ['be-gent1~pl-poznan1'] },
    list: { type: 'integer', minimum: 0, examples: [0] },
    rule: { type: 'string', examples: ['3f9a0c17d2b84e61'] },
  };
  const names = Object.keys(schemas).filter((name) => route.path.includes(`{${name}}`));
  if (names.length === 0) return undefined;
  return names.map((name) => ({ name, in: 'path', required: true, schema: schemas[name] }));
}

function operation(operationId: string, route: Route): Described {
  const { summary, service, extension, query, headers, request } = route;
  return {
    operationId,
    summary,
    tags: [service],
    description: needed(route),
    'x-extension': extension,
    security: security(route),
    parameters: (query || headers) && [...parameters('query', query), ...parameters('header', headers)],
    requestBody: request && { required: true, content: { 'application/json': body(request) } },
    responses: responses(route),
  };
}

function needed({ action, credentials, scopes }: Route): string {
  if (credentials === 'none') return 'Needs no token.';
  const token = scopes.length === 0 ? 'Needs a user token.' : `Needs the scope ${scopes.join(' and ')}.`;
  return action ? `Allowed for: ${WHO_MAY[action].join(', ')}. ${token}` : token;
}

function security({ credentials, scopes }: Route): Described[] {
  if (credentials === 'none') return [];
  return [credentials === 'user' ? { userToken: scopes } : { userToken: scopes, experimentToken: [] }];
}

function parameters(place: 'query' | 'header', declared: Readonly<Record<string, Parameter>> = {}) {
  return Object.entries(declared).map(([name, { description, type, required, example, extension }]) => ({
    name,
    in: place,
    description,
    required,
    schema: type === 'array' ? { type, items: { type: 'string' } } : { type },
    example: example !== undefined && type === 'integer' ? Number(example) : example,
    'x-extension': extension,
  }));
}

function ref(kind: 'schemas' | 'examples', name: string): Described {
  return { $ref: `#/components/${kind}/${name}` };
}

function body(name: SchemaName): Described {
  return { schema: ref('schemas', name), example: BODY_EXAMPLES[name], examples: REQUEST_EXAMPLES[name] };
}

/** A header of a reply that is text. */
function header(description: string, required?: boolean): Described {
  return { description, required, schema: { type: 'string' } };
}

/** An object; undefined where it has no members. */
function unlessEmpty(members: Described): Described | undefined {
  return Object.values(members).some((member) => member !== undefined) ? members : undefined;
}

/** How long to wait (RFC 9110 §10.2.3). */
const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds.', required: true, schema: { type: 'integer', minimum: 1 } },
};

/** Where to log in (RFC 9728 §5.1). */
const CHALLENGE = {
  'WWW-Authenticate': header(
    `Where the token is missing or not accepted: \`Bearer error="invalid_token", resource_metadata="…${PROTECTED_RESOURCE_PATH}"\`.`,
  ),
};

function responses({ success, query = {}, service, ...route }: Route): Described {
  const { status, schema, signed, media, tagged, headers = {} } = success;
  const json = schema && body(schema);
  const text = { schema: { type: 'string' } };
  const content = {
    'application/json': json,
    ...(signed ? { [JWT_TYPE]: text } : {}),
    ...(media ? { [media]: text } : {}),
  };
  const found: Described = {
    [status]: {
      description: status === 201 ? 'Created' : status === 204 ? 'Deleted' : 'OK',
      headers: unlessEmpty({
        Location: status === 201 ? header('Its address.', true) : undefined,
        ETag: tagged && header('For If-None-Match.', true),
        ...mapped(headers, header),
      }),
      content: unlessEmpty(content),
    },
  };
  if (tagged) found[304] = { description: 'Nothing has changed since the ETag that If-None-Match names' };
  // A dry run has nothing to prove: its answer is JSON only.
  if ('dry_run' in query && status === 201) {
    found[200] = { description: 'What a dry run would have made', content: { 'application/json': json } };
  }
  for (const [refused, codes] of Map.groupBy(problemsOf(route), (code) => PROBLEMS[code].status)) {
    const isChallenge = codes.includes('token_missing') && service === 'connectivity';
    found[refused] = {
      description: codes.join(', '),
      headers:
        refused === PROBLEMS.too_many_requests.status ? RETRY_AFTER : isChallenge ? CHALLENGE : undefined,
      content: {
        'application/json': {
          schema: ref('schemas', 'ProblemBody'),
          examples: Object.fromEntries(codes.map((code) => [code, ref('examples', code)])),
        },
      },
    };
  }
  return found;
}

/** The codes that a route's replies may carry, its own and those that every route may answer. */
function problemsOf({ method, problems }: Pick<Route, 'method' | 'problems'>): Set<ProblemCode> {
  const everywhere = ['request_invalid', 'host_unknown', 'internal', 'unavailable'] as const;
  return new Set([...problems, ...everywhere, ...(method === 'GET' ? [] : (['outcome_unknown'] as const))]);
}
