import { isObject, readJson } from '../contract/json.ts';
import { IDEMPOTENCY_KEY_HEADER, ROUTES } from '../contract/routes.ts';
import { exchange, type Fetch } from './exchange.ts';

/** What a connectivity service can do beyond SPEC.md. */
export interface ServiceFeatures {
  /** It lists an experiment's reservations. */
  list: boolean;
  /** It gives the same reservation for the same `Idempotency-Key`. */
  idempotencyKey: boolean;
  /** It rehearses a booking when asked with `dry_run`. */
  dryRun: boolean;
}

/**
 * Reads the extensions of a service from its API description (SPEC.md, "GET /api-spec"; DESIGN.md, extensions), in JSON
 * or YAML. An extension that is not described counts as missing.
 *
 * @throws Failure when the description can't be fetched
 */
export async function readFeatures(fetch: Fetch, baseUrl: string): Promise<ServiceFeatures> {
  const request = new Request(`${baseUrl}/api-spec`, {
    headers: { accept: 'application/json, application/yaml;q=0.9, */*;q=0.5' },
    redirect: 'manual',
  });
  const description = await parsed((await exchange(fetch, request)).text);
  const path = pathOf(description, ROUTES.createReservation.path);
  const post = member(path, 'post');
  const parameters = [member(path, 'parameters'), member(post, 'parameters')]
    .flat()
    .map((parameter) => resolved(description, parameter));
  // Names of headers are the same in any case; a service has no two parameters that differ in nothing else.
  const names = parameters.map((parameter) => String(member(parameter, 'name')).toLowerCase());
  return {
    list: isObject(member(path, 'get')),
    idempotencyKey: names.includes(IDEMPOTENCY_KEY_HEADER.toLowerCase()),
    dryRun: names.includes('dry_run'),
  };
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
  return names.map((name) => member(paths, name)).find(isObject);
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
