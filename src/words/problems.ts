import { formatBandwidth, formatVolume } from '../contract/amounts.ts';
import { formatDuration, SECOND } from '../contract/durations.ts';
import type { FailureDetail } from '../contract/failure.ts';
import { formatInstant, parseInstant } from '../contract/instants.ts';
import { isObject } from '../contract/json.ts';
import {
  BY_THE_LINK,
  DETAIL_LOCATIONS,
  type Limit,
  type Problem,
  type ProblemCode,
  type ProblemFacts,
} from '../contract/problems.ts';
import type { ReservationRequest } from '../contract/reservation-request.ts';
import { type Role, readRole } from '../contract/roles.ts';
import { type Times, UTC_TIMES } from '../contract/said.ts';
import { hopName } from './links.ts';

/** Begins the messages of a link's refusals, as the spec does ("Errors" 3); ` between be-gent1 and pl-poznan1` follows. */
export const LIMIT_HEADINGS = {
  bandwidth: 'Not enough free bandwidth',
  tags: 'No available VLANs',
  share: 'Not enough of the share is left',
} as const satisfies Record<Limit['limit'], string>;

/** Whether more was asked for than the link has at any time. */
export function exceedsLink({ limit, capacity }: Limit, asked: number | undefined): boolean {
  return limit === 'bandwidth' && asked !== undefined && asked > capacity;
}

/** The ends of the period in which a limit was broken; undefined for a limit at any time. */
function endsOf({ start_date, end_date }: Limit, times: Times): readonly [string, string] | undefined {
  if (start_date === null || end_date === null) return undefined;
  return times.ends(Date.parse(start_date), Date.parse(end_date));
}

/**
 * A broken limit as a sentence, with its numbers.
 *
 * @param asked Mbps
 * @example '6 of the 9 Gbps asked for are free from 2026-12-01T11:00:00.000Z to 2026-12-01T14:00:00.000Z.'
 */
export function limitText(broken: Limit, asked: number | undefined, times: Times): string {
  const { limit, site, layer, capacity, free, tenant = 'project' } = broken;
  const ends = endsOf(broken, times);
  const period = ends ? ` from ${ends[0]} to ${ends[1]}` : '';
  const wanted = asked === undefined ? '' : `; ${formatBandwidth(asked)} were asked for`;
  const hop = broken.hop && hopName(broken.hop);
  if (limit === 'tags') {
    const on = hop === undefined ? '' : ` on ${hop}`;
    return `None of the ${capacity} ${layer}-tags at ${site} is free${on} all the time${period}.`;
  }
  if (limit === 'share') {
    const may = `One ${tenant} may have`;
    if (period === '') {
      const held = `${may} ${capacity} reservations that have not ended, and yours has ${capacity - free}.`;
      return `${held} Delete one, or wait until one has ended.`;
    }
    return layer === null
      ? `${may} ${formatBandwidth(capacity)} of ${hop ?? 'this link'}, and yours has ${formatBandwidth(free)} left${period}${wanted}.`
      : `${may} ${capacity} of the ${layer}-tags at ${site}, and yours has ${free} left${period}.`;
  }
  if (exceedsLink(broken, asked)) return capacityText(capacity, asked ?? 0, hop);
  if (hop !== undefined) {
    const has =
      asked === undefined ? `${formatBandwidth(free)} free` : partOf(free, asked).replace('None', 'none');
    return `${hop} has ${has}${period}.`;
  }
  return asked === undefined
    ? `${formatBandwidth(free)} are free${period}.`
    : `${partOf(free, asked)} asked for ${free === 1 || free === 1000 ? 'is' : 'are'} free${period}.`;
}

/** That a link never has as much as was asked for. Mbps. @param link its name, where a route has several */
function capacityText(capacity: number, asked: number, link = 'The link'): string {
  return `${link} has ${formatBandwidth(capacity)}; ${formatBandwidth(asked)} were asked for.`;
}

/**
 * A broken limit in a few words, for a table; undefined for a limit at any time.
 *
 * @example '6 Gbps free 1 Dec 11:00–14:00'
 */
export function limitNote(broken: Limit, times: Times): string | undefined {
  const { limit, site, layer, capacity, free, tenant = 'project' } = broken;
  const ends = endsOf(broken, times);
  if (!ends) return undefined;
  const period = ends.join('–');
  const on = broken.hop ? ` on ${hopName(broken.hop)}` : '';
  if (limit === 'tags') return `no ${layer}-tag free at ${site}${on} ${period}`;
  const what = layer === null ? formatBandwidth(free) : `${free} of ${capacity} ${layer}-tags`;
  return `${what} ${limit === 'share' ? `left of the ${tenant}'s share` : 'free'}${on} ${period}`;
}

/** A part of a bandwidth. @example partOf(6000, 9000) // '6 of the 9 Gbps' */
function partOf(part: number, whole: number): string {
  const rate = formatBandwidth(whole);
  if (part === 0) return `None of the ${rate}`;
  return part >= 1000 === whole >= 1000
    ? `${formatBandwidth(part).split(' ')[0]} of the ${rate}`
    : `${formatBandwidth(part)} of the ${rate}`;
}

const ALLOWS: Readonly<Record<Role, string>> = {
  lead: 'may book, change and delete',
  admin: 'may change and delete, not book',
  member: 'may not see its reservations',
  viewer: 'may look, not book',
};

/** How many leads are named at most. */
export const MOST_LEADS = 5;

/**
 * The sentence that says who could do what a role does not allow; an empty text where no role may.
 *
 * @param names of the leads of a project or an experiment; beyond {@link MOST_LEADS} they are "others"
 * @example leadsText(['anna', 'ben']) // 'Its leads are the users anna and ben.'
 */
export function leadsText(names: readonly string[]): string {
  const named = names.length > MOST_LEADS ? [...names.slice(0, MOST_LEADS), 'others'] : names;
  if (named.length < 2) return named.map((name) => `Its lead is the user ${name}.`).join('');
  return `Its leads are the users ${named.slice(0, -1).join(', ')} and ${named.at(-1)}.`;
}

/**
 * The part of a sentence that says what a role allows in an experiment; see `WHO_MAY`.
 *
 * @param role as a token or a record has it
 * @returns undefined for a role that is not known here
 */
export function roleAllows(role: string): string | undefined {
  const known = readRole(role);
  return known && ALLOWS[known];
}

const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
const number = (value: unknown) => (typeof value === 'number' ? value : undefined);
const list = (value: unknown) => (Array.isArray(value) ? value.map(String) : undefined);
/** An instant is ISO 8601 in a body, and a number of milliseconds here. */
const at = (value: unknown) => parseInstant(text(value) ?? '');

/** How each fact of a body is read; undefined for a value that has not the type of the fact. */
const READERS = {
  ...{ at, start_date: at, end_date: at, expires_at: at },
  ...{
    member: text,
    project: text,
    site: text,
    name: text,
    holder: text,
    token: text,
    reason: text,
    address: text,
  },
  ...{ bandwidth: number, capacity: number, hops: number, needed: number, volume: number },
  ...{ sites: list, route: list, via: list, avoid: list, hop: list },
} as const satisfies Record<keyof ProblemFacts, (value: unknown) => unknown>;

/** Facts with times in milliseconds. */
type Known = { [Name in keyof typeof READERS]?: ReturnType<(typeof READERS)[Name]> };

/** A sentence, and the facts without which it can't be said. */
interface Row<Needed extends keyof Known> {
  needs: readonly Needed[];
  say(facts: Known & Required<Pick<Known, Needed>>, times: Times): string;
}

function row<Needed extends keyof Known>(needs: readonly Needed[], say: Row<Needed>['say']): Row<Needed> {
  return { needs, say };
}

/** The words of people for a member of a request. */
const MEMBERS: Readonly<Record<string, string>> = {
  ...{ start_date: 'start', start: 'start', end_date: 'end', end: 'end', expires_at: 'expiry' },
};

const memberText = (member: string): string => MEMBERS[member] ?? member;

/** A search took too long. @param from before this instant nothing fits; undefined where that is not known */
export function givenUpText(from: string | undefined): string {
  const found = from === undefined ? 'More may fit than it found' : `Nothing fits before ${from}`;
  return `The search was given up, since it took too long. ${found}.`;
}

/** The sentence of each code whose problems carry facts. A problem of another code says its own, in `msg`. */
const SENTENCES = {
  token_expired: row(['token', 'expires_at'], ({ token, expires_at }, times) => {
    return `The ${token} token expired at ${times.instant(expires_at)}.`;
  }),
  token_invalid: row(['token', 'reason'], ({ token, reason }) => {
    return `The ${token} token is not accepted. ${reason}`;
  }),
  site_unknown: row(['site'], ({ site, sites }) => {
    const known = sites ? ` The sites are: ${sites.join(', ')}.` : '';
    return `There is no site ${JSON.stringify(site)}.${known}`;
  }),
  no_route: row(['route', 'hops'], ({ route, hops, via = [], avoid = [] }) => {
    const ends = `${route[0]} and ${route.at(-1)}`;
    const shortest = `The shortest route is ${route.join(' – ')}.`;
    if (via.length + avoid.length === 0) return `No link connects ${ends}. ${shortest}`;
    const passes = via.length > 0 ? [`passes ${via.join(', then ')}`] : [];
    const avoids = avoid.length > 0 ? [`avoids ${avoid.join(' and ')}`] : [];
    return `No route of at most ${hops} hops between ${ends} ${[...passes, ...avoids].join(' and ')}. ${shortest}`;
  }),
  date_past: row(
    ['member', 'at'],
    ({ member, at }, times) => `The ${memberText(member)}, ${times.instant(at)}, has passed.`,
  ),
  period_empty: row(['start_date', 'end_date'], ({ start_date, end_date }, times) => {
    return `The end, ${times.instant(end_date)}, is not after the start, ${times.instant(start_date)}.`;
  }),
  reservation_started: row(['at'], ({ at }, times) => {
    return `The reservation began at ${times.instant(at)}: its end and bandwidth can change, its start can't.`;
  }),
  reservation_ended: row(['at'], ({ at }, times) => `The reservation ended at ${times.instant(at)}.`),
  experiment_ends_first: row(['member', 'at', 'expires_at'], ({ member, at, expires_at }, times) => {
    const [wanted, last] = [times.instant(at), times.instant(expires_at)];
    return `The ${memberText(member)}, ${wanted}, is after the experiment's expiry, ${last}.`;
  }),
  experiment_expired: row(
    ['expires_at'],
    ({ expires_at }, times) => `The experiment expired at ${times.instant(expires_at)}.`,
  ),
  project_ends_first: row(
    ['member', 'at', 'project', 'expires_at'],
    ({ member, at, project, expires_at }, times) => {
      const [wanted, last] = [times.instant(at), times.instant(expires_at)];
      return `The ${memberText(member)}, ${wanted}, is after the expiry of project ${project}, ${last}.`;
    },
  ),
  project_expired: row(['project', 'expires_at'], ({ project, expires_at }, times) => {
    return `The project ${project} expired at ${times.instant(expires_at)}.`;
  }),
  bandwidth_unavailable: row(['bandwidth', 'capacity'], ({ bandwidth, capacity, hop }) =>
    capacityText(capacity, bandwidth, hop && hopName(hop)),
  ),
  bandwidth_too_low: row(['volume', 'end_date', 'needed', 'bandwidth'], (facts, times) => {
    const needs = `${formatVolume(facts.volume)} by ${times.instant(facts.end_date)} needs ${formatBandwidth(facts.needed)}`;
    return `${needs}; at most ${formatBandwidth(facts.bandwidth)} may be used.`;
  }),
  search_given_up: row([], ({ at }, times) => givenUpText(at === undefined ? undefined : times.instant(at))),
  name_taken: row(['name', 'holder'], ({ name }) => {
    return `Another reservation has the name ${name} until it ends or is deleted.`;
  }),
} satisfies Partial<Record<ProblemCode, unknown>>;

/** The codes that have a sentence. */
type Sayable = keyof typeof SENTENCES;
/** The facts that the sentence of a code needs, with times in milliseconds, and any others. */
type FactsOf<Code extends Sayable> =
  (typeof SENTENCES)[Code] extends Row<infer Needed> ? Known & Required<Pick<Known, Needed>> : never;

/**
 * A problem with facts, and the message that they make.
 *
 * @param facts times in milliseconds
 * @param advice what a client of the API may do; other surfaces have their own next steps
 */
export function problem<Code extends Sayable>(code: Code, facts: FactsOf<Code>, advice?: string): Problem {
  const said = (SENTENCES[code] as Row<keyof Known>).say(facts as Required<Known>, UTC_TIMES);
  const instants = Object.entries(facts).flatMap(([name, value]) =>
    (READERS as Readonly<Record<string, unknown>>)[name] === at && typeof value === 'number'
      ? [[name, formatInstant(value)]]
      : [],
  );
  return {
    code,
    msg: advice === undefined ? said : `${said} ${advice}`,
    facts: { ...facts, ...Object.fromEntries(instants) } as ProblemFacts,
  };
}

/** The facts of a reply that have the type that they should have. */
function knownFacts(facts: Readonly<Record<string, unknown>> = {}): Known {
  return Object.fromEntries(Object.entries(READERS).map(([name, read]) => [name, read(facts[name])]));
}

/**
 * One error of a reply for people: by its facts where it has them, else the service's own words as they are. The spec's
 * messages name their member; others get its path in front.
 */
function detailText({ loc, msg, code, facts }: FailureDetail, times: Times): string {
  const known = knownFacts(facts);
  const sentence = Object.entries(SENTENCES).find(([name]) => name === code)?.[1] as
    | Row<keyof Known>
    | undefined;
  if (sentence?.needs.every((name) => known[name] !== undefined))
    return sentence.say(known as Required<Known>, times);
  const isNamed = loc.length === 0 || loc.some((part) => DETAIL_LOCATIONS.some((one) => one === part));
  return msg === '' || isNamed ? msg : `${loc.join('.')}: ${msg}`;
}

/**
 * The sentences of a refusal: for each error one, and for all that a link refuses one for each limit that was broken. Only
 * times are different from one surface to another, so the number of sentences is not.
 */
export function problemTexts(
  details: readonly FailureDetail[],
  limits: readonly Limit[],
  times: Times,
): string[] {
  const isByLink = ({ code, facts }: FailureDetail): boolean =>
    limits.length > 0 && BY_THE_LINK.includes(code ?? '') && facts?.['capacity'] === undefined;
  const first = details.find(isByLink);
  const asked = knownFacts(first?.facts).bandwidth;
  const texts = details.flatMap((detail) => {
    if (!isByLink(detail)) return [detailText(detail, times)];
    return detail === first ? limits.map((limit) => limitText(limit, asked, times)) : [];
  });
  return [...new Set(texts)].filter((text) => text !== '');
}

/** A request that would be accepted: Mbps and milliseconds; `now` is the time of the request. */
export interface Offered {
  bandwidth: number;
  start: number | 'now';
  end: number;
  /** The sites of a route with more links than the shortest has, in order; absent for any of the shortest. */
  via?: readonly string[] | undefined;
}

/** The request in place of which something is offered; of a search the window, and the duration or volume. */
export type Asked = Pick<ReservationRequest, 'start' | 'end' | 'duration' | 'volume'>;

/** Two durations that differ by less count as the same where the time of the request decides, in milliseconds. */
const SAME = 10 * SECOND;

/**
 * An offer in words: its differences from the request, or all of it where no request is given.
 *
 * @param now milliseconds
 * @example '6 Gbps, same period'
 * @example '9 Gbps from 2026-12-01T14:00:00.000Z'
 * @example '9 Gbps for 2 h'
 * @example '9 Gbps, same period, via fr-slices, se-kth: leaves others less on 3 links'
 */
export function alternativeText(
  offered: Offered,
  asked: Asked | undefined,
  now: number,
  times: Times,
): string {
  const { via } = offered;
  // The cost of a longer route is the others': on each of its links they can book less.
  const route = via ? `, via ${via.join(', ')}: leaves others less on ${via.length + 1} links` : '';
  return timeText(offered, asked, now, times) + route;
}

function timeText(
  { bandwidth, start, end }: Offered,
  asked: Asked | undefined,
  now: number,
  times: Times,
): string {
  const at = (instant: number | 'now'): number => (instant === 'now' ? now : instant);
  const rate = formatBandwidth(bandwidth);
  if (!asked) {
    const [from, until] = times.ends(at(start), end);
    return `${rate} from ${from} to ${until}`;
  }
  if (asked.volume !== undefined) return `done by ${times.instant(end)}`;
  const length = end - at(start);
  const wanted = asked.duration ?? asked.end - at(asked.start);
  const isLoose = start === 'now' || asked.start === 'now';
  const sameLength = Math.abs(length - wanted) <= (isLoose ? SAME : 0);
  // Of a search its own result is told.
  const sameStart = start === asked.start && asked.duration === undefined;
  if (sameStart && sameLength) return `${rate}, same period`;
  const from = sameStart ? '' : ` from ${start === 'now' ? 'now' : times.instant(start)}`;
  return `${rate}${from}${sameLength ? '' : ` for ${formatDuration(length)}`}`;
}

/** The code and the errors in the body of an unsuccessful reply, of any service; what can't be read is left out. */
export function readProblem(body: unknown): { code: string | undefined; details: FailureDetail[] } {
  const { code, detail } = isObject(body) ? body : {};
  const found = typeof detail === 'string' ? [{ msg: detail }] : Array.isArray(detail) ? detail : [];
  return { code: typeof code === 'string' ? code : undefined, details: found.flatMap(readDetail) };
}

function readDetail(value: unknown): FailureDetail[] {
  if (!isObject(value)) return [];
  const { loc = [], msg, type, item, code, facts } = value;
  const isName = (part: unknown) => typeof part === 'string' || typeof part === 'number';
  return [
    {
      loc: [loc].flat().filter(isName) as (string | number)[],
      msg: typeof msg === 'string' ? msg : '',
      type: typeof type === 'string' ? type : '',
      item: Number.isInteger(item) && Number(item) >= 0 ? Number(item) : undefined,
      code: typeof code === 'string' ? code : undefined,
      facts: isObject(facts) ? facts : undefined,
    },
  ];
}
