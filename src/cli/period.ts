import type { Command } from 'commander';
import { parseDuration } from '../contract/durations.ts';
import { Failure } from '../contract/failure.ts';
import { later, parseTime, type TimeContext } from './times.ts';

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
    .option('--start <time>', 'when it starts: 2026-12-01T10:00:00Z, +2h, now, tomorrow 09:00')
    .option('--start-now', 'start at the time of the request')
    .option('--end <time>', 'when it ends')
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
      fix: '--start-now',
    });
  }
  const start =
    startText === undefined || /^\s*now\s*$/i.test(startText) ? 'now' : await parseTime(startText, context);
  const from = start === 'now' ? context.now : start;
  const end = await readEnd(flags, from, context);
  if (end === undefined) {
    throw new Failure('usage', 'The end is missing.', {
      why: 'Give --for DURATION or --end TIME.',
      fix: '--for 2h',
    });
  }
  return { start, end: checkedEnd(from, end) };
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
  for (const duration of [lasting, extend]) if (duration !== undefined) parseDuration(duration);
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
  const now = startText !== undefined && /^\s*now\s*$/i.test(startText);
  const start = startText === undefined ? undefined : now ? 'now' : await parseTime(startText, context);
  const from = start === undefined ? current.start : start === 'now' ? context.now : start;
  const end =
    extend === undefined ? await readEnd(flags, from, context) : later(current.end, parseDuration(extend));
  return {
    ...(start === undefined ? {} : { start }),
    ...(end === undefined ? {} : { end: checkedEnd(from, end) }),
  };
}

async function readEnd(
  flags: Pick<PeriodFlags, 'end' | 'for'>,
  from: number,
  context: TimeContext,
): Promise<number | undefined> {
  if (flags.end !== undefined && flags.for !== undefined) throw conflict('--end', '--for');
  if (flags.for !== undefined) return later(from, parseDuration(flags.for));
  return flags.end === undefined ? undefined : parseTime(flags.end, context);
}

function checkedEnd(start: number, end: number): number {
  if (end > start) return end;
  throw new Failure('usage', 'It would end before it starts.', {
    why: `From ${new Date(start).toISOString()} until ${new Date(end).toISOString()}.`,
  });
}

function conflict(one: string, other: string): Failure {
  return new Failure('usage', `${one} and ${other} can't be given together.`);
}
