import type { Command } from 'commander';
import { formatDuration, WEEK } from '../contract/durations.ts';
import { Failure } from '../contract/failure.ts';
import { LAST_INSTANT } from '../contract/instants.ts';
import { parseDuration } from '../contract/typed-duration.ts';
import type { Session } from '../session/session.ts';
import type { Invocation } from './invocation.ts';
import { later, parseTime, shortEnd, shortTime, type TimeContext } from './times.ts';

/** The flags of a new period, as typed. */
export interface PeriodFlags {
  start?: string;
  startNow?: boolean;
  end?: string;
  for?: string;
}

/** The flags of a change to a period, as typed. */
export interface PeriodChangeFlags extends Omit<PeriodFlags, 'startNow'> {
  extend?: string;
}

/** Adds the flags of a new period to a command. */
export function addPeriodOptions(command: Command): Command {
  return command
    .option(
      '--start <time>',
      "when it starts: 14:00, 'tomorrow 09:00', 'monday 14:00', 2026-12-01T10:00:00Z, +2h, now",
    )
    .option('--start-now', 'start at the time of the request')
    .option('--end <time>', 'when it ends; 16:00 is the first one after the start')
    .option('--for <duration>', 'how long it lasts: 90m, 2h, 3d, 1w');
}

/** Adds the flags of a change to a period. */
export function addPeriodChangeOptions(command: Command): Command {
  return command
    .option('--start <time>', 'the new start')
    .option('--end <time>', 'the new end')
    .option('--for <duration>', 'how long it lasts, from its start')
    .option('--extend <duration>', 'how much later it ends');
}

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
 * @throws Failure `usage` where the clocks are too far apart; see `Session.clockAhead`
 */
export async function onServiceTime(invocation: Invocation, session: Session): Promise<Invocation> {
  const ahead = await session.clockAhead();
  if (ahead === 0) return invocation;
  const times: Invocation['times'] = async () => {
    const context = await invocation.times();
    return { ...context, now: context.now + ahead };
  };
  return { ...invocation, times, now: () => invocation.now() + ahead };
}

/** How long a request may take to arrive without shortening a period that starts with it, in milliseconds. */
const ON_THE_WAY = 5000;

/**
 * The end to send for a period that starts with its request and is not to be shorter than asked
 * (cli/README.md, "Values"): 5 s later, rounded up to a second. All in milliseconds.
 *
 * @param expiry the experiment's: the addition does not go past it
 * @throws Failure `usage` after the year 9999
 */
function fullEnd(lasting: number, now: number, expiry = LAST_INSTANT): number {
  const end = later(now, lasting);
  return Math.max(end, Math.min(Math.ceil((end + ON_THE_WAY) / 1000) * 1000, expiry, LAST_INSTANT));
}

/**
 * A period as it is sent: where it starts with its request and has a duration, it ends late enough to last
 * that long.
 *
 * @param now when it is sent, in milliseconds
 * @param expiry the experiment's, in milliseconds, where it is known
 * @throws Failure `usage` after the year 9999
 */
export function periodToSend<Period extends Partial<NewPeriod>>(
  { lasting, ...period }: Period,
  now: number,
  expiry: number | undefined,
): Omit<Period, 'lasting'> {
  return lasting === undefined ? period : { ...period, end: fullEnd(lasting, now, expiry) };
}

/**
 * The warning where a reservation lasts shorter than `--for` asked; undefined where it does not.
 *
 * @param lasting see {@link NewPeriod}
 */
export function shortfall(
  { start, end }: { start: number; end: number },
  lasting: number | undefined,
): string | undefined {
  if (lasting === undefined || end - start >= lasting) return undefined;
  const missing = formatDuration(Math.max(1000, lasting - (end - start)));
  return `Warning: the reservation is ${missing} shorter than the ${formatDuration(lasting)} that were asked for.`;
}

/**
 * Reads the flags of a new period: a start or start now, and an end or a duration.
 *
 * @throws Failure `usage` when one is missing, two say the same thing, or it would end before it starts
 */
export async function readPeriod(flags: PeriodFlags, context: TimeContext): Promise<NewPeriod> {
  const { start: startText, startNow = false } = flags;
  if (startText !== undefined && startNow) throw conflict('--start', '--start-now');
  if (startText === undefined && !startNow) {
    throw new Failure('usage', 'The start is missing.', {
      why: 'Give --start-now or --start TIME.',
      fix: 'slices-conn reserve --help',
    });
  }
  const start = startText === undefined ? 'now' : await readStart(startText, context);
  const from = start === 'now' ? context.now : start;
  const end = await readEnd(flags, from, context);
  if (end === undefined) {
    throw new Failure('usage', 'The end is missing.', {
      why: 'Give --for DURATION or --end TIME.',
      fix: 'slices-conn reserve --help',
    });
  }
  return { start, end: checkedEnd(from, end, context), ...lastingOf(start, flags) };
}

/** The time in which a reservation is looked for; in milliseconds. */
export interface SearchWindow {
  /** Not before. */
  start: number | 'now';
  /** Not after. Without `--end` the last instant there is. */
  end: number;
}

/**
 * Reads the flags of a search (cli/README.md, "Values"): --start is not before, by default now; --end is not
 * after.
 *
 * @param lasting how long the reservation is at least, in milliseconds
 * @throws Failure `usage` where it would end before it starts, or does not fit
 */
export async function readSearch(
  { start: startText, startNow = false, end: endText }: PeriodFlags,
  lasting: number,
  context: TimeContext,
): Promise<SearchWindow> {
  if (startText !== undefined && startNow) throw conflict('--start', '--start-now');
  const named = startText === undefined ? 'now' : await readStart(startText, context);
  // A search looks ahead: whatever lies behind is not before now.
  const start = named !== 'now' && named <= context.now ? 'now' : named;
  const from = start === 'now' ? context.now : start;
  const end = await readEnd(endText === undefined ? {} : { end: endText }, from, context);
  if (end === undefined) return { start, end: LAST_INSTANT };
  const window = { start, end: checkedEnd(from, end, context) };
  if (end - from >= lasting) return window;
  throw new Failure('usage', `${formatDuration(lasting)} do not fit.`, {
    why: `From ${shortTime(from, context)} until ${shortEnd(from, end, context)} ${context.zone} are ${formatDuration(end - from)}.`,
  });
}

/** The flags of a time that is looked at, as typed. */
export type WindowFlags = Omit<PeriodFlags, 'startNow'>;

/** Reads the flags of a time that is looked at: by default from now for a week. @throws Failure `usage` */
export async function readWindow(
  flags: WindowFlags,
  context: TimeContext,
): Promise<{ start: number; end: number }> {
  const start = flags.start === undefined ? context.now : await parseTime(flags.start, context);
  const end = (await readEnd(flags, start, context)) ?? later(start, WEEK);
  return { start, end: checkedEnd(start, end, context) };
}

/** A period that may be open at either side; in milliseconds. */
export type Span = Partial<Record<'start' | 'end', number>>;

/** Reads the flags of a period that is open where a flag is missing. @throws Failure `usage` */
export async function readSpan(
  flags: Pick<WindowFlags, 'start' | 'end'>,
  context: TimeContext,
): Promise<Span> {
  const start = flags.start === undefined ? undefined : await parseTime(flags.start, context);
  const end = await readEnd({ end: flags.end }, start ?? context.now, context);
  return { start, end: end === undefined ? undefined : checkedEnd(start ?? 0, end, context) };
}

/**
 * Checks the flags of a change that can be checked without the reservation, before it is fetched.
 *
 * @throws Failure `usage`
 */
export async function checkPeriodChange(flags: PeriodChangeFlags, context: TimeContext): Promise<void> {
  const { start, end, for: lasting, extend } = flags;
  if (extend !== undefined && end !== undefined) throw conflict('--extend', '--end');
  if (extend !== undefined && lasting !== undefined) throw conflict('--extend', '--for');
  if (end !== undefined && lasting !== undefined) throw conflict('--end', '--for');
  for (const time of [start, end]) if (time !== undefined) await parseTime(time, context);
  if (lasting !== undefined) parseDuration(lasting);
  if (extend !== undefined) parseDuration(extend);
}

/**
 * Reads the flags of a change to an existing period.
 *
 * @returns only what changes
 * @throws Failure `usage`
 */
export async function readPeriodChange(
  flags: PeriodChangeFlags,
  current: { start: number; end: number },
  context: TimeContext,
): Promise<Partial<NewPeriod>> {
  await checkPeriodChange(flags, context);
  const { start: startText, extend } = flags;
  const start = startText === undefined ? undefined : await readStart(startText, context);
  const from = start === undefined ? current.start : start === 'now' ? context.now : start;
  const end =
    extend === undefined ? await readEnd(flags, from, context) : later(current.end, parseDuration(extend));
  return {
    start,
    ...(end === undefined ? {} : { end: checkedEnd(from, end, context) }),
    ...lastingOf(start, flags),
  };
}

async function readStart(text: string, context: TimeContext): Promise<number | 'now'> {
  return /^\s*now\s*$/i.test(text) ? 'now' : parseTime(text, context);
}

function lastingOf(
  start: NewPeriod['start'] | undefined,
  flags: Pick<PeriodFlags, 'for'>,
): Pick<NewPeriod, 'lasting'> {
  return start === 'now' && flags.for !== undefined ? { lasting: parseDuration(flags.for) } : {};
}

async function readEnd(
  flags: Pick<PeriodFlags, 'end' | 'for'>,
  from: number,
  context: TimeContext,
): Promise<number | undefined> {
  if (flags.end !== undefined && flags.for !== undefined) throw conflict('--end', '--for');
  if (flags.for !== undefined) return later(from, parseDuration(flags.for));
  if (flags.end === undefined) return undefined;
  return parseTime(flags.end, context, { after: Math.max(from, context.now) });
}

function checkedEnd(start: number, end: number, context: TimeContext): number {
  if (end > start) return end;
  throw new Failure('usage', 'It would end before it starts.', {
    why: `From ${shortTime(start, context)} until ${shortEnd(start, end, context)} ${context.zone}.`,
  });
}

/** The failure where two flags say the same thing, or exclude each other. */
export function conflict(one: string, other: string, why?: string): Failure {
  return new Failure(
    'usage',
    `${one} and ${other} can't be given together.`,
    why === undefined ? {} : { why },
  );
}
