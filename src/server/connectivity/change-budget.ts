import { formatDuration, HOUR, MINUTE, SECOND } from '../../contract/durations.ts';
import { tooMany } from '../problem-error.ts';
import { RateLimit } from '../rate-limit.ts';

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
 * A {@link RateLimit} of changes for each user and for each experiment. A change is a create or an update that a link has
 * accepted or refused: each leaves a row in the audit. Deletions are not limited: there is at most one for each create.
 *
 * @param most changes at once, and in each hour after that; `Infinity` for no limit
 * @param now milliseconds since the Unix epoch
 */
export function createChangeBudget(most: number, now: () => number): ChangeBudget {
  const limit = new RateLimit(most, HOUR, now);
  return {
    check({ user, experiment }) {
      for (const [name, whose] of [
        [user, 'You have'],
        [experiment.id, 'This experiment has'],
      ] as const) {
        const seconds = Math.ceil(limit.wait(name) / SECOND);
        if (seconds === 0) continue;
        const changes = most === 1 ? 'a change' : `${most} changes`;
        const again = formatDuration(
          seconds < 2 * (MINUTE / SECOND)
            ? seconds * SECOND
            : Math.ceil((seconds * SECOND) / MINUTE) * MINUTE,
        );
        const msg = `${whose} asked for ${changes} within an hour. Try again in ${again}.`;
        throw tooMany(msg, seconds);
      }
    },
    count({ user, experiment }, changes) {
      for (const name of [user, experiment.id]) limit.count(name, changes);
    },
  };
}
