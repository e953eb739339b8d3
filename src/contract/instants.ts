import { MINUTE } from './durations.ts';

const RFC3339 =
  /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d{1,12}))?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)?$/;

/** The last instant whose year has four digits, in milliseconds; the first is the Unix epoch. */
export const LAST_INSTANT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** The times in the examples of the API's description. A server puts tomorrow's in their place when it is asked. */
export const EXAMPLE_START = '2030-01-01T10:00:00.000Z';
/** See {@link EXAMPLE_START}: two hours later. */
export const EXAMPLE_END = '2030-01-01T12:00:00.000Z';
/** See {@link EXAMPLE_START}: two hours after {@link EXAMPLE_END}. */
export const EXAMPLE_LATER = '2030-01-01T14:00:00.000Z';
/** See {@link EXAMPLE_START}: the day before; a server puts today in its place. */
export const EXAMPLE_CREATED = '2029-12-31T00:00:00.000Z';

/** What to do with a timestamp that names no zone. */
export type ZoneRule = 'required' | 'utc-if-absent';

/**
 * The instant that an RFC 3339 timestamp names, in whole milliseconds since the Unix epoch, or undefined when the
 * text is none.
 *
 * Digits below the millisecond are dropped. A day that does not exist (30 February), an hour 24, a second 60 and a
 * year of other than four digits are refused. A timestamp without a zone is refused, unless `zone` says that it
 * means UTC, which holds for replies only (contract/README.md, "Timestamps").
 *
 * @example parseInstant('2026-12-01T10:00:00.5Z') // 1796119200500
 * @example parseInstant('2026-12-01T10:00:00') // undefined: no zone
 * @example parseInstant('2026-02-30T10:00:00Z') // undefined: no such day
 */
export function parseInstant(text: string, zone: ZoneRule = 'required'): number | undefined {
  const [, day, time, fraction = '', offset] = RFC3339.exec(text) ?? [];
  if (day === undefined || (offset === undefined && zone === 'required')) return undefined;
  const named = `${day}T${time}`;
  const at = (behind: string) => Date.parse(`${named}.${fraction.padEnd(3, '0').slice(0, 3)}${behind}`);
  const local = at('Z');
  // The platform carries some days and hours over: 30 February becomes 2 March.
  if (Number.isNaN(local) || !formatInstant(local).startsWith(named)) return undefined;
  const instant = at(offset?.toUpperCase() ?? 'Z');
  return instant < 0 || instant > LAST_INSTANT ? undefined : instant;
}

/**
 * An instant as the services write it: UTC with three digits of milliseconds (contract/README.md, "Connectivity
 * reservation").
 *
 * @param instant milliseconds since the Unix epoch
 * @throws RangeError where it is no instant
 */
export function formatInstant(instant: number): string {
  return new Date(instant).toISOString();
}

/** The abbreviations that are names of zones. The platform takes others too, such as BST, which is Bangladesh's to it. */
const ABBREVIATIONS = /^(?:CET|EET|EST|GMT|HST|MET|MST|PRC|ROC|ROK|UCT|UTC|WET)$/i;

/** The names of UTC itself: known without a formatter, which takes a third of Node's own start to make. */
const UTC_NAMES = /^(?:etc\/)?(?:utc|uct|zulu|universal)$/i;

/** A zone's name in its own upper and lower case; undefined for an unknown zone. */
export function zoneName(text: string): string | undefined {
  if (UTC_NAMES.test(text)) return 'UTC';
  if (!isTimeZone(text)) return undefined;
  const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions();
  // An old name, such as CET, is resolved to another one: people see what they typed, but for its case.
  const isTyped = timeZone !== 'UTC' && timeZone.toLowerCase() !== text.toLowerCase();
  return isTyped && text !== text.toLowerCase() ? text : timeZone;
}

/** Whether a text names a time zone: an IANA name, or an offset such as `+02:00`, from -12:00 to +14:00 as on the map. */
export function isTimeZone(text: string): boolean {
  const [, sign, hours, minutes = '00'] = /^([+-])(\d\d):?(\d\d)?$/.exec(text) ?? [];
  // The platform takes others up to 23:59: "14:00-16:00" would be a time with an offset.
  if (sign && `${hours}${minutes}` > (sign === '-' ? '1200' : '1400')) return false;
  if (/^[a-z]{3}$/i.test(text) && !ABBREVIATIONS.test(text)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: text });
    return true;
  } catch {
    return false;
  }
}

/** The longest that a message repeats of what was received, in characters. */
const SHOWN = 60;

/**
 * What a message says was received in a request's member: a text cut to a readable length, a number or a word as it
 * is, and of anything else only what it is, since it may be large, deep, or secret.
 */
export function describeInput(input: unknown): string {
  if (input === undefined) return 'it is missing';
  if (typeof input === 'string') {
    return `got ${JSON.stringify(input.length > SHOWN ? `${input.slice(0, SHOWN)}…` : input)}`;
  }
  if (Array.isArray(input)) return 'got an array';
  return `got ${typeof input === 'object' && input !== null ? 'an object' : String(input)}`;
}

/** Where a reservation is in its life. Never stored: read off the clock (contract/README.md, "States"). */
export type ReservationState = 'scheduled' | 'active' | 'ended';

/**
 * The state of the half-open period `[start, end)` at an instant, all in milliseconds: before start `scheduled`,
 * from start to just before end `active`, from end on `ended`.
 */
export function stateAt(now: number, period: { start: number; end: number }): ReservationState {
  if (now < period.start) return 'scheduled';
  return now < period.end ? 'active' : 'ended';
}

/**
 * Whether an instant of a clock that can be set is less than a span ago. An instant in the future is not: the clock was
 * set back since, and how long ago it was is unknown.
 *
 * @param at what was noted by that clock, in milliseconds, as `span` and `now` are
 */
export function isWithin(at: number, span: number, now: number): boolean {
  const passed = now - at;
  return passed >= 0 && passed < span;
}

/** How long before its end a reservation is `ending_soon`, in milliseconds (cli/README.md, "Output"). */
export const SOON = 10 * MINUTE;

/** The life of a reservation, in order. */
const PHASES = ['scheduled', 'active', 'ending_soon', 'ended'] as const;
/** A part of the life of a reservation. */
export type Phase = (typeof PHASES)[number];

/** The event with which a phase begins. */
const BEGINS = { active: 'started', ending_soon: 'ending_soon', ended: 'ended' } as const;
/** An event that comes with time alone. */
export type PhaseEvent = (typeof BEGINS)[keyof typeof BEGINS];

/** A half-open period `[start, end)` in whole milliseconds since the Unix epoch. */
export interface Period {
  start: number;
  end: number;
}

/** When a reservation becomes active, ends soon, and ends. */
function turnsOf({ start, end }: Period): Record<keyof typeof BEGINS, number> {
  return { active: start, ending_soon: Math.max(start, end - SOON), ended: end };
}

/** The phase of a reservation at an instant, in milliseconds. */
export function phaseAt(at: number, period: Period): Phase {
  const turns = turnsOf(period);
  return PHASES.findLast((phase) => phase === 'scheduled' || turns[phase] <= at) ?? 'scheduled';
}

/**
 * The events of the phases after one, up to another. That a reservation ends soon is left out where it has ended by then.
 *
 * @param from undefined at the first sight: then `started` is of an active one, and `ended` alone of one that has ended
 */
export function eventsBetween(from: Phase | undefined, to: Phase): PhaseEvent[] {
  if (to === 'ended' && from === undefined) return ['ended'];
  return PHASES.slice(PHASES.indexOf(from ?? 'scheduled') + 1, PHASES.indexOf(to) + 1)
    .filter((phase) => phase !== 'ending_soon' || phase === to)
    .flatMap((phase) => (phase === 'scheduled' ? [] : BEGINS[phase]));
}

/** The first instant after one at which a reservation's phase changes, in milliseconds; undefined where none comes. */
export function nextTurn(at: number, periods: Iterable<Period>): number | undefined {
  let next: number | undefined;
  for (const period of periods) {
    for (const turn of Object.values(turnsOf(period)))
      if (turn > at && turn < (next ?? turn + 1)) next = turn;
  }
  return next;
}
