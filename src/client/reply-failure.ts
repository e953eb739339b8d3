import * as v from 'valibot';
import {
  Failure,
  type FailureCode,
  type FailureDetail,
  type FailureFacts,
  ownCommand,
} from '../contract/failure.ts';
import { isObject, readJson } from '../contract/json.ts';
import {
  DETAIL_LOCATIONS,
  type DetailLocation,
  isProblemCode,
  PROBLEMS,
  type ProblemCode,
} from '../contract/problem-codes.ts';
import { AlternativeReply, FreePart, Limit } from '../contract/problems.ts';
import type { ReplyHeaders } from '../contract/sending.ts';
import { claimedExpiry } from '../tokens/claimed.ts';

/** A reply, read to its end. */
export interface Reply {
  status: number;
  headers: ReplyHeaders;
  /** Media type without parameters, lower case; empty when none was named. */
  type: string;
  text: string;
}

const LOOSE_DETAIL = v.looseObject({
  loc: v.optional(v.pipe(v.unknown(), v.transform(namesIn)), []),
  msg: v.optional(v.string(), ''),
  type: v.optional(v.string(), ''),
  item: v.fallback(v.optional(v.pipe(v.number(), v.integer(), v.minValue(0))), undefined),
});

/** The code for a service that gives none, by the location that it names. */
export const CODE_OF_LOCATION = {
  Site: 'site_invalid',
  Date: 'date_invalid',
  Bandwidth: 'bandwidth_unavailable',
} as const satisfies Record<DetailLocation, FailureCode>;

const SAYS: Partial<Record<FailureCode, string>> = {
  token_invalid: 'The service did not accept the token.',
  forbidden: 'The service does not allow this.',
  not_found: 'The service does not have this.',
  too_many_requests: 'The service asks for fewer requests.',
  unavailable: 'The service is not available at the moment.',
  outcome_unknown: 'The service does not know whether it did what was asked.',
};

/**
 * The failure that an unsuccessful reply means (cli/README.md, "Exit codes"; contract/README.md, "Status codes", column Client): a `detail`
 * list with Site, Date or Bandwidth is a refusal whatever its status, else the status decides, refined by the
 * service's own code where it gives one.
 */
export function replyFailure(reply: Reply): Failure {
  const { status } = reply;
  const body = readBody(reply);
  const details = readDetails(body['detail']);
  const location = details.flatMap(({ loc }) => loc.filter(isLocation))[0];
  const named = namedCode(body['code'], location ? 422 : status === 401 ? 403 : status);
  const code = codeFor(status, location, named);
  const [message = SAYS[code], ...others] = details.map(sentence).filter((msg) => msg !== '');
  const facts: FailureFacts = {
    httpStatus: status,
    retryable: code !== 'outcome_unknown' && (status === 429 || status >= 500),
    details,
    ...(others.length > 0 ? { why: others.join(' ') } : {}),
    alternatives: readItems(AlternativeReply, body['alternatives']),
    limits: readItems(Limit, body['limits']),
    free: readItems(FreePart, body['free']),
    ...(code === 'scope_missing' ? { fix: 'slices-conn login' } : {}),
  };
  return new Failure(code, message ?? `The service answered with status ${status}.`, facts);
}

/** The codes with which a service says that it changed nothing, and that the same is worth asking again. */
const NOTHING_DONE = ['unavailable', 'too_many_requests'] as const satisfies readonly ProblemCode[];

/** Whether a reply has one of {@link NOTHING_DONE}. */
export function saysNothingWasDone(reply: Pick<Reply, 'status' | 'text'>): boolean {
  const { code } = readBody(reply);
  return NOTHING_DONE.some((one) => one === code && PROBLEMS[one].status === reply.status);
}

function codeFor(
  status: number,
  location: DetailLocation | undefined,
  named: FailureCode | undefined,
): FailureCode {
  if (status >= 500) return named ?? 'unavailable';
  if (location) return named ?? CODE_OF_LOCATION[location];
  switch (status) {
    case 401:
      return named?.startsWith('token_') ? named : 'token_invalid';
    case 403:
      return named ?? 'forbidden';
    case 404:
      return 'not_found';
    case 429:
      return 'too_many_requests';
    default:
      return named ?? 'request_rejected';
  }
}

/** The service's own code, where it belongs to the status. A 401 counts as a 403. */
function namedCode(value: unknown, status: number): ProblemCode | undefined {
  return isProblemCode(value) && PROBLEMS[value].status === status ? value : undefined;
}

function readBody(reply: Pick<Reply, 'text'>): Record<string, unknown> {
  const reading = readJson(reply.text);
  return reading.ok && isObject(reading.value) ? reading.value : {};
}

function readDetails(detail: unknown): FailureDetail[] {
  if (typeof detail === 'string') return [{ loc: [], msg: detail, type: '' }];
  if (!Array.isArray(detail)) return [];
  return detail.flatMap((item) => {
    const result = v.safeParse(LOOSE_DETAIL, item);
    if (!result.success) return [];
    const { loc, msg, type, item: index } = result.output;
    return [{ loc, msg, type, item: index }];
  });
}

/** The texts and numbers of a `loc`; other values are left out. */
function namesIn(loc: unknown): (string | number)[] {
  return (Array.isArray(loc) ? loc : [loc]).filter(isName);
}

function isName(part: unknown): part is string | number {
  return typeof part === 'string' || typeof part === 'number';
}

function isLocation(part: string | number): part is DetailLocation {
  return DETAIL_LOCATIONS.some((known) => known === part);
}

/** An error's message for people. The spec's messages name their member; others get its path in front. */
function sentence({ loc, msg }: FailureDetail): string {
  return msg === '' || loc.length === 0 || loc.some(isLocation) ? msg : `${loc.join('.')}: ${msg}`;
}

/** The items of an extension's list that can be read; another service may have members of these names for something else. */
function readItems<Schema extends v.GenericSchema>(schema: Schema, value: unknown): v.InferOutput<Schema>[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((item) => {
    const result = v.safeParse(schema, item);
    return result.success ? [result.output] : [];
  });
}

/**
 * Turns a 403 without a code into `token_expired` when one of the tokens that were sent has expired (contract/README.md,
 * "Decided here").
 *
 * @param sent the values of the headers that carried tokens
 * @param now milliseconds
 */
export function expiredInstead(error: unknown, sent: readonly string[], now: number): unknown {
  if (!(error instanceof Failure) || error.code !== 'forbidden') return error;
  if (!sent.some((value) => hasExpired(value.replace(/^Bearer /, ''), now))) return error;
  return new Failure('token_expired', 'The token that was sent has expired.', error.facts);
}

function hasExpired(token: string, now: number): boolean {
  const expiry = claimedExpiry(token);
  return expiry !== undefined && expiry <= now;
}

/** Adds to the refusal of a name the command that shows who has it. */
export function withHolder({ name }: { name?: string } = {}): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof Failure) || error.code !== 'name_taken') throw error;
    throw error.with({ fix: name === undefined ? ownCommand('list') : ownCommand('show', name) });
  };
}
