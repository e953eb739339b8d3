import * as v from 'valibot';
import { QuestionEndedError } from '../allocator/questions.ts';
import { TooMuchError } from '../allocator/steps.ts';
import { CommitUnknownError, DATABASE_UNUSABLE, StoreUnavailableError } from '../allocator/store.ts';
import { isObject, readJson } from '../contract/json.ts';
import {
  PROBLEMS,
  type Problem,
  type ProblemCode,
  problemBody,
  type RefusalFacts,
  schemaProblems,
} from '../contract/problems.ts';
import { Sentence, type Times, UTC_TIMES } from '../contract/said.ts';
import { problem, problemTexts, readProblem } from '../words/problems.ts';
import { jsonReply } from './json-reply.ts';
import type { Log } from './log.ts';

/** A refused request. A handler throws it; {@link problemReply} turns it into the reply. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly problems: readonly [Problem, ...Problem[]];
  readonly facts: RefusalFacts;
  /** Seconds until the request is worth sending again, where that is known. */
  readonly retryAfter: number | undefined;

  constructor(problems: readonly [Problem, ...Problem[]], facts: RefusalFacts = {}, retryAfter?: number) {
    super(problems[0].msg);
    this.problems = problems;
    this.facts = facts;
    this.retryAfter = retryAfter;
  }
}

/** A single refusal that concerns neither site, date nor bandwidth. */
export function refusal(code: Problem['code'], msg: string): ProblemError {
  return new ProblemError([{ code, msg }]);
}

/** The refusal of a request with another Host than the server's. @param base the server's address */
export function hostUnknown({ host, origin }: URL): ProblemError {
  const msg = `This server answers for ${host} only.`;
  return refusalOf([{ code: 'host_unknown', msg, facts: { address: origin } }]);
}

/** The refusal of a request that a page of another site sent (THREATS.md 58). */
export function crossSite(): ProblemError {
  return refusal('request_invalid', 'A page of another site sent this request, which is not allowed here.');
}

/** The refusal of one request too many. @param retryAfter seconds until the next one is answered */
export function tooMany(msg: string, retryAfter: number): ProblemError {
  return new ProblemError([{ code: 'too_many_requests', msg }], {}, retryAfter);
}

/** The refusal of a request that has problems. @throws RangeError where there is none */
export function refusalOf([first, ...rest]: readonly Problem[], facts: RefusalFacts = {}): ProblemError {
  if (!first) throw new RangeError('a refusal needs a problem');
  return new ProblemError([first, ...rest], facts);
}

/**
 * Reads what a request gives by a schema.
 *
 * @param codes of problems, by the names of the members
 * @throws ProblemError naming every wrong member
 */
export function readBy<Output>(
  schema: v.GenericSchema<unknown, Output>,
  given: unknown,
  codes: Readonly<Record<string, ProblemCode>>,
): Output {
  const result = v.safeParse(schema, given);
  if (result.success) return result.output;
  throw refusalOf(schemaProblems(result.issues, codes));
}

/** Refuses a request where it has problems. @throws ProblemError with all of them */
export function refuseIfAny(problems: readonly Problem[]): void {
  if (problems.length > 0) throw refusalOf(problems);
}

/** Where failures of requests are reported. */
export interface FailureObservers {
  log: Log;
  metrics?: { storeFailed(error: StoreUnavailableError): void } | undefined;
}

/** Methods that ask for no change (RFC 9110 §9.2.1). */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * The reply to a failure, as a problem. Both the function of a Request and the socket use this one table.
 *
 * | thrown | method | reply |
 * |---|---|---|
 * | ProblemError | any | its own |
 * | CommitUnknownError | POST, PUT, DELETE | 503 `outcome_unknown`, without Retry-After (THREATS.md 43) |
 * | CommitUnknownError | GET, HEAD | 503 `unavailable`: no change was asked for |
 * | StoreUnavailableError | any | 503 `unavailable`, with Retry-After: nothing was changed |
 * | TooMuchError | any | 422 `search_given_up`: nothing was changed |
 * | QuestionEndedError | any | 503 `unavailable`, with Retry-After: nothing was changed |
 * | anything else | any | 500 `internal`; the log holds the error. The reply does not say whether a change was made |
 *
 * @param method of the request that failed
 */
export function problemOf(error: unknown, method: string, { log, metrics }: FailureObservers): ProblemError {
  if (error instanceof ProblemError) return error;
  if (error instanceof TooMuchError) return refusalOf([problem('search_given_up', { at: error.notBefore })]);
  if (error instanceof QuestionEndedError) return refusal('unavailable', error.message);
  const failure = storeFailure(error);
  if (failure) {
    metrics?.storeFailed(failure);
    const unknown = failure instanceof CommitUnknownError && !SAFE.has(method);
    log('error', unknown ? 'outcome_unknown' : 'store_unavailable', {
      why: String(failure.cause ?? failure),
    });
    return unknown
      ? refusal(
          'outcome_unknown',
          `${failure.message} The change may have been made or not; check before you try again.`,
        )
      : refusal('unavailable', `${failure.message} Nothing was changed; try again.`);
  }
  logBug(log, error);
  return refusal('internal', 'Something went wrong in the service; its log says what.');
}

/** Logs an error that no code expects. */
export function logBug(log: Log, error: unknown): void {
  log('error', 'bug', { why: error instanceof Error ? (error.stack ?? error.message) : String(error) });
}

/** Finds the database's failure, also when the identity provider's library has wrapped it. */
function storeFailure(error: unknown): StoreUnavailableError | undefined {
  if (error instanceof StoreUnavailableError) return error;
  if (!(error instanceof Error && 'error' in error && error.error === 'temporarily_unavailable'))
    return undefined;
  const { cause } = error;
  return cause instanceof StoreUnavailableError
    ? cause
    : new StoreUnavailableError(DATABASE_UNUSABLE, { cause: error });
}

/** How long a client should wait before it tries again when nothing was done, in seconds. */
const RETRY_AFTER_S = 5;

/** The headers that go with a problem's code, besides those of its body. */
export function problemHeaders(code: ProblemCode): Record<string, string> {
  return {
    'cache-control': 'no-store',
    ...(code === 'unavailable' ? { 'retry-after': String(RETRY_AFTER_S) } : {}),
  };
}

/** The reply to a refused request: the status of its first problem, and the body of contract/README.md, "Status codes". */
export function problemReply(error: ProblemError, headers: Record<string, string> = {}): Response {
  const { code } = error.problems[0];
  return jsonReply(problemBody(error.problems, error.facts), {
    status: PROBLEMS[code].status,
    headers: {
      ...headers,
      ...problemHeaders(code),
      ...(error.retryAfter === undefined ? {} : { 'retry-after': String(error.retryAfter) }),
    },
  });
}

/** The code of a problem body, and its first error for people, of any service; neither of a text that is none. */
export function firstProblem(text: string): { code?: string; says?: Sentence } {
  const reading = readJson(text);
  const body = reading.ok && isObject(reading.value) ? reading.value : {};
  const { code, details } = readProblem(body);
  const limits = Array.isArray(body['limits']) ? body['limits'] : [];
  const said = (times: Times): string | undefined => problemTexts(details, limits, times)[0];
  return {
    code,
    says: said(UTC_TIMES) === undefined ? undefined : new Sentence((times) => said(times) ?? ''),
  };
}
