import { Failure } from '../contract/failure.ts';
import { isWithin } from '../contract/instants.ts';
import { isObject, readJson } from '../contract/json.ts';
import { IDEMPOTENCY_KEY_HEADER, ROUTES } from '../contract/routes.ts';
import type { Send } from '../contract/sending.ts';
import { exchange } from './exchange.ts';

/** What a connectivity service can do beyond the API as it is given (contract/README.md, "Extensions"). */
export interface ServiceFeatures {
  /** It lists an experiment's reservations. */
  list: boolean;
  /** It gives the same reservation for the same `Idempotency-Key`. */
  idempotencyKey: boolean;
  /** It rehearses a booking when asked with `dry_run`. */
  dryRun: boolean;
  /** It looks for the earliest period of a duration when asked with `earliest`, and books it. */
  earliest: boolean;
  /** It looks for the rate and period that carry a `volume` and finish first, and books them. */
  volume: boolean;
  /** It keeps the name of a reservation, and refuses one that another has. */
  names: boolean;
  /** It makes several changes together, all or none, with dry runs, a common offset and an idempotency key. */
  batch: boolean;
  /** It tells a link's use over time. */
  availability: boolean;
  /** It tells when a reservation of some bandwidth and duration can start. */
  slots: boolean;
}

/**
 * Reads the extensions of a service from its API description (contract/README.md, "Extensions"), in
 * JSON or YAML. An extension that is not described counts as missing.
 *
 * @throws Failure when the description can't be fetched
 */
export async function readFeatures(send: Send, baseUrl: string): Promise<ServiceFeatures> {
  const request = {
    method: 'GET',
    url: `${baseUrl}/api-spec`,
    headers: { accept: 'application/json, application/yaml;q=0.9, */*;q=0.5' },
  };
  const description = await parsed((await exchange(send, request)).text);
  const path = pathOf(description, ROUTES.createReservation.path);
  const post = member(path, 'post');
  const names = parametersOf(description, path, post);
  const members = membersOf(description, bodiesOf(description, post));
  const isRead = (template: string): boolean => isObject(member(pathOf(description, template), 'get'));
  return {
    list: isObject(member(path, 'get')),
    idempotencyKey: names.includes(IDEMPOTENCY_KEY_HEADER.toLowerCase()),
    dryRun: names.includes('dry_run'),
    earliest: names.includes('earliest') && members.has('duration'),
    volume: members.has('volume'),
    names: members.has('name'),
    batch: hasBatch(description),
    availability: isRead(ROUTES.linkAvailability.path),
    slots: isRead(ROUTES.linkSlots.path),
  };
}

/** How long a description is remembered, in milliseconds: for one command, and not for the life of a service's client. */
const REMEMBERED = 60_000;

/**
 * Reads the extensions of a service when they are first asked for, and again after a minute. A failure is not remembered.
 *
 * @param now milliseconds since the Unix epoch
 */
export function rememberedFeatures(
  send: Send,
  baseUrl: string,
  now: () => number,
): () => Promise<ServiceFeatures> {
  let read: { at: number; features: Promise<ServiceFeatures> } | undefined;
  return () => {
    if (read && isWithin(read.at, REMEMBERED, now())) return read.features;
    const current = { at: now(), features: readFeatures(send, baseUrl) };
    current.features.catch(() => {
      if (read === current) read = undefined;
    });
    read = current;
    return current.features;
  };
}

/**
 * Checks that a service has the extensions that a request needs, before anything is sent that a service without them would
 * book otherwise.
 *
 * @throws Failure `not_supported`
 */
export async function requireFeatures(
  features: () => Promise<ServiceFeatures>,
  needed: readonly (keyof typeof LACKING)[],
): Promise<void> {
  if (needed.length === 0) return;
  const known = await features().catch((error: unknown) => {
    if (error instanceof Failure && error.facts.httpStatus !== undefined) return undefined;
    throw error;
  });
  const lacked = needed.find((feature) => !known?.[feature]);
  if (lacked !== undefined) throw lacking(lacked);
}

/** What a service lacks without an extension, and what it might do with a request that needs it. */
const LACKING = {
  dryRun: ["can't do dry runs", 'dry runs, so it might book the link'],
  earliest: ["can't look for the earliest start", '`earliest`, so it might book the whole period'],
  batch: ["can't make several changes together", 'batches with dry runs, `earliest` and idempotency keys'],
  volume: ["can't book for a volume", '`volume`, so it might book something else'],
  availability: ["does not tell a link's use over time", "a link's availability"],
  slots: ['does not tell when a reservation can start', "a link's slots"],
} as const satisfies Partial<Record<keyof ServiceFeatures, readonly [lacks: string, otherwise: string]>>;

function lacking(feature: keyof typeof LACKING): Failure {
  const [lacks, otherwise] = LACKING[feature];
  return new Failure('not_supported', `This service ${lacks}.`, {
    why: `Its API description does not mention ${otherwise}. Nothing was booked.`,
  });
}

/** Whether there are batches as this project has them: one without dry runs would make the changes. */
function hasBatch(description: unknown): boolean {
  const path = pathOf(description, ROUTES.batchReservations.path);
  const post = member(path, 'post');
  const names = parametersOf(description, path, post);
  return ['dry_run', 'earliest', IDEMPOTENCY_KEY_HEADER.toLowerCase()].every((name) => names.includes(name));
}

/** The names of an operation's parameters, in lower case. */
function parametersOf(description: unknown, path: unknown, operation: unknown): string[] {
  const parameters = [member(path, 'parameters'), member(operation, 'parameters')]
    .flat()
    .map((parameter) => resolved(description, parameter));
  // Names of headers are the same in any case; a service has no two parameters that differ in nothing else.
  return parameters.map((parameter) => String(member(parameter, 'name')).toLowerCase());
}

/** The schemas of an operation's JSON bodies. */
function bodiesOf(description: unknown, operation: unknown): unknown[] {
  const content = member(resolved(description, member(operation, 'requestBody')), 'content');
  return isObject(content) ? Object.values(content).map((body) => member(body, 'schema')) : [];
}

/** The names of the members of schemas, those of their parts included. Each is read once: they may refer to themselves. */
function membersOf(description: unknown, schemas: readonly unknown[]): ReadonlySet<string> {
  const names = new Set<string>();
  const found = new Set<unknown>();
  const left = [...schemas];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const schema = resolved(description, next);
    if (found.has(schema)) continue;
    found.add(schema);
    const properties = member(schema, 'properties');
    if (isObject(properties)) for (const name of Object.keys(properties)) names.add(name);
    for (const kind of ['allOf', 'anyOf', 'oneOf']) {
      const parts = member(schema, kind);
      if (Array.isArray(parts)) for (const part of parts) left.push(part);
    }
  }
  return names;
}

/** A description's value; undefined for text that is neither JSON nor YAML. */
async function parsed(text: string): Promise<unknown> {
  const reading = readJson(text);
  if (reading.ok) return reading.value;
  const { parse } = await import('yaml');
  try {
    // The check for equal keys takes a minute for a description of the largest size.
    return parse(text, { uniqueKeys: false, prettyErrors: false, logLevel: 'silent' });
  } catch {
    return undefined;
  }
}

/** The description of a path, which may be written below the path of the service's address (OpenAPI 3.1 §4.8.5). */
function pathOf(description: unknown, path: string): unknown {
  const servers = member(description, 'servers');
  const addresses = (Array.isArray(servers) ? servers : []).map((server) => String(member(server, 'url')));
  const bases = addresses.map((address) => {
    const { pathname } = new URL(URL.canParse(address, BASE) ? address : '/', BASE);
    return pathname.replace(/\/+$/, '');
  });
  const names = ['', ...bases]
    .filter((base) => path.startsWith(`${base}/`))
    .flatMap((base) => [path.slice(base.length), `${path.slice(base.length)}/`]);
  const paths = member(description, 'paths');
  const [exact] = names.map((name) => member(paths, name)).filter(isObject);
  if (exact || !path.includes('{') || !isObject(paths)) return exact;
  // The names between the braces are the description's own.
  const forms = names.map(formOf);
  return Object.entries(paths).find(([name]) => forms.includes(formOf(name)))?.[1];
}

function formOf(path: string): string {
  return path.replaceAll(/\{[^{}]*\}/g, '{}');
}

/** For addresses without a host. */
const BASE = 'https://service.invalid';

/** What a reference to another place of the same description stands for; any other value as it is. */
function resolved(description: unknown, value: unknown): unknown {
  const reference = member(value, '$ref');
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return value;
  return reference
    .slice(2)
    .split('/')
    .reduce((found: unknown, name) => member(found, name), description);
}

function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
