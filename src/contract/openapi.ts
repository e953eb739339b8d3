import { type JsonSchema, toJsonSchema } from '@valibot/to-json-schema';
import * as v from 'valibot';
import { BODY_EXAMPLES, PROBLEM_FACTS, REQUEST_EXAMPLES } from './api-examples.ts';
import { Availability, RouteList, SlotList, UseList } from './availability.ts';
import { BatchRequest, BatchResults } from './batch.ts';
import { CiRule, CiRuleList, CiRuleRequest } from './ci-rules.ts';
import { KeyHistoryDocument, KeySetDocument } from './claims.ts';
import {
  Experiment,
  ExperimentList,
  ExperimentRequest,
  Project,
  ProjectList,
  SessionList,
} from './directory.ts';
import { ReservationId, SiteName } from './fields.ts';
import { LinkList } from './links.ts';
import { PROBLEMS, type ProblemCode } from './problem-codes.ts';
import { ProblemBody, problemBody } from './problems.ts';
import { ProtectedResource } from './protected-resource.ts';
import { Reservation, ReservationRequestBody, ReservationUpdate } from './reservation.ts';
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
  type SchemaName,
} from './routes.ts';

const ReservationList = v.object({
  items: v.array(Reservation),
  nextCursor: v.pipe(v.nullable(v.string()), v.description('Give it as ?cursor= for the next page.')),
});

/** The answer to a health check that passed. A failed one is a problem body with a status of its own. */
const Health = v.object({ status: v.pipe(v.literal('ok'), v.description('`ok`.')) });

const SCHEMAS = {
  Reservation,
  ReservationRequest: ReservationRequestBody,
  ReservationUpdate,
  ReservationList,
  BatchRequest,
  BatchResults,
  LinkList,
  Availability,
  UseList,
  SlotList,
  RouteList,
  Project,
  ProjectList,
  ExperimentList,
  Experiment,
  ExperimentRequest,
  SessionList,
  ProtectedResource,
  CiRule,
  CiRuleRequest,
  CiRuleList,
  KeySetDocument,
  KeyHistoryDocument,
  Health,
  ProblemBody,
} as const satisfies Record<SchemaName, v.GenericSchema>;

/** Shown above the operations; Markdown. */
const DESCRIPTION = `Reserve bandwidth and VLANs between two sites for a period.

To try it here, log in with \`slices-conn login\`, press **Authorize**, and paste what these two commands print:

    slices-conn user token
    slices-conn experiment token demo

Operations, parameters and members with \`x-extension: true\` are not in the specification; another service may lack them.`;

/** Members of the OpenAPI document, as far as this project reads them back. */
interface OpenApiDocument {
  openapi: string;
  info: Record<string, unknown>;
  servers: { url: string; description: string }[];
  security: Record<string, string[]>[];
  tags: Record<string, unknown>[];
  paths: Record<string, Record<string, unknown>>;
  components: Record<string, Record<string, unknown>>;
}

/**
 * The OpenAPI 3.1 description of the connectivity service and the portal, made from the route table and the
 * schemas (contract/README.md, "Endpoints"). Committed as `openapi.json`; a test fails when that file is stale.
 *
 * @param version the package's version
 */
export function describeApi(version: string): OpenApiDocument {
  const paths: OpenApiDocument['paths'] = {};
  for (const [operationId, route] of Object.entries(ROUTES) as [string, Route][]) {
    const path = documentPath(route);
    const varying = pathParameters(route);
    paths[path] ??= varying.length > 0 ? { parameters: varying } : {};
    paths[path][route.method.toLowerCase()] = operation(operationId, route);
  }
  const answered = [...new Set(Object.values(ROUTES).flatMap((route) => [...problemsOf(route)]))].toSorted();
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
      schemas: Object.fromEntries(
        Object.entries(SCHEMAS).map(([name, schema]) => [name, jsonSchema(schema)]),
      ),
      examples: Object.fromEntries(
        answered.map((code) => [
          code,
          { summary: code, value: problemBody([{ code, msg: PROBLEMS[code].example }], PROBLEM_FACTS[code]) },
        ]),
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

/** Below the one base address. Most generators of clients ignore a `servers` of a path, so the portal's are named in full. */
function documentPath(route: Route): string {
  const path = route.path
    .replace('{projects_api_group}', PROJECTS_API_GROUP)
    .replace('{experiments_api_group}', EXPERIMENTS_API_GROUP)
    // The services answer with and without it; linters want it gone.
    .replace(/\/$/, '');
  return route.service === 'portal' ? `/portal${path}` : path;
}

function jsonSchema(schema: v.GenericSchema): Record<string, unknown> {
  const { $schema: _, ...rest } = toJsonSchema(schema, {
    target: 'draft-2020-12',
    typeMode: 'input',
    errorMode: 'ignore',
    overrideSchema: ({ jsonSchema: converted }) => asArray(converted),
  });
  return rest as Record<string, unknown>;
}

/** A tuple as an array of a fixed length: generators and linters want `items`, which `prefixItems` lacks. */
function asArray({ prefixItems, minItems, ...rest }: JsonSchema): JsonSchema | undefined {
  const [first] = prefixItems ?? [];
  if (prefixItems === undefined || first === undefined) return undefined;
  return { ...rest, items: first, minItems: prefixItems.length, maxItems: prefixItems.length };
}

/** The variable parts of a route's path: an id, the two sites of a link, or the link and one of its lists. */
function pathParameters(route: Route): Record<string, unknown>[] {
  const id = route.service === 'connectivity' ? jsonSchema(ReservationId) : { type: 'string' };
  const [site1, site2] = ['be-gent1', 'pl-poznan1'].map((site) => ({
    ...jsonSchema(SiteName),
    examples: [site],
  }));
  const link = { type: 'string', examples: ['be-gent1~pl-poznan1'] };
  const list = { type: 'integer', minimum: 0, examples: [0] };
  const rule = { type: 'string', examples: ['3f9a0c17d2b84e61'] };
  return Object.entries({ id, site1, site2, link, list, rule })
    .filter(([name]) => route.path.includes(`{${name}}`))
    .map(([name, schema]) => ({ name, in: 'path', required: true, schema }));
}

function operation(operationId: string, route: Route): Record<string, unknown> {
  return {
    operationId,
    summary: route.summary,
    tags: [route.service],
    description: needed(route),
    ...(route.extension ? { 'x-extension': true } : {}),
    security: security(route),
    ...(route.query || route.headers
      ? { parameters: [...parameters('query', route.query), ...parameters('header', route.headers)] }
      : {}),
    ...(route.request
      ? { requestBody: { required: true, content: { 'application/json': body(route.request) } } }
      : {}),
    responses: responses(route),
  };
}

function needed({ action, credentials, scopes }: Route): string {
  if (credentials === 'none') return 'Needs no token.';
  const token = scopes.length === 0 ? 'Needs a user token.' : `Needs the scope ${scopes.join(' and ')}.`;
  return action ? `Allowed for: ${WHO_MAY[action].join(', ')}. ${token}` : token;
}

function body(name: SchemaName): Record<string, unknown> {
  const [example, examples] = [BODY_EXAMPLES[name], REQUEST_EXAMPLES[name]];
  return { schema: ref(name), example, examples };
}

function parameters(
  place: 'query' | 'header',
  declared: Readonly<Record<string, Parameter>> = {},
): Record<string, unknown>[] {
  return Object.entries(declared).map(([name, { description, type, required, example, extension }]) => ({
    name,
    in: place,
    description,
    ...(required ? { required } : {}),
    schema: { type },
    ...(example === undefined ? {} : { example: type === 'integer' ? Number(example) : example }),
    ...(extension ? { 'x-extension': true } : {}),
  }));
}

function security(route: Route): Record<string, string[]>[] {
  if (route.credentials === 'none') return [];
  const userToken = [...route.scopes];
  return route.credentials === 'user' ? [{ userToken }] : [{ userToken, experimentToken: [] }];
}

function ref(name: SchemaName): { $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** A dry run has nothing to prove: its answer is JSON only. */
function rehearsal(schema: SchemaName | undefined): Record<string, unknown> {
  const content = schema ? { 'application/json': body(schema) } : {};
  return { description: 'What a dry run would have made', content };
}

/** How long to wait (RFC 9110 §10.2.3). */
const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds.', required: true, schema: { type: 'integer', minimum: 1 } },
};

/** Where to log in (RFC 9728 §5.1). */
const CHALLENGE = {
  'WWW-Authenticate': {
    description: `Where the token is missing or not accepted: \`Bearer error="invalid_token", resource_metadata="…${PROTECTED_RESOURCE_PATH}"\`.`,
    schema: { type: 'string' },
  },
};

function responses(route: Route): Record<string, unknown> {
  const { status, schema, signed, media, tagged, headers = {} } = route.success;
  const content = {
    ...(schema ? { 'application/json': body(schema) } : {}),
    ...(signed ? { [JWT_TYPE]: { schema: { type: 'string' } } } : {}),
    ...(media ? { [media]: { schema: { type: 'string' } } } : {}),
  };
  const described = {
    ...(status === 201
      ? { Location: { description: 'Its address.', required: true, schema: { type: 'string' } } }
      : {}),
    ...(tagged
      ? { ETag: { description: 'For If-None-Match.', required: true, schema: { type: 'string' } } }
      : {}),
    ...Object.fromEntries(
      Object.entries(headers).map(([name, description]) => [
        name,
        { description, schema: { type: 'string' } },
      ]),
    ),
  };
  const found: Record<string, unknown> = {
    [status]: {
      description: status === 201 ? 'Created' : status === 204 ? 'Deleted' : 'OK',
      ...(Object.keys(described).length > 0 ? { headers: described } : {}),
      ...(Object.keys(content).length > 0 ? { content } : {}),
    },
    ...(tagged
      ? { 304: { description: 'Nothing has changed since the ETag that If-None-Match names' } }
      : {}),
    ...(route.query && 'dry_run' in route.query
      ? { 200: status === 201 ? rehearsal(schema) : { description: 'OK', content } }
      : {}),
  };
  const byStatus = Map.groupBy(problemsOf(route), (code) => PROBLEMS[code].status);
  for (const [problemStatus, codes] of [...byStatus].sort(([a], [b]) => a - b)) {
    found[problemStatus] = {
      description: codes.join(', '),
      ...(problemStatus === PROBLEMS.too_many_requests.status ? { headers: RETRY_AFTER } : {}),
      ...(codes.includes('token_missing') && route.service === 'connectivity' ? { headers: CHALLENGE } : {}),
      content: {
        'application/json': {
          schema: ref('ProblemBody'),
          examples: Object.fromEntries(
            codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]),
          ),
        },
      },
    };
  }
  return found;
}

/** The codes that a route's replies may carry, its own and those that every route may answer. */
function problemsOf(route: Route): Set<ProblemCode> {
  const everywhere: ProblemCode[] = ['request_invalid', 'host_unknown', 'internal', 'unavailable'];
  if (route.method !== 'GET') everywhere.push('outcome_unknown');
  return new Set([...route.problems, ...everywhere]);
}
