import { isObject, readJson } from '../contract/json.ts';
import { IDEMPOTENCY_KEY_HEADER } from '../contract/parameters.ts';
import { ROUTES } from '../contract/routes.ts';
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
 * Reads from the service's own description what it can do beyond the spec (SPEC.md, "GET /api-spec"; DESIGN.md,
 * extensions). An extension that is not described does not exist.
 *
 * @throws Failure when the description can't be had
 */
export async function readFeatures(fetch: Fetch, baseUrl: string): Promise<ServiceFeatures> {
  const request = new Request(`${baseUrl}/api-spec`, {
    headers: { accept: 'application/json' },
    redirect: 'manual',
  });
  const reading = readJson((await exchange(fetch, request)).text);
  const paths = member(reading.ok ? reading.value : undefined, 'paths');
  const reservations = member(paths, ROUTES.createReservation.path);
  const parameters = member(member(reservations, 'post'), 'parameters');
  const all: unknown[] = Array.isArray(parameters) ? parameters : [];
  // Names of headers are the same in any case; a service has no two parameters that differ in nothing else.
  const names = all.map((parameter) => String(member(parameter, 'name')).toLowerCase());
  return {
    list: isObject(member(reservations, 'get')),
    idempotencyKey: names.includes(IDEMPOTENCY_KEY_HEADER.toLowerCase()),
    dryRun: names.includes('dry_run'),
  };
}

function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
