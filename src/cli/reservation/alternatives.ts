import { bandwidthWord, formatBandwidth, formatVolume, parseDuration } from '../../contract/amounts.ts';
import { durationWord, formatDuration, MINUTE } from '../../contract/durations.ts';
import { type Changes, Failure, ownCommand } from '../../contract/failure.ts';
import { formatInstant, parseInstant } from '../../contract/instants.ts';
import { SITES } from '../../contract/links.ts';
import {
  ALTERNATIVE_KINDS,
  type Alternative,
  type AlternativeKind,
  BY_THE_LINK,
} from '../../contract/problems.ts';
import type { ReservationRequest } from '../../contract/reservation-request.ts';
import { inOneText, Sentence } from '../../contract/said.ts';
import { alternativeText, exceedsLink, limitText, type Offered } from '../../words/problems.ts';
import { argumentsOf, type CommandLine, isTyped, renamed, retyped, valueIn } from '../command-line.ts';
import { type Offer, Refusal } from '../print/failure-report.ts';
import { formatDistance } from '../times.ts';
import { nearestSite, sitesNamed } from '../values.ts';

/** A request that was refused, and the command that made it. */
export interface Refused {
  request: ReservationRequest;
  /** The command line as it was typed. */
  typed: CommandLine;
  /** Of an update: the reservation as it stands. */
  update?: { id: string; start: number; end: number };
  /** Of `run`: the longest wait for the start that was asked for, in milliseconds. */
  wait?: number | undefined;
  /** When it was refused, in milliseconds. */
  now: number;
}

/** Whether the command takes only `--for`, and starts it now or at the earliest time that fits. */
const isRun = ({ typed }: Refused): boolean => typed.command.name() === 'run';

/**
 * The error to throw in place of an error. A refusal says in the person's words what is missing, and has the alternatives
 * of the service as commands (cli/README.md, "Output"). Other errors stay as they are.
 */
export function refusalOf(error: unknown, asked: Refused): unknown {
  if (!(error instanceof Failure)) return error;
  const offers = (error.facts.alternatives ?? [])
    .flatMap((alternative) => readAlternative(alternative, asked))
    .toSorted((one, other) => ALTERNATIVE_KINDS.indexOf(one.kind) - ALTERNATIVE_KINDS.indexOf(other.kind));
  const said = asSearch(error, asked, offers.find(({ kind }) => kind === 'earliest')?.start);
  const [first] = offers;
  // What can't be offered is not told to programs either.
  if (!first) return withoutOffers(said.with({ alternatives: [] }), asked);
  return new Refusal(said.with({ fix: first.changes }), offers);
}

/** What an offer asks for. */
interface Asked extends Offered {
  kind: AlternativeKind;
}

/** An alternative as an offer; none where its times can't be read, or where it moves what was not to be moved. */
function readAlternative(alternative: Alternative, asked: Refused): Offer[] {
  const { request, typed, update, now } = asked;
  const { kind, bandwidth, via } = alternative;
  const [from, until] = [parseInstant(alternative.start_date ?? ''), parseInstant(alternative.end_date)];
  const start: Offer['start'] | undefined = alternative.start_now ? 'now' : from;
  if (start === undefined || until === undefined) return [];
  if (update && !isTyped(typed, 'start') && start !== update.start) return [];
  const free = { kind, bandwidth, start, end: until, via };
  const offer = { ...free, end: bookedEnd(free, asked) };
  const label = new Sentence((times) => alternativeText(offer, request, now, times));
  // A person who chose the reservation from a list has not typed its id.
  const more = update && argumentsOf(typed).length === 0 ? [update.id] : [];
  const whole = { ...offer, label, changes: changesFor(offer, asked), more };
  // What the typed command asks for is no alternative to it.
  return retyped(typed, whole.changes, ...more) === retyped(typed, {}) ? [] : [whole];
}

/** When the command of an offer ends: what is free may last a little longer. */
function bookedEnd({ kind, start, end }: Asked, asked: Refused): number {
  const { request, typed, now } = asked;
  if (request.duration !== undefined || request.volume !== undefined || request.start !== 'now') return end;
  if (start === 'now') {
    return isRun(asked) && end !== request.end && kind !== 'earliest' ? now + surelyFree(end, now) : end;
  }
  // A period that starts with its request is sent a little longer than was asked for; one that starts later is not.
  const lasting = valueIn(typed, 'for');
  return lasting === undefined ? end : Math.min(end, start + parseDuration(lasting));
}

/** The flags of the typed command that differ where it asks for an offer. */
function changesFor(offer: Asked, asked: Refused): Changes {
  const { request, wait, now } = asked;
  const { kind, bandwidth, start, end, via } = offer;
  if (isRun(asked) && kind === 'earliest') {
    if (start === 'now' || wait === undefined) return { wait: undefined, earliest: true };
    return { earliest: undefined, wait: durationWord(Math.ceil((start - now) / MINUTE) * MINUTE) };
  }
  const route = via ? { via: via.join(',') } : {};
  const rate = { bandwidth: bandwidthWord(bandwidth) };
  if (request.volume !== undefined || request.duration !== undefined) {
    if (via) return route;
    return kind === 'most_bandwidth' && request.duration !== undefined ? rate : { end: timeWord(end) };
  }
  return {
    ...(bandwidth === request.bandwidth ? {} : rate),
    ...(start === request.start ? {} : startChange(start, asked)),
    ...endChange(offer, asked),
    ...route,
  };
}

function startChange(start: Offer['start'], { update }: Refused): Changes {
  if (start !== 'now') return { startNow: undefined, start: timeWord(start) };
  return update ? { start: 'now' } : { start: undefined, startNow: true };
}

/**
 * How long is free from now on for a command that is typed in the next minute, in whole minutes; in milliseconds.
 *
 * @param end until when is free
 */
export const surelyFree = (end: number, now: number): number =>
  (Math.floor((end - now) / MINUTE) - 1) * MINUTE;

/** The flag with which the typed command ends when the offer does: the typed `--for` or `--extend` where a duration says it exactly, else `--end`. */
function endChange({ start, end }: Offered, asked: Refused): Changes {
  const { request, typed, update, now } = asked;
  if (isRun(asked)) return end === request.end ? {} : { for: durationWord(end - now) };
  const named = { for: undefined, extend: undefined, end: timeWord(end) };
  const length = valueIn(typed, 'for');
  if (length !== undefined) {
    const lasting = parseDuration(length);
    const sent = request.start === 'now' ? request.end : undefined;
    if (start === 'now' ? end === sent : end - start === lasting) return {};
    // Pasted later, `--start-now` and `--start +2h` mean a later start, and the same duration would end too late.
    const isFixed =
      start !== 'now' && (start !== request.start || !/^\s*(?:\+|in\s)/i.test(valueIn(typed, 'start') ?? ''));
    const exact = isFixed ? durationWord(end - start) : undefined;
    return exact === undefined ? named : { for: exact };
  }
  if (end === request.end) return {};
  const exact = update && isTyped(typed, 'extend') ? durationWord(end - update.end) : undefined;
  return exact === undefined ? named : { extend: exact };
}

/** An instant as it is typed: RFC 3339 in UTC, without zeros at its end. */
export function timeWord(instant: number): string {
  return formatInstant(instant).replace(/(?::00)?\.000Z$/, 'Z');
}

/**
 * The failure of a search says what was looked for: a service tells the limits of one period.
 *
 * @param earliest the start that would be accepted later; undefined where none is known
 */
function asSearch(
  failure: Failure,
  { request, now, wait }: Refused,
  earliest: Offer['start'] | undefined,
): Failure {
  const { code, facts } = failure;
  const { bandwidth = 0, duration, volume } = request;
  const limits = facts.limits ?? [];
  const isSearch = volume !== undefined || duration !== undefined;
  if (!isSearch || !BY_THE_LINK.includes(code)) return failure;
  if (limits.some((limit) => exceedsLink(limit, request.bandwidth))) return failure;
  const none = new Sentence((times) => {
    if (wait !== undefined) {
      const what = `${formatBandwidth(bandwidth)} for ${formatDuration(duration ?? 0)} can't start within ${formatDuration(wait)}.`;
      if (typeof earliest !== 'number') return what;
      return `${what} The earliest start is ${times.instant(earliest)} (${formatDistance(earliest, now)}).`;
    }
    const [start, end] = times.ends(request.start === 'now' ? now : request.start, request.end);
    return volume === undefined
      ? `There is no time for ${formatBandwidth(bandwidth)} for ${formatDuration(duration ?? 0)} from ${start} to ${end}.`
      : `${formatVolume(volume)} can't be carried from ${start} to ${end}: too little is free.`;
  });
  // The tightest part of a window says little about the whole of it; a share holds throughout.
  const shares = limits
    .filter(({ limit }) => limit === 'share')
    .map((limit) => new Sentence((times) => limitText(limit, request.bandwidth, times)));
  return new Failure(code, none, { ...facts, why: inOneText(...shares) });
}

/** A refusal in place of which the service offers nothing: what to do all the same, where anything helps. */
function withoutOffers(failure: Failure, asked: Refused): Failure {
  const { request, typed, now } = asked;
  const { code, facts } = failure;
  const known = facts.details?.find((detail) => detail.code === code)?.facts;
  const { site1, site2, name, start, via = [], avoid = [] } = request;
  const whatIsFree = ownCommand('availability', site1, site2);
  if (BY_THE_LINK.includes(code)) {
    // What the experiment itself has is in its list.
    if (code === 'share_exceeded') return failure.with({ fix: 'slices-conn list' });
    if ((facts.limits ?? []).length > 0) return failure.with({ fix: whatIsFree });
    const nothing = 'The service offers nothing else. Ask for a shorter time, or for less.';
    return failure.with({ why: inOneText(facts.why, nothing) });
  }
  if (code === 'search_given_up') {
    const at = parseInstant(String(known?.['at']));
    const isLater = at !== undefined && at > (start === 'now' ? now : start);
    const goesOn = isLater && request.duration !== undefined && !isRun(asked);
    if (goesOn) return failure.with({ fix: startChange(at, asked) });
    return failure.with({ fix: whatIsFree });
  }
  if (code === 'name_taken' && name !== undefined) {
    const holder = known?.['holder'];
    // Free, as far as one can know without a look at all names.
    const free = `${name.slice(0, 46)}-${formatInstant(now).slice(0, 16).toLowerCase().replace(':', '')}`;
    return failure.with({
      why: typeof holder === 'string' ? `${holder} has it.` : facts.why,
      fix: { name: free },
    });
  }
  const isMovable = isTyped(typed, 'start') && (isTyped(typed, 'for') || request.end > now);
  if (code === 'date_past' && isMovable) {
    return failure.with({ fix: startChange('now', asked) });
  }
  return withNearestSite(withoutRoute(failure), [site1, site2, ...via, ...avoid], typed);
}

/** The refusal of a route that does not exist with the typed command, without what it asks of the route. */
export function withoutRoute(failure: Failure): Failure {
  if (failure.code !== 'no_route') return failure;
  return failure.with({ fix: { via: undefined, avoid: undefined, direct: undefined } });
}

/** The refusal of an unknown site with the known one whose name is nearest, and the typed command with it. */
export function withNearestSite(failure: Failure, sites: readonly string[], typed: CommandLine): Failure {
  if (failure.code !== 'site_unknown') return failure;
  const known = sitesNamed(failure.facts.details) ?? SITES;
  const unknown = sites.filter((site) => !known.some((name) => name === site));
  const meant = new Map<string, string>();
  const said = unknown.map((site) => {
    const near = nearestSite(site, { others: sites.filter((one) => one !== site), sites: known });
    if (near === undefined) return `There is no site ${JSON.stringify(site)}.`;
    meant.set(site, near);
    return `There is no site ${JSON.stringify(site)}. Did you mean ${near}?`;
  });
  if (meant.size === 0) return failure;
  return new Failure(failure.code, said.join(' '), { ...failure.facts, fix: renamed(typed, meant) });
}
