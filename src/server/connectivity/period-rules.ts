import type { Period } from '../../allocator/demand.ts';
import { formatInstant } from '../../contract/instants.ts';
import type { Problem } from '../../contract/problems.ts';

/** What a period is held against; all in milliseconds. */
export interface PeriodBounds {
  /** The time of the request. */
  now: number;
  /** When the experiment expires. */
  expiry: number;
}

/**
 * The rules of SPEC.md, "Limits" 1 and "Errors" 2 (Date), for a new reservation: the experiment is active, the
 * period is not empty, does not begin in the past and does not go past the experiment's expiry.
 *
 * @returns one problem for each rule that is broken
 */
export function newPeriodProblems(period: Period, bounds: PeriodBounds): Problem[] {
  const { start, end } = period;
  const { now } = bounds;
  if (start < end && end <= now)
    return [past('end_date', end, 'A reservation can be for the time to come only.')];
  const problems = [...emptyProblems(period), ...expiryProblems(period, bounds)];
  if (start < now) problems.push(past('start_date', start, 'Give start_now=true to start at once.'));
  return problems;
}

/**
 * The same for an update: a start that stays as it was may lie in the past, a reservation that has ended can't be
 * changed, and it can't be made to have ended.
 */
export function amendedPeriodProblems(current: Period, amended: Period, bounds: PeriodBounds): Problem[] {
  const { now } = bounds;
  if (current.end <= now) {
    const msg = `The reservation ended at ${formatInstant(current.end)}; book a new one.`;
    return [{ code: 'reservation_ended', loc: 'Date', msg }];
  }
  const problems = [...emptyProblems(amended), ...expiryProblems(amended, bounds)];
  if (amended.start !== current.start && amended.start < now) {
    problems.push(past('start_date', amended.start, 'A start can stay in the past, but not be moved there.'));
  }
  if (amended.end <= now) {
    problems.push(past('end_date', amended.end, 'Delete the reservation to end it at once.'));
  }
  return problems;
}

function emptyProblems({ start, end }: Period): Problem[] {
  if (start < end) return [];
  const msg = `end_date ${formatInstant(end)} is not after start_date ${formatInstant(start)}.`;
  return [{ code: 'period_empty', loc: 'Date', msg }];
}

function expiryProblems({ end }: Period, { now, expiry }: PeriodBounds): Problem[] {
  if (expiry <= now) {
    const msg = `The experiment expired at ${formatInstant(expiry)}; use another one.`;
    return [{ code: 'experiment_expired', loc: 'Date', msg }];
  }
  if (end <= expiry) return [];
  const msg = `end_date ${formatInstant(end)} is after the experiment's expiry, ${formatInstant(expiry)}; the reservation can last until then.`;
  return [{ code: 'experiment_ends_first', loc: 'Date', msg }];
}

function past(member: string, instant: number, advice: string): Problem {
  return { code: 'date_past', loc: 'Date', msg: `${member} ${formatInstant(instant)} has passed. ${advice}` };
}
