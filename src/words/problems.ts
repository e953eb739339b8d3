import { formatBandwidth } from '../contract/bandwidth.ts';
import type { FailureDetail } from '../contract/failure.ts';
import { formatInstant, parseInstant } from '../contract/instants.ts';
import { isObject } from '../contract/json.ts';
import { BY_THE_LINK, DETAIL_LOCATIONS, type ProblemCode } from '../contract/problem-codes.ts';
import type { Limit, Problem, ProblemFacts } from '../contract/problems.ts';
import { type Times, UTC_TIMES } from '../contract/said.ts';
import { formatVolume } from '../contract/volume.ts';
import { capacityText, limitText } from './limits.ts';
import { hopName } from './link-name.ts';

const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
const number = (value: unknown) => (typeof value === 'number' ? value : undefined);
const list = (value: unknown) => (Array.isArray(value) ? value.map(String) : undefined);
/** An instant is ISO 8601 in a body, and a number of milliseconds here. */
const at = (value: unknown) => parseInstant(text(value) ?? '');

/** How each fact of a body is read; undefined for a value that has not the type of the fact. */
const READERS = {
  ...{ at, start_date: at, end_date: at, expires_at: at },
  ...{ member: text, project: text, site: text, name: text, holder: text, token: text, reason: text },
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
    const needs = `${formatVolume(facts.volume)} by ${times.instant(facts.end_date)} need ${formatBandwidth(facts.needed)}`;
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
