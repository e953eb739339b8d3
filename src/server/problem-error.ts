import { type Alternative, PROBLEM_STATUS, type Problem, problemBody } from '../contract/problems.ts';

/** A request that is refused: thrown by a handler, turned into the reply in one place. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly problems: readonly [Problem, ...Problem[]];
  readonly alternatives: readonly Alternative[];

  constructor(problems: readonly [Problem, ...Problem[]], alternatives: readonly Alternative[] = []) {
    super(problems[0].msg);
    this.problems = problems;
    this.alternatives = alternatives;
  }
}

/** A single refusal that concerns neither site, date nor bandwidth. */
export function refusal(code: Problem['code'], msg: string): ProblemError {
  return new ProblemError([{ code, msg }]);
}

/** How long a client should wait before it tries again when the service can't answer, in seconds. */
const RETRY_AFTER = 5;

/** The reply to a refused request: the status of its first problem, and the body of DESIGN.md, "Status codes". */
export function problemReply(error: ProblemError, headers: Record<string, string> = {}): Response {
  const { code } = error.problems[0];
  return Response.json(problemBody(error.problems, error.alternatives), {
    status: PROBLEM_STATUS[code],
    headers: {
      ...headers,
      'cache-control': 'no-store',
      ...(code === 'unavailable' ? { 'retry-after': String(RETRY_AFTER) } : {}),
    },
  });
}
