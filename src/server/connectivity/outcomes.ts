import type { Refusal } from '../../allocator/calendar.ts';
import type { Period, TagPlace } from '../../allocator/demand.ts';
import type { Offer } from '../../allocator/offers.ts';
import type { ItemOutcome, RefusedOutcome } from '../../allocator/operations.ts';
import type { ShareRefusal } from '../../allocator/shares.ts';
import { idKind } from '../../contract/ids.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { Link } from '../../contract/links.ts';
import type { ProblemCode } from '../../contract/problem-codes.ts';
import {
  type Alternative,
  LIMITS,
  type Limit,
  type Problem,
  type RefusalFacts,
} from '../../contract/problems.ts';

/** What a reply says of an item that is refused. */
export interface ItemRefusal {
  problems: readonly Problem[];
  facts: RefusalFacts;
}

/**
 * The refusal of a demand that the link can't meet: every limit that it exceeds, with the arithmetic, what is free, and what
 * would be accepted instead (contract/README.md, "Errors" 2 and 3).
 *
 * @param asked the period, or the window of a search
 */
export function refusedOutcome(outcome: RefusedOutcome, asked: Period): ItemRefusal {
  const { link, offers, free } = outcome;
  const problems = outcome.refusals.map((refusal) => problem(refusal, outcome));
  return {
    problems: withAdvice(problems, offers, asked),
    facts: {
      limits: outcome.refusals.map((refusal) => limit(refusal, link)),
      free: free.map(({ start, end, bandwidth }) => ({
        start_date: formatInstant(start),
        end_date: formatInstant(end),
        bandwidth,
      })),
      alternatives: offers.map(alternative),
    },
  };
}

/** The refusal of a name that another reservation of the experiment has. */
export function nameTaken({ name, reservation }: { name: string; reservation: string }): Problem {
  const msg = `The name ${name} is taken by reservation ${reservation} until it ends or is deleted.`;
  return { code: 'name_taken', msg };
}

/** The first problem's message says what would be accepted too, for clients that show nothing else. */
function withAdvice(
  [first, ...rest]: readonly Problem[],
  offers: readonly Offer[],
  asked?: Period,
): Problem[] {
  if (!first || offers.length === 0) return first ? [first, ...rest] : rest;
  const advice = offers.map((offer) => sentence(offer, asked)).join('; ');
  return [{ ...first, msg: `${first.msg} Would be accepted: ${advice}.` }, ...rest];
}

function problem(
  refusal: Refusal,
  { link, reversed, tenant, demand: { bandwidth: demanded }, offers }: RefusedOutcome,
): Problem {
  const { site1, site2 } = link;
  const between = reversed ? `between ${site2} and ${site1}` : `between ${site1} and ${site2}`;
  const period = `from ${formatInstant(refusal.start)} to ${formatInstant(refusal.end)}`;
  if (refusal.limit === 'bandwidth') {
    const used = refusal.capacity - refusal.free;
    // Said once: the first alternative names as much.
    const isOffered = offers.some(
      ({ kind, bandwidth }) => kind === 'most_bandwidth' && bandwidth === refusal.free,
    );
    const free = isOffered ? '.' : `; ${refusal.free} Mbps are free.`;
    return {
      code: 'bandwidth_unavailable',
      msg: `Not enough free bandwidth ${between}: ${used} + ${demanded} = ${used + demanded} Mbps of ${refusal.capacity} ${period}${free}`,
    };
  }
  if (refusal.limit === 'share') {
    const msg = shareText(refusal, link, { tenant, demanded, between });
    return { code: 'share_exceeded', msg };
  }
  const { site, layer } = placeOf(refusal.place, link);
  const kind = `${layer}-tags`;
  return {
    code: 'vlans_unavailable',
    msg: `No available VLANs between the two sites ${period}: each of the ${refusal.total} ${kind} at ${site} is taken for some of it.`,
  };
}

function shareText(
  refusal: ShareRefusal,
  link: Link,
  { tenant, demanded, between }: { tenant: string; demanded: number; between: string },
): string {
  const { held, allowed } = refusal;
  const whose = idKind(tenant) === 'project' ? 'project' : 'experiment';
  const period = `from ${formatInstant(refusal.start)} to ${formatInstant(refusal.end)}`;
  if (refusal.of === 'live') {
    return `The ${whose} has ${held} of at most ${allowed} reservations that have not ended. Delete one, or wait until one has ended.`;
  }
  if (refusal.of === 'bandwidth') {
    return `One ${whose} may hold ${allowed} Mbps ${between} at any instant: this one holds ${held}, and ${held} + ${demanded} = ${held + demanded} Mbps ${period}.`;
  }
  const { site, layer } = placeOf(refusal.place, link);
  return `One ${whose} may hold ${allowed} of the ${layer}-tags at ${site} ${between} at any instant: this one holds ${held} ${period}.`;
}

/** A limit for programs. Of tags at a place, none is free for the whole period, though others may be at each instant. */
function limit(refusal: Refusal, link: Link): Limit {
  const period = { start_date: formatInstant(refusal.start), end_date: formatInstant(refusal.end) };
  const nowhere = { site: null, layer: null };
  if (refusal.limit === 'bandwidth') {
    const { capacity, free } = refusal;
    return { limit: 'bandwidth', ...nowhere, capacity, free, ...period };
  }
  if (refusal.limit === 'tags') {
    return { limit: 'tags', ...placeOf(refusal.place, link), capacity: refusal.total, free: 0, ...period };
  }
  const { allowed, held } = refusal;
  return {
    limit: 'share',
    ...(refusal.of === 'tags' ? placeOf(refusal.place, link) : nowhere),
    capacity: allowed,
    free: Math.max(0, allowed - held),
    ...(refusal.of === 'live' ? { start_date: null, end_date: null } : period),
  };
}

function placeOf(place: TagPlace, { site1, site2 }: Link): { site: string; layer: 'S' | 'C' } {
  return { site: place.startsWith('site1') ? site1 : site2, layer: place.endsWith('s_tag') ? 'S' : 'C' };
}

/** An alternative in words: of its period only what differs from the one that was asked for. */
function sentence({ kind, startsNow, bandwidth, start, end }: Offer, asked: Period | undefined): string {
  const rate = `${bandwidth} Mbps`;
  if (kind === 'most_bandwidth' && start === asked?.start && end === asked.end) {
    return `${rate} for the same period`;
  }
  if (kind === 'longest' && start === asked?.start) return `${rate} until ${formatInstant(end)}`;
  return `${rate} from ${startsNow ? 'now' : formatInstant(start)} to ${formatInstant(end)}`;
}

function alternative({ kind, startsNow, start, end, bandwidth }: Offer): Alternative {
  return {
    kind,
    start_now: startsNow,
    start_date: startsNow ? null : formatInstant(start),
    end_date: formatInstant(end),
    bandwidth,
  };
}

/** The refusals of dates that other dates can replace: they go past an expiry, or start in the past. */
const CURABLE: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  'experiment_ends_first',
  'project_ends_first',
  'date_past',
  // A bandwidth that the link does not have is named beside the dates.
  'bandwidth_unavailable',
]);

/** Whether other dates would do for a request with these problems. */
export function isCurable(problems: readonly Problem[]): boolean {
  return problems.length > 0 && problems.every(({ code }) => CURABLE.has(code));
}

/**
 * The refusal of a request whose dates break a rule, with what would be accepted instead (contract/README.md, "Extensions").
 *
 * @param found the request with the dates that come closest, as an offer, or why it was refused; undefined where no dates do
 */
export function refusedDates(
  problems: readonly Problem[],
  found: Offer | RefusedOutcome | undefined,
): ItemRefusal {
  if (!found) return { problems, facts: {} };
  // The rule's own message says what to do where nothing else is in the way.
  if (!('offers' in found)) return { problems, facts: { alternatives: [alternative(found)] } };
  const alternatives = found.offers.map(alternative);
  return { problems: withAdvice(problems, found.offers), facts: { alternatives } };
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
