import * as v from 'valibot';
import { isoDuration, readIsoDuration } from './durations.ts';
import { Failure } from './failure.ts';
import { formatInstant, parseInstant } from './instants.ts';
import type { ProblemCode } from './problem-codes.ts';
import { type Problem, schemaProblems } from './problems.ts';
import {
  RequestBandwidth,
  type Reservation,
  ReservationRequestBody,
  ReservationUpdate,
} from './reservation.ts';

/**
 * A new reservation. Times in milliseconds, bandwidth in Mbps.
 *
 * With `duration` (milliseconds, at least 1000) or `volume` (bytes) the service looks for the period, which lies within
 * `start` and `end`: extensions, which a service may lack; see `ServiceFeatures`.
 *
 * @example
 * // Two hours of 9 Gbps, as soon as possible this week:
 * { site1: 'be-gent1', site2: 'se-kth', bandwidth: 9000, start: 'now', end: friday, duration: 7_200_000 }
 * // 50 TB by Friday, as fast as the link allows:
 * { site1: 'be-gent1', site2: 'se-kth', volume: 50e12, start: 'now', end: friday }
 */
export interface ReservationRequest {
  site1: string;
  site2: string;
  /**
   * A name of the user's choice (cli/README.md, "Commands"). A service without names ignores it; then only the ledger of the
   * machine that asked knows it.
   */
  name?: string;
  /** With `volume` the most that it may use, by default the link's capacity; else it is required. */
  bandwidth?: number;
  /** `now`: at the time of the request (`start_now`). With `duration` or `volume`: not before. */
  start: number | 'now';
  /** With `duration` or `volume`: not after. */
  end: number;
  /** The earliest period of this length is booked. */
  duration?: number;
  /** What is to be carried, at one constant rate: of all rates and periods, the one that finishes first is booked. */
  volume?: number;
}

/** A change to a reservation. Absent members stay. */
export interface ReservationChange {
  bandwidth?: number;
  start?: number | 'now';
  end?: number;
}

/** A reservation as it was asked for, with times as text (cli/README.md, "Output", list items). */
export const Requested = v.object({
  site1: v.string(),
  site2: v.string(),
  /** Mbps. Null: as much as the link has, for a volume. */
  bandwidth: v.nullable(v.number()),
  /** Null: at the time of the request. With a duration or a volume: not before. */
  start_date: v.nullable(v.string()),
  /** With a duration or a volume: not after. */
  end_date: v.string(),
  /** Where the earliest period of a duration was asked for: the duration, such as `PT2H`. */
  duration: v.optional(v.string()),
  /** Where a volume was asked for: the bytes to be carried by the end. */
  volume: v.optional(v.number()),
  /** The reservation's name, where one was asked for. */
  name: v.optional(v.string()),
});
/** See {@link Requested}. */
export type Requested = v.InferOutput<typeof Requested>;

/** Two durations that differ by no more than this count as the same, in milliseconds. */
const SAME_DURATION = 5000;

/** A request as the ledger keeps it. @throws Failure `usage` for a request without a bandwidth, or for both searches */
export function requestedOf(reservation: ReservationRequest): Requested {
  const { site1, site2, bandwidth, start, end, duration, volume, name } = reservation;
  if (duration !== undefined && volume !== undefined) {
    throw new Failure('usage', 'A reservation is for a duration or for a volume, not for both.');
  }
  if (bandwidth === undefined && volume === undefined) {
    throw new Failure('usage', 'A reservation needs a bandwidth, unless it is for a volume.');
  }
  return {
    site1,
    site2,
    bandwidth: bandwidth ?? null,
    start_date: start === 'now' ? null : formatInstant(start),
    end_date: formatInstant(end),
    ...(duration === undefined ? {} : { duration: isoDuration(duration) }),
    volume,
    name,
  };
}

/** The body of a request to create or update, as it travels. */
export function toBody(reservation: ReservationRequest, tokens: string[]): ReservationRequestBody {
  const { bandwidth, volume, ...rest } = requestedOf(reservation);
  return {
    ...rest,
    ...(bandwidth === null ? {} : { bandwidth: String(bandwidth) }),
    ...(volume === undefined ? {} : { volume: String(volume) }),
    tokens,
  };
}

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
 * A request that was read from its body; or a problem for every invalid member, and what the valid ones ask for, so that
 * rules can check those too (contract/README.md, "Validation error body": one object per error).
 */
export type BodyReading<Request> =
  | { ok: true; request: Request }
  | { ok: false; problems: Problem[]; rest: Partial<ReservationRequest> };

/** The flags in the query of a request to create or update that concern its body. */
export interface BodyFlags {
  /** `start_now`: then the body's `start_date` is null. */
  startNow: boolean;
  /** `earliest`: then the body has a `duration`. */
  earliest: boolean;
}

/** Without a volume, a bandwidth is required. */
const WithBandwidth = v.object({ ...ReservationRequestBody.entries, bandwidth: RequestBandwidth });
const PartialRequest = v.partial(ReservationRequestBody);
type PartialRequest = v.InferOutput<typeof PartialRequest>;

/**
 * Reads the body of a create (contract/README.md, "POST") with its extensions: the reverse of {@link toBody}. `tokens` are
 * left out: they say who asks.
 */
export function readBody(body: Record<string, unknown>, flags: BodyFlags): BodyReading<ReservationRequest> {
  const schema = body['volume'] === undefined ? WithBandwidth : ReservationRequestBody;
  const result = v.safeParse(schema, body);
  const contrary = [...startProblems(body, flags.startNow), ...searchProblems(body, flags.earliest)];
  if (!result.success || contrary.length > 0) return unsound(body, flags, result.issues ?? [], contrary);
  const { start_date, end_date: end, tokens: _tokens, ...asked } = result.output;
  return { ok: true, request: { ...asked, start: start_date ?? 'now', end } };
}

/** Reads the body of an update in the same way: absent members keep their values (contract/README.md, "PUT"). */
export function readUpdateBody(
  body: Record<string, unknown>,
  flags: BodyFlags,
): BodyReading<Partial<ReservationRequest>> {
  const result = v.safeParse(ReservationUpdate, body);
  const contrary = startProblems(body, flags.startNow);
  if (!result.success || contrary.length > 0) return unsound(body, flags, result.issues ?? [], contrary);
  return { ok: true, request: partOf(result.output, flags) };
}

function unsound(
  body: Record<string, unknown>,
  flags: BodyFlags,
  issues: readonly v.BaseIssue<unknown>[],
  contrary: readonly Problem[],
): BodyReading<never> {
  const wrong = new Set(issues.map(({ path }) => path?.[0]?.key));
  const sound = Object.entries(body).filter(([member]) => !wrong.has(member));
  const rest = v.safeParse(PartialRequest, Object.fromEntries(sound));
  const problems = [...schemaProblems(issues, MEMBERS), ...contrary];
  return { ok: false, problems, rest: partOf(rest.success ? rest.output : {}, flags) };
}

function partOf(
  { start_date, end_date: end, tokens: _tokens, ...asked }: PartialRequest,
  { startNow }: BodyFlags,
): Partial<ReservationRequest> {
  return { ...asked, start: startNow ? 'now' : (start_date ?? undefined), end };
}

function startProblems({ start_date: start }: Record<string, unknown>, startNow: boolean): Problem[] {
  const problem = (msg: string): Problem[] => [{ code: MEMBERS.start_date, msg }];
  if (startNow && start !== null && start !== undefined) {
    return problem('start_date must be null when start_now=true.');
  }
  return !startNow && start === null ? problem('start_date is null, but start_now=true was not given.') : [];
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

/** The query of a request to create or update: begins with `?`, or is empty. */
export function queryOf({ start, duration }: ReservationRequest, { dryRun = false } = {}): string {
  const said = [
    ...(start === 'now' ? ['start_now=true'] : []),
    ...(duration === undefined ? [] : ['earliest=true']),
    ...(dryRun ? ['dry_run=true'] : []),
  ];
  return said.length > 0 ? `?${said.join('&')}` : '';
}

/** The reverse of {@link requestedOf}. */
export function asReservation(requested: Requested): ReservationRequest {
  const { site1, site2, bandwidth, start_date, end_date, duration, volume, name } = requested;
  const start = start_date === null ? 'now' : instantOf(start_date);
  const asked = {
    site1,
    site2,
    start,
    end: instantOf(end_date),
    name,
  } as const;
  if (volume !== undefined) return { ...asked, volume, ...(bandwidth === null ? {} : { bandwidth }) };
  const lasting = duration === undefined ? undefined : readIsoDuration(duration);
  return { ...asked, bandwidth: bandwidth ?? 0, duration: lasting };
}

/** The whole reservation that an update asks for: members that do not change are taken from `current`. */
export function updated(
  current: Reservation,
  change: ReservationChange,
): ReservationRequest & { bandwidth: number } {
  return {
    site1: current.site1,
    site2: current.site2,
    bandwidth: change.bandwidth ?? current.bandwidth,
    start: change.start ?? instantOf(current.start_date),
    end: change.end ?? instantOf(current.end_date),
  };
}

/** A reservation's period in milliseconds. */
export function periodOf({ start_date, end_date }: Reservation): { start: number; end: number } {
  return { start: instantOf(start_date), end: instantOf(end_date) };
}

/** Whether a reservation has the bandwidth and period that an update asked for. A start of `now` fits any start. */
export function meets(found: Reservation, wanted: ReservationRequest): boolean {
  const sameStart = wanted.start === 'now' || instantOf(found.start_date) === wanted.start;
  return found.bandwidth === wanted.bandwidth && sameStart && instantOf(found.end_date) === wanted.end;
}

/**
 * Whether two requests under one idempotency key ask for the same reservation. `--start +2h --for 1h` typed again later
 * gives other times: the same words mean what they meant at first. Without the words, `--start-now --for 2h` gives another
 * end, but the same duration.
 *
 * @param askedAt when the first was made, in milliseconds
 * @param now when the second is made, in milliseconds
 * @param isTypedAlike whether the times were given in the same words
 */
export function isSameRequest(
  before: Requested,
  askedAt: number,
  again: Requested,
  now: number,
  isTypedAlike = false,
): boolean {
  const { start_date } = again;
  const members = ['site1', 'site2', 'bandwidth', 'duration', 'volume', 'name'] as const;
  if (members.some((member) => before[member] !== again[member])) return false;
  if (isTypedAlike) return true;
  if (before.start_date !== start_date) return false;
  if (before.end_date === again.end_date) return true;
  const [lasted, lasts] = [instantOf(before.end_date) - askedAt, instantOf(again.end_date) - now];
  return start_date === null && Math.abs(lasted - lasts) <= SAME_DURATION;
}

/** An instant of a reply or of the ledger, in milliseconds: UTC where no zone is named. NaN for other text. */
export function instantOf(text: string): number {
  return parseInstant(text, 'utc-if-absent') ?? Number.NaN;
}
