import { HOUR } from '../../contract/durations.ts';
import { ProblemError } from '../problem-error.ts';

/** An hour in milliseconds: so long a budget takes to be whole again. */

/** How many budgets are remembered at least before those that are whole again are forgotten. */
const REMEMBERED = 10_000;

/** Who makes a change: each has a budget. */
export interface ChangeMaker {
  /** `user_<host>_<opaque_id>`. */
  user: string;
  experiment: { id: string };
}

/** Limits how many changes are decided, since each leaves rows that are kept for a year or more. */
export interface ChangeBudget {
  /** @throws ProblemError 429 with `Retry-After` where the user's budget, or the experiment's, is used up */
  check(maker: ChangeMaker): void;
  /** Counts changes that a link has accepted or refused. */
  count(maker: ChangeMaker, changes: number): void;
}

/**
 * A budget of changes for each user and for each experiment. A change is a create or an update that a link has accepted or
 * refused: each leaves a row in the audit. Deletions are not limited: there is at most one for each create.
 *
 * A budget that is used up is refilled at an even rate, so a program that waits as it is told goes on within seconds. For
 * each budget one number is kept: when it will be whole again (the generic cell rate algorithm, ITU-T I.371). They are in
 * memory: each replica has its own, and a restart forgets them. Requests that are under way at once are counted when they
 * were decided, so they may go beyond the budget, which then takes longer to be whole.
 *
 * @param most changes at once, and in each hour after that; `Infinity` for no limit
 * @param now milliseconds since the Unix epoch
 */
export function createChangeBudget(most: number, now: () => number): ChangeBudget {
  const cost = HOUR / most;
  const wholeAt = new Map<string, number>();
  let sweepAt = REMEMBERED;

  /** For how many milliseconds from now on the budget is not whole. */
  function used(name: string): number {
    const left = (wholeAt.get(name) ?? 0) - now();
    // Far more than an hour is left only where the clock was set back.
    return left > 0 && left < 2 * HOUR ? left : 0;
  }

  return {
    check({ user, experiment }) {
      for (const [name, whose] of [
        [user, 'You have'],
        [experiment.id, 'This experiment has'],
      ] as const) {
        const wait = used(name) + cost - HOUR;
        // Less than a millisecond is an error of rounding.
        if (wait < 1) continue;
        const seconds = Math.ceil(wait / 1000);
        const changes = most === 1 ? 'a change' : `${most} changes`;
        const msg = `${whose} asked for ${changes} within an hour. Nothing was changed; try again in ${seconds} s.`;
        throw new ProblemError([{ code: 'too_many_requests', msg }], {}, seconds);
      }
    },
    count({ user, experiment }, changes) {
      if (!Number.isFinite(most)) return;
      if (wholeAt.size >= sweepAt) {
        for (const name of wholeAt.keys()) if (used(name) === 0) wholeAt.delete(name);
        sweepAt = Math.max(REMEMBERED, 2 * wholeAt.size);
      }
      for (const name of [user, experiment.id]) {
        // A batch may go beyond the budget, but is not paid off for more than another hour.
        wholeAt.set(name, now() + Math.min(used(name) + changes * cost, 2 * HOUR - 1));
      }
    },
  };
}
