import * as v from 'valibot';
import { isoDuration } from './durations.ts';
import { Failure } from './failure.ts';
import { formatInstant, type Period, parseInstant, type ReservationState, stateAt } from './instants.ts';
import { type Problem, type ProblemCode, schemaProblems } from './problems.ts';
import {
  askedRouteOf,
  isSameRoute,
  MAX_ITEMS,
  RESERVATION_TEXTS,
  RequestBandwidth,
  type Reservation,
  ReservationRequestBody,
  ReservationUpdate,
  textsOf,
} from './reservation.ts';

/**
 * A reservation that is asked for: by a create, or by an update, which says all that the reservation is to be. Times and
 * durations in milliseconds, bandwidth in Mbps.
 *
 * With `duration` (milliseconds, at least 1000) or `volume` (bytes) the service looks for the period, which lies within
 * `start` and `end`: extensions of a create, which a service may lack; see `ServiceFeatures`.
 *
 * @example
 * // Two hours of 9 Gbps, as soon as possible this week:
 * { site1: 'be-gent1', site2: 'se-kth', bandwidth: 9000, start: 'now', end: friday, duration: 7_200_000 }
 * // 50 TB by Friday, as fast as the link allows:
 * { site1: 'be-gent1', site2: 'se-kth', volume: 50e12, start: 'now', end: friday }
 */
export const ReservationRequest = v.object({
  site1: v.string(),
  site2: v.string(),
  /**
   * A name of the user's choice (cli/README.md, "Commands"). A service without names ignores it; then only the ledger of
   * the machine that asked knows it.
   */
  name: v.optional(v.string()),
  /** Its purpose: one line of at most 200 characters; empty for none. */
  description: v.optional(v.string()),
  /** With `volume` the most that it may use, by default the link's capacity; else it is required. */
  bandwidth: v.optional(v.number()),
  /** `now`: at the time of the request (`start_now`). With `duration` or `volume`: not before. */
  start: v.union([v.number(), v.literal('now')]),
  /** With `duration` or `volume`: not after. */
  end: v.number(),
  /** The earliest period of this length is booked. */
  duration: v.optional(v.number()),
  /** Bytes to be carried at one constant rate: of all rates and periods, the reservation that finishes first is created. */
  volume: v.optional(v.number()),
  /** The route of a new reservation; see `AskedRoute`. An update keeps its route. */
  via: v.optional(v.array(v.string())),
  avoid: v.optional(v.array(v.string())),
  direct: v.optional(v.boolean()),
});
/** See {@link ReservationRequest}. */
export type ReservationRequest = v.InferOutput<typeof ReservationRequest>;

/** One change: creates, updates or deletes one reservation. */
export type ChangeItem =
  | { action: 'create'; request: ReservationRequest }
  /** The request says all that the reservation is to be, changed or not; see {@link asUpdate}. */
  | { action: 'update'; id: string; request: ReservationRequest }
  /** Administrators of a service give a reason, 1 to 200 characters, which the service keeps. */
  | { action: 'delete'; id: string; reason?: string };

/**
 * Checks changes that are to be made together, before anything is written down or sent.
 *
 * @throws Failure `usage` for no items, for more than {@link MAX_ITEMS}, for a search beside other items, and for a
 *   request without a bandwidth, or for two searches
 */
export function checkItems(items: readonly ChangeItem[], { earliest = false } = {}): void {
  if (items.length < 1 || items.length > MAX_ITEMS) {
    throw new Failure('usage', `A batch has 1 to ${MAX_ITEMS} changes; these are ${items.length}.`);
  }
  const isAlone = items.length === 1 && !earliest;
  for (const item of items) {
    if (item.action === 'delete') continue;
    const { bandwidth, duration, volume } = item.request;
    if (duration !== undefined && volume !== undefined) {
      throw new Failure('usage', 'A reservation is for a duration or for a volume, not for both.');
    }
    if (bandwidth === undefined && volume === undefined) {
      throw new Failure('usage', 'A reservation needs a bandwidth, unless it is for a volume.');
    }
    if (!isAlone && (duration !== undefined || volume !== undefined)) {
      throw new Failure(
        'usage',
        'A batch looks for no single time or rate: its items can have no duration or volume.',
      );
    }
  }
}

/** The body of a request to create or update, as it travels (contract/README.md, "POST"). */
export function toBody(request: ReservationRequest, tokens: string[]): ReservationRequestBody {
  const { site1, site2, bandwidth, start, end, duration, volume } = request;
  return {
    site1,
    site2,
    ...textsOf(request),
    ...askedRouteOf(request),
    bandwidth: bandwidth === undefined ? undefined : String(bandwidth),
    start_date: start === 'now' ? null : formatInstant(start),
    end_date: formatInstant(end),
    duration: duration === undefined ? undefined : isoDuration(duration),
    volume: volume === undefined ? undefined : String(volume),
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
  description: 'description_invalid',
  via: 'site_invalid',
  avoid: 'site_invalid',
  direct: 'site_invalid',
};

/**
 * A request that was read from its body; or a problem for every invalid member, and what the valid ones ask for, so that
 * rules can check those too (contract/README.md, "Validation error body": one object per error).
 */
export type BodyReading<Request> =
  | { ok: true; request: Request }
  | { ok: false; problems: Problem[]; rest: Partial<ReservationRequest> };

/** The flags in the query of a request to create or update that concern its body. */
interface BodyFlags {
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
  // The schema requires what a request must have.
  return read(schema, body, flags, contradictions(body, flags)) as BodyReading<ReservationRequest>;
}

/** Reads the body of an update in the same way: absent members keep their values (contract/README.md, "PUT"). */
export function readUpdateBody(
  body: Record<string, unknown>,
  { startNow }: Pick<BodyFlags, 'startNow'>,
): BodyReading<Partial<ReservationRequest>> {
  const flags = { startNow, earliest: false };
  return read(ReservationUpdate, body, flags, contradictions({ start_date: body['start_date'] }, flags));
}

function read(
  schema: v.GenericSchema<unknown, PartialRequest>,
  body: Record<string, unknown>,
  { startNow }: BodyFlags,
  contrary: readonly Problem[],
): BodyReading<Partial<ReservationRequest>> {
  const partOf = ({ start_date, end_date: end, tokens: _tokens, ...asked }: PartialRequest) => {
    return { ...asked, start: startNow ? ('now' as const) : (start_date ?? undefined), end };
  };
  const { success, output, issues = [] } = v.safeParse(schema, body);
  if (success && contrary.length === 0) return { ok: true, request: partOf(output) };
  const wrong = new Set(issues.map(({ path }) => path?.[0]?.key));
  const sound = Object.entries(body).filter(([member]) => !wrong.has(member));
  const rest = v.safeParse(PartialRequest, Object.fromEntries(sound));
  const problems = [...schemaProblems(issues, MEMBERS), ...contrary];
  return { ok: false, problems, rest: partOf(rest.success ? rest.output : {}) };
}

/** The problems of members that contradict the query or each other. */
function contradictions(
  { start_date: start, duration, volume }: Record<string, unknown>,
  { startNow, earliest }: BodyFlags,
): Problem[] {
  const isVolume = volume !== undefined;
  const rows: readonly (readonly [isWrong: boolean, ProblemCode, msg: string])[] = [
    [startNow && (start ?? null) !== null, 'date_invalid', 'start_date must be null when start_now=true.'],
    [!startNow && start === null, 'date_invalid', 'start_date is null, but start_now=true was not given.'],
    [
      earliest && isVolume,
      'volume_invalid',
      "volume can't be asked for with earliest=true: what it books finishes first anyway.",
    ],
    [
      earliest && !isVolume && duration === undefined,
      'date_invalid',
      'duration is missing: earliest=true looks for a period of that length.',
    ],
    [
      !earliest && duration !== undefined,
      'date_invalid',
      'duration is for earliest=true only: without it, end_date says how long.',
    ],
  ];
  return rows.flatMap(([isWrong, code, msg]) => (isWrong ? [{ code, msg }] : []));
}

/** The parameters in the query of a request to create or update. */
export function queryOf(
  { start, duration }: ReservationRequest,
  { dryRun = false } = {},
): Record<string, string> {
  const flags = { start_now: start === 'now', earliest: duration !== undefined, dry_run: dryRun };
  return Object.fromEntries(
    Object.entries(flags).flatMap(([flag, isSet]) => (isSet ? [[flag, 'true']] : [])),
  );
}

/** The request that a reservation meets exactly, whatever its route. */
export function asRequest(
  reservation: Reservation,
): ReservationRequest & { bandwidth: number; start: number } {
  const { site1, site2, bandwidth } = reservation;
  return { site1, site2, ...textsOf(reservation), bandwidth, ...periodOf(reservation) };
}

/**
 * The request of an update that changes nothing. A real update adds its changes: `{ ...asUpdate(current), bandwidth: 5 }`. It
 * has no name, so that it takes nothing back that was renamed meanwhile.
 */
export function asUpdate(reservation: Reservation): ReturnType<typeof asRequest> {
  return { ...asRequest(reservation), name: undefined };
}

/** A reservation's period in milliseconds. */
export function periodOf({ start_date, end_date }: Reservation): Period {
  return { start: instantOf(start_date), end: instantOf(end_date) };
}

/** A reservation's state at an instant, in milliseconds. */
export function reservationState(reservation: Reservation, now: number): ReservationState {
  return stateAt(now, periodOf(reservation));
}

/** Two durations that differ by no more than this count as the same, in milliseconds. */
const SAME_DURATION_MS = 5000;

/** A request with the instant at which it was made, in milliseconds, and the words in which its times were typed. */
interface TypedRequest {
  request: ReservationRequest;
  at: number;
  typedTimes?: string;
}

/**
 * Whether two requests under one idempotency key ask for the same reservation. `--start +2h --for 1h` typed again later
 * gives other times: the same words mean what they meant at first. Without the words, `--start-now --for 2h` gives another
 * end, but the same duration.
 */
export function isSameRequest(before: TypedRequest, again: TypedRequest): boolean {
  const [first, second] = [before.request, again.request];
  const members = ['site1', 'site2', 'bandwidth', 'duration', 'volume', ...RESERVATION_TEXTS] as const;
  if (members.some((member) => first[member] !== second[member])) return false;
  if (!isSameRoute(first, second)) return false;
  if (again.typedTimes !== undefined && again.typedTimes === before.typedTimes) return true;
  if (first.start !== second.start) return false;
  if (first.end === second.end) return true;
  const [lasted, lasts] = [first.end - before.at, second.end - again.at];
  return first.start === 'now' && Math.abs(lasted - lasts) <= SAME_DURATION_MS;
}

/** An instant of a reply or of the ledger, in milliseconds: UTC where no zone is named. NaN for other text. */
export function instantOf(text: string): number {
  return parseInstant(text, 'utc-if-absent') ?? Number.NaN;
}
