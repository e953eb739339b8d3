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
}

/**
 * Reads from the service's own description what it can do beyond the spec (SPEC.md, "GET /api-spec"; DESIGN.md,
 * extensions). What is not described is not there.
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
  const named = Array.isArray(parameters) ? parameters.map((parameter) => member(parameter, 'name')) : [];
  const key = IDEMPOTENCY_KEY_HEADER.toLowerCase();
  return {
    list: isObject(member(reservations, 'get')),
    idempotencyKey: named.some((name) => typeof name === 'string' && name.toLowerCase() === key),
  };
}

function member(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
