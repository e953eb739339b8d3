import { durationWord, formatDuration, isoDuration, MINUTE } from '../../contract/durations.ts';
import { type Changes, Failure, ownCommand } from '../../contract/failure.ts';
import { formatInstant, parseInstant } from '../../contract/instants.ts';
import { BY_THE_LINK } from '../../contract/problem-codes.ts';
import { ALTERNATIVE_KINDS, type AlternativeReply } from '../../contract/problems.ts';
import type { Reservation } from '../../contract/reservation.ts';
import { asRequest, periodOf, type ReservationRequest } from '../../contract/reservation-request.ts';
import { textsOf } from '../../contract/reservation-texts.ts';
import { inOneText, instant, type Said, Sentence, sentence } from '../../contract/said.ts';
import { SITES } from '../../contract/sites.ts';
import { parseDuration } from '../../contract/typed-duration.ts';
import { knownRequest, nameOf } from '../../session/reservations/known.ts';
import type { Session } from '../../session/session.ts';
import { alternativeText, difference, type Offered } from '../../words/alternatives.ts';
import { exceedsLink, limitText } from '../../words/limits.ts';
import { linkName } from '../../words/link-name.ts';
import { type CommandLine, renamed, retyped } from '../command-line.ts';
import type { Outcome } from '../context.ts';
import type { PeriodChangeFlags } from '../period.ts';
import { commandOf, type Offer, type OfferKind, Refusal } from '../print/offers.ts';
import { formatDistance } from '../times.ts';
import { bandwidthWord, formatBandwidth, formatVolume, nearestSite, sitesNamed } from '../values.ts';
import { routeWords } from './route-options.ts';

/** A request that was refused, and the command that made it. */
export interface Refused {
  request: ReservationRequest;
  /** The command line as it was typed. */
  typed: CommandLine;
  /** The flags of the period, as typed. */
  flags: PeriodChangeFlags;
  /** Of an update: the reservation as it stands, and whether a start was asked for. */
  update?: { id: string; start: number; end: number; asksForStart: boolean; isNamed: boolean };
  /** The command takes only `--for`, and starts it now or at the earliest time that fits, as `run` does. */
  startsWithCommand?: boolean;
  /** The longest wait for the start that was asked for, in milliseconds. */
  wait?: number;
  /** When it was refused, in milliseconds. */
  now: number;
  /** Sends a request in place of this one; left out where nothing is to be booked. */
  send?: (request: ReservationRequest) => Promise<Outcome> | Promise<void>;
}

/**
 * The error to throw in place of an error. A refusal says in the person's words what is missing, and has the alternatives
 * of the service as commands (cli/README.md, "Output"). Other errors stay as they are.
 */
export function refusalOf(error: unknown, asked: Refused): unknown {
  if (!(error instanceof Failure)) return error;
  const offers = (error.facts.alternatives ?? [])
    .flatMap((alternative) => readAlternative(alternative, asked))
    .toSorted((one, other) => rankOf(one.kind) - rankOf(other.kind));
  const said = asSearch(error, asked, offers.find(({ kind }) => kind === 'earliest')?.start);
  const [first] = offers;
  // What can't be offered is not told to programs either.
  if (!first) return withoutOffers(said.with({ alternatives: [] }), asked);
  const { send } = asked;
  const take = send && ((offer: Offer) => send(requestOf(offer, asked)));
  return new Refusal(said.with({ fix: first.changes }), offers, take);
}

/** What an offer asks for. */
type Asked = Omit<Offer, 'label' | 'changes' | 'more'>;

/** The place of a kind in the order of the contract (cli/README.md, "Output"); what an older service does not name comes last. */
function rankOf(kind: OfferKind): number {
  return kind === null ? ALTERNATIVE_KINDS.length : ALTERNATIVE_KINDS.indexOf(kind);
}

/** The shortest offer, in milliseconds, unless the request itself is shorter. */
const SHORTEST = MINUTE;

/** An alternative as an offer; none where its times can't be read, or where it moves what was not to be moved. */
function readAlternative(alternative: AlternativeReply, asked: Refused): Offer[] {
  const { request, update, now } = asked;
  const { bandwidth, via } = alternative;
  const [from, until] = [parseInstant(alternative.start_date ?? ''), parseInstant(alternative.end_date)];
  // Services that are older than `start_now` name an instant that is over when the command is pasted.
  const isNow = alternative.start_now || (from !== undefined && from <= now && from !== update?.start);
  const start: Offer['start'] | undefined = isNow ? 'now' : from;
  if (start === undefined || until === undefined) return [];
  if (update && !update.asksForStart && start !== update.start) return [];
  const began = request.start === 'now' ? now : request.start;
  if (until - (start === 'now' ? now : start) < Math.min(SHORTEST, request.duration ?? request.end - began))
    return [];
  const free = { bandwidth, start, end: until, via };
  const kind = alternative.kind ?? kindOf(free, request, now);
  if (asked.startsWithCommand && !canStart({ ...free, kind }, asked)) return [];
  const offer = { ...free, end: bookedEnd({ ...free, kind }, asked), kind };
  const label = new Sentence((times) => alternativeText(offer, request, now, times));
  // A person who chose the reservation from a list has not typed its id.
  const more = update && !update.isNamed ? [update.id] : [];
  const whole = { ...offer, label, changes: changesFor(offer, asked), more };
  // What the typed command asks for is no alternative to it.
  return commandOf(asked.typed, whole) === retyped(asked.typed, {}) ? [] : [whole];
}

/** Whether `run` can ask for an offer: for what is free from now on, or for the earliest time, for which it waits. */
function canStart({ kind, start, end }: Asked, { request, now }: Refused): boolean {
  if (request.duration !== undefined || kind === 'earliest') return true;
  return start === 'now' && (end === request.end || durationWord(surelyFree(end, now)) !== undefined);
}

/** When the command of an offer ends: what is free may last a little longer. */
function bookedEnd({ kind, start, end }: Asked, { request, flags, startsWithCommand, now }: Refused): number {
  if (request.duration !== undefined || request.volume !== undefined || request.start !== 'now') return end;
  if (start === 'now') {
    return startsWithCommand && end !== request.end && kind !== 'earliest' ? now + surelyFree(end, now) : end;
  }
  // A period that starts with its request is sent a little longer than was asked for; one that starts later is not.
  const lasting = flags.for === undefined ? undefined : parseDuration(flags.for);
  return lasting !== undefined && end - start >= lasting ? start + lasting : end;
}

/** The kind of an alternative that a service does not name. */
function kindOf(wanted: Offered, request: ReservationRequest, now: number): OfferKind {
  const { sameStart, sameLength } = difference(wanted, request, now);
  if (wanted.bandwidth !== request.bandwidth) return sameStart && sameLength ? 'most_bandwidth' : null;
  return sameStart ? 'longest' : sameLength ? 'earliest' : null;
}

/** The request that a picked offer makes. */
function requestOf({ kind, bandwidth, start, end, via }: Offer, { request }: Refused): ReservationRequest {
  const routed = via ? { via: [...via] } : {};
  const { duration, volume } = request;
  if (duration === undefined && volume === undefined) return { ...request, bandwidth, start, end, ...routed };
  if (via) return { ...request, ...routed };
  if (volume !== undefined) return { ...request, end };
  return kind === 'most_bandwidth' ? { ...request, bandwidth } : { ...request, end };
}

/** The flags of the typed command that differ where it asks for an offer. */
function changesFor(offer: Asked, asked: Refused): Changes {
  const { request, startsWithCommand, wait, now } = asked;
  const { kind, bandwidth, start, end, via } = offer;
  if (startsWithCommand && kind === 'earliest') {
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
  const { request, flags, update, startsWithCommand, now } = asked;
  if (startsWithCommand) return end === request.end ? {} : { for: durationWord(end - now) };
  const named = { for: undefined, extend: undefined, end: timeWord(end) };
  if (flags.for !== undefined) {
    const lasting = parseDuration(flags.for);
    const sent = request.start === 'now' ? request.end : undefined;
    if (start === 'now' ? end === sent : end - start === lasting) return {};
    // Pasted later, `--start-now` and `--start +2h` mean a later start, and the same duration would end too late.
    const isFixed =
      start !== 'now' && (start !== request.start || !/^\s*(?:\+|in\s)/i.test(flags.start ?? ''));
    const exact = isFixed ? durationWord(end - start) : undefined;
    return exact === undefined ? named : { for: exact };
  }
  if (end === request.end) return {};
  const exact = flags.extend !== undefined && update ? durationWord(end - update.end) : undefined;
  return exact === undefined ? named : { extend: exact };
}

/** The command that makes a request. @param more further flags */
export function reserveText(request: ReservationRequest, ...more: readonly string[]): string {
  const { start, end, duration, volume } = request;
  const search =
    duration !== undefined
      ? ['--earliest', '--for', isoDuration(duration)]
      : volume !== undefined
        ? ['--volume', `${volume}B`]
        : [];
  const from = start === 'now' ? ['--start-now'] : ['--start', timeWord(start)];
  return reserveIn(request, [...from, '--end', timeWord(end), ...search], more);
}

/**
 * The command that books a reservation once more: in its own period, as far as that lies ahead. What has begun starts now, and
 * what is over lasts as long as it did. It has the same route: why that was asked for is not known any more.
 *
 * @param now milliseconds
 * @param more further flags
 */
export function againCommand(reservation: Reservation, now: number, ...more: readonly string[]): string {
  const { start, end } = periodOf(reservation);
  const from = start > now ? ['--start', timeWord(start)] : ['--start-now'];
  const lasting = lengthWord(start, end);
  const until = end > now ? ['--end', timeWord(end)] : ['--for', lasting];
  return reserveIn({ ...asRequest(reservation), via: reservation.via }, [...from, ...until], more);
}

function reserveIn(request: ReservationRequest, period: readonly string[], more: readonly string[]): string {
  const { site1, site2, bandwidth } = request;
  const route = routeWords(request);
  const rate = bandwidth === undefined ? [] : ['--bandwidth', bandwidthWord(bandwidth)];
  const texts = Object.entries(textsOf(request)).flatMap(([text, value]) => [`--${text}`, value]);
  return ownCommand('reserve', site1, site2, ...rate, ...period, ...route, ...texts, ...more);
}

/** An instant as it is typed: RFC 3339 in UTC, without zeros at its end. */
export function timeWord(instant: number): string {
  return formatInstant(instant).replace(/(?::00)?\.000Z$/, 'Z');
}

/** The length of a period as it is typed, rounded up to a second. */
function lengthWord(start: number, end: number): string {
  return durationWord(Math.max(1, Math.ceil((end - start) / 1000)) * 1000) ?? '';
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
  const { request, typed, flags, now, update } = asked;
  const { code, facts } = failure;
  const { site1, site2, via = [], avoid = [] } = request;
  if (BY_THE_LINK.includes(code)) {
    // What the experiment itself has is in its list.
    if (code === 'share_exceeded') return failure.with({ fix: 'slices-conn list' });
    if ((facts.limits ?? []).length > 0)
      return failure.with({ fix: `slices-conn availability ${site1} ${site2}` });
    const nothing = 'The service offers nothing else. Ask for a shorter time, or for less.';
    return failure.with({ why: inOneText(facts.why, nothing) });
  }
  if (code === 'search_given_up') {
    const at = parseInstant(String(facts.details?.find((detail) => detail.code === code)?.facts?.['at']));
    const isLater = at !== undefined && at > (request.start === 'now' ? now : request.start);
    const goesOn = isLater && request.duration !== undefined && !asked.startsWithCommand;
    if (goesOn) return failure.with({ fix: startChange(at, asked) });
    return failure.with({ fix: `slices-conn availability ${site1} ${site2}` });
  }
  const { start } = request;
  if (code === 'date_past' && start !== 'now' && flags.for !== undefined && request.end <= now) {
    // The end was not typed: what is wrong is the start.
    const passed = new Sentence((times) => `The start, ${times.instant(start)}, has passed.`);
    return new Failure(code, passed, { ...facts, why: 'To start at once, give --start-now.' });
  }
  if (code === 'date_past' && flags.start !== undefined && request.end > now) {
    const started = { bandwidth: 0, start: 'now', end: request.end } as const;
    return failure.with({ fix: { ...startChange('now', asked), ...endChange(started, asked) } });
  }
  if (code === 'period_empty' && update?.asksForStart && request.end === update.end) {
    // Moved behind its end, it keeps its length.
    return failure.with({ fix: { for: lengthWord(update.start, update.end) } });
  }
  return withNearestSite(withoutRoute(failure), [site1, site2, ...via, ...avoid], typed);
}

/** The refusal of a route that does not exist with the typed command, without what it asks of the route. */
export function withoutRoute(failure: Failure): Failure {
  if (failure.code !== 'no_route') return failure;
  return failure.with({ fix: { via: undefined, avoid: undefined, direct: undefined } });
}

/**
 * The error to throw in place of the failure that a name is taken. It says which reservation has the name, and a name that is
 * free. Other errors stay as they are.
 *
 * @param name the name that was asked for
 */
export async function withHolder(
  taken: unknown,
  session: Session,
  name: string | undefined,
): Promise<unknown> {
  if (!(taken instanceof Failure) || taken.code !== 'name_taken' || name === undefined) return taken;
  const { items } = await session.currentReservations().catch(() => ({ items: [] }));
  const holder = items.find((item) => nameOf(item) === name);
  const known = holder && knownRequest(holder);
  const names = new Set(items.map(nameOf));
  const numbered = Array.from({ length: items.length + 1 }, (_, at) => `${name.slice(0, 60)}-${at + 2}`);
  const free = numbered.find((one) => !names.has(one));
  const why =
    holder && known ? sentence`${holder.id} has it: ${linkName(known)}, ${periodText(known)}.` : undefined;
  return taken.with({ why, fix: { name: free } });
}

function periodText({ start, end }: Pick<ReservationRequest, 'start' | 'end'>): Said {
  if (start === 'now') return sentence`from now to ${instant(end)}`;
  return new Sentence((times) => `from ${times.ends(start, end).join(' to ')}`);
}

/** The refusal of an unknown site with the known one whose name is nearest, and the typed command with it. */
export function withNearestSite(failure: Failure, sites: readonly string[], typed: CommandLine): Failure {
  if (failure.code !== 'site_unknown') return failure;
  const known = sitesNamed(failure.facts.details) ?? SITES;
  const unknown = sites.filter((site) => !known.some((name) => name === site));
  const meant = new Map(
    unknown.flatMap((site) => {
      const others = sites.filter((one) => one !== site);
      const near = nearestSite(site, { others, sites: known });
      return near === undefined ? [] : [[site, near] as const];
    }),
  );
  if (meant.size === 0) return failure;
  const said = unknown.map((site) => {
    const near = meant.get(site);
    const hint = near === undefined ? '' : ` Did you mean ${near}?`;
    return `There is no site ${JSON.stringify(site)}.${hint}`;
  });
  return new Failure(failure.code, said.join(' '), { ...failure.facts, fix: renamed(typed, meant) });
}
