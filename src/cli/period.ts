import { parseDuration } from '../contract/amounts.ts';
import { DAY, formatDuration, WEEK } from '../contract/durations.ts';
import { Failure } from '../contract/failure.ts';
import type { OptionsOf, OptionTable } from '../contract/flags.ts';
import { LAST_INSTANT, type Period } from '../contract/instants.ts';
import { inOneText, Sentence, sentence } from '../contract/said.ts';
import type { Session } from '../session/session.ts';
import { later, parseTime, type TimeReading } from '../words/typed-time.ts';
import type { Context } from './context.ts';
import type { TimeContext } from './times.ts';

/** The flags of a new period. */
export const PERIOD_OPTIONS = {
  start: {
    flags: '--start <time>',
    help: "when it starts: 14:00, 'tomorrow 9am', 'friday 14:00', '4 dec 09:00', 2026-12-04T10:00:00Z, +2h, now",
    conflicts: ['startNow'],
  },
  startNow: { flags: '--start-now', help: 'start at the time of the request' },
  end: {
    flags: '--end <time>',
    help: 'when it ends; 16:00 is the first one after the start, friday is through that day',
  },
  for: { flags: '--for <duration>', help: 'how long it lasts: 90m, 2h, 3d, 1w' },
} as const satisfies OptionTable;
/** The values of {@link PERIOD_OPTIONS}, as typed. */
export type PeriodFlags = OptionsOf<typeof PERIOD_OPTIONS>;

/** The flags of a change to a period. */
export const PERIOD_CHANGE_OPTIONS = {
  start: { flags: '--start <time>', help: 'the new start; 10:00 is on the day of the old one' },
  end: {
    flags: '--end <time>',
    help: 'the new end; 16:00 is on the day of the old one, friday is through that day',
    conflicts: ['for'],
  },
  for: { flags: '--for <duration>', help: 'how long it lasts, from its start' },
  extend: { flags: '--extend <duration>', help: 'how much later it ends', conflicts: ['end', 'for'] },
} as const satisfies OptionTable;
/** The values of {@link PERIOD_CHANGE_OPTIONS}, as typed. */
export type PeriodChangeFlags = OptionsOf<typeof PERIOD_CHANGE_OPTIONS>;

/** A new period; times in milliseconds. */
export interface NewPeriod {
  start: number | 'now';
  end: number;
  /** Of a period that starts with its request, how long it must last (`--for`); see {@link periodToSend}. */
  lasting?: number;
}

/**
 * The same run of a command by the service's clock, where this machine's is wrong by more than 30 s: what is
 * relative to now then lasts and starts as it was typed.
 *
 * @param options see `Session.clockAhead`
 * @throws Failure `usage` where the clocks are too far apart; see `Session.clockAhead`
 */
export async function onServiceTime(
  given: Context,
  session: Session,
  options: { isLook?: boolean } = {},
): Promise<Context> {
  const ahead = await session.clockAhead(options);
  if (ahead === 0) return given;
  const { clock } = given;
  const times: Context['clock']['times'] = async () => {
    const found = await clock.times();
    return { ...found, now: found.now + ahead };
  };
  return { ...given, clock: { ...clock, times, now: () => clock.now() + ahead } };
}

/** How long a request may take to arrive without shortening a period that starts with it, in milliseconds. */
const ON_THE_WAY = 5000;

/**
 * A period as it is sent. Where it starts with its request and has a duration, it is not to be shorter than that: it ends 5 s
 * later, rounded up to a second (cli/README.md, "Values").
 *
 * @param times when it is sent; the duration that was typed for its end is kept there
 * @param expiry the experiment's, in milliseconds, where it is known: the addition does not go past it
 * @throws Failure `usage` after the year 9999
 */
export function periodToSend<Sent extends Partial<NewPeriod>>(
  { lasting, ...period }: Sent,
  { now, typedDurations }: Pick<TimeContext, 'now' | 'typedDurations'>,
  expiry = LAST_INSTANT,
): Omit<Sent, 'lasting'> {
  if (lasting === undefined) return period;
  const end = later(now, lasting);
  const full = Math.ceil((end + ON_THE_WAY) / 1000) * 1000;
  const sent = Math.max(end, Math.min(full, expiry, LAST_INSTANT));
  typedDurations?.set(sent, lasting);
  return { ...period, end: sent };
}

/**
 * The warning where a reservation lasts shorter than `--for` asked; undefined where it does not.
 *
 * @param lasting see {@link NewPeriod}
 */
export function shortfall({ start, end }: Period, lasting: number | undefined): string | undefined {
  if (lasting === undefined || end - start >= lasting) return undefined;
  const missing = formatDuration(Math.max(1000, lasting - (end - start)));
  return `Warning: the reservation is ${missing} shorter than the ${formatDuration(lasting)} that were asked for.`;
}

/**
 * Reads the flags of a new period: a start or start now, and an end or a duration, none of which is missing.
 *
 * @throws Failure `usage` for both an end and a duration, and where it would end before it starts
 */
export function readPeriod(flags: PeriodFlags, context: TimeContext): NewPeriod {
  // A search takes both.
  if (flags.end !== undefined && flags.for !== undefined)
    throw new Failure('usage', "--end and --for can't be given together.");
  const start = readNewStart(flags, context);
  const from = start === 'now' ? context.now : start;
  const end = readEnd(flags, from, context) ?? from;
  return { start, end: checkedEnd(from, end), ...lastingOf(start, flags) };
}

/** The time in which a reservation is looked for; in milliseconds. */
interface SearchWindow {
  /** Not before. */
  start: number | 'now';
  /** Not after. Without `--end` the last instant there is. */
  end: number;
}

/**
 * Reads the flags of a search (cli/README.md, "Values"): --start is not before, by default now; --end is not
 * after.
 *
 * @param lasting how long the reservation is at least, in milliseconds. Default: any length
 * @throws Failure `usage` where it would end before it starts, or does not fit
 */
export function readSearch(flags: PeriodFlags, context: TimeContext, lasting = 1): SearchWindow {
  const named = readNewStart(flags, context);
  // A search looks ahead: whatever lies behind is not before now.
  const start = named !== 'now' && named <= context.now ? 'now' : named;
  const from = start === 'now' ? context.now : start;
  const end = readEnd({ end: flags.end }, from, context);
  if (end === undefined) return { start, end: LAST_INSTANT };
  const window = { start, end: checkedEnd(from, end) };
  if (end - from >= lasting) return window;
  throw new Failure('usage', `${formatDuration(lasting)} do not fit.`, {
    why: sentence`${periodText(from, end)} are ${formatDuration(end - from)}.`,
  });
}

/** The flags of a time that is looked at, as typed. */
type WindowFlags = Omit<PeriodFlags, 'startNow'>;

/** Reads the flags of a time that is looked at: by default from now for a week. @throws Failure `usage` */
export function readWindow(flags: WindowFlags, context: TimeContext): Period {
  const start = flags.start === undefined ? context.now : parseTime(flags.start, context);
  const end = readEnd(flags, start, context) ?? later(start, WEEK);
  return { start, end: checkedEnd(start, end) };
}

/** A period that may be open at either side; in milliseconds. */
export type Span = Partial<Record<'start' | 'end', number>>;

/** Reads the flags of a period that is open where a flag is missing. @throws Failure `usage` */
export function readSpan(flags: Pick<WindowFlags, 'start' | 'end'>, context: TimeContext): Span {
  const start = flags.start === undefined ? undefined : parseTime(flags.start, context);
  const end = readEnd({ end: flags.end }, start ?? context.now, context);
  return { start, end: end === undefined ? undefined : checkedEnd(start ?? 0, end) };
}

/**
 * Checks the flags of a change that can be checked without the reservation, before it is fetched.
 *
 * @throws Failure `usage`
 */
export function checkPeriodChange(flags: PeriodChangeFlags, context: TimeContext): void {
  const { start, end, for: lasting, extend } = flags;
  for (const time of [start, end]) if (time !== undefined) parseTime(time, context);
  if (lasting !== undefined) parseDuration(lasting);
  if (extend !== undefined) parseDuration(extend);
}

/**
 * Reads the flags of a change to an existing period, on whose days a time of day alone is. See {@link checkPeriodChange}.
 *
 * @returns only what changes
 * @throws Failure `usage`
 */
export function readPeriodChange(
  flags: PeriodChangeFlags,
  current: Period,
  context: TimeContext,
): Partial<NewPeriod> {
  const { start: startText, end: endText, extend } = flags;
  const start = startText === undefined ? undefined : readStart(startText, context, { on: current.start });
  const from = start === undefined ? current.start : start === 'now' ? context.now : start;
  const own = { ...current, from, isMoved: start !== undefined };
  let end = endText === undefined ? readEnd(flags, from, context) : readOwnEnd(endText, own, context);
  if (extend !== undefined) end = later(current.end, parseDuration(extend));
  if (end !== undefined || start !== undefined) checkedEnd(from, end ?? current.end, OWN_DAY);
  return {
    start,
    ...(end === undefined ? {} : { end }),
    ...lastingOf(start, flags),
  };
}

function readStart(text: string, context: TimeContext, reading?: TimeReading): number | 'now' {
  return /^\s*now\s*$/i.test(text) ? 'now' : parseTime(text, context, reading);
}

function readNewStart({ start }: PeriodFlags, context: TimeContext): number | 'now' {
  return start === undefined ? 'now' : readStart(start, context);
}

function lastingOf(
  start: NewPeriod['start'] | undefined,
  flags: Pick<PeriodFlags, 'for'>,
): Pick<NewPeriod, 'lasting'> {
  return start === 'now' && flags.for !== undefined ? { lasting: parseDuration(flags.for) } : {};
}

function readEnd(
  flags: Pick<PeriodFlags, 'end' | 'for'>,
  from: number,
  context: TimeContext,
): number | undefined {
  if (flags.for !== undefined) return later(from, parseDuration(flags.for));
  if (flags.end === undefined) return undefined;
  return parseTime(flags.end, context, { after: Math.max(from, context.now), isEnd: true });
}

const OWN_DAY = "A time of day alone is on the reservation's own day.";

/**
 * A new end. A time of day alone is on the day of the start where it is ahead there, unless the reservation lasts for days;
 * else it is on the day on which the reservation ends.
 */
function readOwnEnd(
  text: string,
  { start, end, from, isMoved }: Period & { from: number; isMoved: boolean },
  context: TimeContext,
): number {
  const after = Math.max(from, context.now);
  const onDayOf = (on: number): number => parseTime(text, context, { after, on, isEnd: true });
  const first = onDayOf(from);
  return isMoved || (end - start < DAY && first > after) ? first : onDayOf(end - 1);
}

function checkedEnd(start: number, end: number, more = ''): number {
  if (end > start) return end;
  throw new Failure('usage', 'It would end before it starts.', {
    why: inOneText(sentence`${periodText(start, end)}.`, more),
  });
}

function periodText(start: number, end: number): Sentence {
  return new Sentence((times) => `From ${times.ends(start, end).join(' until ')}`);
}
