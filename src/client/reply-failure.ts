import * as v from 'valibot';
import { isServiceAddress } from '../contract/addresses.ts';
import {
  Failure,
  type FailureCode,
  type FailureDetail,
  type FailureFacts,
  ownCommand,
} from '../contract/failure.ts';
import { isObject, readJson } from '../contract/json.ts';
import {
  Alternative,
  DETAIL_LOCATIONS,
  type DetailLocation,
  FreePart,
  isProblemCode,
  Limit,
  PROBLEMS,
  type ProblemCode,
} from '../contract/problems.ts';
import { Sentence, type Times, UTC_TIMES } from '../contract/said.ts';
import type { ReplyHeaders } from '../contract/sending.ts';
import { claimedExpiry } from '../tokens/claimed.ts';
import { problemTexts, readProblem } from '../words/problems.ts';

/** A reply, read to its end. */
export interface Reply {
  status: number;
  headers: ReplyHeaders;
  /** Media type without parameters, lower case; empty when none was named. */
  type: string;
  text: string;
}

/** The code for a service that gives none, by the location that it names. */
const CODE_OF_LOCATION = {
  Site: 'site_invalid',
  Date: 'date_invalid',
  Bandwidth: 'bandwidth_unavailable',
} as const satisfies Record<DetailLocation, FailureCode>;

/** The phrase of a status (RFC 9110 §15), which a framework sends where the service itself says nothing. */
const BARE_PHRASE =
  /^(?:Bad Request|Unauthorized|Forbidden|Not Found|Method Not Allowed|Internal Server Error|Bad Gateway|Service Unavailable|Gateway Timeout)$/i;

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
  const { code: own, details } = readProblem(body);
  const location = details.flatMap(({ loc }) => loc.filter(isLocation))[0];
  const named = namedCode(own, location ? 422 : status === 401 ? 403 : status);
  const code = codeFor(status, location, named, own);
  return refusedBy(code, details, {
    httpStatus: status,
    hasOwnCode: own !== undefined,
    retryable: code !== 'outcome_unknown' && (status === 429 || status >= 500),
    alternatives: readItems(Alternative, body['alternatives']),
    limits: readItems(Limit, body['limits']),
    free: readItems(FreePart, body['free']),
    fix: fixOf(code, details),
    // The status says success and the body says no: it is a refusal, whatever it names.
    ...(status < 300 && !location ? { exitCode: 6 } : {}),
  });
}

/** The failure with the sentences of a service's refusal: the first is its message, the others are the reason. */
export function refusedBy(
  code: FailureCode,
  details: readonly FailureDetail[],
  facts: FailureFacts,
): Failure {
  const texts = (times: Times): string[] =>
    problemTexts(details, facts.limits ?? [], times).filter((text) => !BARE_PHRASE.test(text));
  const [first, ...others] = texts(UTC_TIMES);
  const message = first === undefined ? undefined : new Sentence((times) => texts(times)[0] ?? '');
  const why = others.length === 0 ? undefined : new Sentence((times) => texts(times).slice(1).join(' '));
  return new Failure(code, message ?? SAYS[code] ?? `The service answered with status ${facts.httpStatus}.`, {
    details,
    why,
    ...facts,
  });
}

/**
 * The next step after a refusal. For a name that is taken, it shows the reservation that has the name; for another Host than the
 * server's, it is a login at the server's own address.
 */
function fixOf(code: FailureCode, details: readonly FailureDetail[]): string | undefined {
  if (code === 'scope_missing') return 'slices-conn login';
  const factsOf = (of: ProblemCode) => details.find((detail) => detail.code === of)?.facts ?? {};
  const { address } = factsOf('host_unknown');
  if (typeof address === 'string' && isServiceAddress(address)) return ownCommand('login', address);
  const { holder } = factsOf('name_taken');
  return typeof holder === 'string' ? ownCommand('show', holder) : undefined;
}

/** Whether a reply is a refusal whatever its status: its body is a list of errors and nothing else that is known. */
export function isRefusal(reply: Pick<Reply, 'text'>): boolean {
  if (!reply.text.includes('"detail"')) return false;
  const { detail, id, items } = readBody(reply);
  return Array.isArray(detail) && detail.length > 0 && id === undefined && items === undefined;
}

/** The codes with which a service says that it changed nothing, and that the same is worth asking again. */
const NOTHING_DONE = ['unavailable', 'too_many_requests'] as const satisfies readonly ProblemCode[];

/** Whether a reply has one of {@link NOTHING_DONE}. */
export function saysNothingWasDone(reply: Pick<Reply, 'status' | 'text'>): boolean {
  const { code } = readBody(reply);
  return NOTHING_DONE.some((one) => one === code && PROBLEMS[one].status === reply.status);
}

/** @param own the service's own code, which may be none that is known here */
function codeFor(
  status: number,
  location: DetailLocation | undefined,
  named: FailureCode | undefined,
  own: string | undefined,
): FailureCode {
  if (status >= 500) return named ?? 'unavailable';
  if (location) return named ?? CODE_OF_LOCATION[location];
  switch (status) {
    case 401:
      return named?.startsWith('token_') ? named : 'token_invalid';
    case 403:
      return named ?? (own?.startsWith('token_') ? 'token_invalid' : 'forbidden');
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

function isLocation(part: string | number): part is DetailLocation {
  return DETAIL_LOCATIONS.some((known) => known === part);
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
