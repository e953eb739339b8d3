import type { ItemOutcome, RefusedOutcome } from '../../allocator/decide.ts';
import type { Demand, Period, TagPlace } from '../../allocator/demand.ts';
import type { Offer } from '../../allocator/offers.ts';
import type { Refusal } from '../../allocator/refusals.ts';
import type { TooLow } from '../../allocator/search.ts';
import { idKind } from '../../contract/fields.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { Link } from '../../contract/links.ts';
import {
  type Alternative,
  LIMITS,
  type Limit,
  type Problem,
  type ProblemCode,
  type RefusalFacts,
} from '../../contract/problems.ts';
import { UTC_TIMES } from '../../contract/said.ts';
import { alternativeText, LIMIT_HEADINGS, limitText, problem } from '../../words/problems.ts';

/** What a reply says of an item that is refused. */
export interface ItemRefusal {
  problems: readonly Problem[];
  facts: RefusalFacts;
}

/**
 * The refusal of a demand that the link can't meet: every limit that it exceeds, what is free, and what would be accepted
 * instead (contract/README.md, "Errors" 2 and 3).
 *
 * @param asked the period, or the window of a search
 */
export function refusedOutcome(outcome: RefusedOutcome, asked: Period): ItemRefusal {
  const { offers, free, demand, tooLow } = outcome;
  const limits = outcome.refusals.map((refusal) => limit(refusal, outcome));
  const problems = tooLow
    ? [tooLowProblem(tooLow, demand)]
    : limits.map((broken) => linkProblem(broken, outcome, demand.bandwidth));
  return {
    problems: [...withAdvice(problems, offers, asked), ...givenUpIn(outcome)],
    facts: {
      limits,
      free: free.map(({ start, end, bandwidth }) => ({
        start_date: formatInstant(start),
        end_date: formatInstant(end),
        bandwidth,
      })),
      alternatives: offers.map(alternative),
    },
  };
}

function tooLowProblem({ volume, most }: TooLow, { end, bandwidth }: Demand): Problem {
  return problem('bandwidth_too_low', { volume, end_date: end, needed: bandwidth, bandwidth: most });
}

/** That what else would be accepted was not looked for to the end. */
function givenUpIn({ isGivenUp }: NearestOffers): Problem[] {
  return isGivenUp ? [problem('search_given_up', {})] : [];
}

/** The refusal of a name that another reservation of the experiment has, or would get from another item of its batch. */
export function nameTaken(
  { name, reservation }: { name: string; reservation: string },
  made: ReadonlySet<string>,
): Problem {
  if (made.has(reservation)) {
    return { code: 'name_taken', msg: `Another item of the batch has the name ${name} too.` };
  }
  return problem('name_taken', { name, holder: reservation }, `It is ${reservation}.`);
}

/** The first problem's message says what would be accepted too, for clients that show nothing else. */
function withAdvice(
  [first, ...rest]: readonly Problem[],
  offers: readonly Offer[],
  asked?: Period,
): Problem[] {
  if (!first || offers.length === 0) return first ? [first, ...rest] : rest;
  const advice = offers.map(({ bandwidth, startsNow, start, end, via }) => {
    const isNow = startsNow && start !== asked?.start;
    return alternativeText({ bandwidth, start: isNow ? 'now' : start, end, via }, asked, start, UTC_TIMES);
  });
  return [{ ...first, msg: `${first.msg} Would be accepted: ${advice.join('; ')}.` }, ...rest];
}

const CODES = {
  bandwidth: 'bandwidth_unavailable',
  tags: 'vlans_unavailable',
  share: 'share_exceeded',
} as const satisfies Record<Limit['limit'], ProblemCode>;

/** @param asked Mbps */
function linkProblem(broken: Limit, { sites, isHop }: RefusedOutcome, asked: number): Problem {
  const between = broken.limit === 'tags' || isHop ? 'the two sites' : sites.join(' and ');
  return {
    code: CODES[broken.limit],
    msg: `${LIMIT_HEADINGS[broken.limit]} between ${between}. ${limitText(broken, asked, UTC_TIMES)}`,
    facts: { bandwidth: asked },
  };
}

/** A limit for programs. Of tags at a place, none is free for the whole period, though others may be at each instant. */
function limit(refusal: Refusal, { link, sites: [from, to], isHop, tenant }: RefusedOutcome): Limit {
  const place = 'place' in refusal ? placeOf(refusal.place, link) : { site: null, layer: null };
  const isAlways = refusal.limit === 'share' && refusal.of === 'live';
  return {
    limit: refusal.limit,
    ...place,
    hop: isHop ? [from, to] : undefined,
    ...amountsOf(refusal, tenant),
    start_date: isAlways ? null : formatInstant(refusal.start),
    end_date: isAlways ? null : formatInstant(refusal.end),
  };
}

function amountsOf(refusal: Refusal, tenant: string): Pick<Limit, 'capacity' | 'free' | 'tenant'> {
  if (refusal.limit === 'tags') return { capacity: refusal.total, free: 0 };
  if (refusal.limit === 'bandwidth') return { capacity: refusal.capacity, free: refusal.free };
  const { allowed, held } = refusal;
  const kind = idKind(tenant) === 'project' ? 'project' : 'experiment';
  return { capacity: allowed, free: Math.max(0, allowed - held), tenant: kind };
}

function placeOf(place: TagPlace, { site1, site2 }: Link): { site: string; layer: 'S' | 'C' } {
  return { site: place.startsWith('site1') ? site1 : site2, layer: place.endsWith('s_tag') ? 'S' : 'C' };
}

function alternative({ kind, startsNow, start, end, bandwidth, via }: Offer): Alternative {
  return {
    kind,
    start_now: startsNow,
    start_date: startsNow ? null : formatInstant(start),
    end_date: formatInstant(end),
    bandwidth,
    via,
  };
}

/** What would be accepted in place of a request whose dates break a rule: of the dates that come closest. */
export type NearestOffers = Pick<RefusedOutcome, 'offers' | 'isGivenUp'>;

/** The refusal of a request whose dates break a rule, with what would be accepted instead (contract/README.md, "Extensions"). */
export function refusedDates(
  problems: readonly Problem[],
  found: NearestOffers = { offers: [] },
): ItemRefusal {
  return {
    problems: [...withAdvice(problems, found.offers), ...givenUpIn(found)],
    facts: { alternatives: found.offers.map(alternative) },
  };
}

/**
 * The results of a request to create or update a reservation: `accepted`; `replayed`, a replay of its idempotency key;
 * `bandwidth`, `tags` or `share`, the first limit that it exceeds, in this order; `rule`, any other refusal; `fault`,
 * when it failed and the result is unknown.
 */
export const RESERVATION_RESULTS = [
  'accepted',
  'replayed',
  'bandwidth',
  'tags',
  'share',
  'rule',
  'fault',
] as const;
/** One of {@link RESERVATION_RESULTS}. */
export type ReservationResult = (typeof RESERVATION_RESULTS)[number];

/** Called with the result of each request to create or to update a reservation, except dry runs. */
export type ReservationObserver = (asked: 'create' | 'update', result: ReservationResult) => void;

/** The result of an item, for the observer. */
export function resultOf(outcome: ItemOutcome): ReservationResult {
  if (outcome.ok) return 'accepted';
  if (outcome.reason !== 'refused') return 'rule';
  const broken = new Set(outcome.refusals.map(({ limit }) => limit));
  return LIMITS.find((limit) => broken.has(limit)) ?? 'rule';
}
