import { bandwidthWord, parseBandwidth, parseDuration, parseVolume } from '../contract/amounts.ts';
import { MINUTE, SECOND } from '../contract/durations.ts';
import { Failure } from '../contract/failure.ts';
import { RESERVATION_NAME } from '../contract/fields.ts';
import { LAST_INSTANT, type Period } from '../contract/instants.ts';
import type { Alternative } from '../contract/problems.ts';
import type { ReservationRequest } from '../contract/reservation-request.ts';
import { parseTime, type TimeReading } from '../words/typed-time.ts';
import { isSamePair, routeBetween } from './route.ts';
import type { Ends, Link, Own } from './service.ts';

/**
 * The content of the form. Times are instants, exact also where a field shows minutes only; or texts as they are typed, empty
 * where the field is.
 */
export interface Draft {
  /** The reservation that is to be changed; absent for a new one. */
  id?: string;
  site1: string;
  site2: string;
  /** The sites of a longer route that was picked, in order. Default: the service finds the route. */
  via?: readonly string[] | undefined;
  /** As typed, such as `1G`. */
  bandwidth: string;
  /** `now` is the time of the request. */
  start: number | string;
  /** The end; as a text it may also be how long it lasts: a duration, or the volume that is to be sent. */
  ending: number | string;
  /** Of a new reservation; empty for none. */
  name: string;
  /** Whether an edge of its bar was dragged: what becomes of that is said where the eyes are. */
  isDragged?: true;
}

/** The form as it is at first. */
export const EMPTY_DRAFT: Draft = {
  site1: '',
  site2: '',
  bandwidth: '1G',
  start: 'now',
  ending: '2h',
  name: '',
};

/** The fields of the form, as problems name them. */
export type Field = 'site1' | 'site2' | 'bandwidth' | 'start' | 'ending' | 'name';

/** A draft that can be sent: its request without a key, and its period and bandwidth for the words about it. */
export interface Wish {
  /** Of a change: the reservation's id. */
  id?: string;
  request: ReservationRequest;
  /** Mbps. */
  bandwidth: number;
  period: Period;
  /** When it was read, in milliseconds. */
  at: number;
}

/** A draft as it was read: as much of it as is known, and all of it as a {@link Wish} where nothing is wrong. */
export interface ReadDraft {
  /** By field. An empty sentence is of an empty field: nothing has to be said about it before the form is sent. */
  problems: ReadonlyMap<Field, string>;
  /** The start and the end, as far as each is known, in milliseconds. A start of `now` is the time of reading. */
  times: Partial<Period>;
  /** Both of them, where they make a period. */
  period?: Period;
  wish?: Wish;
}

/** The facts that a draft is read with. */
export interface DraftTerms {
  now: number;
  links: readonly Link[];
  /** When the experiment expires, in milliseconds. */
  expiry: number;
  /** The zone of times that are typed. */
  zone: string;
  /** The period of the reservation that is to be changed: a time of day is on its days. */
  own?: Period;
}

const MEGA = 1e6;
/** How long a request may take to arrive, in milliseconds: what starts with it lasts as long, and what ends with it ends later. */
export const ON_THE_WAY = 5000;

/** Reads a draft. */
export function readDraft(draft: Draft, terms: DraftTerms): ReadDraft {
  const { id, site1, site2, via, start, name } = draft;
  const problems = new Map<Field, string>();
  if (site1 === '') problems.set('site1', '');
  if (site2 === '') problems.set('site2', '');
  else if (site1 !== '' && !routeBetween(terms.links, draft))
    problems.set('site2', `No route leads from ${site1} to ${site2}.`);
  const bandwidth = readTyped(problems, 'bandwidth', draft.bandwidth, parseBandwidth);
  const times = readTimes(problems, draft, bandwidth, terms);
  const period = periodOf(problems, times);
  if (id === undefined && name !== '' && !RESERVATION_NAME.test(name)) {
    problems.set('name', 'A name is 1 to 64 of a to z, 0 to 9 and -, a letter first.');
  }
  if (problems.size > 0 || bandwidth === undefined || !period) return { problems, times, period };
  const named = id === undefined && name !== '' ? { name } : {};
  const routed = id === undefined && via ? { via: [...via] } : {};
  const request: ReservationRequest = {
    ...{ site1, site2, bandwidth, start: start === 'now' ? 'now' : period.start, end: period.end },
    ...named,
    ...routed,
  };
  return { problems, times, period, wish: { id, request, bandwidth, period, at: terms.now } };
}

function readTimes(
  problems: Map<Field, string>,
  { start, ending }: Draft,
  bandwidth: number | undefined,
  terms: DraftTerms,
): Partial<Period> {
  const { now, expiry, own } = terms;
  const from = start === 'now' ? now : readTime(problems, 'start', start, terms, { on: own?.start });
  const lasting = readLasting(ending, bandwidth);
  if (!lasting) {
    const end = readTime(problems, 'ending', ending, terms, { after: from, on: own?.end, isEnd: true });
    // What looks like a length is explained as one.
    if (end === undefined && /^\s*\d+\s*[a-z]/i.test(`${ending}`))
      readTyped(problems, 'ending', `${ending}`, (text) => parseLasting(text, bandwidth));
    return { start: from, end };
  }
  if (lasting.length === undefined || from === undefined) return { start: from };
  const end = from + lasting.length;
  // It must last that long, although it starts only when the request arrives.
  const late = start === 'now' ? Math.ceil((end + ON_THE_WAY) / 1000) * 1000 : end;
  return { start: from, end: Math.max(end, Math.min(late, expiry)) };
}

function periodOf(problems: Map<Field, string>, { start, end }: Partial<Period>): Period | undefined {
  if (end === undefined) return undefined;
  if (end > LAST_INSTANT) problems.set('ending', 'That is after the year 9999.');
  else if (start !== undefined && end <= start) problems.set('ending', 'It would end before it starts.');
  else if (start !== undefined) return { start, end };
  return undefined;
}

/** A time, typed as on the command line; undefined where it can't be read. */
function readTime(
  problems: Map<Field, string>,
  field: Field,
  time: number | string,
  { now, zone }: DraftTerms,
  reading: TimeReading,
): number | undefined {
  if (typeof time === 'number') return time;
  return readTyped(problems, field, time, (text) => parseTime(text, { now, zone }, reading));
}

/**
 * How long something lasts, in milliseconds: a duration, or as long as a volume takes at a bandwidth, which may not be known.
 *
 * @throws Failure for another text
 */
function parseLasting(text: string, bandwidth: number | undefined): { length?: number } {
  if (!/\d\s*(?:[GTPE]|[KMGTPE]?i?B)$/i.test(text.trim())) return { length: parseDuration(text) };
  const bits = parseVolume(text) * 8;
  return bandwidth ? { length: Math.max(MINUTE, Math.ceil(bits / (bandwidth * MEGA)) * SECOND) } : {};
}

/** See {@link parseLasting}; undefined for another text, which may be a time. */
function readLasting(ending: Draft['ending'], bandwidth?: number): { length?: number } | undefined {
  try {
    return typeof ending === 'string' ? parseLasting(ending, bandwidth) : undefined;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return undefined;
  }
}

/** Whether a draft says how long it lasts, and not until when. */
export function isLength({ ending }: Pick<Draft, 'ending'>): boolean {
  return readLasting(ending) !== undefined;
}

/** Reads a typed value; a failure becomes the field's problem. */
function readTyped<Value>(
  problems: Map<Field, string>,
  field: Field,
  text: string,
  read: (text: string) => Value,
): Value | undefined {
  if (text.trim() === '') {
    problems.set(field, '');
    return undefined;
  }
  try {
    return read(text);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    problems.set(field, [error.message, error.facts.why].filter(Boolean).join(' '));
    return undefined;
  }
}

/** The form for changing a reservation. */
export function draftOf({ id, site1, site2, bandwidth, start, end, name }: Own): Draft {
  return {
    ...{ id, site1, site2, start, name: name ?? '' },
    bandwidth: bandwidthWord(bandwidth),
    ending: end,
  };
}

/** The form filled with two sites, or with a free time between them; what else was typed stays. */
export function picked(draft: Draft, { site1, site2 }: Ends, period?: Period): Draft {
  const { id, isDragged: _, ...typed } = draft;
  const isSame = id === undefined && isSamePair(draft, { site1, site2 });
  return {
    ...typed,
    ...(isSame ? {} : { site1, site2, via: undefined }),
    ...(id === undefined ? {} : { name: '' }),
    ...(period ? { start: period.start, ending: period.end } : {}),
  };
}

/**
 * The form filled with two sites and a start: it lasts as long as before, and carries as much.
 *
 * @param period what the draft before means, where it means one
 */
export function startedAt(draft: Draft, ends: Ends, start: number, period?: Period): Draft {
  const moved = { ...picked(draft, ends), start };
  return isLength(moved) || !period ? moved : { ...moved, ending: start + period.end - period.start };
}

/** The form filled with an alternative of the service: only what differs from the period, and the rest, that was asked for. */
export function withAlternative(draft: Draft, alternative: Alternative, asked: Period): Draft {
  const { start_date, end_date, bandwidth, via } = alternative;
  const isNow = start_date === null;
  const [from, end] = [isNow ? asked.start : Date.parse(start_date), Date.parse(end_date)];
  const isAsLong = end - from === asked.end - asked.start;
  return {
    ...draft,
    via: via ?? draft.via,
    bandwidth: bandwidthWord(bandwidth),
    start: isNow ? 'now' : from,
    ending: isAsLong && isLength(draft) ? draft.ending : end,
  };
}

/** The draft with the instants that its typed times mean, as far as they can be read: they mean the same in another zone. */
export function fixed(draft: Draft, { times }: Pick<ReadDraft, 'times'>): Draft {
  const { start, ending } = draft;
  return {
    ...draft,
    start: start === 'now' ? start : (times.start ?? start),
    ending: isLength(draft) ? ending : (times.end ?? ending),
  };
}

/**
 * Whether two wishes ask for the same. Times that go with the clock, such as `now` and `+2h`, may differ by the time that has
 * passed; others may not, such as `tomorrow` after midnight.
 */
export function isSameWish(one: Wish, other: Wish): boolean {
  const passed = Math.abs(one.at - other.at) + SECOND;
  const fixedParts = ({ id, request: { start: _start, end: _end, ...rest } }: Wish): string =>
    JSON.stringify([id, rest, typeof _start]);
  return (
    fixedParts(one) === fixedParts(other) &&
    Math.abs(one.period.start - other.period.start) <= passed &&
    Math.abs(one.period.end - other.period.end) <= passed
  );
}

/** Whether two drafts ask for the same. */
export function isSameDraft(one: Draft, other: Draft): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** A draft that was kept as text; undefined for text that is none. */
export function readKept(text: string): Draft | undefined {
  try {
    const kept: Draft = JSON.parse(text);
    const { id, site1, site2, bandwidth, start, ending, name } = kept;
    const isTime = (value: unknown): boolean => typeof value === 'string' || Number.isSafeInteger(value);
    const isWhole =
      [site1, site2, bandwidth, name, id ?? ''].every((value) => typeof value === 'string') &&
      [start, ending].every(isTime);
    return isWhole ? kept : undefined;
  } catch {
    return undefined;
  }
}
