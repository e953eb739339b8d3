import * as v from 'valibot';
import type { Problem } from '../../contract/problems.ts';
import { MAX_TOKENS, ReservationRequest, ReservationUpdate } from '../../contract/reservation.ts';
import { refusal } from '../problem-error.ts';
import { type MemberProblem, schemaProblems } from '../request-body.ts';

const MEMBERS: Readonly<Record<keyof ReservationRequest, MemberProblem>> = {
  site1: { code: 'site_invalid', loc: 'Site' },
  site2: { code: 'site_invalid', loc: 'Site' },
  bandwidth: { code: 'bandwidth_invalid', loc: 'Bandwidth' },
  start_date: { code: 'date_invalid', loc: 'Date' },
  end_date: { code: 'date_invalid', loc: 'Date' },
  tokens: { code: 'tokens_invalid' },
};

/**
 * A body that was read; or every member that is wrong with it, and what the others say, so that the rules can judge
 * that too (SPEC.md, "Validation error body": one object per error).
 */
export type BodyReading<Body> =
  | { ok: true; body: Body }
  | { ok: false; problems: Problem[]; rest: ReservationUpdate };

/** Reads the body of a create request (SPEC.md, "POST"). */
export function readReservationRequest(
  value: Record<string, unknown>,
  startNow: boolean,
): BodyReading<ReservationRequest> {
  return read(ReservationRequest, value, startNow);
}

/** Reads the body of an update: absent members keep their values (DESIGN.md, "PUT"). */
export function readReservationUpdate(
  value: Record<string, unknown>,
  startNow: boolean,
): BodyReading<ReservationUpdate> {
  return read(ReservationUpdate, value, startNow);
}

function read<Body extends { start_date?: number | null | undefined }>(
  schema: v.GenericSchema<unknown, Body>,
  value: Record<string, unknown>,
  startNow: boolean,
): BodyReading<Body> {
  const result = v.safeParse(schema, value);
  const issues = result.success ? [] : result.issues;
  const problems = schemaProblems(issues, MEMBERS);
  const start = value['start_date'];
  if (startNow && start !== null && start !== undefined) {
    problems.push(startProblem('start_date must be null when start_now=true.'));
  }
  if (!startNow && start === null) {
    problems.push(startProblem('start_date is null, but start_now=true was not given.'));
  }
  if (result.success && problems.length === 0) return { ok: true, body: result.output };
  const wrong = new Set(issues.map(({ path }) => path?.[0]?.key));
  const sound = Object.entries(value).filter(([member]) => !wrong.has(member));
  const rest = v.safeParse(ReservationUpdate, Object.fromEntries(sound));
  return { ok: false, problems, rest: rest.success ? rest.output : {} };
}

function startProblem(msg: string): Problem {
  return { code: 'date_invalid', loc: 'Date', msg };
}

/**
 * The strings in a body's `tokens`, for authentication, which comes before the body is judged.
 *
 * @throws ProblemError 422 for more than {@link MAX_TOKENS}
 */
export function presentedTokens({ tokens }: Record<string, unknown>): string[] {
  const presented = Array.isArray(tokens) ? tokens.filter((token) => typeof token === 'string') : [];
  if (presented.length <= MAX_TOKENS) return presented;
  throw refusal('tokens_invalid', `tokens holds more than ${MAX_TOKENS}.`);
}
