import type { Refusal } from '../../allocator/calendar.ts';
import type { TagPlace } from '../../allocator/demand.ts';
import type { Offer } from '../../allocator/offers.ts';
import type { RefusedOutcome, Replay, UpdateOutcome } from '../../allocator/operations.ts';
import type { ShareRefusal } from '../../allocator/shares.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { Link } from '../../contract/links.ts';
import { type Alternative, LIMITS, type Limit, type Problem } from '../../contract/problems.ts';
import { ProblemError } from '../problem-error.ts';

/**
 * The reply to a demand that the link can't meet: every limit that it exceeds, with the arithmetic, and what would be
 * accepted instead (SPEC.md, "Errors" 2 and 3).
 */
export function refusedOutcome(outcome: RefusedOutcome, demanded: number): ProblemError {
  const [first, ...rest] = outcome.refusals.map((refusal) => problem(refusal, outcome.link, demanded));
  if (!first) throw new RangeError('a refusal without a reason');
  const advice = outcome.offers.map(sentence).join(' ');
  const advised = advice === '' ? first : { ...first, msg: `${first.msg} ${advice}` };
  const limits = outcome.refusals.flatMap((refusal) => limit(refusal, outcome.link));
  const alternatives = outcome.offers.map((offer) => alternative(offer, demanded));
  return new ProblemError([advised, ...rest], { limits, alternatives });
}

function problem(refusal: Refusal, link: Link, demanded: number): Problem {
  const { site1, site2 } = link;
  const period = `from ${formatInstant(refusal.start)} to ${formatInstant(refusal.end)}`;
  if (refusal.limit === 'bandwidth') {
    const used = refusal.capacity - refusal.free;
    return {
      code: 'bandwidth_unavailable',
      loc: 'Bandwidth',
      msg: `Not enough free bandwidth between ${site1} and ${site2}: ${used} + ${demanded} = ${used + demanded} Mbps of ${refusal.capacity} ${period}; ${refusal.free} Mbps are free.`,
    };
  }
  if (refusal.limit === 'share') {
    return { code: 'share_exceeded', loc: 'Bandwidth', msg: shareText(refusal, link, demanded) };
  }
  const { site, layer } = placeOf(refusal.place, link);
  const kind = `${layer}-tags`;
  return {
    code: 'vlans_unavailable',
    loc: 'Bandwidth',
    msg: `No available VLANs between the two sites ${period}: each of the ${refusal.total} ${kind} at ${site} is taken for some of it.`,
  };
}

function shareText(refusal: ShareRefusal, link: Link, demanded: number): string {
  const { held, allowed } = refusal;
  const period = `from ${formatInstant(refusal.start)} to ${formatInstant(refusal.end)}`;
  if (refusal.of === 'live') {
    return `The experiment has ${held} of at most ${allowed} reservations that have not ended. Delete one, or wait until one has ended.`;
  }
  const between = `between ${link.site1} and ${link.site2}`;
  if (refusal.of === 'bandwidth') {
    return `One experiment may hold ${allowed} Mbps ${between} at any instant: this one holds ${held}, and ${held} + ${demanded} = ${held + demanded} Mbps ${period}.`;
  }
  const { site, layer } = placeOf(refusal.place, link);
  return `One experiment may hold ${allowed} of the ${layer}-tags at ${site} ${between} at any instant: this one holds ${held} ${period}.`;
}

/** The limits of a share, for programs; the link's own limits are in the text only. */
function limit(refusal: Refusal, link: Link): Limit[] {
  if (refusal.limit !== 'share') return [];
  const always = refusal.of === 'live';
  const where = refusal.of === 'tags' ? placeOf(refusal.place, link) : { site: null, layer: null };
  return [
    {
      limit: 'share',
      ...where,
      capacity: refusal.allowed,
      free: Math.max(0, refusal.allowed - refusal.held),
      start_date: always ? null : formatInstant(refusal.start),
      end_date: always ? null : formatInstant(refusal.end),
    },
  ];
}

function placeOf(place: TagPlace, { site1, site2 }: Link): { site: string; layer: 'S' | 'C' } {
  return { site: place.startsWith('site1') ? site1 : site2, layer: place.endsWith('s_tag') ? 'S' : 'C' };
}

function sentence({ bandwidth, start, end }: Offer): string {
  return `Would be accepted: ${bandwidth} Mbps from ${formatInstant(start)} to ${formatInstant(end)}.`;
}

function alternative({ bandwidth, start, end }: Offer, demanded: number): Alternative {
  const kind = bandwidth === demanded ? 'earliest' : 'most_bandwidth';
  return {
    kind,
    start_now: false,
    start_date: formatInstant(start),
    end_date: formatInstant(end),
    bandwidth,
  };
}

/**
 * The results of a request to create or update a reservation: `granted`; `repeated`, a replay of its idempotency key;
 * `bandwidth`, `tags` or `share`, the first limit that it exceeds, in this order; `rule`, any other refusal; `fault`,
 * when it failed and the result is unknown.
 */
export const RESERVATION_RESULTS = [
  'granted',
  'repeated',
  'bandwidth',
  'tags',
  'share',
  'rule',
  'fault',
] as const;
/** One of {@link RESERVATION_RESULTS}. */
export type ReservationResult = (typeof RESERVATION_RESULTS)[number];

/** Called with the result of each request to create (`book`) or update (`change`) a reservation, except dry runs. */
export type ReservationObserver = (asked: 'book' | 'change', result: ReservationResult) => void;

/** Runs an operation and reports its result. */
export async function observed<Answer extends UpdateOutcome<unknown> | Replay | undefined>(
  report: (result: ReservationResult) => void,
  run: () => Promise<Answer>,
): Promise<Answer> {
  try {
    const answer = await run();
    report(resultOf(answer));
    return answer;
  } catch (error) {
    report('fault');
    throw error;
  }
}

function resultOf(answer: UpdateOutcome<unknown> | Replay | undefined): ReservationResult {
  if (!answer) return 'rule';
  if (answer.ok) return 'replayed' in answer ? 'repeated' : 'granted';
  if (answer.reason !== 'refused') return 'rule';
  const broken = new Set(answer.refusals.map(({ limit }) => limit));
  return LIMITS.find((limit) => broken.has(limit)) ?? 'rule';
}
