import { createHash } from 'node:crypto';
import * as v from 'valibot';
import type { Replay, UpdateRequest } from '../../allocator/operations.ts';
import type { ReservationQuery } from '../../allocator/store.ts';
import type { ProblemCode } from '../../contract/problem-codes.ts';
import type { Problem } from '../../contract/problems.ts';
import {
  MAX_TOKENS,
  PeriodBody,
  ReservationRequestBody,
  type ReservationState,
  ReservationUpdate,
  VolumeBody,
} from '../../contract/reservation.ts';
import {
  DEFAULT_PAGE_ITEMS,
  IDEMPOTENCY_KEY_HEADER,
  MAX_IDEMPOTENCY_KEY,
  MAX_PAGE_ITEMS,
  MAX_REASON,
} from '../../contract/routes.ts';
import { withoutTokens } from '../../contract/secret.ts';
import { ProblemError, refusal } from '../problem-error.ts';
import { addressOf, schemaProblems } from '../request-reading.ts';

const MEMBERS: Readonly<Record<keyof ReservationRequestBody, ProblemCode>> = {
  site1: 'site_invalid',
  site2: 'site_invalid',
  bandwidth: 'bandwidth_invalid',
  start_date: 'date_invalid',
  end_date: 'date_invalid',
  tokens: 'tokens_invalid',
  duration: 'date_invalid',
  volume: 'volume_invalid',
  name: 'name_invalid',
};

/**
 * A valid body; or a problem for every invalid member, and the valid members, so that the rules can check those
 * too (contract/README.md, "Validation error body": one object per error).
 */
export type BodyReading<Body> =
  | { ok: true; body: Body }
  | { ok: false; problems: Problem[]; rest: PartialRequest };

const PartialRequest = v.partial(ReservationRequestBody);
type PartialRequest = v.InferOutput<typeof PartialRequest>;

/** What a create request asks for: a demand, or a window and what to look for in it. */
export type AskedReservation = Omit<PeriodBody, 'bandwidth' | 'duration' | 'name'> & {
  name?: string;
} & (
    | { bandwidth: number; search?: { duration: number } }
    /** `bandwidth` is the most that may be used. */
    | { bandwidth?: number; search: { volume: number } }
  );

/** Reads the body of a create request (contract/README.md, "POST"), with the extensions `duration` and `volume`. */
export function readReservationRequest(
  value: Record<string, unknown>,
  { startNow, earliest }: { startNow: boolean; earliest: boolean },
): BodyReading<AskedReservation> {
  const contrary = searchProblems(value, earliest);
  const refused = (reading: BodyReading<PartialRequest>): BodyReading<never> =>
    reading.ok
      ? { ok: false, problems: contrary, rest: reading.body }
      : { ...reading, problems: [...reading.problems, ...contrary] };
  if (value['volume'] !== undefined) {
    const reading = read(VolumeBody, value, startNow);
    if (!reading.ok || contrary.length > 0) return refused(reading);
    const { volume, name, ...body } = reading.body;
    return { ok: true, body: { ...body, ...named(name), search: { volume } } };
  }
  const reading = read(PeriodBody, value, startNow);
  if (!reading.ok || contrary.length > 0) return refused(reading);
  const { duration, name, ...body } = reading.body;
  const search = duration === undefined ? {} : { search: { duration } };
  return { ok: true, body: { ...body, ...named(name), ...search } };
}

function named(name: string | undefined): { name?: string } {
  return name === undefined ? {} : { name };
}

/** What of the members of a search contradicts the query or each other. */
function searchProblems({ duration, volume }: Record<string, unknown>, earliest: boolean): Problem[] {
  if (earliest && volume !== undefined) {
    const msg = "volume can't be asked for with earliest=true: what it books finishes first anyway.";
    return [{ code: MEMBERS.volume, msg }];
  }
  if (earliest && duration === undefined) {
    const msg = 'duration is missing: earliest=true looks for a period of that length.';
    return [{ code: MEMBERS.duration, msg }];
  }
  if (!earliest && duration !== undefined) {
    const msg = 'duration is for earliest=true only: without it, end_date says how long.';
    return [{ code: MEMBERS.duration, msg }];
  }
  return [];
}

/** Reads the body of an update: absent members keep their values (contract/README.md, "PUT"). */
export function readReservationUpdate(
  value: Record<string, unknown>,
  startNow: boolean,
): BodyReading<ReservationUpdate> {
  return read(ReservationUpdate, value, startNow);
}

/** What an update changes. @param startNow the time of the request, where the update starts then; milliseconds */
export function updateOf(body: ReservationUpdate, startNow: number | undefined): UpdateRequest {
  const start = startNow ?? body.start_date ?? undefined;
  return {
    start,
    end: body.end_date,
    bandwidth: body.bandwidth,
    ...(startNow === undefined ? {} : { startsNow: true }),
  };
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
  const rest = v.safeParse(PartialRequest, Object.fromEntries(sound));
  return { ok: false, problems, rest: rest.success ? rest.output : {} };
}

function startProblem(msg: string): Problem {
  return { code: 'date_invalid', msg };
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

/** The query parameters of a create or update request. */
export interface ExecutionOptions {
  startNow: boolean;
  dryRun: boolean;
}

/** Reads `start_now` and `dry_run`. @throws ProblemError 422 when `start_now` is not a boolean, 400 for `dry_run` */
export function readExecutionOptions(request: Request): ExecutionOptions {
  const { searchParams } = addressOf(request);
  const startNow = readBoolean(searchParams.get('start_now'));
  if (startNow === undefined) {
    throw new ProblemError([{ code: 'date_invalid', msg: 'start_now must be true or false.' }]);
  }
  return { startNow, dryRun: readFlag(request, 'dry_run') };
}

/** Reads a boolean query parameter of an extension; absent, it is false. @throws ProblemError 400 */
export function readFlag(request: Request, name: 'dry_run' | 'earliest'): boolean {
  const value = readBoolean(addressOf(request).searchParams.get(name));
  if (value === undefined) throw refusal('request_invalid', `${name} must be true or false.`);
  return value;
}

/** The spec says boolean; clients write it in several ways. */
function readBoolean(value: string | null): boolean | undefined {
  if (value === null) return false;
  if (/^(?:true|1)$/i.test(value)) return true;
  return /^(?:false|0)$/i.test(value) ? false : undefined;
}

const STATES = ['scheduled', 'active', 'ended'] as const satisfies readonly ReservationState[];

/** Reads the filters of a list. @throws ProblemError 400 */
export function readListQuery(request: Request): Pick<ReservationQuery, 'state' | 'after' | 'limit'> {
  const { searchParams } = addressOf(request);
  const wanted = searchParams.get('state');
  const state = STATES.find((known) => known === wanted);
  if (wanted !== null && state === undefined) {
    throw refusal('request_invalid', `state must be one of ${STATES.join(', ')}.`);
  }
  const limit = searchParams.get('limit') ?? String(DEFAULT_PAGE_ITEMS);
  if (!/^[0-9]{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > MAX_PAGE_ITEMS) {
    throw refusal('request_invalid', `limit must be a number from 1 to ${MAX_PAGE_ITEMS}.`);
  }
  const after = searchParams.get('cursor');
  return {
    limit: Number(limit),
    state,
    ...(after === null ? {} : { after }),
  };
}

const PRINTABLE = new RegExp(`^[ -~]{1,${MAX_IDEMPOTENCY_KEY}}$`);
/** A String of structured fields (RFC 9651 §3.3.3): quoted, with `\\` before a quote or a backslash. */
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/;

/**
 * The text of `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header §2.1); `"abc"` and `abc` are one key. Two
 * fields arrive as one text, joined by a comma.
 *
 * @returns undefined when there is none
 * @throws ProblemError 400 when it is empty, longer than {@link MAX_IDEMPOTENCY_KEY}, or not printable ASCII
 */
export function readIdempotencyKey(request: Request): string | undefined {
  const value = request.headers.get(IDEMPOTENCY_KEY_HEADER);
  if (value === null) return undefined;
  const key = QUOTED.exec(value)?.[1]?.replaceAll(/\\(["\\])/g, '$1') ?? value;
  if (PRINTABLE.test(key)) return key;
  throw refusal(
    'request_invalid',
    `${IDEMPOTENCY_KEY_HEADER} must be 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters, such as a UUID.`,
  );
}

/**
 * A SHA-256 of what a create request asks for, the same for every spelling (a start of null is start_now). It leaves out
 * `tokens`, which say who asks and change with a refresh.
 */
export function fingerprintOf({
  site1,
  site2,
  bandwidth,
  start_date,
  end_date,
  search,
  name,
}: AskedReservation): string {
  // Without a search or a name as before there were any: a key lives through an upgrade of the server.
  const more = [...(search ? [search] : []), ...(name === undefined ? [] : [{ name }])];
  const asked = JSON.stringify([site1, site2, bandwidth, start_date, end_date, ...more]);
  return fingerprintOfText(asked);
}

/** A SHA-256 of what a request asks for, written as text. */
export function fingerprintOfText(asked: string): string {
  return createHash('sha256').update(asked).digest('hex');
}

/** The refusal of an idempotency key of another request, or of a reservation that was deleted: 409. */
export function reusedKey(replay: Replay & { ok: false }): ProblemError {
  const why =
    replay.reason === 'deleted'
      ? `The reservation that was booked under this ${IDEMPOTENCY_KEY_HEADER}, ${replay.reservation}, was deleted. Use another key to book again.`
      : `This ${IDEMPOTENCY_KEY_HEADER} was used for another request in the last 24 hours. Use another key for this one.`;
  return refusal('idempotency_key_reused', why);
}

/**
 * Reads an administrator's reason for a deletion, `?reason=`; tokens in it, pasted by mistake, are masked.
 *
 * @throws ProblemError 400 when it is missing, too long, or holds characters that are not printable
 */
export function readReason(request: Request): string {
  const reason = addressOf(request).searchParams.get('reason')?.trim() ?? '';
  const { length } = [...reason];
  if (length >= 1 && length <= MAX_REASON && !/[\p{Cc}\p{Bidi_Control}]/u.test(reason))
    return withoutTokens(reason);
  throw refusal(
    'request_invalid',
    `An administrator must give the reason for a deletion: ?reason= with 1 to ${MAX_REASON} printable characters.`,
  );
}
